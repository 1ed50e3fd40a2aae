#include "remote/process_sink.h"

#include <utility>

namespace plimsoll::remote {

using capture::CodeId;
using capture::ThreadSerial;

CodeId ProcessSink::ours(CodeId id) {
  CodeId& known = codes_[id];
  if (known.is_none()) known = CodeId{numbers_.next_code++};
  return known;
}

void ProcessSink::code(CodeId id, const cpython::CodeInfo& info) { all_.code(ours(id), info); }

void ProcessSink::native_function(CodeId id, const capture::NativeFunction& function) {
  all_.native_function(ours(id), function);
}

void ProcessSink::forget_code(CodeId id) {
  const CodeId* known = codes_.find(id);
  if (known == nullptr) return;
  all_.forget_code(*known);
  codes_.forget(id);
}

ThreadSerial ProcessSink::ours(ThreadSerial serial) {
  while (threads_.size() <= serial.index()) threads_.emplace_back(numbers_.next_thread++);
  return threads_[serial.index()];
}

void ProcessSink::thread(const capture::ThreadInfo& info) {
  if (!std::exchange(is_told_, true)) {
    process_.number = numbers_.next_process++;
    all_.process(process_);
  }
  capture::ThreadInfo told = info;
  told.serial = ours(info.serial);
  told.process = process_.number;
  all_.thread(told);
}

capture::Sample ProcessSink::ours(const capture::Sample& sample) {
  frames_.assign(sample.frames.begin(), sample.frames.end());
  for (capture::SampleFrame& frame : frames_) frame.code = ours(frame.code);
  capture::Sample told = sample;
  told.thread = ours(sample.thread);
  told.frames = frames_;
  return told;
}

void ProcessSink::gil(const capture::GilLook& look) {
  capture::GilLook told = look;
  if (!look.holder.is_none()) told.holder = ours(look.holder);
  all_.gil(told);
}

void ProcessSink::allocation(const capture::Allocation& allocation) {
  all_.allocation({ours(allocation.sample), allocation.block});
}

void ProcessSink::marker(const capture::MarkerEvent& marker) {
  capture::MarkerEvent told = marker;
  told.thread = ours(marker.thread);
  all_.marker(told);
}

}  // namespace plimsoll::remote
