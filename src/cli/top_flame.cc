// cli/top_flame.cc: a flame graph in cells: a row for each call, callers above callees, as wide as their time.
#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/place.h"
#include "cli/top_body.h"
#include "cli/units.h"
#include "profile/tree.h"

namespace plimsoll::cli {
namespace {

using profile::Tree;

// A call on the screen.
struct Box {
  std::size_t node = 0;
  std::size_t begin = 0, end = 0;  // columns
};

class Flame {
 public:
  Flame(const profile::Profile& profile, std::size_t width)
      : profile_(profile), tree_(profile::tree(profile, profile::Granularity::kFunction)), width_(width) {
    if (tree_.nodes[0].total_ns <= 0) return;
    find_trunk();
    put(trunk_.back(), 0, 0.0, static_cast<double>(width));
  }

  [[nodiscard]] std::size_t rows() const { return levels_.size(); }

  [[nodiscard]] Cell draw(std::size_t row) const {
    ScreenLine line(width_);
    std::size_t column = 0;
    for (const Box& box : levels_[row]) {
      line.left("", box.begin - column);
      const double percent = percent_of(tree_.nodes[box.node].total_ns, tree_.nodes[0].total_ns);
      line.add("│", Style::kDim);
      if (row == 0)
        line.path(trunk_name(), box.end - box.begin - 1, heat(percent));
      else
        line.left(name(box.node), box.end - box.begin - 1, heat(percent));
      column = box.end;
    }
    return line.take();
  }

 private:
  [[nodiscard]] std::string name(std::size_t node) const { return function_name(profile_, tree_.nodes[node].function); }

  // Those that have time (the tables know other stacks, too), in the order of their names, as that of their times
  // changes all the while.
  [[nodiscard]] std::vector<std::size_t> children_of(std::size_t node) const {
    std::vector<std::size_t> children = tree_.nodes[node].children;
    std::erase_if(children, [&](std::size_t child) { return tree_.nodes[child].total_ns <= 0; });
    std::stable_sort(children.begin(), children.end(), [&](std::size_t a, std::size_t b) { return name(a) < name(b); });
    return children;
  }

  // The calls from the root on that everything is below of, which would be a row each and say nothing.
  void find_trunk() {
    for (std::size_t at = 0;;) {
      if (at != 0) trunk_.push_back(at);
      const std::vector<std::size_t> children = children_of(at);
      if (children.size() != 1 || tree_.nodes[at].self_ns != 0) break;
      at = children[0];
    }
    if (trunk_.empty()) trunk_.push_back(0);
  }
  [[nodiscard]] std::string trunk_name() const {
    std::string names;
    for (const std::size_t node : trunk_)
      names += (names.empty() ? "" : " › ") + (node == 0 ? std::string("all") : name(node));
    return names;
  }

  void put(std::size_t node, std::size_t level, double begin, double end) {
    constexpr std::size_t kDeepest = 500;
    const Box box{node, static_cast<std::size_t>(std::lround(begin)), static_cast<std::size_t>(std::lround(end))};
    if (box.begin == box.end || level == kDeepest) return;
    if (levels_.size() == level) levels_.emplace_back();
    levels_[level].push_back(box);
    // In the order of their names, as that of their times changes all the while.
    std::vector<std::size_t> children = tree_.nodes[node].children;
    std::stable_sort(children.begin(), children.end(), [&](std::size_t a, std::size_t b) { return name(a) < name(b); });
    const double cells_per_ns = (end - begin) / static_cast<double>(tree_.nodes[node].total_ns);
    for (const std::size_t child : children) {
      const double width = static_cast<double>(tree_.nodes[child].total_ns) * cells_per_ns;
      put(child, level + 1, begin, begin + width);
      begin += width;
    }
  }

  const profile::Profile& profile_;
  const Tree tree_;
  const std::size_t width_;
  std::vector<std::size_t> trunk_;
  std::vector<std::vector<Box>> levels_;
};

}  // namespace

TopBody flame_body(const TopPicture& picture, std::size_t width) {
  auto flame = std::make_shared<const Flame>(picture.live.profile, width);
  return {{}, flame->rows(), [flame](std::size_t row) { return flame->draw(row); }};
}

}  // namespace plimsoll::cli
