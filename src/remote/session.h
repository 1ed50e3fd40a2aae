// remote/session.h: records another process: looks at it so many times a second, until somebody says stop or it ends.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "capture/cpu_sampler.h"
#include "capture/sink.h"
#include "remote/sampler.h"
#include "remote/target.h"

namespace plimsoll::remote {

// From where threads that run are looked at.
enum class Stand : std::uint8_t {
  kBeside,  // from their own CPU, which they do not get meanwhile
  kApart,   // from any other: nothing is taken from them, and fast functions can hardly ever be proven
  kStop,    // from any, while they are stopped; native frames are looked at so in any case
};

// What to record, and how.
struct SessionSettings {
  double rate_hz = 1000;
  SamplerSettings sampler;
  Stand stand = Stand::kBeside;
  bool follows_children = false;  // the processes that it starts, and those that they start, too
  std::int64_t duration_ns = 0;   // 0: until it ends
  // Of a CPU, for looks, more than 0 and at most 1. The looks that this leaves no time for do not take place: one at a
  // thousand threads takes some milliseconds, from the very thread that computes.
  double most_share = 0.2;
};

// Why a recording ended.
enum class Ending : std::uint8_t {
  kStopped,       // by the caller, or its time was over
  kProcessEnded,  // the one that was asked for; or it runs another program now
};

// How a recording went.
struct SessionResult {
  Ending ending{};
  std::uint64_t looks = 0;
  std::uint64_t samples = 0;
  std::uint64_t unproven = 0;           // looks at a thread that came to nothing: its time went to its other samples
  std::uint64_t not_told = 0;           // likewise, as no more files could be opened to ask about the thread
  std::int64_t used_ns = 0;             // CPU time of what was recorded
  std::int64_t unseen_children_ns = 0;  // CPU time of child processes that have ended and are not recorded
  std::int64_t median_stop_ns = 0, longest_stop_ns = 0;  // of threads that were held; 0 if none was
  std::uint64_t late = 0;    // looks that did not take place because we got no CPU, or wrote
  std::uint64_t spared = 0;  // likewise because the looks before them had taken their share
};

// Waits until a CLOCK_MONOTONIC time; false to stop.
using WaitUntil = std::function<bool(std::int64_t time_ns)>;

// Whether it can be recorded so: up to 3.10 stacks of threads that run cannot be proven from another CPU, and have no
// native frames; and where there is no GIL, none is in mode gil.
Status check(const Target& target, const SessionSettings& settings);

// Records on the calling thread, which moves to other CPUs and is in haste meanwhile. `sink` must be flushed once
// before, and is complete afterwards.
Result<SessionResult> record(const Target& target, const SessionSettings& settings, capture::SampleSink& sink,
                             const WaitUntil& wait_until);

}  // namespace plimsoll::remote
