// cli/line_report.cc: aggregation of samples by file and by line.
#include "cli/line_report.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>

#include "cli/units.h"
#include "profile/flat.h"
#include "profile/stack_totals.h"

namespace plimsoll::cli {
namespace {

using profile::Profile;
using profile::StackWeight;

// Sums by keys, of which each frame has one or none: a sample counts once for a key, however often it is on the stack.
template <typename Key>
class Tally {
 public:
  struct Sum {
    Key key;
    LineWeight weight;
  };

  // Registers the next frame.
  void add_frame(bool has_key, const Key& key) {
    if (!has_key) {
      sum_of_frame_.push_back(profile::kNoRow);
      return;
    }
    const auto [position, inserted] = index_.try_emplace(key, sums_.size());
    if (inserted) sums_.push_back({key, {}});
    sum_of_frame_.push_back(position->second);
  }

  // `own` and `whole`: what each stack weighs, without and with those that it is a part of.
  void count(const Profile& profile, const std::vector<StackWeight>& own, const std::vector<StackWeight>& whole) {
    for (std::size_t i = 0; i < own.size(); ++i) {
      const std::size_t leaf = sum_of_frame_[profile.stacks.rows()[i].frame.index()];
      if (leaf == profile::kNoRow) continue;
      sums_[leaf].weight.self_ns += own[i].weight;
      sums_[leaf].weight.self_samples += own[i].count;
    }
    const auto sum_of = [&](FrameId frame) { return sum_of_frame_[frame.index()]; };
    profile::each_outermost(profile.stacks, sums_.size(), sum_of, [&](StackId stack, std::size_t sum) {
      sums_[sum].weight.total_ns += whole[stack.index()].weight;
      sums_[sum].weight.total_samples += whole[stack.index()].count;
    });
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

// The functions of each line, heaviest first.
boost::unordered_flat_map<FileLine, std::vector<FunctionId>> functions_of_lines(const Profile& profile) {
  boost::unordered_flat_map<FileLine, std::vector<FunctionId>> functions;
  for (const profile::FlatRow& row : profile::lines(profile))
    functions[{source_of(profile.functions[row.function]), row.line}].push_back(row.function);
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
  const std::vector<StackWeight> own = profile::weights_of_stacks(profile).by_stack;
  std::vector<StackWeight> whole = own;
  profile::add_up(profile.stacks, whole);
  lines.count(profile, own, whole);
  files.count(profile, own, whole);
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
  auto functions = functions_of_lines(profile);
  for (const auto& sum : lines.sums()) {
    if (sum.weight.total_samples == 0) continue;
    std::vector<LineWeight>& of_file = report.files[position_of_file.at(sum.key.file.index())].lines;
    LineWeight& weight = of_file.emplace_back(sum.weight);
    weight.line = sum.key.line;
    std::vector<FunctionId>& of_line = functions.at(sum.key);
    weight.function = of_line.front();
    weight.others.assign(of_line.begin() + 1, of_line.end());
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
  const auto matches = [&](FunctionId function) {
    return profile::contains(profile.strings[profile.functions[function].name], conditions.function);
  };
  for (FileReport& file : report.files)
    for (LineWeight& line : file.lines)
      line.is_asked_for = matches(line.function) || std::any_of(line.others.begin(), line.others.end(), matches);
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
