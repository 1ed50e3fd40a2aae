#include "formats/heapsnapshot/writer.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <charconv>
#include <vector>

#include "formats/heapsnapshot/trace_tree.h"
#include "formats/json.h"

namespace plimsoll::formats::heapsnapshot {
namespace {

using heap::EdgeKind;
using heap::Node;

// Places of the words in node_types and edge_types below.
enum NodeType { kObject = 3, kCode = 4, kClosure = 5, kNumber = 7, kNative = 8, kSynthetic = 9, kString = 2 };
enum EdgeType { kElement = 1, kProperty = 2, kInternal = 3, kWeak = 6 };
constexpr std::uint64_t kNodeFields = 7;

// The loader wants the keys of the file in this order, all of them, and reads numbers without sign or fraction only.
constexpr std::string_view kMeta =
    R"("meta":{"node_fields":["type","name","id","self_size","edge_count","trace_node_id","detachedness"],)"
    R"("node_types":[["hidden","array","string","object","code","closure","regexp","number","native","synthetic",)"
    R"("concatenated string","sliced string","symbol","bigint","object shape"],)"
    R"("string","number","number","number","number","number"],)"
    R"("edge_fields":["type","name_or_index","to_node"],)"
    R"("edge_types":[["context","element","property","internal","hidden","shortcut","weak"],"string_or_number","node"],)"
    R"("trace_function_info_fields":["function_id","name","script_name","script_id","line","column"],)"
    R"("trace_node_fields":["id","function_info_index","count","size","children"],)"
    R"("sample_fields":["timestamp_us","last_assigned_id"],)"
    R"("location_fields":["object_index","script_id","line","column"]})";

// Sizes are 32 bits wide: what is larger is shown as the object and parts of this size.
constexpr std::uint64_t kLargestPart = std::uint64_t{1} << 31U;

class Writer {
 public:
  explicit Writer(const heap::Snapshot& snapshot)
      : snapshot_(snapshot),
        count_(snapshot.type.size()),
        trace_(snapshot, [this](std::string_view text) { return string(text); }) {
    for (std::size_t i = 0; i < snapshot.size.size(); ++i) parts_ += snapshot.size[i] / kLargestPart;
    type_names_.assign(snapshot.types.size(), kNoString);
    edge_names_.assign(snapshot.names.size(), kNoString);
  }

