#include "remote/core_file.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace plimsoll::remote {
namespace {

// A file that nobody else sees, with these bytes.
class HiddenFile {
 public:
  explicit HiddenFile(const std::string& bytes) : fd_(::memfd_create("core", MFD_CLOEXEC)) {
    EXPECT_EQ(::write(fd_, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  HiddenFile(const HiddenFile&) = delete;
  HiddenFile& operator=(const HiddenFile&) = delete;
  ~HiddenFile() { ::close(fd_); }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

template <typename Struct>
void append(std::string& out, const Struct& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

Elf64_Ehdr core_header(std::uint16_t segments) {
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_ident[EI_VERSION] = EV_CURRENT;
  head.e_type = ET_CORE;
  head.e_machine = EM_X86_64;
  head.e_version = EV_CURRENT;
  head.e_phoff = head.e_ehsize = sizeof head;
  head.e_phentsize = sizeof(Elf64_Phdr);
  head.e_phnum = segments;
  return head;
}

Elf64_Phdr segment(std::uint32_t type, std::uint64_t offset, std::uint64_t size) {
  Elf64_Phdr made{};
  made.p_type = type;
  made.p_offset = offset;
  made.p_vaddr = 0x400000;
  made.p_filesz = made.p_memsz = size;
  return made;
}

ErrorKind refusal(const std::string& bytes) {
  const HiddenFile file(bytes);
  const Result<CoreFile> core = open_core_file(file.path(), "");
  EXPECT_FALSE(core.ok());
  return core.ok() ? ErrorKind::kSystem : core.error().kind;
}

TEST(CoreFile, WhatIsNoneIsSaidToBeNone) {
  // GIVEN text, a header that is cut, a program, and a core file of another machine
  std::string program;
  Elf64_Ehdr head = core_header(0);
  head.e_type = ET_EXEC;
  append(program, head);
  std::string other;
  head = core_header(0);
  head.e_machine = EM_AARCH64;
  append(other, head);
  // THEN each is bad input
  EXPECT_EQ(refusal("this is no core file, but a text that is longer than a header of one would be. It goes on."),
            ErrorKind::kBadInput);
  EXPECT_EQ(refusal(program.substr(0, 20)), ErrorKind::kBadInput);
  EXPECT_EQ(refusal(program), ErrorKind::kBadInput);
  EXPECT_EQ(refusal(other), ErrorKind::kBadInput);
}

TEST(CoreFile, SegmentsThatLieOutsideOfTheFileAreNotRead) {
  // GIVEN memory and notes that claim more than the file has, or wrap round
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{1} << 40U, ~std::uint64_t{0}})
    for (const std::uint64_t size : {std::uint64_t{64}, std::uint64_t{1} << 40U, ~std::uint64_t{0}}) {
      std::string bytes;
      append(bytes, core_header(2));
      append(bytes, segment(PT_NOTE, offset, size));
      append(bytes, segment(PT_LOAD, offset, size));
      // THEN there is no Python in it
      EXPECT_EQ(refusal(bytes), ErrorKind::kUnsupported) << offset << ' ' << size;
    }
}

TEST(CoreFile, ANoteThatClaimsMoreFilesThanItHasIsLeftOut) {
  // GIVEN a note of a million files in 16 bytes
  std::string note;
  append(note, Elf64_Nhdr{5, 16, NT_FILE});
  note.append("CORE\0\0\0\0", 8);
  append(note, std::uint64_t{1000000});
  append(note, std::uint64_t{4096});
  std::string bytes;
  append(bytes, core_header(1));
  append(bytes, segment(PT_NOTE, sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr), note.size()));
  // THEN there is no Python in it
  EXPECT_EQ(refusal(bytes + note), ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace plimsoll::remote
