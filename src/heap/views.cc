#include "heap/views.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "heap/class_pattern.h"
#include "heap/dominators.h"
#include "heap/memory_view.h"

namespace plimsoll::heap {
namespace {

// Groups while they are made: each node knows one that it goes into, which may go into another.
class Folding {
 public:
  explicit Folding(std::size_t count) : into_(count) { std::iota(into_.begin(), into_.end(), Node{0}); }

  // Ways are halved as they are gone, so that long chains are short afterwards.
  [[nodiscard]] Node top(Node node) {
    while (into_[node] != node) node = into_[node] = into_[into_[node]];
    return node;
  }
  [[nodiscard]] bool is_free(Node node) const { return into_[node] == node; }
  // Whether that was done: nobody can be a part of his own part.
  bool fold(Node part, Node owner) {
    if (!is_free(part) || top(owner) == part) return false;
    into_[part] = owner;
    return true;
  }
  Grouping finish() {
    for (Node node = 0; node < into_.size(); ++node) into_[node] = top(node);
    return std::move(into_);
  }

 private:
  Grouping into_;
};

// The only node that holds each, or kNoNode: nobody does, or several.
std::vector<Node> only_holders(const Graph& graph) {
  std::vector<Node> holder(graph.size(), kNoNode);
  std::vector<bool> has_several(graph.size(), false);
  for (Node node = 0; node < graph.size(); ++node)
    for (const Node target : graph.from(node)) {
      if (target == node || holder[target] == node) continue;
      has_several[target] = has_several[target] || holder[target] != kNoNode;
      holder[target] = node;
    }
  for (Node node = 0; node < graph.size(); ++node)
    if (has_several[node]) holder[node] = kNoNode;
  return holder;
}

template <std::size_t size>
std::vector<bool> types_named(const Snapshot& snapshot, const std::array<std::string_view, size>& names) {
  std::vector<bool> result;
  for (const Type& type : snapshot.types)
    result.push_back(std::find(names.begin(), names.end(), type.name) != names.end());
  return result;
}

std::vector<bool> names_equal(const Snapshot& snapshot, std::string_view wanted) {
  std::vector<bool> result;
  for (const std::string& name : snapshot.names) result.push_back(name == wanted);
  return result;
}

std::vector<bool> classes_in(const Snapshot& snapshot) {
  std::vector<bool> is_class(snapshot.type.size(), false);
  for (const Type& type : snapshot.types)
    if (type.object != kNoNode) is_class[type.object] = true;
  for (Node node = 0; node < snapshot.object_count; ++node)
    if (snapshot.type_name(node) == "type") is_class[node] = true;
  return is_class;
}

constexpr std::array<std::string_view, 5> kInsides{"tuple", "code", "dict", "bytes", "str"};
// What the text of a module makes, beside its classes.
constexpr std::array<std::string_view, 19> kText{"str",
                                                 "bytes",
                                                 "tuple",
                                                 "int",
                                                 "float",
                                                 "complex",
                                                 "frozenset",
                                                 "code",
                                                 "property",
                                                 "staticmethod",
                                                 "classmethod",
                                                 "cell",
                                                 "function",
                                                 "getset_descriptor",
                                                 "member_descriptor",
                                                 "wrapper_descriptor",
                                                 "method_descriptor",
                                                 "builtin_function_or_method",
                                                 "mappingproxy"};

}  // namespace

Grouping parts_of(const Snapshot& snapshot) {
  Folding folding(snapshot.type.size());
  const std::vector<bool> is_dict_name = names_equal(snapshot, "__dict__");
  const auto each_edge = [&](auto visit) {
    for (Node node = 0; node < snapshot.object_count; ++node)
      for (std::uint32_t edge = snapshot.graph.first[node]; edge < snapshot.graph.first[node + 1]; ++edge)
        if (const Node part = snapshot.graph.targets[edge]; part != node && snapshot.is_object(part))
          visit(node, part, edge);
  };
  // The first one that holds it so has it: nobody who is a part of it or of whom it is.
  std::vector<bool> has_parts(snapshot.type.size(), false);
  each_edge([&](Node node, Node part, std::uint32_t edge) {
    const bool is_part = snapshot.kind[edge] == EdgeKind::kNamed && is_dict_name[snapshot.name[edge]];
    if (!is_part || has_parts[part] || !folding.is_free(node) || snapshot.type_name(part) != "dict") return;
    has_parts[node] = folding.fold(part, node) || has_parts[node];
  });
  const std::vector<Node> only_holder = only_holders(snapshot.graph);
  const std::vector<bool> is_inside = types_named(snapshot, kInsides);
  const std::vector<bool> is_class = classes_in(snapshot);
  const std::vector<bool> has_insides = types_named(snapshot, std::array<std::string_view, 2>{"function", "code"});
  each_edge([&](Node node, Node part, std::uint32_t) {
    const bool is_meant = has_insides[snapshot.type[node]] || is_class[node];
    if (is_meant && only_holder[part] == node && is_inside[snapshot.type[part]]) folding.fold(part, node);
  });
  return folding.finish();
}

Grouping modules_of(const Snapshot& snapshot) {
  Folding folding(snapshot.type.size());
  const Graph& graph = snapshot.graph;
  std::vector<std::pair<std::string_view, Node>> modules;
  std::vector<bool> is_module(snapshot.type.size(), false);
  for (Node node = 0; node < snapshot.object_count; ++node) {
    if (snapshot.type_name(node) != "module" || snapshot.text(node).empty()) continue;
    modules.emplace_back(snapshot.text(node), node);
    is_module[node] = true;
  }
  std::stable_sort(modules.begin(), modules.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  // "app.views" of "app.views.Page.Meta": the longest name that is a module's.
  const auto module_of = [&](std::string_view name) {
    for (std::size_t dot = name.rfind('.'); dot != std::string_view::npos; dot = name.rfind('.')) {
      name = name.substr(0, dot);
      const auto found = std::lower_bound(modules.begin(), modules.end(), name,
                                          [](const auto& a, std::string_view b) { return a.first < b; });
      if (found != modules.end() && found->first == name) return found->second;
    }
    return kNoNode;
  };
  const std::vector<bool> is_class = classes_in(snapshot);
  const std::vector<bool> is_globals = names_equal(snapshot, "__globals__");
  for (Node node = 0; node < snapshot.object_count; ++node) {
    if (is_class[node]) {
      if (const Node module = module_of(snapshot.text(node)); module != kNoNode) folding.fold(node, module);
      continue;
    }
    if (snapshot.type_name(node) != "function") continue;
    for (std::uint32_t edge = graph.first[node]; edge < graph.first[node + 1]; ++edge)
      if (snapshot.kind[edge] == EdgeKind::kNamed && is_globals[snapshot.name[edge]] && is_module[graph.targets[edge]])
        folding.fold(node, graph.targets[edge]);
  }
  // Then what is text and only one module holds, until there is no more: from holders to what they hold.
  const std::vector<bool> is_text = types_named(snapshot, kText);
  const Graph holders = reversed(graph);
  std::vector<Node> open;
  for (Node node = 0; node < snapshot.object_count; ++node)
    if (is_module[folding.top(node)]) open.push_back(node);
  while (!open.empty()) {
    const Node node = open.back();
    open.pop_back();
    const Node module = folding.top(node);
    for (const Node held : graph.from(node)) {
      if (!snapshot.is_object(held) || !is_text[snapshot.type[held]] || !folding.is_free(held)) continue;
      const auto all = holders.from(held);
      const bool is_its_own = std::all_of(all.begin(), all.end(),
                                          [&](Node holder) { return holder == held || folding.top(holder) == module; });
      if (is_its_own && folding.fold(held, module)) open.push_back(held);
    }
  }
  return folding.finish();
}

Grouping ruled(const Snapshot& snapshot, const std::vector<FoldRule>& rules) {
  Folding folding(snapshot.type.size());
  const ClassTree classes(snapshot);
  // By type: the rule that holds. The last one decides.
  std::vector<const FoldRule*> rule_of(snapshot.types.size(), nullptr);
  for (const FoldRule& rule : rules)
    for (std::uint32_t type = 0; type < snapshot.types.size(); ++type)
      if (classes.matches(type, rule.classes)) rule_of[type] = &rule;
  const auto takes = [](const FoldRule& rule, std::string_view part) {
    return std::find(rule.parts.begin(), rule.parts.end(), part) != rule.parts.end();
  };
  bool takes_all = false;
  for (Node node = 0; node < snapshot.object_count; ++node) {
    const FoldRule* rule = rule_of[snapshot.type[node]];
    if (rule == nullptr) continue;
    takes_all = takes_all || takes(*rule, "*");
    for (std::uint32_t edge = snapshot.graph.first[node]; edge < snapshot.graph.first[node + 1]; ++edge) {
      const Node part = snapshot.graph.targets[edge];
      if (snapshot.is_object(part) && snapshot.kind[edge] == EdgeKind::kNamed &&
          takes(*rule, snapshot.names[snapshot.name[edge]]))
        folding.fold(part, node);
    }
  }
  if (!takes_all) return folding.finish();
  // Down the tree of dominators: what is below one that takes all goes into the outermost such.
  const DominatorTree tree = dominator_tree(snapshot.graph, snapshot.root());
  std::vector<Node> taker(snapshot.type.size(), kNoNode);
  for (const Node node : tree.order) {
    const Node parent = tree.parent[node];
    const FoldRule* rule = snapshot.is_object(node) ? rule_of[snapshot.type[node]] : nullptr;
    if (parent != kNoNode && taker[parent] != kNoNode && snapshot.is_object(node)) {
      taker[node] = taker[parent];
      folding.fold(node, taker[node]);
    } else if (rule != nullptr && takes(*rule, "*")) {
      taker[node] = node;
    }
  }
  return folding.finish();
}

std::vector<std::string> classes_not_there(const Snapshot& snapshot, const View& view) {
  std::vector<std::string> missing;
  if (std::none_of(view.begin(), view.end(), [](const ViewStage& stage) { return !stage.rules.empty(); }))
    return missing;
  const ClassTree classes(snapshot);
  std::vector<bool> has_objects(snapshot.types.size(), false);
  for (Node node = 0; node < snapshot.object_count; ++node) has_objects[snapshot.type[node]] = true;
  for (const ViewStage& stage : view)
    for (const FoldRule& rule : stage.rules) {
      bool is_met = false;
      for (std::uint32_t type = 0; type < snapshot.types.size() && !is_met; ++type)
        is_met = has_objects[type] && classes.matches(type, rule.classes);
      if (!is_met) missing.push_back(rule.classes);
    }
  return missing;
}

Snapshot seen_as(Snapshot snapshot, const View& view) {
  for (const ViewStage& stage : view) {
    switch (stage.kind) {
      case ViewStage::Kind::kMemory: snapshot = with_memory(std::move(snapshot)); break;
      case ViewStage::Kind::kParts: snapshot = quotient(snapshot, parts_of(snapshot)); break;
      case ViewStage::Kind::kModule: snapshot = quotient(snapshot, modules_of(snapshot)); break;
      case ViewStage::Kind::kRules: snapshot = quotient(snapshot, ruled(snapshot, stage.rules)); break;
    }
  }
  return snapshot;
}

}  // namespace plimsoll::heap
