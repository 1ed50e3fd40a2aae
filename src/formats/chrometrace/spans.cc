// formats/chrometrace/spans.cc: nested spans, from the outside in.
#include "formats/chrometrace/spans.h"

#include <algorithm>
#include <utility>

namespace plimsoll::formats::chrometrace {
namespace {

constexpr std::int64_t kRoundingNs = 1'000;  // that writers round times by: less is no overlap

// A thread's stack as its spans begin and end.
class Walk {
 public:
  Walk(ForeignProfile& out, ThreadId thread) : out_(out), thread_(thread) {}

  // The end of the innermost span; null if there is none.
  [[nodiscard]] const std::int64_t* innermost_end() const { return open_.empty() ? nullptr : &open_.back().end_ns; }

  void go_to(std::int64_t at_ns) {
    while (!open_.empty() && open_.back().end_ns <= at_ns) {
      pass(open_.back().end_ns);
      open_.pop_back();
    }
    pass(at_ns);
  }
  void open(std::int64_t end_ns, FrameId frame) {
    open_.push_back({end_ns, out_.push(open_.empty() ? StackId{} : open_.back().stack, frame)});
  }
  void close_all() {
    while (!open_.empty()) go_to(open_.back().end_ns);
  }

 private:
  void pass(std::int64_t until_ns) {
    if (!open_.empty() && until_ns > at_ns_)
      out_.sample_at(until_ns, thread_, open_.back().stack, until_ns - at_ns_, Activity::kRunning);
    at_ns_ = std::max(at_ns_, until_ns);
  }

  // A span that has begun.
  struct Open {
    std::int64_t end_ns;
    StackId stack;
  };
  ForeignProfile& out_;
  ThreadId thread_;
  std::int64_t at_ns_ = 0;
  std::vector<Open> open_;
};

}  // namespace

void Spans::begin(std::int64_t at_ns, std::string_view name) {
  open_.push_back(spans_.size());
  spans_.push_back({at_ns, at_ns, name});
}

void Spans::end(std::int64_t at_ns) {
  if (open_.empty()) {
    ++contradictions_.ends_without_start;
    return;
  }
  spans_[open_.back()].end_ns = at_ns;
  open_.pop_back();
}

void Spans::complete(std::int64_t at_ns, std::int64_t duration_ns, std::string_view name) {
  spans_.push_back({at_ns, at_ns + std::max<std::int64_t>(duration_ns, 0), name});
}

void Spans::finish(std::int64_t at_ns) {
  while (!open_.empty()) end(std::max(at_ns, spans_[open_.back()].start_ns));
  std::stable_sort(spans_.begin(), spans_.end(), [](const Span& a, const Span& b) {
    return a.start_ns < b.start_ns || (a.start_ns == b.start_ns && a.end_ns > b.end_ns);
  });
}

void Spans::write_stacks(ForeignProfile& out, ThreadId thread) {
  Walk walk(out, thread);
  for (const Span& span : spans_) {
    walk.go_to(span.start_ns);
    std::int64_t end_ns = span.end_ns;
    if (const std::int64_t* limit = walk.innermost_end(); limit != nullptr && end_ns > *limit) {
      if (end_ns - *limit > kRoundingNs) {
        ++contradictions_.overlaps;
        contradictions_.overlap_ns += end_ns - *limit;
      }
      end_ns = *limit;
    }
    ForeignFrame frame = frame_of_label(span.name);
    std::swap(frame.line, frame.first_line);  // a call begins where its function does
    walk.open(end_ns, out.frame(frame));
  }
  walk.close_all();
}

}  // namespace plimsoll::formats::chrometrace
