// debuginfo/hostile_files_test.cc: files that are made to take memory or time from whoever looks for lines in them.
#include <dwarf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/directory_testing.h"
#include "base/unique_fd.h"
#include "debuginfo/hostile_testing.h"
#include "debuginfo/line_resolver.h"

namespace plimsoll::debuginfo {
namespace {

constexpr std::uint64_t kCode = 0x1000, kCodeSize = 0x1000, kInstruction = 0x1010;
constexpr std::int64_t kSecond = 1'000'000'000;

class HostileFiles : public testing::DirectoryTest {
 protected:
  std::string write(const std::string& name, const NamedSections& sections) {
    std::ofstream(path(name), std::ios::binary) << elf_with(sections);
    return path(name);
  }
  // Looks for the function at the instruction; how much CPU time that takes must be near to what it may take.
  static void look_into(const std::string& file) {
    Limits limits;
    const std::int64_t begin = thread_cpu_ns();
    limits.deadline_ns = monotonic_ns() + kSecond / 2;
    const Result<std::unique_ptr<LineResolver>> opened = LineResolver::open(file, "", limits);
    if (opened.ok()) (void)opened.value()->find(kInstruction);
    EXPECT_LT(thread_cpu_ns() - begin, 4 * kSecond);
  }
};

std::string bytes_of(std::initializer_list<int> all) {
  DebugBytes bytes;
  for (const int byte : all) bytes.put(static_cast<std::uint8_t>(byte));
  return bytes.bytes();
}

// Abbreviations: a unit, a function with its code, and what else has its code in a list of ranges.
std::string abbreviations(int tag_of_ranges) {
  const std::string unit =
      bytes_of({1, DW_TAG_compile_unit, 1, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data8, 0, 0});
  const std::string function = bytes_of({2, DW_TAG_subprogram, 1, DW_AT_name, DW_FORM_string, DW_AT_low_pc,
                                         DW_FORM_addr, DW_AT_high_pc, DW_FORM_data8, 0, 0});
  return unit + function + bytes_of({3, tag_of_ranges, 0, DW_AT_ranges, DW_FORM_sec_offset, 0, 0, 0});
}

// A library with a function, in it `count` entries of a kind that all have the same million of ranges.
NamedSections shared_ranges(int tag, std::size_t count) {
  DebugBytes unit;
  unit.put(std::uint16_t{4}).put(std::uint32_t{0}).put(std::uint8_t{8});
  unit.put(std::uint8_t{1}).put(kCode).put(kCodeSize);
  unit.put(std::uint8_t{2}).text("work").put(kCode).put(kCodeSize);
  for (std::size_t i = 0; i < count; ++i) unit.put(std::uint8_t{3}).put(std::uint32_t{0});
  unit.put(std::uint16_t{0});
  constexpr std::size_t kRanges = 1'000'000;
  DebugBytes ranges;
  for (std::size_t i = 0; i < kRanges; ++i) ranges.put(kCode + 0x100).put(kCode + 0x104);
  ranges.put(std::uint64_t{0}).put(std::uint64_t{0});
  return {{".debug_abbrev", abbreviations(tag)},
          {".debug_info", DebugBytes().unit(unit).bytes()},
          {".debug_ranges", ranges.bytes()}};
}

TEST_F(HostileFiles, AreReadNoLongerThanTheDeadlineWhateverTheirFunctionsHaveInCommon) {
  // GIVEN functions that all have the same million of ranges
  const std::string file = write("ranges.so", shared_ranges(DW_TAG_subprogram, 300));
  // THEN it is an answer or none, in time
  look_into(file);
}

TEST_F(HostileFiles, HaveNoMoreRangesThanMemoryCanTake) {
  const std::string file = write("ranges.so", shared_ranges(DW_TAG_subprogram, 300));
  // GIVEN a limit of their number, and time without limit
  Limits limits;
  limits.most_ranges = 100'000;
  const std::int64_t begin = thread_cpu_ns();
  const Result<std::unique_ptr<LineResolver>> opened = LineResolver::open(file, "", limits);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  // THEN what came before it is known
  ASSERT_FALSE(opened.value()->find(kInstruction).empty());
  EXPECT_EQ(opened.value()->find(kInstruction)[0].function, "work");
  EXPECT_LT(thread_cpu_ns() - begin, 2 * kSecond);
}

TEST_F(HostileFiles, AreReadNoLongerThanTheDeadlineWhateverWasInlined) {
  const std::string file = write("inlined.so", shared_ranges(DW_TAG_inlined_subroutine, 3000));
  look_into(file);
}

TEST_F(HostileFiles, AreNotUnpackedIfTheySayThatTheyBecomeTooLarge) {
  // GIVEN debug information that is packed, in either way, and says that it is 1 TiB
  constexpr std::uint64_t kSize = std::uint64_t{1} << 40U;
  Elf64_Chdr head{};
  head.ch_type = ELFCOMPRESS_ZLIB;
  head.ch_size = kSize;
  head.ch_addralign = 1;
  const std::string packed = DebugBytes().put(head).bytes() + "packed";
  const std::string older = std::string("ZLIB") + bytes_of({0, 0, 1, 0, 0, 0, 0, 0}) + "packed";
  for (const NamedSection& section :
       {NamedSection{".debug_info", packed, SHF_COMPRESSED}, NamedSection{".zdebug_info", older}}) {
    const std::string file = write("packed.so", {section});
    const Result<std::unique_ptr<LineResolver>> opened = LineResolver::open(file, "", {});
    // THEN it is refused, in words
    ASSERT_FALSE(opened.ok());
    EXPECT_NE(opened.error().message.find("unpacked it is too large"), std::string::npos) << opened.error().message;
  }
}

TEST_F(HostileFiles, HaveNoTablesOfLinesThatAreLargerThanAnyCompilers) {
  // GIVEN a function in a unit whose table of lines has a line in each of `count` bytes
  const auto line_of = [&](std::size_t count) {
    DebugBytes header, table, unit;
    header.text(bytes_of({1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1}));
    header.text("a.c").put(std::uint32_t{0});
    table.put(std::uint16_t{4}).put(static_cast<std::uint32_t>(header.bytes().size()));
    std::string program = table.bytes() + header.bytes() + bytes_of({0, 9, 2}) + DebugBytes().put(kCode).bytes();
    program += bytes_of({0x30});          // an instruction further, a line further
    program += std::string(count, 0x13);  // a line further
    program += bytes_of({2, 0x80, 0x20, 0, 1, 1});
    const std::string lines = DebugBytes().put(static_cast<std::uint32_t>(program.size())).bytes() + program;
    std::string abbreviation = abbreviations(DW_TAG_subprogram);
    abbreviation.insert(7, bytes_of({DW_AT_stmt_list, DW_FORM_sec_offset}));
    unit.put(std::uint16_t{4}).put(std::uint32_t{0}).put(std::uint8_t{8});
    unit.put(std::uint8_t{1}).put(kCode).put(kCodeSize).put(std::uint32_t{0});
    unit.put(std::uint8_t{2}).text("work").put(kCode).put(kCodeSize).put(std::uint16_t{0});
    const std::string file = write(
        "lines.so",
        {{".debug_abbrev", abbreviation}, {".debug_info", DebugBytes().unit(unit).bytes()}, {".debug_line", lines}});
    const Result<std::unique_ptr<LineResolver>> opened = LineResolver::open(file, "", {});
    const std::vector<Place> places = opened.ok() ? opened.value()->find(kInstruction) : std::vector<Place>{};
    EXPECT_EQ(places.size(), 1U);
    return places.empty() ? 0U : places[0].line;
  };
  // THEN there are lines of one that may be, and none of one that is too large
  EXPECT_NE(line_of(100), 0U);
  EXPECT_EQ(line_of(20'000'000), 0U);
}

TEST_F(HostileFiles, HaveNamesHoweverDeepTheirEntriesAreInEachOther) {
  // GIVEN a unit of C++ that begins with 100,000 blocks in each other
  constexpr std::size_t kDepth = 100'000;
  std::string abbreviation = abbreviations(DW_TAG_subprogram);
  abbreviation.insert(7, bytes_of({DW_AT_language, DW_FORM_data1}));
  abbreviation.back() = 4;
  abbreviation += bytes_of({DW_TAG_lexical_block, 1, 0, 0, 0});
  DebugBytes unit;
  unit.put(std::uint16_t{4}).put(std::uint32_t{0}).put(std::uint8_t{8});
  unit.put(std::uint8_t{1}).put(kCode).put(kCodeSize).put(static_cast<std::uint8_t>(DW_LANG_C_plus_plus));
  for (std::size_t i = 0; i < kDepth; ++i) unit.put(std::uint8_t{4});
  for (std::size_t i = 0; i < kDepth; ++i) unit.put(std::uint8_t{0});
  unit.put(std::uint8_t{2}).text("work").put(kCode).put(kCodeSize).put(std::uint16_t{0});
  const std::string file =
      write("deep.so", {{".debug_abbrev", abbreviation}, {".debug_info", DebugBytes().unit(unit).bytes()}});
  const Result<std::unique_ptr<LineResolver>> opened = LineResolver::open(file, "", {});
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const std::vector<Place> places = opened.value()->find(kInstruction);
  // THEN the one behind them has its name
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places[0].function, "work");
}

TEST_F(HostileFiles, AreNotWaitedForWhereTheyNameAFifo) {
  // GIVEN libraries whose debug information is said to be in a file beside them, which is one that nobody writes to
  ASSERT_EQ(::mkfifo(path("apart").c_str(), 0600), 0);
  DebugBytes link;
  const std::string linked =
      write("linked.so", {{".gnu_debuglink", link.text("apart").put('\0').put('\0').put(7).bytes()}});
  const std::string upwards = write(
      "upwards.so",
      {{".gnu_debuglink", DebugBytes().text("../" + directory_.filename().string() + "/apart").bytes() + "1234567"}});
  constexpr int kNameAndId[] = {0xb0, 0x42, 0xb1, 0x42};  // DW_AT_GNU_dwo_name, DW_AT_GNU_dwo_id
  const std::string skeleton = bytes_of({1, DW_TAG_compile_unit, 0, kNameAndId[0], kNameAndId[1], DW_FORM_string,
                                         kNameAndId[2], kNameAndId[3], DW_FORM_data8, 0, 0, 0});
  DebugBytes unit;
  unit.put(std::uint16_t{4}).put(std::uint32_t{0}).put(std::uint8_t{8});
  unit.put(std::uint8_t{1}).text("apart").put(std::uint64_t{1});
  const std::string split =
      write("split.so", {{".debug_abbrev", skeleton}, {".debug_info", DebugBytes().unit(unit).bytes()}});
  // WHEN names are looked for in them, while somebody tries to write to it, which works if it is open for reading
  std::atomic<bool> is_over{false}, was_opened{false};
  std::thread writer([&] {
    while (!is_over) {
      const UniqueFd fd(::open(path("apart").c_str(), O_WRONLY | O_NONBLOCK));
      if (fd.is_open()) was_opened = true;  // (and whoever waits goes on)
      ::usleep(1'000);
    }
  });
  for (const std::string& file : {linked, upwards, split}) look_into(file);
  is_over = true;
  writer.join();
  // THEN nobody waits for it
  EXPECT_FALSE(was_opened);
}

}  // namespace
}  // namespace plimsoll::debuginfo
