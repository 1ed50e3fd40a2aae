#include "heap/places.h"

#include <algorithm>
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <string_view>
#include <tuple>

namespace plimsoll::heap {
namespace {

constexpr std::array<std::string_view, 10> kContainers{"list",
                                                       "tuple",
                                                       "dict",
                                                       "set",
                                                       "frozenset",
                                                       "cell",
                                                       "collections.deque",
                                                       "collections.OrderedDict",
                                                       "collections.defaultdict",
                                                       "mappingproxy"};

class PlaceFinder {
 public:
  explicit PlaceFinder(const Snapshot& snapshot) : snapshot_(snapshot) {
    for (const Type& type : snapshot.types)
      is_container_.push_back(std::find(kContainers.begin(), kContainers.end(), type.name) != kContainers.end());
    for (const std::string& name : snapshot.names) is_part_.push_back(name == "__dict__");
    (void)text_place("[root]");
  }

  Places run() {
    const std::size_t count = snapshot_.type.size();
    result_.of.assign(count, 0);
    std::vector<bool> is_seen(count, false);
    owner_.assign(count, kNoNode);
    std::vector<Node> queue{snapshot_.root()};
    is_seen[snapshot_.root()] = true;
    for (std::size_t next = 0; next < queue.size(); ++next) {
      const Node holder = queue[next];
      for (std::uint32_t edge = snapshot_.graph.first[holder]; edge < snapshot_.graph.first[holder + 1]; ++edge) {
        const Node held = snapshot_.graph.targets[edge];
        if (is_seen[held]) continue;
        is_seen[held] = true;
        queue.push_back(held);
        const bool is_part = snapshot_.kind[edge] == EdgeKind::kNamed && is_part_[snapshot_.name[edge]];
        if (is_part) owner_[held] = holder;
        result_.of[held] = held_by(holder, edge);
      }
    }
    return std::move(result_);
  }

 private:
  enum Step : std::uint32_t { kBase, kItem, kKey, kAttribute, kClass, kSomehow };
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

  std::uint32_t held_by(Node holder, std::uint32_t edge) {
    const EdgeKind kind = snapshot_.kind[edge];
    if (owner_[holder] != kNoNode && kind == EdgeKind::kNamed)
      return step(base(owner_[holder]), kAttribute, snapshot_.name[edge]);
    if (is_container_[snapshot_.type[holder]] && snapshot_.is_object(holder)) {
      const std::uint32_t place = result_.of[holder];
      if (kind == EdgeKind::kType) return step(base(holder), kClass, 0);
      if (kind == EdgeKind::kNamed) return step(place, kAttribute, snapshot_.name[edge]);
      constexpr std::uint32_t kDeepest = 3;
      return items_[place] >= kDeepest ? place : step(place, kind == EdgeKind::kKey ? kKey : kItem, 0);
    }
    if (kind == EdgeKind::kNamed) return step(base(holder), kAttribute, snapshot_.name[edge]);
    return step(base(holder), kind == EdgeKind::kType ? kClass : kSomehow, 0);
  }

  // A holder itself, in words: of modules, classes and functions by name, of others by class.
  std::uint32_t base(Node holder) {
    const std::string_view text = snapshot_.text(holder);
    const std::string& type = snapshot_.type_name(holder);
    if (!snapshot_.is_object(holder)) return text_place(text.empty() ? type : std::string(text));
    if (type == "module" && !text.empty()) return text_place(std::string(text));
    if (!text.empty() && (type == "function" || is_class(holder))) return text_place(type + " " + std::string(text));
    const auto [found, is_new] = by_step_.try_emplace(Key{snapshot_.type[holder], kBase, 0}, 0);
    if (is_new) found->second = text_place(type);
    return found->second;
  }
  bool is_class(Node node) const { return snapshot_.type_name(node) == "type"; }

  std::uint32_t text_place(const std::string& text) {
    const auto [found, is_new] = by_text_.try_emplace(text, static_cast<std::uint32_t>(result_.names.size()));
    if (is_new) add(text, 0);
    return found->second;
  }
  void add(std::string name, std::uint32_t items) {
    result_.names.push_back(std::move(name));
    items_.push_back(items);
  }

  std::uint32_t step(std::uint32_t from, Step how, std::uint32_t name) {
    const auto number = static_cast<std::uint32_t>(result_.names.size());
    const auto [found, is_new] = by_step_.try_emplace(Key{from, how, name}, number);
    if (!is_new) return found->second;
    std::string text = result_.names[from];
    switch (how) {
      case kItem: text += "[]"; break;
      case kKey: text += " key"; break;
      case kAttribute: text += "." + snapshot_.names[name]; break;
      case kClass: text += ".__class__"; break;
      default: text += " (holds it)";
    }
    // Another way may have the same words.
    const auto known = by_text_.try_emplace(text, number);
    if (!known.second) return found->second = known.first->second;
    add(text, how == kItem || how == kKey ? items_[from] + 1 : 0);
    return number;
  }

  const Snapshot& snapshot_;
  std::vector<bool> is_container_, is_part_;
  std::vector<Node> owner_;           // of dicts that are parts
  std::vector<std::uint32_t> items_;  // by place: steps into containers at its end
  boost::unordered_flat_map<Key, std::uint32_t> by_step_;
  boost::unordered_flat_map<std::string, std::uint32_t> by_text_;
  Places result_;
};

}  // namespace

Places places(const Snapshot& snapshot) { return PlaceFinder(snapshot).run(); }

Places referrer_classes(const Snapshot& snapshot, const Graph& holders) {
  constexpr std::size_t kMostNamed = 4;
  Places result;
  boost::unordered_flat_map<std::string, std::uint32_t> known;    // by the numbers of the classes, as bytes
  boost::unordered_flat_map<std::string, std::uint32_t> by_name;  // as of many classes only some are named
  std::vector<std::uint32_t> classes;
  for (Node node = 0; node < snapshot.type.size(); ++node) {
    classes.clear();
    for (const Node holder : holders.from(node)) {
      classes.push_back(snapshot.type[holder]);
      if (classes.size() < 64) continue;  // an object that all hold: its holders are of few classes
      std::sort(classes.begin(), classes.end());
      classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    }
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    const std::string key(reinterpret_cast<const char*>(classes.data()), classes.size() * sizeof classes[0]);
    const auto [found, is_new] = known.try_emplace(key, 0);
    if (is_new) {
      std::vector<std::string> words;
      for (const std::uint32_t type : classes) words.push_back(snapshot.types[type].name);
      std::sort(words.begin(), words.end());
      std::string name;
      for (std::size_t i = 0; i < std::min(words.size(), kMostNamed); ++i) name += (i == 0 ? "" : ", ") + words[i];
      if (words.size() > kMostNamed) name += " and " + std::to_string(words.size() - kMostNamed) + " more";
      if (name.empty()) name = "nothing";
      const auto named = by_name.try_emplace(name, static_cast<std::uint32_t>(result.names.size()));
      if (named.second) result.names.push_back(std::move(name));
      found->second = named.first->second;
    }
    result.of.push_back(found->second);
  }
  return result;
}

}  // namespace plimsoll::heap
