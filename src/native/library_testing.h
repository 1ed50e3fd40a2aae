// native/library_testing.h: a library that is drawn, and loaded into this process. For tests only.
#pragma once

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

#include "base/directory_testing.h"
#include "base/ids.h"
#include "base/unique_fd.h"
#include "memory/local.h"

namespace plimsoll::native::testing {

inline constexpr std::uint64_t kPage = 4096;

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

// A library that is written anew in its place, and loaded at the same address each time.
class ReloadedLibrary : public plimsoll::testing::DirectoryTest {
 protected:
  void SetUp() override {
    DirectoryTest::SetUp();
    ASSERT_TRUE(memory::FaultGuard::ensure_installed().ok());
    std::ofstream(path(kName)) << std::string(kPage, '\0');
  }
  void TearDown() override {
    ::munmap(start_, kPage);
    DirectoryTest::TearDown();
  }
  // Where content is by which it is told from others: in its build-id, behind the first KiB, or in that.
  enum class Mark : std::uint8_t { kBuildId, kFirstBytes };
  void load(char content, Mark mark = Mark::kBuildId) {
    constexpr std::size_t kIdSize = 20, kAt = 0x800;
    SmallLibrary library;
    std::array<char, kPage> page{};
    if (mark == Mark::kBuildId) {
      library.parts[1] = {};
      library.parts[1].p_type = PT_NOTE;
      library.parts[1].p_vaddr = kAt;
      library.parts[1].p_filesz = sizeof(Elf64_Nhdr) + 4 + kIdSize;
      const Elf64_Nhdr note{4, kIdSize, NT_GNU_BUILD_ID};
      std::memcpy(&page[kAt], &note, sizeof note);
      std::memset(&page[kAt + sizeof note + 4], content, kIdSize);
    }
    std::memcpy(page.data(), &library.file, sizeof library.file);
    std::memcpy(&page[sizeof library.file], library.parts.data(), sizeof library.parts);
    if (mark == Mark::kFirstBytes) page[0x300] = content;
    const UniqueFd file(::open(path(kName).c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::pwrite(file.get(), page.data(), page.size(), 0), static_cast<ssize_t>(kPage));
    start_ =
        ::mmap(start_, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE | (start_ != nullptr ? MAP_FIXED : 0), file.get(), 0);
    ASSERT_NE(start_, MAP_FAILED);
  }
  void unload() { ASSERT_EQ(::mprotect(start_, kPage, PROT_NONE), 0); }
  [[nodiscard]] Address address() const { return Address{reinterpret_cast<std::uint64_t>(start_) + 0x900}; }

  static constexpr const char* kName = "reloaded.so";
  void* start_ = nullptr;
};

}  // namespace plimsoll::native::testing
