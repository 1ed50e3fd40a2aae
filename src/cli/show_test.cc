// cli/show_test.cc: `plimsoll show` from the words to the page.
#include "cli/commands.h"

#include <gtest/gtest.h>

#include <utility>

#include "cli/exit_code.h"
#include "cli/testing.h"
#include "profile/testing.h"

namespace plimsoll::cli {
namespace {

using testing::FakeConsole;

FakeConsole console_with_profile() {
  FakeConsole console;
  console.files["app.plim"] = [] {
    return profile::testing::draw_profile(R"(
               main(app.py:9 def 8);parse(app.py:31 def 30)   60 @100
               main(app.py:9 def 8)                           10 @1500
      worker | run(work.py:3 def 2)                           30 @2000
    )");
  };
  console.files["native.plim"] = [] {
    return profile::testing::draw_profile("!_start;main;!memcpy  30\n!_start;main  70");
  };
  console.files["empty.plim"] = [] {
    profile::Profile profile = profile::testing::draw_profile("");
    profile.drops.push_back({"ring full", 7, 0});
    return profile;
  };
  return console;
}

// What `plimsoll show <words>` does.
struct Outcome {
  int code;
  std::string out, err;
};
Outcome show(std::vector<std::string> words) {
  FakeConsole console = console_with_profile();
  words.insert(words.begin(), "show");
  const int code = testing::run_words(make_show(), std::move(words), console);
  return {code, console.out, console.err};
}
bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Shows app.plim with the words that it is called with, and returns what that prints.
auto shows_app(FakeConsole& console) {
  return [&console](std::vector<std::string> words) {
    words.insert(words.begin(), {"show", "app.plim"});
    console.out.clear();
    EXPECT_EQ(testing::run_words(make_show(), std::move(words), console), kFine) << console.err;
    return console.out;
  };
}

TEST(Show, IsATreeUnlessToldOtherwise) {
  const Outcome outcome = show({"app.plim"});
  EXPECT_EQ(outcome.code, kFine);
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(contains(outcome.out, "CPU time 100 ms · 3 samples")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "↳ parse")) << outcome.out;
  EXPECT_EQ(show({"app.plim", "tree"}).out, outcome.out);
}

TEST(Show, HasFourViews) {
  EXPECT_TRUE(contains(show({"app.plim", "flat"}).out, "samples  function  where"));
  EXPECT_TRUE(contains(show({"app.plim", "lines"}).out, "app.py  self 70.0 ms"));
  EXPECT_TRUE(contains(show({"app.plim", "threads"}).out, "activity"));
}

TEST(Show, FiltersByThreadFunctionFileAndTime) {
  EXPECT_FALSE(contains(show({"app.plim", "--thread", "worker"}).out, "main"));
  EXPECT_FALSE(contains(show({"app.plim", "--thread", "101"}).out, "main"));
  EXPECT_FALSE(contains(show({"app.plim", "--function", "PARSE"}).out, "run"));
  EXPECT_FALSE(contains(show({"app.plim", "--file", "work.py"}).out, "main"));
  EXPECT_TRUE(contains(show({"app.plim", "--from", "1s", "--to", "1800ms"}).out,
                       "shown: 10.0 ms (10.0 %), 1 sample: from 1.00 s to 1.80 s"));
}

TEST(Show, LeadsFromWhatTakesTimeToItsCallers) {
  // GIVEN a function that two others call, one of them at the end of many calls
  FakeConsole console = console_with_profile();
  console.files["app.plim"] = [] {
    return profile::testing::draw_profile(R"(
      main;c1;c2;c3;c4;c5;c6;c7;c8;load;parse;scan  60
      main;parse                                    30
      main;idle                                     10)");
  };
  const auto show_app = shows_app(console);
  // WHEN callers are asked for THEN each function that takes time stands above them, and what they have of their own is
  // not told
  const std::string text = show_app({"--callers"});
  EXPECT_TRUE(contains(text, "total %  total ms  function")) << text;
  EXPECT_TRUE(contains(text, "60.0     60.00  scan\n   60.0     60.00  ↳ parse\n   60.0     60.00  ↳ load\n"));
  EXPECT_TRUE(contains(text, "30.0     30.00  parse\n   30.0     30.00  ↳ main\n")) << text;
  EXPECT_TRUE(contains(text, "deeper than 8 calls (--depth)")) << text;
  EXPECT_FALSE(contains(text, "c2")) << text;
  // AND of one function all of its time, whatever it has called
  const std::string of_parse = show_app({"--callers", "--function", "parse", "--depth", "2"});
  EXPECT_TRUE(contains(of_parse, "100.0    90.000  parse\n   66.7    60.000  ├─ load\n   33.3    30.000  └─ main\n"))
      << of_parse;
  // AND for programs all of it
  EXPECT_TRUE(contains(show_app({"--callers", "--json"}), R"("function":"c1")"));
  // AND what belongs to the import system has its name
  console.files["app.plim"] = [] {
    return profile::testing::draw_profile(
        "main;_find_and_load(<frozen importlib._bootstrap>:0);get_code(<frozen importlib._bootstrap_external>:0)  1");
  };
  const std::string of_imports = show_app({"--callers"});
  EXPECT_TRUE(contains(of_imports, " get_code ")) << of_imports;
  // AND not where there is no tree
  EXPECT_EQ(show({"app.plim", "flat", "--callers"}).code, kUsage);
}

TEST(Show, ShowsOnlyTheFileAskedForInLines) {
  EXPECT_FALSE(contains(show({"app.plim", "lines", "--file", "work.py"}).out, "app.py"));
}

TEST(Show, LeavesOutFunctionsBelowAShare) {
  const std::string flat = show({"app.plim", "flat", "--min-percent", "40"}).out;
  EXPECT_TRUE(contains(flat, "parse")) << flat;
  EXPECT_FALSE(contains(flat, "main")) << flat;
  EXPECT_TRUE(contains(show({"app.plim", "flat", "--min-percent", "40", "--sort", "total"}).out, "main"));
  EXPECT_FALSE(contains(show({"app.plim", "flat", "--min-percent", "40", "--json"}).out, R"("function":"main")"));
}

TEST(Show, GivesTheTimeOfNativeFunctionsToTheirCallers) {
  const std::string flat = show({"native.plim", "flat", "--no-native", "--json"}).out;
  EXPECT_TRUE(contains(flat, R"("function":"main")")) << flat;
  EXPECT_TRUE(contains(flat, R"("self_ns":100000000)")) << flat;
  EXPECT_FALSE(contains(flat, "memcpy")) << flat;
}

TEST(Show, HasColorsOnlyWhereAskedFor) {
  EXPECT_FALSE(contains(show({"app.plim"}).out, "\x1b"));
  EXPECT_TRUE(contains(show({"app.plim", "--color", "always"}).out, "\x1b["));
  EXPECT_TRUE(contains(show({"app.plim", "--color=never"}).out, "parse"));
}

TEST(Show, WritesJsonForEveryView) {
  for (const char* view : {"tree", "flat", "lines", "threads"}) {
    const Outcome outcome = show({"app.plim", view, "--json", "--color", "always"});
    EXPECT_EQ(outcome.code, kFine);
    EXPECT_TRUE(outcome.out.starts_with("{\"schema\":1,")) << outcome.out;
    EXPECT_TRUE(contains(outcome.out, std::string("\"view\":\"") + view + "\""));
  }
}

TEST(Show, CutsJsonOnlyWhenAskedTo) {
  EXPECT_TRUE(contains(show({"app.plim", "flat", "--json"}).out, "\"run\""));
  EXPECT_FALSE(contains(show({"app.plim", "flat", "--json", "--limit", "1"}).out, "\"run\""));
  EXPECT_FALSE(contains(show({"app.plim", "--json", "--min-percent", "50"}).out, "\"run\""));
}

TEST(Show, TakesALimitOfNoneForAll) {
  const std::string all = show({"app.plim", "tags", "--json"}).out;
  EXPECT_TRUE(contains(all, "\"samples\":3")) << all;
  EXPECT_EQ(show({"app.plim", "tags", "--json", "--limit", "0"}).out, all);
}

TEST(Show, CutsJsonOfLinesLikeText) {
  EXPECT_TRUE(contains(show({"app.plim", "lines", "--json"}).out, "work.py"));
  EXPECT_FALSE(contains(show({"app.plim", "lines", "--json", "--limit", "1"}).out, "work.py"));
  const std::string heavy = show({"app.plim", "lines", "--json", "--min-percent", "65"}).out;
  EXPECT_TRUE(contains(heavy, "\"line\":9")) << heavy;
  EXPECT_FALSE(contains(heavy, "\"line\":31")) << heavy;
}

TEST(Show, SaysThatThereIsNoSuchView) {
  const Outcome outcome = show({"app.plim", "flatt"});
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_EQ(outcome.err,
            "there is no view \"flatt\" (did you mean \"flat\"?); there are tree, flat, lines, threads, tags, alloc, "
            "live, peak, leaks, temporary, types, memory\n");
}

TEST(Show, SaysThatTheFileComesFirst) {
  const Outcome outcome = show({"flat", "app.plim"});
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_EQ(outcome.err, "the file comes first: plimsoll show app.plim flat\n");
}

TEST(Show, RefusesOptionsThatMakeNoSense) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"--from", "soon"},
                                                                                     {"--from", "2", "--to", "1"},
                                                                                     {"--sort", "name"},
                                                                                     {"--color", "red"},
                                                                                     {"--min-percent", "101"},
                                                                                     {"--min-percent", "nan"},
                                                                                     {"--depth", "0"},
                                                                                     {"--limit", "-1"}}) {
    std::vector<std::string> all = {"app.plim"};
    all.insert(all.end(), words.begin(), words.end());
    const Outcome outcome = show(all);
    EXPECT_EQ(outcome.code, kUsage) << words[0] << " " << words[1];
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(contains(outcome.err, words[0])) << outcome.err;
  }
}

