// formats/weights_test.cc: a profile weighs the same in every view, and in every format that can carry it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "formats/input.h"
#include "formats/mojo/testing.h"
#include "formats/registry.h"
#include "profile/filter.h"
#include "profile/flat.h"
#include "profile/plim_writer.h"
#include "profile/testing.h"
#include "profile/tree.h"

namespace plimsoll::formats {
namespace {

using profile::Profile;

// What each view says that all of the samples weigh. The views of functions and lines have no row for empty stacks.
void expect_one_weight(const Profile& profile) {
  std::int64_t all = 0, without_stack = 0;
  for (std::size_t row = 0; row < profile.samples.size(); ++row) {
    all += profile.samples.weight_ns[row];
    if (profile.samples.stack[row].is_none()) without_stack += profile.samples.weight_ns[row];
  }
  EXPECT_EQ(profile.sampled_ns(), all);
  for (const auto granularity : {profile::Granularity::kFunction, profile::Granularity::kLine}) {
    const profile::Tree tree = profile::tree(profile, granularity);
    std::int64_t self = 0;
    for (const profile::TreeNode& node : tree.nodes) self += node.self_ns;
    EXPECT_EQ(self, all);
    EXPECT_EQ(tree.nodes[0].total_ns, all);
  }
  for (const auto& rows : {flat(profile), lines(profile)}) {
    std::int64_t self = 0;
    for (const profile::FlatRow& row : rows) {
      self += row.self_ns;
      EXPECT_LE(row.self_ns, row.total_ns);
      EXPECT_LE(row.total_ns, all);
    }
    EXPECT_TRUE(self == all || self == all - without_stack) << self << " of " << all;
  }
  std::int64_t threads = 0;
  for (const profile::Thread& thread : profile.threads) threads += thread.cpu_ns;
  EXPECT_EQ(threads, profile.sampled_cpu_ns());
}

// Python code only, no waits and no negative weights: what all formats can say.
Profile generated(std::size_t samples, std::size_t stacks) {
  Profile profile = profile::testing::generated_profile(samples, stacks);
  // The threads of a generated profile do not know of their samples.
  for (profile::Thread& thread : profile.threads) thread.cpu_ns = 0;
  for (std::size_t row = 0; row < profile.samples.size(); ++row)
    profile.threads[profile.samples.thread[row].index()].cpu_ns += profile.samples.weight_ns[row];
  return profile;
}

// Calls back for each sample, with the frames of its stack, the outermost first.
struct FrameText {
  std::string_view name, file;
  std::uint32_t line = 0;
};
using Visitor = std::function<void(std::size_t row, const std::vector<FrameText>& frames)>;
void for_each_sample(const Profile& profile, const Visitor& visit) {
  for (std::size_t row = 0; row < profile.samples.size(); ++row) {
    std::vector<FrameText> frames;
    for (const FrameId id : frames_of(profile.stacks, profile.samples.stack[row])) {
      const profile::Frame& frame = profile.frames[id];
      const profile::Function& function = profile.functions[frame.function];
      frames.push_back({profile.strings[function.name], profile.strings[function.file], frame.line});
    }
    visit(row, frames);
  }
}
std::int64_t microseconds(const Profile& profile, std::size_t row) {
  return (profile.samples.weight_ns[row] + 500) / 1'000;
}

// The formats that are only read, as their tools write them.
std::string write_pyinstrument(const Profile& profile) {
  std::string text = R"({"start_call_stack":[],"frame_records":[)";
  for_each_sample(profile, [&](std::size_t row, const std::vector<FrameText>& frames) {
    text += row == 0 ? "[[" : ",[[";
    for (const FrameText& frame : frames)
      text += fmt::format("{}\"{}\\u0000{}\\u00001\\u0001l{}\"", text.ends_with('[') ? "" : ",", frame.name, frame.file,
                          frame.line);
    text += fmt::format("],{:.9f}]", static_cast<double>(profile.samples.weight_ns[row]) / 1e9);
  });
  return text + "]}";
}
std::string write_perf(const Profile& profile) {
  std::string text;
  for_each_sample(profile, [&](std::size_t row, const std::vector<FrameText>& frames) {
    text += fmt::format("app 1/{} {}.{:09}: {} cpu-clock: \n", profile.samples.thread[row].index() + 1,
                        profile.samples.time_ns[row] / 1'000'000'000, profile.samples.time_ns[row] % 1'000'000'000,
                        profile.samples.weight_ns[row]);
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      text += fmt::format("\t7f00 py::{}:{}+0x1 (/tmp/perf-1.map)\n", frame->name, frame->file);
    text += "\n";
  });
  return text;
}
std::string write_austin(const Profile& profile) {
  std::string text = "# austin: 3.7.0\n# mode: wall\n";
  for_each_sample(profile, [&](std::size_t row, const std::vector<FrameText>& frames) {
    text += fmt::format("P1;T0:{}", profile.samples.thread[row].index() + 1);
    for (const FrameText& frame : frames) text += fmt::format(";{}:{}:{}", frame.file, frame.name, frame.line);
    text += fmt::format(" {}\n", microseconds(profile, row));
  });
  return text;
}
std::string write_mojo(const Profile& profile) {
  std::string text = "version 3\nmeta mode wall\n";
  for_each_sample(profile, [&](std::size_t row, const std::vector<FrameText>& frames) {
    text += fmt::format("stack 1 0 {:x}\n", profile.samples.thread[row].index() + 1);
    for (std::size_t i = 0; i < frames.size(); ++i)
      text += fmt::format("string 2 {}\nstring 3 {}\nframe {} 2 3 {} 0 0 0\nref {}\n", frames[i].file, frames[i].name,
                          i, frames[i].line, i);
    text += fmt::format("time {}\n", microseconds(profile, row));
  });
  return mojo::testing::draw_file(text + "meta duration 1");
}
std::string write_chrome_trace(const Profile& profile) {
  std::string text;
  std::vector<std::int64_t> at_ns(profile.threads.size());
  for_each_sample(profile, [&](std::size_t row, const std::vector<FrameText>& frames) {
    std::int64_t& now_ns = at_ns[profile.samples.thread[row].index()];
    for (const FrameText& frame : frames)
      text +=
          fmt::format(R"json({}{{"ph":"X","pid":1,"tid":{},"ts":{:.3f},"dur":{:.3f},"name":"{} ({}:1)"}})json",
                      text.empty() ? "[" : ",", profile.samples.thread[row].index(), static_cast<double>(now_ns) / 1e3,
                      static_cast<double>(profile.samples.weight_ns[row]) / 1e3, frame.name, frame.file);
    now_ns += profile.samples.weight_ns[row];
  });
  return text + "]";
}
// A delta is the time before a sample, and so the weight of the one before it.
std::string write_cpuprofile(const Profile& profile) {
  std::string nodes = R"json({"id":1,"callFrame":{"functionName":"(root)"},"children":[)json";
  std::string calls, samples, deltas = "0";
  std::size_t last = 1;
  std::int64_t end_us = 0;
  for_each_sample(profile, [&](std::size_t row, const std::vector<FrameText>& frames) {
    if (!frames.empty()) nodes += fmt::format("{}{}", nodes.ends_with('[') ? "" : ",", last + 1);
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const std::string callee = i + 1 < frames.size() ? std::to_string(last + 2) : std::string{};
      calls += fmt::format(
          R"json(,{{"id":{},"callFrame":{{"functionName":"{}","url":"{}","lineNumber":1}},"children":[{}]}})json",
          ++last, frames[i].name, frames[i].file, callee);
    }
    samples += fmt::format("{}{}", row == 0 ? "" : ",", frames.empty() ? 1 : last);
    end_us += microseconds(profile, row);
    if (row + 1 < profile.samples.size()) deltas += fmt::format(",{}", microseconds(profile, row));
  });
  return fmt::format(R"json({{"nodes":[{}]}}{}],"startTime":0,"endTime":{},"samples":[{}],"timeDeltas":[{}]}})json",
                     nodes, calls, end_us, samples, deltas);
}
std::string write_pypylog(const Profile& profile) {
  std::string text;
  std::int64_t now_ns = 1;
  for_each_sample(profile, [&](std::size_t row, const std::vector<FrameText>& frames) {
    for (const FrameText& frame : frames) text += fmt::format("[{:x}] {{{}\n", now_ns, frame.name);
    now_ns += profile.samples.weight_ns[row];
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      text += fmt::format("[{:x}] {}}}\n", now_ns, frame->name);
  });
  return text;
}
std::string write_plim(const Profile& profile) {
  return profile::PlimEncoder::file_header() + profile::PlimEncoder(1).encode(profile);
}

// How a format is written, and how exactly it carries a sample's weight.
struct Carrier {
  std::string name;
  std::function<std::string(Profile&)> write;
  std::int64_t tolerance_ns = 0;  // of a sample
};
std::vector<Carrier> carriers() {
  std::vector<Carrier> all = {{"plim", write_plim},
                              {"pyinstrument", write_pyinstrument, 1},
                              {"chrome trace", write_chrome_trace, 1},
                              {"perf script", write_perf},
                              {"austin", write_austin, 500},
                              {"mojo", write_mojo, 500},
                              {"cpuprofile", write_cpuprofile, 500},
                              {"pypylog", write_pypylog}};
  for (const Writer& writer : writers())
    if (writer.name != "pprof-heap" && writer.name != "flamegraph")  // a page is not read again
      all.push_back({std::string(writer.name),
                     [&writer](Profile& profile) { return write_as(writer, profile, "out").value(); },
                     writer.name == "collapsed" ? 1'000
                     : writer.name == "vmprof"  ? 1'000'000
                                                : 0});
  return all;
}

TEST(Weights, AreTheSameInEveryViewAndEveryFormat) {
  // GIVEN generated profiles WHEN each goes through every format that can be read THEN it weighs the same in all views
  for (const auto& [samples, stacks] : {std::pair<std::size_t, std::size_t>{1, 1}, {7, 3}, {60, 60}, {400, 25}}) {
    const Profile original = generated(samples, stacks);
    expect_one_weight(original);
    for (const Carrier& carrier : carriers()) {
      SCOPED_TRACE(carrier.name + " of " + std::to_string(samples));
      Profile copy = generated(samples, stacks);
      const Result<Profile> read = read_profile(carrier.write(copy));
      ASSERT_TRUE(read.ok()) << read.error().message;
      expect_one_weight(read.value());
      const auto most = static_cast<std::int64_t>(samples) * carrier.tolerance_ns;
      EXPECT_LE(std::abs(read.value().sampled_ns() - original.sampled_ns()), most);
      // Collapsed stacks have no other place for a thread than the root of its stacks.
      const std::size_t of_threads = carrier.name == "collapsed" && samples > 1 ? original.threads.size() : 0;
      EXPECT_EQ(flat(read.value()).size(), flat(original).size() + of_threads);
    }
  }
}

TEST(Weights, ThatNobodyCanHaveSpentAreRefused) {
  // GIVEN a difference of two profiles, and more than a century, in formats that say how much a stack weighs
  constexpr std::int64_t kHalfACentury = 2'000'000'000'000'000'000;
  for (const Carrier& carrier : carriers()) {
    if (carrier.name == "plim" || carrier.name == "vmprof" || carrier.name == "pypylog" ||
        carrier.name == "perf script" || carrier.name == "cpuprofile" || carrier.name == "chrome trace" ||
        carrier.name == "pyinstrument")
      continue;
    SCOPED_TRACE(carrier.name);
    for (const auto& [first, second] : {std::pair<std::int64_t, std::int64_t>{2'000'000, -1'000'000},
                                        {kHalfACentury, kHalfACentury + 1'000'000'000'000}}) {
      if (second < 0 && carrier.name == "collapsed") continue;  // is not written
      Profile original = profile::testing::draw_profile("main  1\n other  1");
      original.samples.weight_ns = {first, second};
      original.samples.time_ns = {1, 2};
      // WHEN they are read THEN they are an error that says so
      const Result<Profile> read = read_profile(carrier.write(original));
      ASSERT_FALSE(read.ok());
      EXPECT_EQ(read.error().kind, ErrorKind::kBadInput);
      const char* why = second < 0 ? "a weight is negative" : "more than a hundred years";
      EXPECT_NE(read.error().message.find(why), std::string::npos) << read.error().message;
    }
  }
}

TEST(Weights, OfThePartsMakeTheWhole) {
  // GIVEN a profile WHEN it is cut by threads or by time THEN the parts weigh what the whole does
  const Profile whole = generated(300, 40);
  std::int64_t threads = 0, times = 0;
  for (const profile::Thread& thread : whole.threads) {
    Profile part = generated(300, 40);
    filter(part, {.thread = thread.name});
    threads += part.sampled_ns();
  }
  for (const auto& [from, to] : {std::pair(std::int64_t{0}, whole.end_ns / 3), {whole.end_ns / 3, INT64_MAX}}) {
    Profile part = generated(300, 40);
    filter(part, {.from_ns = from, .to_ns = to});
    times += part.sampled_ns();
  }
  EXPECT_EQ(threads, whole.sampled_ns());
  EXPECT_EQ(times, whole.sampled_ns());
}

}  // namespace
}  // namespace plimsoll::formats
