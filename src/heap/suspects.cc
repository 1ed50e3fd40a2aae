#include "heap/suspects.h"

#include <algorithm>

namespace plimsoll::heap {
namespace {

// Below this share of its holder's retained size an object does not carry on the pile, nor below that of the first's.
constexpr double kCarriesOn = 0.75, kOfTheFirst = 0.5;
// As many objects of one class one below the other are no holders but the pile itself: a linked list.
constexpr std::size_t kRepeats = 8;

class Search {
 public:
  Search(const Snapshot& snapshot, const Dominance& dominance, double least_share)
      : snapshot_(snapshot),
        dominance_(dominance),
        children_(tree_edges(dominance.tree)),
        least_(static_cast<std::uint64_t>(least_share * static_cast<double>(dominance.retained[snapshot.root()]))) {}

  std::vector<Suspect> run() {
    find_singles(snapshot_.root());
    find_classes();
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Suspect& a, const Suspect& b) { return a.retained > b.retained; });
    return std::move(found_);
  }

 private:
  [[nodiscard]] bool is_large(Node node) const {
    return dominance_.retained[node] >= least_ && dominance_.retained[node] > 0;
  }

  // Roots and threads are no suspects, what they hold is.
  void find_singles(Node top) {
    std::vector<Node> open{top};
    while (!open.empty()) {
      const Node node = open.back();
      open.pop_back();
      for (const Node child : children_.from(node)) {
        if (!is_large(child)) continue;
        if (snapshot_.is_object(child))
          add_single(child);
        else
          open.push_back(child);
      }
    }
  }

  void add_single(Node top) {
    Suspect suspect;
    suspect.holders = chain_from(top);
    if (const std::size_t start = repetition(suspect.holders); start < suspect.holders.size()) {
      suspect.holders.resize(start + 1);
      suspect.repeats = true;
    }
    suspect.node = suspect.holders.back();
    suspect.type = snapshot_.type[suspect.node];
    suspect.count = 1;
    suspect.retained = dominance_.retained[suspect.node];
    const auto below = children_.from(suspect.node);
    tell_pile(suspect, {below.begin(), below.end()});
    tops_.push_back(top);
    found_.push_back(std::move(suspect));
  }

  // From an object down, as long as one below retains nearly as much.
  [[nodiscard]] std::vector<Node> chain_from(Node top) const {
    const double least =
        std::max(static_cast<double>(least_), kOfTheFirst * static_cast<double>(dominance_.retained[top]));
    std::vector<Node> chain;
    for (Node next = top; next != kNoNode;) {
      chain.push_back(next);
      next = carries_on(next, least);
    }
    return chain;
  }
  [[nodiscard]] Node carries_on(Node node, double least) const {
    least = std::max(least, kCarriesOn * static_cast<double>(dominance_.retained[node]));
    for (const Node child : children_.from(node))
      if (static_cast<double>(dominance_.retained[child]) >= least) return child;
    return kNoNode;
  }
  // Where in a chain the first object is of those of a class of which there are many in it; its end if there is none.
  [[nodiscard]] std::size_t repetition(const std::vector<Node>& chain) const {
    std::vector<std::size_t> counts(snapshot_.types.size(), 0);
    for (const Node node : chain) ++counts[snapshot_.type[node]];
    const auto is_many = [&](Node node) { return counts[snapshot_.type[node]] > kRepeats; };
    return static_cast<std::size_t>(std::find_if(chain.begin(), chain.end(), is_many) - chain.begin());
  }

  void tell_pile(Suspect& suspect, const std::vector<Node>& below) const {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> by_type(snapshot_.types.size());  // retained, count
    for (const Node node : below) {
      by_type[snapshot_.type[node]].first += dominance_.retained[node];
      ++by_type[snapshot_.type[node]].second;
    }
    const auto most = std::max_element(by_type.begin(), by_type.end());
    suspect.piled_type = static_cast<std::uint32_t>(most - by_type.begin());
    suspect.piled_retained = most->first;
    suspect.piled_count = most->second;
  }

  // Only what hangs directly below a root, and not below a single suspect, is counted for its class: what is deeper is
  // retained by something that is counted, or is too small to matter.
  void find_classes() {
    std::vector<std::vector<Node>> tops(snapshot_.types.size());
    for (const Node node : dominance_.tree.order) {
      const Node parent = dominance_.tree.parent[node];
      const bool hangs_on_root = parent != kNoNode && !snapshot_.is_object(parent);
      if (!hangs_on_root || !snapshot_.is_object(node)) continue;
      if (std::find(tops_.begin(), tops_.end(), node) == tops_.end()) tops[snapshot_.type[node]].push_back(node);
    }
    for (std::uint32_t type = 0; type < tops.size(); ++type) {
      Suspect suspect;
      std::vector<Node> below;
      for (const Node node : tops[type]) {
        suspect.retained += dominance_.retained[node];
        const auto children = children_.from(node);
        below.insert(below.end(), children.begin(), children.end());
      }
      if (suspect.retained < least_ || suspect.retained == 0 || tops[type].size() < 2) continue;
      suspect.type = type;
      suspect.count = tops[type].size();
      tell_pile(suspect, below);
      found_.push_back(std::move(suspect));
    }
  }

  const Snapshot& snapshot_;
  const Dominance& dominance_;
  const Graph children_;
  const std::uint64_t least_;
  std::vector<Node> tops_;  // of the single suspects
  std::vector<Suspect> found_;
};

}  // namespace

std::vector<Suspect> suspects(const Snapshot& snapshot, const Dominance& dominance, double least_share) {
  return Search(snapshot, dominance, least_share).run();
}

}  // namespace plimsoll::heap