TEST(Show, NamesAFileThatIsNotThere) {
  const Outcome outcome = show({"no.plim"});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_TRUE(contains(outcome.err, "no.plim")) << outcome.err;
}

TEST(Show, SaysThatAnEmptyFileEndsEarly) {
  FakeConsole console;
  console.files["cut.plim"] = [] { return profile::Profile{}; };
  EXPECT_EQ(testing::run_words(make_show(), {"show", "cut.plim"}, console), kNoSamples);
  EXPECT_EQ(console.err, "cut.plim holds no samples; it ends early: the program was killed or is still running\n");
}

TEST(Show, SaysWhyThereIsNothingToShow) {
  const Outcome empty = show({"empty.plim"});
  EXPECT_EQ(empty.code, kNoSamples);
  EXPECT_EQ(empty.err, "empty.plim holds no samples; lost: 7 samples (ring full)\n");
  const Outcome thread = show({"app.plim", "--thread", "nobody"});
  EXPECT_EQ(thread.code, kNoSamples);
  EXPECT_EQ(thread.err,
            "no sample of app.plim matches thread \"nobody\"; its threads are \"MainThread\", \"worker\"\n");
  const Outcome late = show({"app.plim", "--from", "1h"});
  EXPECT_EQ(late.code, kNoSamples);
  EXPECT_EQ(late.err, "no sample of app.plim matches from 1 h 00 min; it is 2.00 s long\n");
}

