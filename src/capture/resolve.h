// capture/resolve.h: RawSample -> Sample: addresses become code objects with names, positions become lines.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <vector>

#include "capture/code_registry.h"
#include "capture/raw_sample.h"
#include "capture/sink.h"

namespace plimsoll::capture {

// How sure a code object must be before a stack with it is believed.
enum class Trust : std::uint8_t {
  kValidated,  // it passed every check of the walker and could be read
  kKnown,      // "safe mode": it was also known before this sample was taken
};

// The resolver of one session. For the drain thread only.
class Resolver {
 public:
  Resolver(const cpython::Layout& layout, CodeRegistry& registry, SampleSink& sink, Trust trust)
      : line_table_style_(layout.line_table_style), registry_(registry), sink_(sink), trust_(trust) {}

  // Resolves the frames (innermost first) of a raw sample and passes the Sample on. False if a code object is not
  // known well enough: no part of the stack is passed on then.
  bool resolve(const RawSample& raw, std::span<const cpython::PyFrame> frames);

  // Everything sampled before `time_ns` has been resolved: forgets dead code objects.
  void forget_deaths_before(std::int64_t time_ns);

 private:
  cpython::Location location_of(const CodeRegistry::Entry& entry, std::int32_t position);

  const cpython::LineTableStyle line_table_style_;
  CodeRegistry& registry_;
  SampleSink& sink_;
  const Trust trust_;
  std::vector<SampleFrame> frames_;      // of the sample at hand, kept to save allocations
  std::vector<std::uint32_t> announced_;  // by CodeId: the sink's epoch in which it was described; 0 = never
  // By CodeId: positions met so far and their lines. A code object has few.
  std::vector<std::vector<std::pair<std::int32_t, cpython::Location>>> locations_;
};

}  // namespace plimsoll::capture
