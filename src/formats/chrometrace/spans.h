// formats/chrometrace/spans.h: the events of one thread that last -> its stacks over time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/foreign.h"

namespace plimsoll::formats::chrometrace {

// Something that lasts.
struct Span {
  std::int64_t start_ns = 0;  // since the start of the trace
  std::int64_t end_ns = 0;
  std::string_view name;
};

// What a thread's events said that cannot have been.
struct Contradictions {
  std::uint64_t ends_without_start = 0;
  std::uint64_t overlaps = 0;   // spans that go on when the one around them has ended
  std::int64_t overlap_ns = 0;  // the time that was cut off them
};

// The spans of one thread. Events are given in order of time.
class Spans {
 public:
  void begin(std::int64_t at_ns, std::string_view name);
  void end(std::int64_t at_ns);
  void complete(std::int64_t at_ns, std::int64_t duration_ns, std::string_view name);
  // Ends what is still open, and orders all spans: by their start, the longer first.
  void finish(std::int64_t at_ns);

  // Adds a sample to `out` for each stretch of time with one stack. After finish.
  void write_stacks(ForeignProfile& out, ThreadId thread);

  [[nodiscard]] const std::vector<Span>& all() const { return spans_; }
  [[nodiscard]] const Contradictions& contradictions() const { return contradictions_; }

 private:
  std::vector<Span> spans_;
  std::vector<std::size_t> open_;  // those that wait for their end
  Contradictions contradictions_;
};

}  // namespace plimsoll::formats::chrometrace