// ---- memory ----

// Blocks far larger than the distance stand for themselves.
profile::Profile profile_with_blocks() {
  profile::Profile profile = profile::testing::draw_profile("main(app.py:9 def 8);load(app.py:31 def 30)  60 @100");
  profile.allocation_distance = 1000;
  for (const std::int64_t freed_ns : {std::int64_t{500}, profile::AllocationRow::kAlive}) {
    profile::AllocationRow row;
    row.number = profile.allocations.size();
    row.time_ns = 100 * static_cast<std::int64_t>(profile.allocations.size());
    row.thread = ThreadId{0};
    row.stack = profile.samples.stack[0];
    row.size = row.chance_bytes = 2'000'000;
    row.freed_ns = freed_ns;
    profile.allocations.push_back(row);
  }
  return profile;
}

TEST(Show, ShowsMemoryAllocatedAliveAndAtThePeak) {
  FakeConsole console;
  console.files["app.plim"] = profile_with_blocks;
  const auto show_view = shows_app(console);
  EXPECT_TRUE(show_view({"alloc"}).starts_with("allocated: 4.00 MB in 2 blocks")) << console.out;
  EXPECT_TRUE(contains(console.out, "↳ load")) << console.out;
  EXPECT_TRUE(show_view({"live"}).starts_with("alive at the end: 2.00 MB in 1 block\n")) << console.out;
  EXPECT_TRUE(show_view({"peak", "--flat"}).starts_with("alive at the peak, 100 ns after the start: 4.00 MB"));
  EXPECT_TRUE(contains(show_view({"live", "--json"}), R"("self":{"bytes":2000000,"low":2000000,"high":2003689)"))
      << console.out;
}

