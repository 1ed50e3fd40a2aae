#include "native/modules.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace plimsoll::native {
namespace {

constexpr std::uint64_t kPage = 4096;

// A library as lld lays a small one out: all parts begin in the file's first page, and in memory have a page each.
struct SmallLibrary {
  static constexpr std::uint64_t kPages = 3;
  Elf64_Ehdr file{};
  std::array<Elf64_Phdr, kPages> parts{};

  SmallLibrary() {
    std::memcpy(file.e_ident, ELFMAG, SELFMAG);
    file.e_ident[EI_CLASS] = ELFCLASS64;
    file.e_phoff = sizeof file;
    file.e_phentsize = sizeof(Elf64_Phdr);
    file.e_phnum = static_cast<Elf64_Half>(parts.size());
    for (std::uint64_t i = 0; i < parts.size(); ++i) {
      parts[i].p_type = PT_LOAD;
      parts[i].p_offset = i * 0x500;
      parts[i].p_vaddr = i * kPage + parts[i].p_offset;
      parts[i].p_filesz = parts[i].p_memsz = 0x500;
    }
  }
};

// It was loaded at each of these addresses.
std::vector<os::Mapping> mappings_at(std::initializer_list<std::uint64_t> starts) {
  std::vector<os::Mapping> mappings;
  for (const std::uint64_t start : starts)
    for (std::uint64_t i = 0; i < SmallLibrary::kPages; ++i) {
      os::Mapping& mapping = mappings.emplace_back();
      mapping.start = start + i * kPage;
      mapping.end = mapping.start + kPage;
      mapping.inode = 7;
      mapping.path = "/lib/small.so";
      mapping.is_executable = i == 1;
    }
  return mappings;
}

TEST(Modules, OfFilesWhosePartsShareAPageAreWhole) {
  // GIVEN a small library that was loaded twice, side by side
  constexpr std::uint64_t kFirst = 0x10000, kSecond = kFirst + SmallLibrary::kPages * kPage;
  const SmallLibrary library;
  memory::Image image;
  for (const std::uint64_t start : {kFirst, kSecond}) image.add(Address{start}, std::as_bytes(std::span(&library, 1)));
  image.seal();
  Modules modules(image, mappings_at({kFirst, kSecond}), [](const os::Mapping&) { return UniqueFd(); });
  // WHEN its code is looked up
  ASSERT_TRUE(modules.refresh(1).ok());
  for (const std::uint64_t start : {kFirst, kSecond}) {
    const std::shared_ptr<const Module> module = modules.find(Address{start + kPage + 0x510}, 1);
    // THEN it begins where the first part is, although the file begins anew with each part
    ASSERT_NE(module, nullptr);
    EXPECT_EQ(module->first.start, start);
    EXPECT_EQ(module->slide, start);
    EXPECT_EQ(module->end, start + SmallLibrary::kPages * kPage);
  }
}

TEST(Modules, OfWhatIsNoElfFileBeginWhereTheFileDoes) {
  // GIVEN the same mappings of a file without headers
  memory::Image image;
  const std::array<std::byte, SmallLibrary::kPages * kPage> bytes{};
  image.add(Address{kPage}, bytes);
  image.seal();
  Modules modules(image, mappings_at({kPage}), [](const os::Mapping&) { return UniqueFd(); });
  ASSERT_TRUE(modules.refresh(1).ok());
  const std::shared_ptr<const Module> module = modules.find(Address{2 * kPage}, 1);
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(module->first.start, 2 * kPage);
}

}  // namespace
}  // namespace plimsoll::native
