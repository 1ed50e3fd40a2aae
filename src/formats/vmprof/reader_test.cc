// formats/vmprof/reader_test.cc: profiles of every version, word size and system.
#include "formats/vmprof/reader.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "formats/vmprof/testing.h"
#include "profile/flat.h"

namespace plimsoll::formats::vmprof {
namespace {

using testing::draw_file;
using testing::Drawing;

profile::Profile profile_of(std::string_view bytes) {
  Result<profile::Profile> profile = read(bytes);
  EXPECT_TRUE(profile.ok()) << profile.error().message;
  return profile.ok() ? profile.take() : profile::Profile{};
}

std::string frame_text(const profile::Profile& profile, FrameId id) {
  const profile::Frame& frame = profile.frames[id];
  const profile::Function& function = profile.functions[frame.function];
  std::string text(function.kind == profile::FunctionKind::kNative ? "!" : "");
  text += profile.strings[function.name];
  if (!function.file.is_none())
    text += "(" + std::string(profile.strings[function.file]) + ":" + std::to_string(function.first_line) + ")";
  if (frame.line != 0) text += "@" + std::to_string(frame.line);
  if (!frame.trace.is_none()) text += "{" + std::string(profile.strings[frame.trace]) + "}";
  return text;
}

// A line per sample: frames, outermost call first, and the weight in microseconds.
std::string samples_text(const profile::Profile& profile) {
  std::string out;
  for (std::size_t row = 0; row < profile.samples.size(); ++row) {
    for (const FrameId frame : frames_of(profile.stacks, profile.samples.stack[row]))
      out += frame_text(profile, frame) + ";";
    if (profile.samples.stack[row].is_none()) out += "-;";
    out.back() = ' ';
    out += std::to_string(profile.samples.weight_ns[row] / 1000) + "\n";
  }
  return out;
}

constexpr std::string_view kPlain = R"(
  start 100.25
  meta os linux
  name 16 py:main:1:app.py
  stack 18 16 t=7 m=2048
  stack 16 t=8 m=4096
  name 18 py:work:10:lib/work.py
  stack t=7 m=4096
  end 101.25
)";

TEST(VmprofReader, ReadsEveryVersionInEveryLayout) {
  // GIVEN the same samples in files of all versions and word sizes WHEN they are read THEN they are the same
  for (const std::string layout : {"unix64", "unix32", "win64", "win32"}) {
    for (int version = 1; version <= 7; ++version) {
      SCOPED_TRACE(layout + " version " + std::to_string(version));
      Drawing drawing;
      drawing.is_time_after = true;
      const profile::Profile profile = profile_of(drawing.draw(
          "layout " + layout + " 1000\nheader " + std::to_string(version) + " m cpython\n" + std::string(kPlain)));
      EXPECT_EQ(profile.samples.size(), 3U);
      EXPECT_EQ(profile.meta_value("format"), "vmprof " + std::to_string(version));
      EXPECT_TRUE(profile.complete);
      const auto frames = frames_of(profile.stacks, profile.samples.stack[0]);
      ASSERT_EQ(frames.size(), 2U);
      EXPECT_EQ(frame_text(profile, frames[0]), "main(app.py:1)");
      EXPECT_EQ(frame_text(profile, frames[1]), "work(lib/work.py:10)");
      EXPECT_TRUE(profile.samples.stack[2].is_none());
      EXPECT_EQ(profile.threads.size(), 2U);
      EXPECT_EQ(profile.threads[1].os_tid, 8);
      const bool has_memory = version >= 3;
      ASSERT_EQ(profile.counters.size(), has_memory ? 1U : 0U);
      if (has_memory) {
        EXPECT_EQ(profile.counters[0].value, (std::vector<std::int64_t>{2048 * 1024, 4096 * 1024, 4096 * 1024}));
      }
    }
  }
}

TEST(VmprofReader, GivesEachSampleThePeriodAndSpreadsTheTimes) {
  // GIVEN three samples of a period of 1 ms in a second
  const profile::Profile profile =
      profile_of(draw_file("layout unix64 1000\nheader 6 m cpython\n" + std::string(kPlain)));
  // WHEN they are read THEN each weighs a period, their times are spread over the second, and both are said to be
  // assumed
  EXPECT_EQ(samples_text(profile), "main(app.py:1);work(lib/work.py:10) 1000\nmain(app.py:1) 1000\n- 1000\n");
  EXPECT_EQ(profile.samples.time_ns, (std::vector<std::int64_t>{333'333'333, 666'666'666, 1'000'000'000}));
  EXPECT_EQ(profile.end_ns, 1'000'000'000);
  EXPECT_EQ(profile.start_realtime_ns, 100'250'000'000);
  EXPECT_TRUE(profile.meta_value("weights").starts_with("assumed: the period"));
  EXPECT_TRUE(profile.meta_value("times").starts_with("assumed"));
}

TEST(VmprofReader, DoesNotLetAThreadUseMoreTimeThanPassed) {
  // GIVEN four samples of 1 ms in 2 ms, as vmprof takes them on Windows WHEN they are read THEN each is half of one
  const profile::Profile profile = profile_of(draw_file(R"(
    layout win64 1000
    header 6 - cpython
    start 5
    stack 16
    stack 16
    stack 16
    stack 16
    end 5.002)"));
  EXPECT_EQ(profile.sampled_ns(), 2'000'000);
  EXPECT_TRUE(profile.meta_value("weights").starts_with("assumed: an equal share"));
}

TEST(VmprofReader, TakesLinesFromPairs) {
  // GIVEN stacks of line and id, native code without a line WHEN they are read THEN frames have lines
  const profile::Profile profile = profile_of(draw_file(R"(
    layout unix64 1000
    header 6 ln cpython
    name 16 py:main:1:app.py
    native 21 n:operator::new(unsigned long):0:/usr/lib/libstdc++.so
    native -5 n:nonsense:0:-
    stack 0 21 7 16 t=1
    end 1)"));
  EXPECT_EQ(samples_text(profile), "main(app.py:1)@7;!operator::new(unsigned long)(/usr/lib/libstdc++.so:0) 1000\n");
}

TEST(VmprofReader, SamplesOfNoThreadAreOfAllThreads) {
  // GIVEN samples of PyPy's, which all have the thread 0, whichever took them WHEN they are read
  const profile::Profile profile =
      profile_of(draw_file("layout unix64 1000\nheader 6 - pypy\nname 4 py:main:1:app.py\nstack 1 4\nend 1"));
  // THEN they are not told to be the main thread's
  ASSERT_EQ(profile.threads.size(), 1U);
  EXPECT_EQ(profile.threads[0].name, "all threads");
}

TEST(VmprofReader, MakesTracesOfPyPysTags) {
  // GIVEN two traces, one in the loop of f, and the interpreter's frame of f below it
  const std::string bytes = draw_file(R"(
    layout unix64 1000
    header 6 - pypy
    name 4 py:main:1:app.py
    name 8 py:f:2:app.py
    name 12 py:g:3:app.py
    name 16 py:h:4:app.py
    stack 6 0x7f01 3 16 6 0x7f00 3 12 3 8 1 8 1 4
    stack 3 8 1 4
    stack 5 0 1 4
    stack 4 8 1 4
    stack 2 0 1 4
    stack 7 21 1 4
    stack 1 8 1 8 1 4
    end 1)");
  // WHEN it is read THEN jitted frames know their trace and f is called once; states of the machine are frames, and
  // plain recursion stays
  EXPECT_EQ(samples_text(profile_of(bytes)),
            "main(app.py:1);f(app.py:2){0x7f00};g(app.py:3){0x7f00};h(app.py:4){0x7f01} 1000\n"
            "main(app.py:1);f(app.py:2){jit} 1000\n"
            "main(app.py:1);[gc] 1000\n"
            "main(app.py:1);f(app.py:2);[tracing] 1000\n"
            "main(app.py:1);[blackhole] 1000\n"
            "main(app.py:1);!0x15 1000\n"
            "main(app.py:1);f(app.py:2);f(app.py:2) 1000\n");
}

TEST(VmprofReader, SaysThatTheOutermostFramesAreMissingWhereAStackHasFilledPyPysBuffer) {
  // GIVEN a recursion whose stack is as PyPy leaves it where its buffer ends, and one that is a frame shorter
  const auto text_of = [](int calls, const std::string& outermost) {
    std::string file = "layout unix64 1000\nheader 7 t pypy\nname 4 py:main:1:app.py\nname 8 py:f:2:app.py\n";
    file += "name 12 py:[stack too deep: outer frames missing]:0:-\nstack";
    for (int i = 0; i < calls; ++i) file += " 1 8";
    return samples_text(profile_of(draw_file(file + outermost + " t=1 at=5\nend 6\n")));
  };
  // WHEN they are read THEN the first says that its outermost frames are missing, once, and the other is whole
  EXPECT_TRUE(text_of(508, "").starts_with("[stack too deep: outer frames missing];f(app.py:2);"));
  EXPECT_TRUE(text_of(508, " 1 12").starts_with("[stack too deep: outer frames missing];f(app.py:2);"));
  EXPECT_TRUE(text_of(506, " 1 4").starts_with("main(app.py:1);f(app.py:2);"));
  // AND so is one that fits into no buffer of PyPy's
  EXPECT_TRUE(text_of(2000, " 1 4").starts_with("main(app.py:1);f(app.py:2);"));
}

TEST(VmprofReader, TellsTaggedStacksOfOldPyPysByTheirEntries) {
  // GIVEN profiles of PyPy before tags, and with tags but an old version number WHEN read THEN both have their frames
  EXPECT_EQ(samples_text(profile_of(draw_file(R"(
    layout unix64 1000
    header 1 - pypy
    name 64 py:f:2:app.py
    name 68 py:main:1:app.py
    stack 64 68 t=0
    end)"))),
            "main(app.py:1);f(app.py:2) 1000\n");
  EXPECT_EQ(samples_text(profile_of(draw_file(R"(
    layout unix64 1000
    header 1 - pypy
    name 64 py:f:2:app.py
    name 68 py:main:1:app.py
    stack 3 64 1 68 t=0
    end)"))),
            "main(app.py:1);f(app.py:2){jit} 1000\n");
}

TEST(VmprofReader, SortsVersion0IntoPythonAndLibraries) {
  // GIVEN machine stacks with marked addresses, one of them a return address, and maps
  const profile::Profile profile = profile_of(draw_file(R"(
    layout unix64 1000
    interpreter pypy
    name 0x7700000000000010 py:main:1:app.py
    name 0x7000000000000020 py:work:2:app.py
    stack 0x400010 0x400010 0x400020 0x7f0000000500 0x7000000000000020 0x400030 0x7700000000000011 0x400040 2
    stack 0x900000 0x7700000000000010
    end
    text 00400000-00401000 r-xp 00000000 08:01 593 /usr/bin/pypy
    text 7f0000000000-7f0000001000 r-xp 00000000 08:01 594 /usr/lib/libc.so
    text this is no mapping)"));
  // WHEN it is read THEN Python functions have names, and what they call has the names of its libraries
  EXPECT_EQ(samples_text(profile),
            "main(app.py:1);work(app.py:2);!libc.so(/usr/lib/libc.so:0);!pypy(/usr/bin/pypy:0) 1000\n"
            "main(app.py:1);[unknown native code] 1000\n");
  EXPECT_TRUE(profile.complete);
}

TEST(VmprofReader, TakesTheTimeBetweenSamplesWhereItIsMeasured) {
  // GIVEN version 7 of vmprof 0.6: CPU times of 1, 3.5 and 3.5 ms, then one 2 seconds later WHEN it is read
  Drawing drawing;
  drawing.is_time_after = true;
  const profile::Profile profile = profile_of(drawing.draw(R"(
    layout unix32 1000
    header 7 - cpython
    stack 16 t=1 at=0.001
    stack 16 t=2 at=0.0035
    stack 16 t=1 at=0.0035
    stack 16 t=1 at=2.0035
    end 9)"));
  // THEN each weighs what passed since the one before, at most a second, and what is left out is told
  EXPECT_EQ(profile.samples.weight_ns, (std::vector<std::int64_t>{1'000'000, 2'500'000, 0, 1'000'000'000}));
  EXPECT_EQ(profile.samples.time_ns, (std::vector<std::int64_t>{1'000'000, 3'500'000, 3'500'000, 2'003'500'000}));
  ASSERT_EQ(profile.drops.size(), 1U);
  EXPECT_EQ(profile.drops[0].cpu_ns, 1'000'000'000);
  EXPECT_TRUE(profile.meta_value("weights").starts_with("measured"));
}

TEST(VmprofReader, MeasuresEachThreadInRealTime) {
  // GIVEN the same in real time WHEN it is read THEN threads have times of their own
  Drawing drawing;
  drawing.is_time_after = true;
  const profile::Profile profile = profile_of(drawing.draw(R"(
    layout unix64 1000
    header 7 r cpython
    stack 16 t=1 at=7.000
    stack 16 t=2 at=7.001
    stack 16 t=1 at=7.004
    stack 16 t=2 at=7.006)"));
  EXPECT_EQ(profile.samples.weight_ns, (std::vector<std::int64_t>{1'000'000, 1'000'000, 4'000'000, 5'000'000}));
  EXPECT_EQ(profile.meta_value("mode"), "wall");
  EXPECT_FALSE(profile.complete);
}

TEST(VmprofReader, BringsAllocationsAndTheirObjectsTogether) {
  // GIVEN version 7 of the fork: two sampled allocations, then a collection that tells of them, latest first, and of
  // the collector
  const profile::Profile profile = profile_of(draw_file(R"(
    layout unix64 0
    header 7 t pypy
    meta start_time_offset 50.0
    meta sample_allocated_bytes 4096
    meta gc_stats__0 gc_state
    meta gc_stats__1 total_memory_used
    meta __rtype_3 GcStruct list
    name 16 py:main:1:app.py
    allocation 1 16 t=0 at=50.5
    allocation t=0 at=50.6
    objects 11 13 2 8192 at=50.7
    end 60)"));
  // WHEN it is read THEN markers tell type and survival, and counters the statistics
  ASSERT_EQ(profile.markers.size(), 2U);
  using Fields = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(profile.markers[0].fields,
            (Fields{{"function", "main"}, {"type", "GcStruct list"}, {"survived", "yes"}, {"bytes", "4096"}}));
  EXPECT_EQ(profile.markers[0].time_ns, 500'000'000);
  EXPECT_EQ(profile.markers[1].fields,
            (Fields{{"type", "type 2"}, {"survived", "yes"}, {"external", "yes"}, {"bytes", "4096"}}));
  ASSERT_EQ(profile.counters.size(), 2U);
  EXPECT_EQ(profile.counters[1].name, "total_memory_used");
  EXPECT_EQ(profile.counters[1].unit, "bytes");
  EXPECT_EQ(profile.counters[1].value, std::vector<std::int64_t>{8192});
  EXPECT_EQ(profile.counters[1].time_ns, std::vector<std::int64_t>{700'000'000});
  EXPECT_EQ(profile.samples.size(), 0U);
}

TEST(VmprofReader, LetsTheGreaterNameWin) {
  // GIVEN an id that is named three times WHEN it is read THEN it is the name that vmprof's own reader takes
  const profile::Profile profile = profile_of(draw_file(R"(
    layout unix64 1000
    header 6 - cpython
    name 16 py:b:1:app.py
    native 16 n:x:0:-
    name 16 py:a:1:app.py
    stack 16
    end 1)"));
  EXPECT_EQ(samples_text(profile), "b(app.py:1) 1000\n");
}

TEST(VmprofReader, StepsOverMemoryThatWasNotAnnounced) {
  // GIVEN a profile of macOS with a word behind some stacks, zero or not, even one that begins like a record
  const std::string bytes = draw_file(R"(
    layout unix64 1000
    header 6 - cpython
    name 16 py:main:1:app.py
    stack 16
    bytes 00 00 00 00 00 00 00 00
    stack 16
    bytes 01 20 00 00 00 00 00 00
    stack 16
    bytes 39 30 00 00 00 00 00 00
    end 1)");
  // WHEN it is read THEN nothing is lost
  const profile::Profile profile = profile_of(bytes);
  EXPECT_EQ(profile.samples.size(), 3U);
  EXPECT_TRUE(profile.complete);
}

TEST(VmprofReader, KeepsWhatComesBeforeACutAtAnyByte) {
  // GIVEN a whole file WHEN it is cut at any byte THEN whole records are kept, in order, and never fewer than before
  const std::string whole = draw_file("layout unix64 1000\nheader 6 m cpython\n" + std::string(kPlain));
  std::size_t last = 0;
  for (std::size_t size = 40; size < whole.size(); ++size) {
    const profile::Profile profile = profile_of(std::string_view(whole).substr(0, size));
    EXPECT_FALSE(profile.complete) << size;
    EXPECT_GE(profile.samples.size(), last) << size;
    last = profile.samples.size();
  }
  EXPECT_EQ(last, 3U);
}

// How much of mapped files is in memory: bytes.
std::int64_t mapped_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssFile:")) return std::strtoll(line.c_str() + 8, nullptr, 10) * 1024;
  return 0;
}

TEST(VmprofReader, HoldsLittleOfALargeFile) {
  // GIVEN a file of 40 MB
  const std::string start = draw_file("layout unix64 1000\nheader 6 - cpython\nname 16 py:main:1:app.py\n");
  Drawing drawing;
  std::string stack = drawing.draw("layout unix64 1000\nheader 6 - cpython\nstack 16 16 16 16 16 16 16 16 16 16 t=7\n");
  stack.erase(0, draw_file("layout unix64 1000\nheader 6 - cpython\n").size());
  const std::string path = ::testing::TempDir() + "large.prof";
  {
    std::ofstream file(path, std::ios::binary);
    file << start;
    for (int i = 0; i < 400'000; ++i) file << stack;
  }
  // WHEN it is read THEN all of it is there, and most of its bytes have left the memory
  const Result<MappedFile> file = MappedFile::open(path);
  ASSERT_TRUE(file.ok());
  const std::int64_t before = mapped_bytes();
  const Result<profile::Profile> profile = read_file(file.value());
  const std::int64_t after = mapped_bytes();
  std::remove(path.c_str());
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(profile.value().samples.size(), 400'000U);
  EXPECT_EQ(profile.value().stacks.size(), 10U);
  EXPECT_LT(after - before, 20'000'000) << "of " << file.value().view().size();
  // AND what has been put aside can be read again
  EXPECT_TRUE(file.value().view().starts_with(start));
}

TEST(VmprofReader, TellsWhereBytesMakeNoSense) {
  // GIVEN a byte that is no marker WHEN it is met THEN what came before stays, and the place is told
  const profile::Profile profile = profile_of(draw_file(R"(
    layout unix64 1000
    header 6 - cpython
    stack 16
    bytes ff
    stack 16)"));
  EXPECT_EQ(profile.samples.size(), 1U);
  EXPECT_FALSE(profile.complete);
  EXPECT_NE(profile.meta_value("damage"), "");
}

TEST(VmprofReader, RefusesBigEndianAndLaterVersionsByNameAndForeignBytes) {
  // GIVEN headers of big-endian machines, and bytes of something else WHEN they are read THEN the errors say so
  const std::string wide("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\0", 24);
  const std::string narrow("\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\0", 16);
  for (const std::string& bytes : {wide, narrow}) {
    EXPECT_TRUE(is_vmprof(bytes));
    const Result<profile::Profile> profile = read(bytes);
    ASSERT_FALSE(profile.ok());
    EXPECT_EQ(profile.error().kind, ErrorKind::kUnsupported);
    EXPECT_NE(profile.error().message.find("big-endian"), std::string::npos);
  }
  const Result<profile::Profile> later = read(draw_file("layout unix64 1000\nheader 8 - cpython\nstack 16 t=1\n"));
  ASSERT_FALSE(later.ok());
  EXPECT_EQ(later.error().message, "a vmprof profile of version 8: those of 0 to 7 can be read");
  for (const std::string_view bytes : {"", "hello", "\0\0\0\0\4\0\0\0"}) EXPECT_FALSE(is_vmprof(bytes));
}

}  // namespace
}  // namespace plimsoll::formats::vmprof