TEST(Show, SaysOfMemoryOfAProgramThatWasKilledThatItEndsEarly) {
  // GIVEN samples of allocations of a program that was killed, and files that end before there are any
  FakeConsole console;
  console.files["app.plim"] = [] {
    profile::Profile profile = profile_with_blocks();
    profile.complete = false;
    return profile;
  };
  console.files["early.plim"] = [] {
    profile::Profile profile = profile::testing::draw_profile("main 1");
    profile.complete = false;
    return profile;
  };
  console.files["empty.plim"] = [] {
    profile::Profile profile = profile::testing::draw_profile("main 1");
    profile.is_exact = true;
    profile.complete = false;
    return profile;
  };
  const auto show_view = shows_app(console);
  // WHEN / THEN each view says so: what is alive at the end of the file may have been freed
  for (const auto& words : std::vector<std::vector<std::string>>{{"live"}, {"peak", "--flat"}, {"types"}, {"memory"}}) {
    EXPECT_TRUE(contains(show_view(words), "incomplete: the program was killed or is still running")) << console.out;
    std::vector<std::string> with_json = words;
    with_json.emplace_back("--json");
    EXPECT_TRUE(contains(show_view(with_json), R"("complete":false)")) << console.out;
  }
  EXPECT_EQ(testing::run_words(make_show(), {"show", "early.plim", "live"}, console), kUsage);
  EXPECT_TRUE(contains(console.err, "holds no allocations; it ends early: the program was killed")) << console.err;
  // AND of a recording that ended before its first allocation was written
  for (const char* const view : {"live", "alloc", "memory"}) {
    EXPECT_EQ(testing::run_words(make_show(), {"show", "empty.plim", view}, console), kNoSamples);
    EXPECT_TRUE(contains(console.err, "is left to show; it ends early: the program was killed")) << console.err;
  }
}

TEST(Show, SaysOfMemrayWhatItRecords) {
  // GIVEN exact profiles of memray's, one of which has only sums
  FakeConsole console;
  const auto show_with = [&](std::vector<std::pair<std::string, std::string>> facts) {
    console.files["app.bin"] = [facts] {
      profile::Profile profile = profile_with_blocks();
      profile.is_exact = true;
      for (const auto& [name, value] : facts) profile.set_meta(name, value);
      return profile;
    };
    console.out.clear();
    EXPECT_EQ(testing::run_words(make_show(), {"show", "app.bin", "alloc"}, console), kFine) << console.err;
    return console.out;
  };
  // WHEN / THEN
  EXPECT_TRUE(contains(show_with({{"engine", "memray"}, {"allocators", "malloc and mmap"}}),
                       "of malloc and mmap, whoever calls them: Python's small objects by their arenas, as memray"))
      << console.out;
  EXPECT_FALSE(contains(console.out, "--native-memory")) << console.out;
  EXPECT_TRUE(contains(console.out, "allocated: 4.00 MB in 2 blocks\nexact: every allocation was recorded"))
      << console.out;
  EXPECT_TRUE(contains(show_with({{"engine", "memray"}, {"allocators", "malloc, mmap and Python's"}}),
                       "of malloc, mmap and Python's, whoever calls them, as memray records them"))
      << console.out;
  EXPECT_TRUE(show_with({{"aggregated", "only what was alive at the peak and at the end"}})
                  .starts_with("alive at the end: 4.00 MB in 2 blocks\nexact, but only of what was alive"))
      << console.out;
}

