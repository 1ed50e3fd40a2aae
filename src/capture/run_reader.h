// capture/run_reader.h: the half of the reader engine for threads that run: takes samples of them from a thread of
// ours, without a signal, so that high rates cost the program little. A sample's stack is proven (cpython/snapshot.h);
// its weight is the thread's CPU time that no sample has paid for yet.
//
// A thread runs if its CPU clock moves during the look. What one that does not run has used since the last look was
// used elsewhere than where it stands now: nothing is taken of it. And what can be proven of one that runs is what
// lasts for some hundred nanoseconds: of a thread that calls and returns faster than that, the proven stacks would be
// true, but not a fair sample; short calls would seem to take no time. So each look tries once, never again until it
// fits, and a thread of which more than a few looks of a hundred fail is restless: it waits too often, calls too fast,
// or has to share its CPU with us. Its own ticks take its samples (cpu_sampler.h), which miss nothing, until looks hold
// again.
#pragma once

#include <memory>

#include "base/sample_ring.h"
#include "capture/code_registry.h"
#include "capture/cpu_sampler.h"
#include "cpython/snapshot.h"

namespace plimsoll::capture {

// Used by one thread at a time.
class RunReader {
 public:
  RunReader(const Interpreter& interpreter, CpuSampler& sampler, SampleRing& ring, SeenFilter& seen,
            std::size_t max_depth);

  // A look at one thread, which must not end meanwhile: puts a sample into the ring if the thread runs Python code. Of
  // a restless one, only to see whether it still is. False if nothing has happened: it has used no time.
  bool look_at(ThreadSlot& slot);

 private:
  bool take_sample(ThreadSlot& slot, Address thread_state);
  bool probe(ThreadSlot& slot, Address thread_state);
  // Counts a look that held, or did not; changes who samples the thread if need be.
  void judge(ThreadSlot& slot, bool holds);
  // `tags` are those that held with these frames, and as proven as they are; so is `stack`, what became of them.
  cpython::Snapshot read_stack(Address thread_state, std::span<cpython::PyFrame> slots, TagNumber& tags,
                               cpython::AwaitingStack& stack);

  const Interpreter interpreter_;
  const std::size_t max_depth_;
  const std::size_t stack_slots_;  // with those of the tasks that await
  CpuSampler& sampler_;
  SampleRing& ring_;
  SeenFilter& seen_;
  const std::size_t log_size_;
  const std::unique_ptr<cpython::LoggedLoad[]> log_;
  const std::unique_ptr<cpython::PyFrame[]> probed_;
};

}  // namespace plimsoll::capture
