// heap/snapshot_testing.h: snapshots drawn in text, for tests only. No product code may include it.
#pragma once

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "heap/snapshot_reader.h"
#include "heap/snapshot_writer.h"

namespace plimsoll::heap::testing {

// One object a line: its name, type, size and edges.
//
//   ns: dict 200  key>value              a dict's pair
//   list: list 72  ns ns                 elements
//   ref: weakref 72  ~list +ns           a weak reference, a reference without a name
//   modules: [modules] 0  app=list       a named edge
//   app: module 48  "app                 with the text app; of a type, this is the class of that name
//   node: app.Node 48  @main:3/load:7    allocated by load, at line 7, called by main; all in the file app.py
//
// A type in brackets makes a node that is no object; those come last. Objects get the addresses 0x1000, 0x1020, ... in
// the order of lines, and a count of one reference.
class SnapshotDrawing {
 public:
  explicit SnapshotDrawing(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      Row row;
      std::string name;
      if (!(words >> name >> row.type >> row.size)) continue;
      name.pop_back();
      for (std::string word; words >> word;) row.edges.push_back(word);
      nodes_[name] = static_cast<Node>(rows_.size());
      rows_.push_back(std::move(row));
    }
  }
  [[nodiscard]] Node operator[](const std::string& name) const { return nodes_.at(name); }

  [[nodiscard]] std::string file(const std::string& process = "1:a") const {
    SnapshotWriter writer;
    std::map<std::string, std::uint32_t> types;
    for (const Row& row : rows_)
      if (!types.contains(row.type)) types[row.type] = writer.add_type(row.type);
    bool are_objects = true;
    StackBuilder stacks;
    std::vector<std::uint32_t> stack_of;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Row& row = rows_[i];
      if (are_objects && row.type[0] == '[') {
        writer.end_objects();
        are_objects = false;
      }
      writer.begin_node(types[row.type], row.size, are_objects ? 1 : 0, Address{are_objects ? 0x1000 + 0x20 * i : 0});
      for (const std::string& edge : row.edges) {
        if (edge[0] == '"') {
          writer.text(edge.substr(1));
          if (const auto type = types.find(edge.substr(1)); type != types.end() && row.type == "type")
            writer.add_class(type->second, static_cast<Node>(i));
        } else if (edge[0] == '@') {
          const std::uint32_t stack = put_stack(stacks, edge.substr(1));
          writer.allocated_by(static_cast<std::uint32_t>(stack_of.size()));
          stack_of.push_back(stack);
        } else {
          put_edge(writer, edge);
        }
      }
      if (!are_objects) writer.text(row.type);
      writer.end_node();
    }
    if (!stack_of.empty()) writer.add_stacks(stacks.stacks(), stack_of);
    writer.add_meta("process", process);
    (void)writer.finish();
    return writer.bytes();
  }
  [[nodiscard]] Snapshot snapshot(const std::string& process = "1:a") const {
    return read_snapshot(file(process)).take();
  }

 private:
  // A line.
  struct Row {
    std::string type;
    std::uint64_t size = 0;
    std::vector<std::string> edges;
  };

  static std::uint32_t put_stack(StackBuilder& stacks, const std::string& words) {
    std::uint32_t stack = AllocationStacks::kNone;
    std::istringstream frames(words);
    for (std::string frame; std::getline(frames, frame, '/');) {
      const auto colon = frame.find(':');
      const auto line = static_cast<std::uint32_t>(std::stoul(frame.substr(colon + 1)));
      stack = stacks.call(stack, frame.substr(0, colon), "app.py", line);
    }
    return stack;
  }

  void put_edge(SnapshotWriter& writer, const std::string& edge) const {
    if (const auto at = edge.find('='); at != std::string::npos)
      return writer.named_edge(nodes_.at(edge.substr(at + 1)), writer.add_name(edge.substr(0, at)));
    if (const auto at = edge.find('>'); at != std::string::npos) {
      writer.edge(EdgeKind::kKey, nodes_.at(edge.substr(0, at)));
      return writer.edge(EdgeKind::kValue, nodes_.at(edge.substr(at + 1)));
    }
    if (edge[0] == '~') return writer.edge(EdgeKind::kWeak, nodes_.at(edge.substr(1)));
    if (edge[0] == '+') return writer.edge(EdgeKind::kReference, nodes_.at(edge.substr(1)));
    writer.edge(EdgeKind::kElement, nodes_.at(edge));
  }

  std::vector<Row> rows_;
  std::map<std::string, Node> nodes_;
};

// Where an object of the drawing is in a view of it; that of its group, if it is folded.
inline Node place(const Snapshot& view, const SnapshotDrawing& drawing, const std::string& name) {
  const std::uint64_t address = 0x1000 + std::uint64_t{0x20} * drawing[name];
  for (const auto& [folded, node] : view.folded)
    if (folded == address) return node;
  for (Node node = 0; node < view.object_count; ++node)
    if (view.address[node] == address) return node;
  return kNoNode;
}

}  // namespace plimsoll::heap::testing
