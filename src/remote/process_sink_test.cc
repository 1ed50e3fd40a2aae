// remote/process_sink_test.cc: two processes whose numbers are the same.
#include "remote/process_sink.h"

#include <gtest/gtest.h>

#include "capture/testing.h"

namespace plimsoll::remote {
namespace {

using capture::CodeId;
using capture::Sample;
using capture::SampleFrame;
using capture::ThreadInfo;
using capture::ThreadSerial;

cpython::CodeInfo code_named(const char* name) {
  cpython::CodeInfo info;
  info.name = name;
  return info;
}

// A thread of process `sink`, and a sample of it in its code object 0 at `line`.
void tell(ProcessSink& sink, const char* function, std::uint32_t line) {
  ThreadInfo thread;
  thread.serial = ThreadSerial{0};
  sink.thread(thread);
  sink.code(CodeId{0}, code_named(function));
  const SampleFrame frames[] = {{CodeId{0}, {line, 0}}};
  Sample sample;
  sample.thread = ThreadSerial{0};
  sample.frames = frames;
  sink.sample(sample);
}

TEST(ProcessSink, KeepsProcessesApartWhoseNumbersAreTheSame) {
  capture::testing::LoggingSink all;
  SharedNumbers numbers;
  ProcessSink parent(all, numbers, {0, 10, "parent"});
  ProcessSink silent(all, numbers, {0, 11, "silent"});
  ProcessSink child(all, numbers, {0, 12, "child"});
  // WHEN the second of two children is the only one that has threads
  tell(parent, "work", 1);
  tell(child, "play", 2);
  child.forget_code(CodeId{0});
  child.forget_code(CodeId{7});  // which was never told of
  // THEN it is the second process, and its code is its own
  EXPECT_EQ(all.log, (std::vector<std::string>{"code 0 work", "sample work:1", "process 1 child", "code 1 play",
                                               "sample play:2", "forget 1"}));
}

TEST(ProcessSink, AddsUpTheCpuTimeOfItsOwnSamples) {
  capture::testing::LoggingSink all;
  SharedNumbers numbers;
  ProcessSink parent(all, numbers, {0, 10, "parent"});
  ProcessSink child(all, numbers, {0, 12, "child"});
  Sample sample;
  sample.thread = ThreadSerial{0};
  for (const auto& [weight_ns, activity] :
       {std::pair{5, Activity::kRunning}, {70, Activity::kIo}, {8, Activity::kRunning}}) {
    sample.weight_ns = weight_ns;
    sample.activity = activity;
    parent.sample(sample);
  }
  // THEN waits are no CPU time, nor are samples of others
  EXPECT_EQ(parent.sampled_cpu_ns(), 13);
  EXPECT_EQ(child.sampled_cpu_ns(), 0);
}

TEST(ProcessSink, KeepsTheirNativeFunctionsApart) {
  capture::testing::LoggingSink all;
  SharedNumbers numbers;
  ProcessSink parent(all, numbers, {0, 10, "parent"});
  ProcessSink child(all, numbers, {0, 12, "child"});
  parent.native_function(CodeId{0}, {"qsort", "libc.so.6"});
  child.native_function(CodeId{0}, {"deflate", "libz.so.1"});
  EXPECT_EQ(all.log, (std::vector<std::string>{"native 0 qsort", "native 1 deflate"}));
}

}  // namespace
}  // namespace plimsoll::remote