  std::string write() {
    collect_ids();
    const std::size_t edges = snapshot_.graph.targets.size() + snapshot_.weak.size() + parts_;
    out_.reserve((count_ + parts_) * 32 + edges * 18 + 4096);
    out_ += R"({"snapshot":{)";
    out_ += kMeta;
    out_ += R"(,"node_count":)" + std::to_string(count_ + parts_) + R"(,"edge_count":)" + std::to_string(edges) +
            R"(,"trace_function_count":)" + std::to_string(trace_.function_count()) + "},";
    out_ += "\n\"nodes\":[";
    node(snapshot_.root());
    for (Node each = 0; each + 1 < count_; ++each) node(each);
    for (std::uint64_t i = 0; i < parts_; ++i)
      numbers({kNative, string("(part of a buffer)"), 2 * (count_ + i) + 2, kLargestPart, 0, 0, 0});
    close("edges");
    edges_of(snapshot_.root());
    for (Node each = 0; each + 1 < count_; ++each) edges_of(each);
    out_ += "],\n\"trace_function_infos\":[" + trace_.functions() + "],\n\"trace_tree\":[" + trace_.tree();
    out_ += "],\n\"samples\":[],\n\"locations\":[],\n\"strings\":";
    JsonWriter json(out_);
    json.begin_array();
    for (const std::string& text : strings_) json.text(text);
    json.end_array();
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  static constexpr std::uint64_t kNoString = ~std::uint64_t{0};

  // The root comes first there, and last here.
  [[nodiscard]] std::uint64_t place(Node node) const { return node == snapshot_.root() ? 0 : std::uint64_t{node} + 1; }

  void numbers(std::initializer_list<std::uint64_t> row) {
    for (const std::uint64_t number : row) {
      if (needs_comma_) out_ += ',';
      needs_comma_ = true;
      char digits[20];
      out_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
    }
  }
  void close(std::string_view next) {
    out_ += "],\n\"";
    out_ += next;
    out_ += "\":[";
    needs_comma_ = false;
  }

  std::uint64_t string(std::string_view text) {
    const auto [found, is_new] = string_numbers_.try_emplace(std::string(text), strings_.size());
    if (is_new) strings_.emplace_back(text);
    return found->second;
  }
  std::uint64_t type_name(Node node) {
    std::uint64_t& number = type_names_[snapshot_.type[node]];
    if (number == kNoString) number = string(snapshot_.type_name(node));
    return number;
  }
  std::uint64_t edge_name(std::uint32_t name) {
    std::uint64_t& number = edge_names_[name];
    if (number == kNoString) number = string(snapshot_.names[name]);
    return number;
  }

  // Odd, as those of objects are in V8, and the same in the next snapshot of the process: from the address, or the next
  // number that is free.
  void collect_ids() {
    boost::unordered_flat_set<std::uint32_t> used(snapshot_.object_count);
    ids_.reserve(snapshot_.object_count);
    for (Node node = 0; node < snapshot_.object_count; ++node) {
      std::uint32_t id = static_cast<std::uint32_t>(snapshot_.address[node] >> 4U) & 0x3fffffffU;
      while (!used.insert(id).second) id = (id + 1) & 0x3fffffffU;
      ids_.push_back(id);
    }
  }
  // Those of what is no object come above all of these.
  [[nodiscard]] std::uint64_t id(Node node) const {
    if (node == snapshot_.root()) return 1;
    if (snapshot_.is_object(node)) return 2 * std::uint64_t{ids_[node]} + 3;
    return 0x80000005U + 2 * std::uint64_t{node - static_cast<Node>(snapshot_.object_count)};
  }

  [[nodiscard]] std::uint64_t type_of(Node node, std::string_view text) const {
    if (!snapshot_.is_object(node)) return kSynthetic;
    const std::string& type = snapshot_.type_name(node);
    if (type == "code") return kCode;
    if (type == "function" || type == "builtin_function_or_method") return kClosure;
    if (type == "str" && !text.empty()) return kString;
    if ((type == "int" || type == "float") && !text.empty()) return kNumber;
    return kObject;
  }

  // Classes are grouped by the names of nodes: so only what has a group of its own is shown with its text.
  std::uint64_t name_of(Node node, std::uint64_t type, std::string_view text) {
    if (node == snapshot_.root()) return string("");
    if (type == kObject || text.empty()) {
      const bool is_told = snapshot_.type_name(node) == "module" || snapshot_.type_name(node) == "type";
      return is_told && !text.empty() ? string(heap::describe(snapshot_, node)) : type_name(node);
    }
    return string(text);
  }

  void node(Node node) {
    const std::string_view text = node == snapshot_.root() ? std::string_view{} : texts_.of(node);
    const std::uint64_t type = type_of(node, text);
    const std::uint64_t size = snapshot_.size[node];
    const std::uint64_t edges = snapshot_.graph.from(node).size() + weak_count(node) + size / kLargestPart;
    numbers({type, name_of(node, type, text), id(node), size % kLargestPart, edges, trace_.id_of(node), 0});
  }

  // How many weak edges the node has; called with the nodes in their order.
  std::uint64_t weak_count(Node node) {
    std::uint64_t count = 0;
    if (node == snapshot_.root()) return count;
    for (; weak_counted_ < snapshot_.weak.size() && snapshot_.weak[weak_counted_].first == node; ++weak_counted_)
      ++count;
    return count;
  }

  void edges_of(Node node) {
    const heap::Graph& graph = snapshot_.graph;
    std::uint64_t element = 0;
    for (std::uint32_t edge = graph.first[node]; edge < graph.first[node + 1]; ++edge) {
      const std::uint64_t to = place(graph.targets[edge]) * kNodeFields;
      switch (snapshot_.kind[edge]) {
        case EdgeKind::kElement: numbers({kElement, element++, to}); break;
        case EdgeKind::kNamed: numbers({kProperty, edge_name(snapshot_.name[edge]), to}); break;
        case EdgeKind::kValue: numbers({kProperty, value_name(node, edge), to}); break;
        case EdgeKind::kKey: numbers({kInternal, string("key"), to}); break;
        case EdgeKind::kType: numbers({kInternal, string("__class__"), to}); break;
        case EdgeKind::kReference:
        case EdgeKind::kWeak:
          // The root's own lead to the kinds of roots, which must not pass for objects that a program holds.
          if (node == snapshot_.root())
            numbers({kElement, element++, to});
          else
            numbers({kInternal, string("held"), to});
      }
    }
    if (node == snapshot_.root()) return;
    for (; weak_written_ < snapshot_.weak.size() && snapshot_.weak[weak_written_].first == node; ++weak_written_)
      numbers({kWeak, string("weak"), place(snapshot_.weak[weak_written_].second) * kNodeFields});
    for (std::uint64_t i = snapshot_.size[node] / kLargestPart; i > 0; --i)
      numbers({kInternal, string("part"), (count_ + next_part_++) * kNodeFields});
  }

  std::uint64_t value_name(Node holder, std::uint32_t edge) {
    const bool has_key = edge > snapshot_.graph.first[holder] && snapshot_.kind[edge - 1] == EdgeKind::kKey;
    const std::string_view text = has_key ? snapshot_.text(snapshot_.graph.targets[edge - 1]) : std::string_view{};
    return string(text.empty() ? "value" : text);
  }

  const heap::Snapshot& snapshot_;
  std::uint64_t count_, parts_ = 0, next_part_ = 0;
  heap::TextsInOrder texts_{snapshot_};
  std::size_t weak_counted_ = 0, weak_written_ = 0;
  std::vector<std::uint32_t> ids_;
  std::vector<std::uint64_t> type_names_, edge_names_;
  std::vector<std::string> strings_{""};
  boost::unordered_flat_map<std::string, std::uint64_t> string_numbers_{{"", 0}};
  TraceTree trace_;  // after the strings, which it adds to
  std::string out_;
  bool needs_comma_ = false;
};

}  // namespace

std::string write(const heap::Snapshot& snapshot) { return Writer(snapshot).write(); }

}  // namespace plimsoll::formats::heapsnapshot