TEST(Show, ShowsMemoryByTypeOverTimeLeakedAndFreedSoon) {
  FakeConsole console;
  console.files["app.plim"] = [] {
    profile::Profile profile = profile_with_blocks();
    profile.end_ns = 1000;
    profile.allocations[1].type = profile.strings.intern("dict");
    return profile;
  };
  const auto show_view = shows_app(console);
  EXPECT_TRUE(show_view({"live", "--at", "200ns", "--flat"}).starts_with("alive 200 ns after the start: 4.00 MB"))
      << console.out;
  EXPECT_TRUE(contains(console.out, "alive over time")) << console.out;
  EXPECT_TRUE(contains(console.out, "▄██████▄▄▄▄▄▄▄▄▄")) << console.out;
  EXPECT_TRUE(show_view({"leaks", "--from", "50ns", "--to", "300ns"})
                  .starts_with("allocated from 50 ns on and alive at 300 ns: 2.00 MB in 1 block\n"))
      << console.out;
  EXPECT_TRUE(show_view({"temporary"}).starts_with("freed within 1.00 ms: 2.00 MB in 1 block\n")) << console.out;
  EXPECT_TRUE(contains(console.out, "freed: 50.0 %  within 100 µs · 50.0 %  never")) << console.out;
  EXPECT_TRUE(contains(show_view({"types"}), "100.0  2.00 MB")) << console.out;
  EXPECT_TRUE(contains(console.out, "dict")) << console.out;
  EXPECT_TRUE(contains(show_view({"types", "--json"}), R"("types":[{"type":"dict","is_object":true,)")) << console.out;
  EXPECT_TRUE(contains(show_view({"alloc", "--types"}), "[type not known, or no object]")) << console.out;
  EXPECT_TRUE(contains(show_view({"memory", "--limit", "2"}), "500 ns")) << console.out;
  EXPECT_TRUE(contains(console.out, "100.0 % load")) << console.out;
  EXPECT_TRUE(contains(show_view({"memory", "--limit", "2", "--json"}), R"("moments":[{"at_ns":500,"alive":{"bytes":)"))
      << console.out;
}

TEST(Show, SaysHowManyBlocksWereFreedWithinATime) {
  // GIVEN a log of blocks that lived for 50 us, 500 us and 11 s, one that realloc has moved, and one that is alive
  FakeConsole console;
  console.files["app.plim"] = [] {
    profile::Profile profile = profile_with_blocks();
    profile.allocation_distance = 0;
    profile.is_exact = profile.has_events = profile.complete = true;
    profile::AllocationRow row = profile.allocations[0];
    profile.allocations.pop_back();
    profile.allocations[0].freed_ns = profile::AllocationRow::kAlive;
    row.is_temporary = true;
    for (const std::int64_t lived_us : {50, 500, 11'000'000, 1}) {
      row.is_temporary = lived_us != 1;
      row.freed_ns = row.time_ns + lived_us * 1000;
      profile.allocations.push_back(row);
    }
    return profile;
  };
  // WHEN what was freed within a millisecond is shown THEN that is the share that is told of it; and all is told of
  EXPECT_EQ(testing::run_words(make_show(), {"show", "app.plim", "temporary"}, console), kFine) << console.err;
  EXPECT_TRUE(console.out.starts_with("freed within 1.00 ms: 4.00 MB in 2 blocks\n")) << console.out;
  EXPECT_TRUE(contains(console.out,
                       "freed: 20.0 %  within 100 µs · 40.0 %  within 1.00 ms · 20.0 %  later · 20.0 %  moved by "
                       "realloc · 20.0 %  never\n"))
      << console.out;
  console.out.clear();
  EXPECT_EQ(testing::run_words(make_show(), {"show", "app.plim", "temporary", "--json"}, console), kFine);
  EXPECT_TRUE(contains(console.out, R"({"is_freed":false,"is_moved":true,"all":{"bytes":2000000)")) << console.out;
}

