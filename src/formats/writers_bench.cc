// formats/writers_bench.cc: the time to write a million samples on 20,000 stacks in each format.
#include <benchmark/benchmark.h>

#include "formats/registry.h"
#include "profile/testing.h"

namespace plimsoll::formats {
namespace {

void write_million_samples(benchmark::State& state, std::string_view format, std::string_view path) {
  static profile::Profile profile = profile::testing::generated_profile(1'000'000, 20'000);
  const Writer writer = find_writer(format, path).take();
  std::size_t bytes = 0;
  for (auto _ : state) bytes = write_as(writer, profile, path).value().size();
  state.counters["MB"] = static_cast<double>(bytes) / 1e6;
}

BENCHMARK_CAPTURE(write_million_samples, speedscope, "speedscope", "out.json")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(write_million_samples, collapsed, "collapsed", "out.collapsed")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(write_million_samples, firefox, "firefox", "out.json")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(write_million_samples, firefox_gz, "firefox", "out.json.gz")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(write_million_samples, jslb, "jslb", "out.jslb")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(write_million_samples, pprof, "pprof", "out.pb.gz")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace plimsoll::formats
