// formats/collapsed/writer.cc: sums per (thread, stack), one line for each.
#include "formats/collapsed/writer.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>

#include "formats/labels.h"

namespace plimsoll::formats::collapsed {
namespace {

// What will be one line.
struct Line {
  ThreadId thread;
  StackId stack;
  std::int64_t cpu_ns = 0;
};

// A text without the characters that structure the format.
std::string element(std::string_view text) {
  std::string clean = valid_utf8(text);
  for (char& c : clean) {
    if (c == ';') c = ',';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return clean;
}

std::string frame_text(const profile::Profile& profile, const profile::Frame& frame) {
  const profile::Function& function = profile.functions[frame.function];
  const std::string_view name = profile.strings[function.name];
  std::string text(name.empty() ? "?" : name);
  if (const std::string_view file = profile.strings[function.file]; !file.empty()) {
    text.append(" (").append(file);
    if (frame.line != 0) text.append(":").append(std::to_string(frame.line));
    text += ')';
  }
  return element(text);
}

// Frames as they are written: those that differ only in what the format has no place for (columns, addresses) are one.
class Frames {
 public:
  explicit Frames(const profile::Profile& profile) {
    boost::unordered_flat_map<std::string, FrameId> known;
    for (const profile::Frame& frame : profile.frames.rows()) {
      const auto [found, is_new] = known.try_emplace(frame_text(profile, frame), FrameId{texts_.size()});
      if (is_new) texts_.push_back(found->first);
      same_.push_back(found->second);
    }
  }
  [[nodiscard]] FrameId operator[](FrameId frame) const { return same_[frame.index()]; }
  [[nodiscard]] const std::string& text(FrameId written) const { return texts_[written.index()]; }

 private:
  std::vector<FrameId> same_;
  std::vector<std::string> texts_;
};

// Stacks of such frames, each once.
class Stacks {
 public:
  Stacks(const profile::StackTable& stacks, const Frames& frames) {
    same_.reserve(stacks.size());
    for (const profile::StackNode& node : stacks.rows())
      same_.push_back(written_.intern({(*this)[node.parent], frames[node.frame]}));
  }
  [[nodiscard]] StackId operator[](StackId stack) const { return stack.is_none() ? stack : same_[stack.index()]; }
  [[nodiscard]] std::vector<FrameId> frames_of(StackId written) const { return profile::frames_of(written_, written); }

 private:
  profile::StackTable written_;
  std::vector<StackId> same_;
};

// The lines grouped by thread, within a thread in order of first appearance.
std::vector<Line> aggregate(const profile::Profile& profile, const Stacks& stacks) {
  std::vector<Line> lines;
  boost::unordered_flat_map<std::uint64_t, std::size_t> index;
  const profile::SampleTable& samples = profile.samples;
  for (std::size_t row = 0; row < samples.size(); ++row) {
    const StackId stack = stacks[samples.stack[row]];
    const std::uint64_t key = std::uint64_t{samples.thread[row].index()} << 32U | stack.index();
    const auto [position, inserted] = index.try_emplace(key, lines.size());
    if (inserted) lines.push_back({samples.thread[row], stack, 0});
    lines[position->second].cpu_ns += samples.weight_ns[row];
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.thread < b.thread; });
  return lines;
}

// What stands before the frames, for each thread: nothing if all lines are of one thread.
std::vector<std::string> prefixes(const profile::Profile& profile, const std::vector<Line>& lines) {
  std::vector<std::string> result(profile.threads.size());
  if (lines.empty() || lines.front().thread == lines.back().thread) return result;
  const auto process_of = [&](ThreadId thread) { return profile.threads[thread.index()].process; };
  const ProcessId first_process = process_of(lines.front().thread);
  const bool one_process = std::all_of(lines.begin(), lines.end(),
                                       [&](const Line& line) { return process_of(line.thread) == first_process; });

  const std::vector<std::string> titles = thread_titles(profile);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const profile::Process& process = profile.processes[profile.threads[i].process.index()];
    if (!one_process) result[i] = process_title(process) + ";";
    result[i] += element(titles[i]) + ";";
  }
  return result;
}

// Divides nanoseconds into whole microseconds, keeping what is left over for the next division.
class Microseconds {
 public:
  std::int64_t next(std::int64_t ns) {
    constexpr std::int64_t kPerMicrosecond = 1000;
    sum_ns_ += ns;
    const std::int64_t rounded = (sum_ns_ + kPerMicrosecond / 2) / kPerMicrosecond;
    return rounded - std::exchange(given_, rounded);
  }

 private:
  std::int64_t sum_ns_ = 0;
  std::int64_t given_ = 0;  // microseconds
};

}  // namespace

std::string write(const profile::Profile& profile) {
  const Frames frames(profile);
  const Stacks stacks(profile.stacks, frames);
  const std::vector<Line> lines = aggregate(profile, stacks);
  const std::vector<std::string> prefix = prefixes(profile, lines);
  Microseconds weights;
  std::string out;
  for (const Line& line : lines) {
    const std::int64_t weight = weights.next(line.cpu_ns);
    if (weight <= 0) continue;
    out += prefix[line.thread.index()];
    if (line.stack.is_none()) out.append(kNoStack).push_back(';');
    for (const FrameId frame : stacks.frames_of(line.stack)) out.append(frames.text(frame)).push_back(';');
    out.back() = ' ';
    out.append(std::to_string(weight)).push_back('\n');
  }
  return out;
}

}  // namespace plimsoll::formats::collapsed