TEST(Show, TellsWhatWasCountedIfItWasInAllProcesses) {
  // GIVEN two processes that allocated, in one of which that was counted
  FakeConsole console;
  std::size_t processes = 1;
  console.files["app.plim"] = [&] {
    profile::Profile profile = profile_with_blocks();
    profile::testing::draw_sample(profile, "child@7 | run 1 @50");
    profile.allocations[1].thread = ThreadId{1};
    for (std::size_t i = 0; i < processes; ++i)
      profile.counters.push_back({ProcessId{i}, "allocated", "bytes", {100}, {3'000'000}});
    return profile;
  };
  const auto show_view = shows_app(console);
  // WHEN all that was allocated is shown THEN it is not told, as if it were all
  EXPECT_FALSE(contains(show_view({"alloc"}), "counted:")) << console.out;
  // AND where it was in both, it is
  processes = 2;
  EXPECT_TRUE(contains(show_view({"alloc"}), "counted: 6.00 MB")) << console.out;
}

TEST(Show, SaysWhoseEndIsMeantOfSeveralProcesses) {
  // GIVEN a profile of two processes WHEN it is shown THEN it says that what is alive was so at the end of its process
  FakeConsole console;
  console.files["app.plim"] = [] {
    profile::Profile profile = profile_with_blocks();
    profile::testing::draw_sample(profile, "child@7 | run 1 @50");
    return profile;
  };
  const auto show_view = shows_app(console);
  EXPECT_TRUE(show_view({"live"}).starts_with("alive at the end of its process: 2.00 MB")) << console.out;
  EXPECT_TRUE(contains(show_view({"leaks"}), "and alive at the end of its process: 2.00 MB")) << console.out;
  EXPECT_TRUE(contains(show_view({"memory"}), "what a process had is gone when it has ended")) << console.out;
}

TEST(Show, SaysWhenSumsWereTakenThatAViewIsOf) {
  // GIVEN an exact recording as sums, which were taken at 100 and at 500
  FakeConsole console;
  bool has_events = false;
  console.files["app.plim"] = [&] {
    profile::Profile profile = profile_with_blocks();
    profile.allocation_distance = 0;
    profile.is_exact = profile.complete = true;
    profile.has_events = has_events;
    profile.end_ns = 1000;
    return profile;
  };
  const auto show_view = shows_app(console);
  // WHEN views of times between are shown THEN they say of when they really are
  EXPECT_TRUE(contains(show_view({"live", "--at", "400ns"}), "\nof 100 ns, when sums were taken; --alloc=events"))
      << console.out;
  EXPECT_TRUE(contains(show_view({"leaks", "--from", "50ns", "--to", "700ns"}), "\nfrom 0 s to 500 ns, when sums"))
      << console.out;
  EXPECT_TRUE(contains(show_view({"live", "--at", "400ns", "--json"}), R"("sums_taken_ns":100)")) << console.out;
  EXPECT_TRUE(contains(show_view({"memory"}), "at which sums were taken")) << console.out;
  EXPECT_TRUE(contains(show_view({"alloc", "--from", "50ns", "--to", "300ns"}),
                       "\nallocated from 0 s to 100 ns, when sums were taken; --alloc=events"))
      << console.out;
  EXPECT_TRUE(contains(show_view({"live", "--to", "600ns", "--at", "550ns"}),
                       "\nallocated from 0 s to 500 ns, and of 500 ns, when sums were taken"))
      << console.out;
  EXPECT_TRUE(contains(show_view({"alloc", "--from", "50ns", "--json"}), R"("sums_from_ns":0,"sums_to_ns":500)"))
      << console.out;
  // AND those of the end, and of recordings that know it better, do not
  EXPECT_FALSE(contains(show_view({"live"}), "sums")) << console.out;
  EXPECT_FALSE(contains(show_view({"alloc"}), "sums")) << console.out;
  has_events = true;
  EXPECT_FALSE(contains(show_view({"live", "--at", "400ns"}), "sums")) << console.out;
  EXPECT_FALSE(contains(show_view({"alloc", "--from", "50ns"}), "sums")) << console.out;
  EXPECT_FALSE(contains(show_view({"memory"}), "sums")) << console.out;
}

