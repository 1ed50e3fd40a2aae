// cli/tree_view.cc: selection, folding and joining of tree lines. Iterative: a hostile file can be a million calls
// deep.
#include "cli/tree_view.h"

#include "cli/place.h"

namespace plimsoll::cli {
namespace {

using profile::Profile;
using profile::Tree;
using profile::TreeNode;

// Deeper forks than this share their rails; no page is wide enough to tell.
constexpr std::size_t kMostRails = 100;
// A shorter run is not worth folding: the line that stands for it says less than the lines.
constexpr std::uint64_t kShortestMachinery = 2;
constexpr std::uint64_t kShortestLibrary = 3;

// A node whose line is due, with what its callers decided.
struct Due {
  std::size_t node = 0;
  std::size_t caller = 0;
  std::size_t depth = 0;  // calls above it
  Joint joint = Joint::kRoot;
  std::string rails;
  bool is_hidden_rest = false;  // stands for the light callees of node
};

class TreeViewMaker {
 public:
  TreeViewMaker(const Profile& profile, const Tree& tree, const TreeOptions& options)
      : nodes_(tree.nodes),
        options_(options),
        threshold_ns_(options.min_percent / 100 * static_cast<double>(tree.nodes[0].total_ns)) {
    for (std::size_t i = 0; i < profile.functions.size(); ++i) libraries_.push_back(library_of(profile, FunctionId{i}));
  }

  TreeView make() {
    add_frameless();
    push_callees(0, 0, {"", ""}, Joint::kRoot);
    while (!due_.empty()) {
      const Due due = std::move(due_.back());
      due_.pop_back();
      due.is_hidden_rest ? add_hidden_rest(due) : add_call(due);
    }
    count_unseen();
    return std::move(view_);
  }

 private:
  // The callees of a node that get a line of their own, and the sum of those that do not.
  struct Callees {
    std::vector<std::size_t> shown;
    std::uint64_t light_count = 0;
    std::int64_t light_ns = 0;
  };

  // The innermost frame of a run that one line stands for, and the calls above that frame.
  struct Run {
    std::size_t last = 0;
    std::size_t depth = 0;
  };
  // The rails of the lines below a line.
  struct RailsBelow {
    std::string of_only_callee;
    std::string of_fork;
  };

  [[nodiscard]] bool is_light(std::int64_t ns) const { return static_cast<double>(ns) < threshold_ns_; }

  [[nodiscard]] Callees callees_of(std::size_t node) const {
    Callees callees;
    for (const std::size_t child : nodes_[node].children) {
      if (nodes_[child].samples == 0) continue;
      if (is_light(nodes_[child].total_ns)) {
        ++callees.light_count;
        callees.light_ns += nodes_[child].total_ns;
      } else {
        callees.shown.push_back(child);
      }
    }
    return callees;
  }

  // Alone under a function whose own self time tells the same, such a line would be noise.
  [[nodiscard]] bool rest_has_line(const Callees& callees, std::size_t node) const {
    return callees.light_count > 0 && !is_light(callees.light_ns) && (node == 0 || !callees.shown.empty());
  }

  // The only callee that a line under this one would show; 0 (the root, nobody's callee) if there is none or a fork.
  [[nodiscard]] std::size_t only_callee(const Run& run) const {
    if (run.depth + 1 >= options_.depth) return 0;
    const Callees callees = callees_of(run.last);
    return callees.shown.size() == 1 && !rest_has_line(callees, run.last) ? callees.shown[0] : 0;
  }
  [[nodiscard]] Run callee_of(const Run& run) const { return {only_callee(run), run.depth + 1}; }

  [[nodiscard]] const std::string& library_at(std::size_t node) const {
    static const std::string none;
    const FunctionId function = nodes_[node].function;
    return function.is_none() ? none : libraries_[function.index()];
  }

  void add_frameless() {
    if (nodes_[0].self_samples == 0 || is_light(nodes_[0].self_ns)) return;
    TreeRow row;
    row.total_ns = row.self_ns = nodes_[0].self_ns;
    view_.rows.push_back(row);
  }

  void add_call(const Due& due) {
    TreeRow row;
    row.node = due.node;
    row.total_ns = nodes_[due.node].total_ns;
    row.self_ns = nodes_[due.node].self_ns;
    row.joint = due.joint;
    row.rails = due.rails;
    Run run{due.node, due.depth};
    if (options_.folding == Folding::kOn) run = fold(due, row);
    view_.rows.push_back(row);
    represented_ += row.count + row.via;
    push_callees(run.last, run.depth + 1, rails_below(due), Joint::kOnlyCallee);
  }

  // An only callee stands right under its caller; a fork below an only callee moves in far enough to hang from its
  // name.
  static RailsBelow rails_below(const Due& due) {
    RailsBelow below{due.rails, due.rails};
    if (due.joint == Joint::kRoot || due.rails.size() >= kMostRails) return below;
    if (due.joint == Joint::kOnlyCallee) {
      below.of_fork += '.';
    } else {
      below.of_fork += due.joint == Joint::kMiddle ? '|' : ' ';
      below.of_only_callee = below.of_fork;
    }
    return below;
  }

