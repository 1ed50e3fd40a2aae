#include "remote/core_file.h"

#include <gtest/gtest.h>

#include <string>

#include "remote/core_testing.h"

namespace plimsoll::remote {
namespace {

using testing::append;

Elf64_Ehdr core_header(std::uint16_t segments) { return testing::elf_header(ET_CORE, segments); }

Elf64_Phdr segment(std::uint32_t type, std::uint64_t offset, std::uint64_t size) {
  return testing::segment(type, offset, 0x400000, size);
}

// What is said of it, after its name; all that is refused is bad input.
std::string refusal(const std::string& bytes) {
  const UniqueFd file = testing::hidden_file(bytes);
  const Result<CoreFile> core = open_core_file(testing::path_of(file), "");
  EXPECT_FALSE(core.ok());
  if (core.ok()) return "";
  EXPECT_EQ(core.error().kind, ErrorKind::kBadInput);
  EXPECT_TRUE(core.error().message.starts_with(testing::path_of(file)));
  return core.error().message.substr(testing::path_of(file).size());
}

TEST(CoreFile, WhatIsNoneIsSaidToBeNone) {
  // GIVEN text, a header that is cut, a program, a core file of another machine, and one that is cut in its list of
  // parts
  std::string program;
  Elf64_Ehdr head = core_header(0);
  head.e_type = ET_EXEC;
  append(program, head);
  std::string other;
  head = core_header(0);
  head.e_machine = EM_AARCH64;
  append(other, head);
  std::string cut;
  append(cut, core_header(2));
  append(cut, segment(PT_NOTE, 0, 0));
  // THEN it is said of each what it is
  EXPECT_EQ(refusal("this is no core file, but a text that is longer than a header of one would be. It goes on."),
            " is not a core file");
  EXPECT_EQ(refusal(program.substr(0, 20)), " is cut short: not even its header is whole");
  EXPECT_EQ(refusal(program), " is a program or a library, not a core file");
  EXPECT_EQ(refusal(cut), " is cut short: not even the list of its parts is whole");
  EXPECT_EQ(refusal(other), " is a core file of aarch64: those of x86-64 can be read");
}

TEST(CoreFile, SegmentsThatLieOutsideOfTheFileAreNotRead) {
  // GIVEN memory and notes that claim more than the file has, or wrap round
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{1} << 40U, ~std::uint64_t{0}})
    for (const std::uint64_t size : {std::uint64_t{64}, std::uint64_t{1} << 40U, ~std::uint64_t{0}}) {
      std::string bytes;
      append(bytes, core_header(2));
      append(bytes, segment(PT_NOTE, offset, size));
      append(bytes, segment(PT_LOAD, offset, size));
      // THEN it is cut short, unless there is so much of it
      const bool is_whole = offset == 0 && size == 64;
      EXPECT_EQ(refusal(bytes).starts_with(" is cut short: "), !is_whole) << offset << ' ' << size;
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
  // THEN no files are known
  EXPECT_EQ(refusal(bytes + note), " does not tell which files the process had mapped (NT_FILE)");
}

TEST(CoreFile, SegmentsOfNotesThatTogetherAreLargerThanTheFileAreNotRead) {
  // GIVEN a note of one file
  std::string note;
  append(note, Elf64_Nhdr{5, 48, NT_FILE});
  note.append("CORE\0\0\0\0", 8);
  for (const std::uint64_t number : {1, 4096, 0x1000, 0x2000, 0}) append(note, number);
  note.append("/no/one\0", 8);
  const auto error_after = [&](std::uint64_t before) {
    std::string bytes;
    append(bytes, core_header(2));
    const std::uint64_t heads = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr);
    append(bytes, segment(PT_NOTE, 0, before));
    append(bytes, segment(PT_NOTE, heads, note.size()));
    const UniqueFd file = testing::hidden_file(bytes + note);
    return open_core_file(testing::path_of(file), "").error();
  };
  // THEN it counts where there is room for it beside what else says that it is notes, and else does not
  EXPECT_NE(error_after(64).message.find("the program of"), std::string::npos) << error_after(64).message;
  EXPECT_NE(error_after(200).message.find("does not tell which files"), std::string::npos) << error_after(200).message;
}

}  // namespace
}  // namespace plimsoll::remote
