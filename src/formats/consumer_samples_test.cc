// formats/consumer_samples_test.cc: files for tests/consumers/check.mjs, which gives them to the programs that such
// files are written for. Runs only where PLIMSOLL_CONSUMER_SAMPLES names a directory to write into.
//
// NAME.speedscope.json, .collapsed, .firefox.json.gz, .pb.gz, .vmprof, and NAME.expected.json with what a consumer must
// find.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "formats/json.h"
#include "formats/registry.h"
#include "profile/flat.h"
#include "profile/testing.h"

namespace plimsoll::formats {
namespace {

using profile::testing::draw_profile;
using profile::testing::kMillisecond;

// Threads, processes, all kinds of frames, recursion, and names that are hard on a format.
profile::Profile rich_profile() {
  profile::Profile profile = draw_profile(R"(
    <module>(shop/app.py:9 def 1);handle(shop/app.py:2 def 1);parse(shop/parse.py:2 def 1)  10.25 @11
    <module>(shop/app.py:9 def 1);handle(shop/app.py:2 def 1);parse(shop/parse.py:3 def 1)  9.750001 @22
    <module>(shop/app.py:9 def 1);handle(shop/app.py:3 def 1);fib(shop/app.py:6 def 5);fib(shop/app.py:6 def 5)  5 @30
    <module>(shop/app.py:9 def 1);handle(shop/app.py:3 def 1);Größe_漢字(app.py:7);!memcpy(libc.so)  0.333333 @31
    [truncated stack];a"b\c'd<e>&,__proto__(shop/app.py:8 def 8)  2 @40
    -  0.75 @41
    pool-1 | run(lib/python3.11/threading.py:982 def 979);loads(lib/python3.11/json/__init__.py:346 def 299)  7 @12
    pool-1 | run(lib/python3.11/threading.py:982 def 979);loads(lib/python3.11/json/__init__.py:346 def 299)  6.5 @25
    MainThread@200 | <module>(shop/child.py:1 def 1)  3 @35
  )");
  profile.set_meta("argv", "python shop/app.py --port 80");
  profile.set_meta("python", "3.11.2");
  profile.set_meta("engine", "cpu_timer");
  profile.set_meta("rate_hz", "100");
  profile.sources.push_back(
      {"shop/app.py", "def handle():\n  parse()\n  fib()\n\ndef fib():\n  fib()\n  pass\n  pass\n"});
  profile.sources.push_back({"shop/parse.py", "def parse():\n  one = 1\n  two = 2\n"});
  profile.counters.push_back({ProcessId{0}, "rss", "bytes", {}, {}});
  for (std::int64_t i = 0; i < 5; ++i) {
    profile.counters[0].time_ns.push_back(i * 10 * kMillisecond);
    profile.counters[0].value.push_back(50'000'000 + (i % 3) * 4096);
    profile.markers.push_back({i * 8 * kMillisecond,
                               100'000 * i,
                               ThreadId{0},
                               "GC",
                               {{"generation", std::to_string(i % 3)}, {"collected", std::to_string(i * 10)}}});
  }
  profile.drops.push_back({"ring full", 2, 2 * kMillisecond});
  profile.process_cpu_ns += 2 * kMillisecond;
  return profile;
}

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(file.good()) << path;
}

// What consumers must find: see tests/consumers/README.md.
std::string expected(const profile::Profile& profile) {
  const std::set<ThreadId> threads(profile.samples.thread.begin(), profile.samples.thread.end());
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.member("cpu_ns", profile.sampled_cpu_ns());
  json.member("samples", static_cast<std::int64_t>(profile.samples.size()));
  json.member("threads", static_cast<std::int64_t>(threads.size()));
  std::vector<profile::FlatRow> rows = flat(profile);
  rows.resize(std::min<std::size_t>(rows.size(), 5));
  json.column("functions", rows, [&](const profile::FlatRow& row) {
    const profile::Function& function = profile.functions[row.function];
    json.begin_object();
    json.member("name", profile.strings[function.name]);
    if (!function.file.is_none()) json.member("file", profile.strings[function.file]);
    json.key("is_unique_name");
    json.boolean(std::count_if(profile.functions.rows().begin(), profile.functions.rows().end(),
                               [&](const auto& other) { return other.name == function.name; }) == 1);
    json.member("self_ns", row.self_ns);
    json.member("total_ns", row.total_ns);
    json.end_object();
  });
  if (!profile.sources.empty()) {
    json.key("lines");
    json.begin_object();
    json.member("function", "parse");
    json.key("self_ns");
    json.begin_object();
    json.member("2", 10'250'000);
    json.member("3", 9'750'001);
    json.end_object();
    json.end_object();
  }
  json.column("counters", profile.counters, [&](const profile::Counter& counter) { json.text(counter.name); });
  json.member("markers", static_cast<std::int64_t>(profile.markers.size()));
  json.end_object();
  return out;
}

void write_samples(const std::string& name, profile::Profile profile) {
  const char* directory = std::getenv("PLIMSOLL_CONSUMER_SAMPLES");
  if (directory == nullptr) GTEST_SKIP() << "PLIMSOLL_CONSUMER_SAMPLES is not set";
  const std::string stem = std::string(directory) + "/" + name;
  write_file(stem + ".expected.json", expected(profile));
  for (const Writer& writer : writers()) {
    const std::string path = stem + std::string(writer.extension);
    write_file(path, write_as(writer, profile, path).value());
  }
}

TEST(ConsumerSamples, Small) {
  write_samples("small", draw_profile("main(app.py:1);work(app.py:7)  5\n main(app.py:2)  1"));
}
TEST(ConsumerSamples, Rich) { write_samples("rich", rich_profile()); }
// Gigabytes of memory in some consumers: run it by hand with --gtest_also_run_disabled_tests.
TEST(ConsumerSamples, DISABLED_Large) {
  write_samples("large", profile::testing::generated_profile(1'000'000, 20'000));
}

}  // namespace
}  // namespace plimsoll::formats
