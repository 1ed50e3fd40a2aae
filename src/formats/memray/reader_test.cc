#include "formats/memray/reader.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/varint.h"
#include "profile/testing.h"

namespace plimsoll::formats::memray {
namespace {

using profile::AllocationRow;
using profile::Profile;

// A file of version 13 as memray 1.20 writes it, drawn record by record.
class Drawing {
 public:
  explicit Drawing(std::uint32_t version = 13, bool is_aggregated = false, std::uint64_t skipped = 0) {
    out_.append("memray\0", 7);
    fixed(version, 4).fixed(0x030b07f0, 4).fixed(0, 1).fixed(is_aggregated ? 1 : 0, 1);
    fixed(0, 8).fixed(0, 8).fixed(1'700'000'000'000, 8).fixed(1'700'000'000'500, 8);
    text("app.py --fast").fixed(4711, 4).fixed(1, 8).fixed(skipped, 8).fixed(1, 1).fixed(0, 1).fixed(0, 1);
    if (version >= 13) text("/lib").text("/site").text("").text("/a").text("/b").text("");
  }
  Drawing& fixed(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) out_.push_back(static_cast<char>(value >> 8U * static_cast<unsigned>(i) & 255U));
    return *this;
  }
  Drawing& text(std::string_view words) {
    out_.append(words).push_back('\0');
    return *this;
  }
  Drawing& byte(unsigned value) { return fixed(value, 1); }
  Drawing& number(std::uint64_t value) {
    put_varint(out_, value);
    return *this;
  }
  Drawing& difference(std::int64_t value) {
    put_signed(out_, value);
    return *this;
  }

  Drawing& thread(std::uint64_t id) { return byte(12).fixed(id, 8); }
  Drawing& memory(std::uint64_t ms, std::uint64_t rss) { return byte(2).number(rss).number(ms); }
  // Code on one line: a table of one entry of four instructions, without columns, at its first line.
  Drawing& code(std::uint64_t id, std::string_view name, std::int64_t line) {
    byte(14).number(id).text(name).text("app.py").difference(line - last_line_);
    last_line_ = line;
    return number(2).byte(0x80U | 13U << 3U | 3U).byte(0);
  }
  Drawing& push(std::uint64_t code) { return byte(64).number(code).difference(2); }
  Drawing& pop(unsigned count) { return byte(16 | (count - 1)); }
  Drawing& allocate(unsigned allocator, std::uint64_t address, std::uint64_t size) {
    allocator < 8 ? byte(128U | 15U << 3U | allocator) : byte(128U | 15U << 3U);
    move_to(address);
    if (allocator >= 8) byte(allocator);
    return number(size);
  }
  Drawing& free(std::uint64_t address) {
    byte(128U | 15U << 3U | 5U);
    return move_to(address);
  }
  [[nodiscard]] std::string end() { return byte(1).out_; }
  [[nodiscard]] std::string cut() const { return out_; }