TEST(Show, SaysThatExactRecordingsHaveNoTags) {
  FakeConsole console;
  console.files["app.plim"] = [] {
    profile::Profile profile = profile_with_blocks();
    profile.allocation_distance = 0;
    profile.is_exact = true;
    return profile;
  };
  EXPECT_EQ(testing::run_words(make_show(), {"show", "app.plim", "live", "--tag", "request"}, console), kNoSamples);
  EXPECT_TRUE(contains(console.err, "app.plim is left to show: exact recordings of allocations have no tags"))
      << console.err;
}

TEST(Show, SaysWhatAnExactRecordingHasLost) {
  // GIVEN an exact recording that lacks some allocations
  FakeConsole console;
  console.files["app.plim"] = [] {
    profile::Profile profile = profile_with_blocks();
    profile.allocation_distance = 0;
    profile.is_exact = profile.complete = true;
    profile.end_ns = 1000;
    profile.drops.push_back({"allocation not recorded", 5, 0});
    return profile;
  };
  // WHEN it is shown THEN no view says that all is there
  for (const char* view : {"alloc", "live", "memory"}) {
    console.out.clear();
    EXPECT_EQ(testing::run_words(make_show(), {"show", "app.plim", view}, console), kFine) << console.err;
    EXPECT_TRUE(contains(console.out, "exact, but for 5 allocations that were lost")) << console.out;
    EXPECT_FALSE(contains(console.out, "every allocation")) << console.out;
    console.out.clear();
    EXPECT_EQ(testing::run_words(make_show(), {"show", "app.plim", view, "--json"}, console), kFine) << console.err;
    EXPECT_TRUE(contains(console.out, R"("confidence":"exact","lost":5)")) << console.out;
  }
}

TEST(Show, SaysWhichViewsHaveWhichTimes) {
  EXPECT_EQ(show({"app.plim", "alloc", "--at", "1s"}).err, "--at: a time for the views live and types\n");
  EXPECT_EQ(show({"app.plim", "live", "--within", "1s"}).err, "--within: a time for the view temporary\n");
}

TEST(Show, SaysHowToRecordMemory) {
  const Outcome outcome = show({"app.plim", "live"});
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_TRUE(contains(outcome.err, "plimsoll run --alloc"));
}

TEST(Show, RefusesOptionsThatAViewDoesNotHave) {
  EXPECT_EQ(show({"app.plim", "live", "--activity", "io"}).code, kUsage);
  EXPECT_EQ(show({"app.plim", "peak", "--sort", "self"}).code, kUsage);
  EXPECT_EQ(show({"app.plim", "types", "--context", "3"}).code, kUsage);
  EXPECT_EQ(show({"app.plim", "tree", "--types"}).code, kUsage);
  EXPECT_EQ(show({"app.plim", "--limit", "1"}).err,
            "--limit: not for the view tree, but for flat, lines, tags, types, "
            "memory, alloc, live, peak, leaks, temporary\n");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"flat", "--depth", "2"},
                                                                                     {"flat", "--lines"},
                                                                                     {"flat", "--context", "1"},
                                                                                     {"flat", "--no-fold"},
                                                                                     {"threads", "--sort", "total"},
                                                                                     {"threads", "--min-percent", "1"},
                                                                                     {"live", "--limit", "3"},
                                                                                     {"live", "--flat", "--depth", "3"},
                                                                                     {"memory", "--flat"}}) {
    std::vector<std::string> all = {"app.plim"};
    all.insert(all.end(), words.begin(), words.end());
    const Outcome outcome = show(all);
    EXPECT_EQ(outcome.code, kUsage) << words[0] << " " << words[1];
    EXPECT_TRUE(contains(outcome.err, ": not for the view " + words[0])) << outcome.err;
  }
  const Outcome flat = show({"app.plim", "--flat"});
  EXPECT_EQ(flat.code, kUsage);
  EXPECT_TRUE(contains(flat.err, "plimsoll show FILE flat")) << flat.err;
}

}  // namespace
}  // namespace plimsoll::cli