  // Lets the row stand for the whole run of frames that begins with its node, if there is one worth it.
  Run fold(const Due& due, TreeRow& row) const {
    const std::string& library = library_at(due.node);
    // (Whose callers are asked for has its name, whatever it is.)
    const bool is_subject = options_.direction == Direction::kToCallers && due.joint == Joint::kRoot;
    if (is_machinery(library) && !is_subject) {
      const Run run = fold_while(due, row, kShortestMachinery, [&](const Run& at) {
        return library_at(at.last) == library && is_light(nodes_[at.last].self_ns);
      });
      return row.kind == RowKind::kFolded ? skip_to_callee(run, row) : run;
    }
    // The entry of a library, a fork in it and a place where it spends time keep their names.
    if (due.joint == Joint::kOnlyCallee && !library.empty() && library_at(due.caller) == library) {
      const Run run = fold_while(due, row, kShortestLibrary, [&](const Run& at) {
        return library_at(at.last) == library && is_light(nodes_[at.last].self_ns) && only_callee(at) != 0;
      });
      if (run.last != due.node) return run;
    }
    const TreeNode& first = nodes_[due.node];
    const Run run = fold_while(due, row, 2, [&](const Run& at) {
      return nodes_[at.last].function == first.function && nodes_[at.last].line == first.line;
    });
    row.kind = RowKind::kCall;
    return run;
  }

  // The longest run from the due node on of which every frame satisfies the condition and is the only callee of the one
  // before; if it is long enough, the row becomes its sum.
  template <typename Condition>
  Run fold_while(const Due& due, TreeRow& row, std::uint64_t shortest, Condition holds) const {
    const Run alone{due.node, due.depth};
    if (!holds(alone)) return alone;
    Run run = alone;
    TreeRow sum = row;
    for (Run next = callee_of(run); next.last != 0 && holds(next); next = callee_of(run)) {
      sum.self_ns += nodes_[next.last].self_ns;
      ++sum.count;
      run = next;
    }
    if (sum.count < shortest) return alone;
    sum.kind = RowKind::kFolded;
    sum.library = library_at(due.node);
    row = std::move(sum);
    return run;
  }

  // Lets the row of folded machinery stand for the function that it leads to, if it leads to one.
  Run skip_to_callee(const Run& machinery, TreeRow& row) const {
    const Run callee = callee_of(machinery);
    if (callee.last == 0 || is_machinery(library_at(callee.last))) return machinery;
    row.kind = RowKind::kCall;
    row.via = row.count;
    row.count = 1;
    row.node = callee.last;
    row.total_ns = nodes_[callee.last].total_ns;
    row.self_ns = nodes_[callee.last].self_ns;
    return callee;
  }

  void add_hidden_rest(const Due& due) {
    const Callees callees = callees_of(due.node);
    TreeRow row;
    row.kind = RowKind::kHidden;
    row.node = due.node;
    row.count = callees.light_count;
    row.total_ns = callees.light_ns;
    row.joint = due.joint;
    row.rails = due.rails;
    view_.rows.push_back(row);
  }

  // Puts the callees of a node on the stack of due lines, the heaviest on top. `alone` is the joint of an only one.
  void push_callees(std::size_t node, std::size_t depth, const RailsBelow& below, Joint alone) {
    if (depth >= options_.depth) return;
    const Callees callees = callees_of(node);
    const bool with_rest = rest_has_line(callees, node);
    const std::size_t count = callees.shown.size() + (with_rest ? 1 : 0);
    const std::string& rails = count == 1 ? below.of_only_callee : below.of_fork;
    const auto joint_of = [&](std::size_t position) {
      if (count == 1 || alone == Joint::kRoot) return alone;
      return position + 1 == count ? Joint::kLast : Joint::kMiddle;
    };
    if (with_rest) due_.push_back({node, node, depth, joint_of(count - 1), rails, true});
    for (std::size_t i = callees.shown.size(); i-- > 0;)
      due_.push_back({callees.shown[i], node, depth, joint_of(i), rails, false});
  }

  void count_unseen() {
    std::uint64_t heavy = 0;
    for (std::size_t i = 1; i < nodes_.size(); ++i) {
      if (nodes_[i].samples == 0) continue;
      ++(is_light(nodes_[i].total_ns) ? view_.light_nodes : heavy);
    }
    view_.deep_nodes = heavy > represented_ ? heavy - represented_ : 0;
  }

  const std::vector<TreeNode>& nodes_;
  const TreeOptions& options_;
  const double threshold_ns_;
  std::vector<std::string> libraries_;  // by FunctionId
  std::vector<Due> due_;
  TreeView view_;
  std::uint64_t represented_ = 0;  // nodes that a line stands for
};

}  // namespace

TreeView tree_view(const Profile& profile, const Tree& tree, const TreeOptions& options) {
  return TreeViewMaker(profile, tree, options).make();
}

}  // namespace plimsoll::cli