 private:
  Drawing& move_to(std::uint64_t address) {
    difference(static_cast<std::int64_t>(address / 8) - last_address_);
    last_address_ = static_cast<std::int64_t>(address / 8);
    return *this;
  }
  std::string out_;
  std::int64_t last_line_ = 0, last_address_ = 0;
};

constexpr unsigned kPymalloc = 2, kMalloc = 6, kMmap = 14, kMunmap = 15;

std::string stack_text(const Profile& profile, StackId stack) {
  std::string text;
  for (; !stack.is_none(); stack = profile.stacks[stack].parent) {
    const profile::Frame& frame = profile.frames[profile.stacks[stack].frame];
    const std::string name(profile.strings[profile.functions[frame.function].name]);
    text = name + ":" + std::to_string(frame.line) + (text.empty() ? "" : ";" + text);
  }
  return text;
}

// "thread stack domain birth-end(ms) blocks x bytes" of each.
std::multiset<std::string> rows(const Profile& profile, const profile::AllocationTable& table) {
  std::multiset<std::string> result;
  for (const AllocationRow& row : table) {
    const std::string end = row.freed_ns == AllocationRow::kAlive ? "" : std::to_string(row.freed_ns / 1'000'000);
    result.insert(std::string(profile.threads[row.thread.index()].name) + " " + stack_text(profile, row.stack) + " " +
                  std::to_string(row.domain) + " " + std::to_string(row.time_ns / 1'000'000) + "-" + end + " " +
                  std::to_string(row.blocks) + " x " + std::to_string(row.size));
  }
  return result;
}
using Rows = std::multiset<std::string>;

Profile read_whole(const std::string& bytes) {
  Result<Profile> profile = read(bytes);
  EXPECT_TRUE(profile.ok()) << profile.error().message;
  return profile.take();
}

TEST(Memray, BlocksHaveTheirStacksAndTimes) {
  // GIVEN main, which calls leak, which allocates three blocks, one of them freed later; and a thread with a mapping
  Drawing drawing;
  drawing.memory(10, 5000).thread(1).byte(10).text("MainThread").code(1, "main", 3).code(2, "leak", 8).push(1).push(2);
  drawing.allocate(kMalloc, 0x1000, 100).allocate(kMalloc, 0x2000, 100).memory(20, 6000);
  drawing.allocate(kPymalloc, 0x3000, 32).pop(1).free(0x1000);
  drawing.thread(2).byte(10).text("worker").push(2).allocate(kMmap, 0x10000, 4096);
  // WHEN it is read
  const Profile profile = read_whole(drawing.end());
  // THEN every block is there
  EXPECT_EQ(rows(profile, profile.allocations),
            (Rows{"MainThread main:3;leak:8 3 10-20 1 x 100", "MainThread main:3;leak:8 3 10- 1 x 100",
                  "worker leak:8 4 20- 1 x 4096", "MainThread main:3;leak:8 0 20- 1 x 32"}));
  EXPECT_TRUE(profile.complete && profile.is_exact);
  EXPECT_EQ(profile.meta_value("python"), "3.11");
  EXPECT_EQ(profile.meta_value("argv"), "app.py --fast");
  EXPECT_EQ(profile.meta_value("allocators"), "malloc and mmap");
  EXPECT_EQ(profile.end_ns, 500'000'000);
  ASSERT_EQ(profile.counters.size(), 1U);
  EXPECT_EQ(profile.counters[0].value, (std::vector<std::int64_t>{5000, 6000}));
}

TEST(Memray, TellsWhoseAllocationsItHas) {
  // GIVEN a file of --trace-python-allocators
  std::string bytes = Drawing().end();
  // (Behind it are the flag of lives, the texts of version 13 and the end.)
  ++bytes[bytes.find(std::string_view("/lib\0/site", 10)) - 2];
  // WHEN / THEN
  EXPECT_EQ(read_whole(bytes).meta_value("allocators"), "malloc, mmap and Python's");
}

TEST(Memray, ItsOwnFramesAreNotShown) {
  Drawing drawing(13, false, 1);
  drawing.thread(1).code(1, "run", 3).code(2, "main", 8).push(1).push(2).allocate(kMalloc, 8, 1);
  drawing.thread(2).push(2).allocate(kMalloc, 16, 1);
  const Profile profile = read_whole(drawing.end());
  EXPECT_EQ(rows(profile, profile.allocations), (Rows{" main:8 3 0- 1 x 1", " main:8 3 0- 1 x 1"}));
}

TEST(Memray, AddressesOfLateAreToldByTheirPlaces) {
  // GIVEN two blocks, freed by the places of their addresses in the list of the last ones
  Drawing drawing;
  drawing.thread(1).allocate(kMalloc, 0x1000, 7).allocate(kMalloc, 0x2000, 9);
  drawing.byte(128U | 1U << 3U | 5U);  // the one before the last
  const Profile profile = read_whole(drawing.end());
  EXPECT_EQ(rows(profile, profile.allocations), (Rows{"  3 0-0 1 x 7", "  3 0- 1 x 9"}));
}

TEST(Memray, VersionTwelveHasNoSearchPaths) {
  const Profile profile = read_whole(Drawing(12).thread(1).allocate(kMalloc, 8, 5).end());
  EXPECT_EQ(rows(profile, profile.allocations), (Rows{"  3 0- 1 x 5"}));
}

TEST(Memray, AnAggregatedFileHasThePeakAndTheEnd) {
  Drawing drawing(13, true, 1);
  drawing.byte(1).fixed(1'700'000'000'100, 8).fixed(9000, 8).fixed(700, 8);
  drawing.byte(1).fixed(1'700'000'000'200, 8).fixed(9500, 8).fixed(300, 8);
  drawing.code(1, "run", 3).code(2, "main", 8);
  for (const std::uint64_t code : {1U, 2U}) drawing.byte(4).number(code - 1).number(code).difference(2).byte(1);
  drawing.byte(3).number(0).number(0).byte(3).number(1).number(1);  // run, and main called from it
  const auto left = [&](std::uint64_t thread, std::uint64_t peak, std::uint64_t bytes) {
    drawing.byte(2).fixed(thread, 8).fixed(kMalloc, 8).fixed(0, 8).fixed(2, 8).fixed(0, 8);
    drawing.fixed(2, 8).fixed(bytes == 0 ? 0 : 1, 8).fixed(peak, 8).fixed(bytes, 8);
  };
  left(1, 600, 250);
  left(2, 100, 0);
  const Profile profile = read_whole(drawing.byte(15).cut());
  EXPECT_EQ(rows(profile, profile.allocations), (Rows{" main:8 3 0- 1 x 250"}));
  EXPECT_EQ(rows(profile, profile.peak_allocations), (Rows{" main:8 3 0- 2 x 600", " run:3;main:8 3 0- 2 x 100"}));
  EXPECT_EQ(profile.peak_ns, 100'000'000);
  EXPECT_TRUE(profile.complete);
}

TEST(Memray, AFileThatIsCutAnywhereIsReadUpToThere) {
  Drawing drawing;
  drawing.memory(10, 5000).thread(1).code(1, "main", 3).push(1).allocate(kMalloc, 8, 1).allocate(kMunmap, 8, 1);
  const std::string whole = drawing.free(8).end();
  const std::size_t header = Drawing().cut().size();
  for (std::size_t size = 7; size < whole.size(); ++size) {
    const Result<Profile> profile = read(whole.substr(0, size));
    ASSERT_EQ(profile.ok(), size >= header) << size;
    EXPECT_FALSE(profile.ok() && profile.value().complete) << size;
    EXPECT_TRUE(profile.ok() || profile.error().kind == ErrorKind::kBadInput) << size;
  }
}

TEST(Memray, OtherVersionsAndFilesAreRefused) {
  const Result<Profile> old = read(Drawing(11).end());
  ASSERT_FALSE(old.ok());
  EXPECT_EQ(old.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(old.error().message.find("memray table"), std::string::npos);
  const Result<Profile> other = read("\x04\x22\x4D\x18 and more");
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message.find("not one of memray"), std::string::npos);
}

TEST(Memray, TimesThatAreNoneAreNotCountedWith) {
  // GIVEN a header whose times are far apart: the least and the greatest number
  std::string bytes = Drawing().thread(1).allocate(kMalloc, 8, 5).end();
  const std::size_t start = bytes.find(std::string("\x00\x68\xe5\xcf\x8b\x01\0\0", 8));
  ASSERT_NE(start, std::string::npos);
  bytes.replace(start, 16, std::string(7, '\0') + '\x80' + std::string(7, '\xff') + '\x7f');
  const Profile profile = read_whole(bytes);
  EXPECT_EQ(profile.start_realtime_ns, 0);
  EXPECT_EQ(profile.end_ns, 0);
  EXPECT_EQ(profile.allocations.size(), 1U);
}

TEST(Memray, WhatMakesNoSenseEndsTheProfile) {
  // GIVEN more frames taken away than there are, an allocator that is none, a kind of record that is none
  Drawing pops, allocator, kind;
  for (const std::string& bytes :
       {pops.thread(1).pop(3).end(), allocator.thread(1).allocate(99, 8, 1).end(), kind.byte(11).end()}) {
    const Result<Profile> profile = read(bytes);
    ASSERT_TRUE(profile.ok());
    EXPECT_FALSE(profile.value().complete);
  }
}

}  // namespace
}  // namespace plimsoll::formats::memray
