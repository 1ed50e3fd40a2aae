#include "profile/flat.h"

#include <algorithm>

#include "profile/stack_totals.h"

namespace plimsoll::profile {
namespace {

// Aggregates by a row number for each frame: its function, or its (function, line).
std::vector<FlatRow> aggregate(const Profile& profile, const std::vector<std::size_t>& row_of_frame,
                               std::vector<FlatRow> rows) {
  std::vector<StackWeight> weights = weights_of_stacks(profile).by_stack;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    FlatRow& leaf = rows[row_of_frame[profile.stacks.rows()[i].frame.index()]];
    leaf.self_ns += weights[i].weight;
    leaf.self_samples += weights[i].count;
  }
  add_up(profile.stacks, weights);
  const auto row_of = [&](FrameId frame) { return row_of_frame[frame.index()]; };
  each_outermost(profile.stacks, rows.size(), row_of, [&](StackId stack, std::size_t row) {
    rows[row].total_ns += weights[stack.index()].weight;
    rows[row].total_samples += weights[stack.index()].count;
  });
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
