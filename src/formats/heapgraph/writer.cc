#include "formats/heapgraph/writer.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <charconv>
#include <protozero/pbf_builder.hpp>
#include <string_view>
#include <vector>

#include "formats/heapgraph/fields.h"

namespace plimsoll::formats::heapgraph {
namespace {

using heap::EdgeKind;
using heap::Node;
using protozero::pbf_builder;

// Parts of this size, more or less, so that nobody has to hold a whole heap as one message.
constexpr std::size_t kFullPart = std::size_t{1} << 20U;

std::uint64_t number_of(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

class Writer {
 public:
  explicit Writer(const heap::Snapshot& snapshot)
      : snapshot_(snapshot),
        pid_(static_cast<std::int32_t>(number_of(snapshot.meta_value("pid")))),
        time_ns_(number_of(snapshot.meta_value("time_ns"))),
        garbage_(kind_of_root("[garbage]")) {}

  std::string write() {
    put_process();
    for (Node node = 0; node < snapshot_.type.size(); ++node) {
      if (node == snapshot_.root() || node == garbage_) continue;
      put_object(node);
      if (part_.size() > kFullPart) end_part(true);
    }
    put_roots();
    put_types();
    end_part(false);
    return std::move(out_);
  }

 private:
  // Numbers there begin at 1.
  static std::uint64_t id(Node node) { return std::uint64_t{node} + 1; }

  // The node that holds all roots of a kind.
  [[nodiscard]] Node kind_of_root(std::string_view type) const {
    for (const Node held : snapshot_.graph.from(snapshot_.root()))
      if (snapshot_.type_name(held) == type) return held;
    return heap::kNoNode;
  }

  template <typename Fill>
  void packet(Fill fill) {
    constexpr std::uint32_t kSequence = 1;
    pbf_builder<TraceField> trace(out_);
    pbf_builder<PacketField> packet(trace, TraceField::kPacket);
    packet.add_uint64(PacketField::kTimestamp, time_ns_);
    packet.add_uint32(PacketField::kSequenceId, kSequence);
    fill(packet);
  }

  void put_process() {
    packet([&](pbf_builder<PacketField>& packet) {
      pbf_builder<ProcessTreeField> tree(packet, PacketField::kProcessTree);
      pbf_builder<ProcessField> process(tree, ProcessTreeField::kProcess);
      process.add_int32(ProcessField::kPid, pid_);
      process.add_string(ProcessField::kCommandLine, "python " + std::string(snapshot_.meta_value("python")));
    });
  }

  void put_object(Node node) {
    fields_.clear();
    held_.clear();
    for (std::uint32_t edge = snapshot_.graph.first[node]; edge < snapshot_.graph.first[node + 1]; ++edge) {
      held_.push_back(id(snapshot_.graph.targets[edge]));
      fields_.push_back(field(node, edge));
    }
    pbf_builder<GraphField> graph(part_);
    pbf_builder<ObjectField> object(graph, GraphField::kObject);
    object.add_uint64(ObjectField::kId, id(node));
    object.add_uint64(ObjectField::kTypeId, type_id(node));
    object.add_uint64(ObjectField::kSelfSize, snapshot_.size[node]);
    if (held_.empty()) return;
    object.add_packed_uint64(ObjectField::kFieldIds, fields_.begin(), fields_.end());
    object.add_packed_uint64(ObjectField::kObjectIds, held_.begin(), held_.end());
  }

  // What is no object is a class of its own, under its name.
  std::uint64_t type_id(Node node) {
    if (snapshot_.is_object(node) || snapshot_.text(node).empty()) return std::uint64_t{snapshot_.type[node]} + 1;
    extra_types_.push_back(node);
    return snapshot_.types.size() + extra_types_.size();
  }

  // The number of the words by which an object is held; elements have no number each, as they are many.
  std::uint64_t field(Node holder, std::uint32_t edge) {
    switch (snapshot_.kind[edge]) {
      case EdgeKind::kNamed: return name(snapshot_.type_name(holder) + "." + snapshot_.names[snapshot_.name[edge]]);
      case EdgeKind::kType: return name("__class__");
      case EdgeKind::kKey: return name("key");
      case EdgeKind::kValue: return name("value");
      case EdgeKind::kElement: return name("[]");
      default: return name("reference");
    }
  }
  std::uint64_t name(std::string text) {
    const auto [found, is_new] = names_.try_emplace(std::move(text), names_.size() + 1);
    if (is_new) {
      pbf_builder<GraphField> graph(part_);
      pbf_builder<InternedField> interned(graph, GraphField::kFieldName);
      interned.add_uint64(InternedField::kId, found->second);
      interned.add_string(InternedField::kText, found->first);
    }
    return found->second;
  }

  void put_roots() {
    for (const Node top : snapshot_.graph.from(snapshot_.root())) {
      if (top == garbage_) continue;
      const std::string& type = snapshot_.type_name(top);
      const RootKind kind = type == "[threads]"       ? kThreadRoot
                            : type == "[modules]"     ? kModuleRoot
                            : type == "[interpreter]" ? kInterpreterRoot
                            : type == "[native code]" ? kNativeRoot
                                                      : kUnknownRoot;
      const std::uint64_t number = id(top);
      pbf_builder<GraphField> graph(part_);
      pbf_builder<RootField> root(graph, GraphField::kRoot);
      root.add_packed_uint64(RootField::kObjectIds, &number, &number + 1);
      root.add_enum(RootField::kKind, kind);
    }
  }

  void put_type(std::uint64_t number, const std::string& text) {
    pbf_builder<GraphField> graph(part_);
    pbf_builder<TypeField> type(graph, GraphField::kType);
    type.add_uint64(TypeField::kId, number);
    type.add_string(TypeField::kName, text);
  }
  void put_types() {
    for (std::size_t i = 0; i < snapshot_.types.size(); ++i) put_type(i + 1, snapshot_.types[i].name);
    for (std::size_t i = 0; i < extra_types_.size(); ++i)
      put_type(snapshot_.types.size() + i + 1, heap::describe(snapshot_, extra_types_[i]));
  }

  void end_part(bool is_continued) {
    pbf_builder<GraphField> graph(part_);
    graph.add_int32(GraphField::kPid, pid_);
    graph.add_bool(GraphField::kContinued, is_continued);
    graph.add_uint64(GraphField::kIndex, parts_++);
    packet([&](pbf_builder<PacketField>& packet) { packet.add_message(PacketField::kHeapGraph, part_); });
    part_.clear();
  }

  const heap::Snapshot& snapshot_;
  std::int32_t pid_;
  std::uint64_t time_ns_;
  Node garbage_;
  std::string out_, part_;
  std::uint64_t parts_ = 0;
  std::vector<std::uint64_t> fields_, held_;
  std::vector<Node> extra_types_;
  boost::unordered_flat_map<std::string, std::uint64_t> names_;
};

}  // namespace

std::string write(const heap::Snapshot& snapshot) { return Writer(snapshot).write(); }

}  // namespace plimsoll::formats::heapgraph
