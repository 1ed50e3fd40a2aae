#include "native/made_code.h"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "memory/image.h"
#include "memory/local.h"
#include "native/symbols.h"
#include "native/testing.h"

namespace plimsoll::native {
namespace {

constexpr std::uint64_t kCode = 0x7f0000001000;

// An object as a JIT shows it, grown section by section.
class Drawn {
 public:
  Drawn() { add("", {}); }
  Drawn& add(const std::string& name, Elf64_Shdr section, const std::string& bytes = {}) {
    section.sh_name = static_cast<Elf64_Word>(names_.size());
    section.sh_offset = sizeof(Elf64_Ehdr) + bytes_.size();
    if (!bytes.empty()) section.sh_size = bytes.size();
    names_ += name + '\0';
    bytes_ += bytes;
    sections_.push_back(section);
    return *this;
  }
  Drawn& code(std::uint64_t start, std::uint64_t size) {
    Elf64_Shdr section{};
    section.sh_type = SHT_PROGBITS;
    section.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    section.sh_addr = start;
    section.sh_size = size;
    return add(".text", section);
  }
  // Of the section that was added last.
  Drawn& function(const std::string& name, std::uint64_t offset, std::uint64_t size) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<Elf64_Word>(texts_.size());
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_shndx = static_cast<Elf64_Half>(sections_.size() - 1);
    symbol.st_value = offset;
    symbol.st_size = size;
    texts_ += name + '\0';
    symbols_.append(reinterpret_cast<const char*>(&symbol), sizeof symbol);
    return *this;
  }
  [[nodiscard]] std::string image() const {
    Drawn whole = *this;
    Elf64_Shdr symbols{};
    symbols.sh_type = SHT_SYMTAB;
    symbols.sh_link = static_cast<Elf64_Word>(sections_.size() + 1);
    Elf64_Shdr texts{};
    texts.sh_type = SHT_STRTAB;
    whole.add(".symtab", symbols, symbols_).add(".strtab", texts, texts_).add(".shstrtab", texts);
    whole.sections_.back().sh_size = whole.names_.size();
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(whole.sections_.size());
    header.e_shstrndx = static_cast<Elf64_Half>(whole.sections_.size() - 1);
    header.e_shoff = sizeof header + whole.bytes_.size() + whole.names_.size();
    std::string image(reinterpret_cast<const char*>(&header), sizeof header);
    image += whole.bytes_ + whole.names_;
    image.append(reinterpret_cast<const char*>(whole.sections_.data()), whole.sections_.size() * sizeof(Elf64_Shdr));
    return image;
  }

 private:
  std::vector<Elf64_Shdr> sections_;
  std::string bytes_, names_, symbols_, texts_;
};

std::string name_at(const MadeObject& object, std::uint64_t address) {
  const auto* found = object.names.find(address);
  return found != nullptr ? found->second.name : "";
}

TEST(MadeCode, AnObjectSaysWhereItsFunctionsAreAndHowTheyAreCalled) {
  Elf64_Shdr frames{};
  frames.sh_addr = kCode + 0x4000;
  frames.sh_size = 64;
  const auto object =
      read_made_object(Drawn()
                           .code(kCode, 0x100)
                           .function("plain", 0, 0x40)
                           .function("_ZN4made4workB2v1B38c8tJTIeFIjxB2IKSgI4CrvQClQZ6FczSBAA_3dEl", 0x40, 0x20)
                           .code(kCode + 0x1000, 0x80)
                           .function("further", 0, 0x80)
                           .add(".eh_frame", frames)
                           .image());
  ASSERT_TRUE(object.has_value());
  using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  EXPECT_EQ(object->code, (Ranges{{kCode, kCode + 0x100}, {kCode + 0x1000, kCode + 0x1080}}));
  EXPECT_EQ(object->frames, frames.sh_addr);
  EXPECT_EQ(object->frames_size, 64U);
  EXPECT_EQ(name_at(*object, kCode), "plain");
  // (Numba's tags are no part of a name.)
  EXPECT_EQ(name_at(*object, kCode + 0x5f), "made::work(long)");
  EXPECT_EQ(name_at(*object, kCode + 0x60), "");
  EXPECT_EQ(name_at(*object, kCode + 0x1010), "further");
}

TEST(MadeCode, WhatIsOutsideItsSectionHasNoName) {
  const auto object = read_made_object(
      Drawn().code(kCode, 0x100).function("beyond", 0x100, 0x10).function("too large", 0x80, 0x81).image());
  ASSERT_TRUE(object.has_value());
  EXPECT_EQ(object->names.size(), 0U);
}

TEST(MadeCode, AnImageThatIsNoneSaysNothing) {
  EXPECT_FALSE(read_made_object("").has_value());
  EXPECT_FALSE(read_made_object(std::string(4096, '\x7f')).has_value());
  EXPECT_FALSE(read_made_object(Drawn().image()).has_value());
  EXPECT_FALSE(read_made_object(Drawn().code(kCode, 0).image()).has_value());
  EXPECT_FALSE(read_made_object(Drawn().code(UINT64_MAX - 8, 64).image()).has_value());
  EXPECT_FALSE(read_made_object(Drawn().code(kCode, 0x100).code(kCode + 0x80, 0x100).image()).has_value());
  const std::string image = Drawn().code(kCode, 0x100).image();
  for (std::size_t size = 0; size < image.size(); ++size)
    EXPECT_FALSE(read_made_object(image.substr(0, size)).has_value()) << size;
}

TEST(MadeCode, MadeAnewInTheSamePlaceHasItsNewName) {
  // GIVEN a JIT that has made a function
  std::string image = Drawn().code(kCode, 0x100).function("first", 0, 0x20).image();
  std::array<std::uint64_t, 4> entry{0, 0, reinterpret_cast<std::uint64_t>(image.data()), image.size()};
  __jit_debug_descriptor = {1, 1, entry.data(), entry.data()};
  const UniqueFd program(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const std::optional<std::uint64_t> variable = variable_in(program.get(), "__jit_debug_descriptor");
  ASSERT_TRUE(variable);
  auto module = std::make_shared<Module>();
  module->first.inode = 1;
  module->slide = reinterpret_cast<std::uint64_t>(&__jit_debug_descriptor) - *variable;
  MadeCodes codes;
  codes.find_descriptors({{0, 1, module}},
                         [](const Module&) { return UniqueFd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)); });
  ASSERT_TRUE(memory::FaultGuard::ensure_installed().ok());
  const ProcessMemory memory;
  RulePool pool;
  const auto name = [&] {
    const auto* found = codes.find(kCode + 8);
    return found != nullptr ? found->second.name : "";
  };
  EXPECT_TRUE(codes.look(memory, pool));
  EXPECT_EQ(name(), "first");
  EXPECT_FALSE(codes.look(memory, pool));
  // WHEN it gives that back, and makes another one, for which malloc has the same room
  image.replace(image.find("first"), 5, "other");
  // THEN that is what the code is
  EXPECT_TRUE(codes.look(memory, pool));
  EXPECT_EQ(name(), "other");
  EXPECT_FALSE(codes.look(memory, pool));
  __jit_debug_descriptor = {1, 0, nullptr, nullptr};
}

}  // namespace
}  // namespace plimsoll::native
