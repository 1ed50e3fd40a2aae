#include "profile/flat.h"

#include <algorithm>

namespace plimsoll::profile {
namespace {

// What samples add to one stack id.
struct StackWeight {
  std::int64_t ns = 0;
  std::uint64_t samples = 0;
};

std::vector<StackWeight> weights_of_stacks(const Profile& profile) {
  std::vector<StackWeight> weights(profile.stacks.size());
  for (std::size_t row = 0; row < profile.samples.size(); ++row) {
    if (profile.samples.stack[row].is_none()) continue;
    StackWeight& weight = weights[profile.samples.stack[row].index()];
    weight.ns += profile.samples.weight_ns[row];
    ++weight.samples;
  }
  return weights;
}

// Aggregates by a row number for each frame: its function, or its (function, line).
std::vector<FlatRow> aggregate(const Profile& profile, const std::vector<std::size_t>& row_of_frame,
                               std::vector<FlatRow> rows) {
  const std::vector<StackWeight> weights = weights_of_stacks(profile);
  constexpr std::size_t kNever = ~std::size_t{0};
  std::vector<std::size_t> last_stack(rows.size(), kNever);  // the stack that counted a row last
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i].samples == 0) continue;
    FlatRow& leaf = rows[row_of_frame[profile.stacks.rows()[i].frame.index()]];
    leaf.self_ns += weights[i].ns;
    leaf.self_samples += weights[i].samples;
    for (StackId at{i}; !at.is_none(); at = profile.stacks[at].parent) {
      const std::size_t number = row_of_frame[profile.stacks[at].frame.index()];
      if (last_stack[number] == i) continue;
      last_stack[number] = i;
      rows[number].total_ns += weights[i].ns;
      rows[number].total_samples += weights[i].samples;
    }
  }
  std::erase_if(rows, [](const FlatRow& row) { return row.total_samples == 0; });
  std::stable_sort(rows.begin(), rows.end(), [](const FlatRow& a, const FlatRow& b) {
    return a.self_ns != b.self_ns ? a.self_ns > b.self_ns : a.total_ns > b.total_ns;
  });
  return rows;
}

}  // namespace

std::vector<FlatRow> flat(const Profile& profile) {
  std::vector<FlatRow> rows(profile.functions.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].function = FunctionId{i};
  std::vector<std::size_t> row_of_frame;
  row_of_frame.reserve(profile.frames.size());
  for (const Frame& frame : profile.frames.rows()) row_of_frame.push_back(frame.function.index());
  return aggregate(profile, row_of_frame, std::move(rows));
}

std::vector<FlatRow> lines(const Profile& profile) {
  std::vector<FlatRow> rows;
  std::vector<std::size_t> row_of_frame;
  row_of_frame.reserve(profile.frames.size());
  boost::unordered_flat_map<Frame, std::size_t> index;  // Frame with column 0 = a line
  for (const Frame& frame : profile.frames.rows()) {
    const auto [position, inserted] = index.try_emplace(Frame{frame.function, frame.line, 0}, rows.size());
    if (inserted) {
      FlatRow& row = rows.emplace_back();
      row.function = frame.function;
      row.line = frame.line;
    }
    row_of_frame.push_back(position->second);
  }
  return aggregate(profile, row_of_frame, std::move(rows));
}

}  // namespace plimsoll::profile
