// formats/perf/lines.h: the two kinds of lines that `perf script` prints for a sample.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/foreign.h"

namespace plimsoll::formats::perf {

// The first line of a sample. The views point into it.
struct SampleLine {
  std::string_view comm;  // what the kernel calls the thread
  std::int64_t pid = 0;   // 0 where only the thread is told
  std::int64_t tid = 0;
  std::int64_t cpu = -1;  // the CPU that it ran on; -1 where that is not told
  std::optional<std::int64_t> time_ns;
  std::optional<std::int64_t> period;
  std::string_view event;  // without modifiers: "cycles", "cpu-clock"
  std::string_view frame;  // where samples have one frame, it is on the same line; else empty
};

// The parts of such a line; none if it is another one.
std::optional<SampleLine> parse_sample(std::string_view line);

// A frame; none if the line is another one. Frames without a symbol are called "[unknown]".
std::optional<ForeignFrame> parse_frame(std::string_view line);

}  // namespace plimsoll::formats::perf
