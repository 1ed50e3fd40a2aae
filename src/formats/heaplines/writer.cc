#include "formats/heaplines/writer.h"

#include <array>
#include <charconv>

#include "formats/json.h"
#include "heap/groups.h"

namespace plimsoll::formats::heaplines {
namespace {

using heap::EdgeKind;
using heap::Node;

class Writer {
 public:
  explicit Writer(const heap::Snapshot& snapshot) : snapshot_(snapshot) {}

  std::string write() {
    out_.reserve(snapshot_.type.size() * 80 + snapshot_.graph.targets.size() * 16);
    put_facts();
    for (Node node = 0; node < snapshot_.type.size(); ++node) put_node(node);
    return std::move(out_);
  }

 private:
  void put_facts() {
    JsonWriter json(out_);
    json.begin_object();
    json.key("meta");
    json.begin_object();
    for (const auto& [name, value] : snapshot_.meta) {
      json.text_key(name);
      json.text(value);
    }
    json.end_object();
    json.member("objects", static_cast<std::int64_t>(snapshot_.object_count));
    json.member("nodes", static_cast<std::int64_t>(snapshot_.type.size()));
    json.key("complete");
    json.boolean(snapshot_.complete);
    json.end_object();
    out_ += '\n';
  }

  void put_node(Node node) {
    JsonWriter json(out_);
    json.begin_object();
    json.member("id", std::int64_t{node});
    json.member("type", snapshot_.type_name(node));
    if (const std::string_view text = texts_.of(node); !text.empty()) json.member("text", text);
    if (snapshot_.is_object(node)) {
      json.member("address", hexadecimal(snapshot_.address[node]));
      json.member("size", static_cast<std::int64_t>(snapshot_.size[node]));
      if (snapshot_.refcount[node] != 0) json.member("refcount", std::int64_t{snapshot_.refcount[node]});
      if (node < snapshot_.generation.size())
        json.member("generation", heap::generation_name(snapshot_.generation[node]));
    }
    json.key("edges");
    json.begin_array();
    for (std::uint32_t edge = snapshot_.graph.first[node]; edge < snapshot_.graph.first[node + 1]; ++edge)
      put_edge(json, snapshot_.graph.targets[edge], snapshot_.kind[edge], snapshot_.name[edge]);
    for (; weak_ < snapshot_.weak.size() && snapshot_.weak[weak_].first == node; ++weak_)
      put_edge(json, snapshot_.weak[weak_].second, EdgeKind::kWeak, 0);
    json.end_array();
    json.end_object();
    out_ += '\n';
  }

  // [held, kind] or [held, "attribute", name].
  void put_edge(JsonWriter& json, Node held, EdgeKind kind, std::uint32_t name) {
    json.begin_array();
    json.integer(held);
    json.text(heap::edge_kind_name(kind));
    if (kind == EdgeKind::kNamed) json.text(snapshot_.names[name]);
    json.end_array();
  }

  static std::string hexadecimal(std::uint64_t address) {
    std::array<char, 18> digits{'0', 'x'};
    return {digits.data(), std::to_chars(digits.data() + 2, digits.data() + digits.size(), address, 16).ptr};
  }

  const heap::Snapshot& snapshot_;
  std::string out_;
  heap::TextsInOrder texts_{snapshot_};
  std::size_t weak_ = 0;
};

}  // namespace

std::string write(const heap::Snapshot& snapshot) { return Writer(snapshot).write(); }

}  // namespace plimsoll::formats::heaplines
