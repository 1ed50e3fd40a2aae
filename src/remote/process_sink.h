// remote/process_sink.h: one of several processes that are recorded into one sink.
#pragma once

#include <cstdint>
#include <vector>

#include "base/id_table.h"
#include "capture/sink.h"

namespace plimsoll::remote {

// Numbers that no two processes of a recording share.
struct SharedNumbers {
  std::size_t next_code = 0;
  std::size_t next_thread = 0;
  std::uint32_t next_process = 0;
  std::uint64_t samples = 0;  // that have been told of
};

// Passes on what is told of a process, under the numbers of the whole recording. The first one that is made is of the
// process that the recording began with; others are told of with their first thread. Used by one thread at a time;
// `all` and `numbers` must outlive it.
class ProcessSink final : public capture::SampleSink {
 public:
  ProcessSink(capture::SampleSink& all, SharedNumbers& numbers, capture::ProcessInfo process)
      : all_(all), numbers_(numbers), process_(std::move(process)), is_told_(numbers.next_process == 0) {
    if (is_told_) process_.number = numbers_.next_process++;
  }

  void fact(const char* name, const std::string& value) override { all_.fact(name, value); }
  void code(capture::CodeId id, const cpython::CodeInfo& info) override;
  void native_function(capture::CodeId id, const capture::NativeFunction& function) override;
  void forget_code(capture::CodeId id) override;
  void process(const capture::ProcessInfo& info) override { all_.process(info); }
  void thread(const capture::ThreadInfo& info) override;
  void sample(const capture::Sample& sample) override {
    ++numbers_.samples;
    if (sample.activity == Activity::kRunning) sampled_cpu_ns_ += sample.weight_ns;
    all_.sample(ours(sample));
  }
  void gil(const capture::GilLook& look) override;
  void allocation(const capture::Allocation& allocation) override;
  void release(std::int64_t time_ns, const capture::RawRelease& release) override { all_.release(time_ns, release); }
  [[nodiscard]] bool knows_stack(std::uint32_t) const override { return false; }
  void exact_allocation(const capture::ExactAllocation&) override {}  // there are none from outside
  void counter(const char* name, const char* unit, std::int64_t time_ns, std::int64_t value) override {
    all_.counter(name, unit, time_ns, value);
  }
  void marker(const capture::MarkerEvent& marker) override;
  [[nodiscard]] bool wants_flush() const override { return all_.wants_flush(); }
  [[nodiscard]] std::uint32_t code_epoch() const override { return all_.code_epoch(); }
  Status flush(const Totals& totals, Ending ending) override { return all_.flush(totals, ending); }

  // CPU time that the samples of this process stand for.
  [[nodiscard]] std::int64_t sampled_cpu_ns() const { return sampled_cpu_ns_; }

 private:
  // Valid until the next call.
  capture::Sample ours(const capture::Sample& sample);
  capture::ThreadSerial ours(capture::ThreadSerial serial);
  capture::CodeId ours(capture::CodeId id);

  capture::SampleSink& all_;
  SharedNumbers& numbers_;
  capture::ProcessInfo process_;
  bool is_told_;
  std::int64_t sampled_cpu_ns_ = 0;
  IdTable<capture::CodeId, capture::CodeId> codes_;  // known: told of
  std::vector<capture::ThreadSerial> threads_;
  std::vector<capture::SampleFrame> frames_;
};

}  // namespace plimsoll::remote
