// cli/line_report.cc: aggregation of samples by file and by line.
#include "cli/line_report.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>

#include "cli/units.h"
#include "profile/flat.h"

namespace plimsoll::cli {
namespace {

using profile::Profile;

// Sums by keys, of which each frame has one or none: a sample counts once for a key, however often it is on the stack.
template <typename Key>
class Tally {
 public:
  struct Sum {
    Key key;
    LineWeight weight;
    std::size_t last_stack = ~std::size_t{0};  // the stack that counted it last
  };
  static constexpr std::size_t kNoKey = ~std::size_t{0};

  // Registers the next frame.
  void add_frame(bool has_key, const Key& key) {
    if (!has_key) {
      sum_of_frame_.push_back(kNoKey);
      return;
    }
    const auto [position, inserted] = index_.try_emplace(key, sums_.size());
    if (inserted) sums_.push_back({key, {}});
    sum_of_frame_.push_back(position->second);
  }

  void count(const Profile& profile, std::size_t stack, std::int64_t ns, std::uint64_t samples) {
    if (const std::size_t leaf = sum_of_frame_[profile.stacks.rows()[stack].frame.index()]; leaf != kNoKey) {
      sums_[leaf].weight.self_ns += ns;
      sums_[leaf].weight.self_samples += samples;
    }
    for (StackId at{stack}; !at.is_none(); at = profile.stacks[at].parent) {
      const std::size_t number = sum_of_frame_[profile.stacks[at].frame.index()];
      if (number == kNoKey || sums_[number].last_stack == stack) continue;
      sums_[number].last_stack = stack;
      sums_[number].weight.total_ns += ns;
      sums_[number].weight.total_samples += samples;
    }
  }

  [[nodiscard]] const std::vector<Sum>& sums() const { return sums_; }

 private:
  boost::unordered_flat_map<Key, std::size_t> index_;
  std::vector<Sum> sums_;
  std::vector<std::size_t> sum_of_frame_;
};

struct FileLine {
  StringId file;
  std::uint32_t line = 0;
  bool operator==(const FileLine&) const = default;
  friend std::size_t hash_value(const FileLine& key) {
    return std::size_t{key.file.index()} * 0x9e3779b97f4a7c15U + key.line;
  }
};

// The file that a function's lines are in; none if it has none.
StringId source_of(const profile::Function& function) {
  return function.kind == profile::FunctionKind::kPython ? function.file : function.source;
}
bool has_line(const Profile& profile, const profile::Frame& frame) {
  return !source_of(profile.functions[frame.function]).is_none() && frame.line != 0;
}

// The heaviest function of each line.
boost::unordered_flat_map<FileLine, FunctionId> functions_of_lines(const Profile& profile) {
  boost::unordered_flat_map<FileLine, FunctionId> functions;
  for (const profile::FlatRow& row : profile::lines(profile))  // heaviest first: the first to come stays
    functions.try_emplace({source_of(profile.functions[row.function]), row.line}, row.function);
  return functions;
}

using Lines = Tally<FileLine>;
using Files = Tally<std::uint32_t>;

void count_samples(const Profile& profile, Lines& lines, Files& files) {
  for (const profile::Frame& frame : profile.frames.rows()) {
    const StringId file = source_of(profile.functions[frame.function]);
    lines.add_frame(has_line(profile, frame), {file, frame.line});
    files.add_frame(has_line(profile, frame), file.index());
  }
  std::vector<std::pair<std::int64_t, std::uint64_t>> by_stack(profile.stacks.size());
  for (std::size_t row = 0; row < profile.samples.size(); ++row) {
    if (profile.samples.stack[row].is_none()) continue;
    auto& [ns, samples] = by_stack[profile.samples.stack[row].index()];
    ns += profile.samples.weight_ns[row];
    ++samples;
  }
  for (std::size_t stack = 0; stack < by_stack.size(); ++stack) {
    if (by_stack[stack].second == 0) continue;
    lines.count(profile, stack, by_stack[stack].first, by_stack[stack].second);
    files.count(profile, stack, by_stack[stack].first, by_stack[stack].second);
  }
}

void drop_files_without_lines(LineReport& report) {
  const auto is_asked_for = [](const LineWeight& line) { return line.is_asked_for; };
  std::erase_if(report.files, [&](const FileReport& file) {
    return std::none_of(file.lines.begin(), file.lines.end(), is_asked_for);
  });
}

}  // namespace

LineReport line_report(const Profile& profile) {
  Lines lines;
  Files files;
  count_samples(profile, lines, files);

  LineReport report;
  report.without_line_ns = profile.sampled_ns();
  boost::unordered_flat_map<std::uint32_t, std::size_t> position_of_file;
  for (const auto& sum : files.sums()) {
    if (sum.weight.total_samples == 0) continue;
    position_of_file.emplace(sum.key, report.files.size());
    report.files.push_back({StringId{sum.key}, sum.weight.self_ns, sum.weight.total_ns, {}});
    report.without_line_ns -= sum.weight.self_ns;
  }
  const auto functions = functions_of_lines(profile);
  for (const auto& sum : lines.sums()) {
    if (sum.weight.total_samples == 0) continue;
    std::vector<LineWeight>& of_file = report.files[position_of_file.at(sum.key.file.index())].lines;
    LineWeight& weight = of_file.emplace_back(sum.weight);
    weight.line = sum.key.line;
    weight.function = functions.at(sum.key);
  }
  for (FileReport& file : report.files)
    std::sort(file.lines.begin(), file.lines.end(),
              [](const LineWeight& a, const LineWeight& b) { return a.line < b.line; });
  std::stable_sort(report.files.begin(), report.files.end(), [](const FileReport& a, const FileReport& b) {
    return a.self_ns != b.self_ns ? a.self_ns > b.self_ns : a.total_ns > b.total_ns;
  });
  return report;
}

void keep_asked_for(LineReport& report, const Profile& profile, const profile::Filter& conditions) {
  if (conditions.file.empty() && conditions.function.empty()) return;
  report.without_line_ns = 0;
  for (FileReport& file : report.files)
    for (LineWeight& line : file.lines)
      line.is_asked_for =
          profile::contains(profile.strings[profile.functions[line.function].name], conditions.function);
  std::erase_if(report.files, [&](const FileReport& file) {
    return !profile::contains(profile.strings[file.file], conditions.file);
  });
  drop_files_without_lines(report);
}

void keep_heavy(LineReport& report, const Profile& profile, double least_percent, std::size_t most_files) {
  const std::int64_t all_ns = profile.sampled_ns();
  for (FileReport& file : report.files)
    for (LineWeight& line : file.lines)
      line.is_asked_for = line.is_asked_for && percent_of(line.total_ns, all_ns) >= least_percent;
  drop_files_without_lines(report);
  if (most_files != 0 && most_files < report.files.size()) report.files.resize(most_files);
}

}  // namespace plimsoll::cli
