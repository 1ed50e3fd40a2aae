#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <variant>

#include "formats/heap_formats.h"
#include "heap/groups.h"
#include "heap/path_patterns.h"
#include "heap/paths.h"
#include "heap/snapshot_reader.h"
#include "heap/snapshot_writer.h"
#include "heap/survivors.h"
#include "heap/views.h"
#include "python/bindings.h"
#include "python/heap_capture.h"
#include "python/heap_data.h"

namespace nb = nanobind;

namespace plimsoll::python {
namespace {

using heap::Node;

// As Python gives a rule: classes, whether exactly these, the label's attribute, (pointer, length, unit, owned), and
// the number of the function that is asked, or -1.
using RuleRow = std::tuple<std::string, bool, std::string, std::vector<std::int64_t>, std::int64_t>;

// Or as people write them.
using GivenRule = std::variant<RuleRow, std::string>;

heap::TypeRule rule_of(const RuleRow& row) {
  const std::string& label = std::get<2>(row);
  const std::vector<std::int64_t>& native = std::get<3>(row);
  heap::TypeRule rule{std::get<0>(row), std::get<1>(row) ? heap::Reach::kExactly : heap::Reach::kInstances, {}};
  if (!label.empty()) rule.facets.label = label;
  if (native.size() == 4) {
    const auto offset = [&](std::size_t i) { return static_cast<std::uint64_t>(native[i]); };  // -1 is kNowhere
    rule.facets.native = heap::NativeMemory{offset(0), offset(1), offset(2), offset(3)};
  }
  if (std::get<4>(row) >= 0) rule.facets.asked = static_cast<std::uint32_t>(std::get<4>(row));
  return rule;
}

void add_rules(const GivenRule& given, std::vector<heap::TypeRule>& rules) {
  if (const auto* row = std::get_if<RuleRow>(&given)) return rules.push_back(rule_of(*row));
  const std::vector<heap::TypeRule> read = value_or_raise(heap::parse_rules(std::get<std::string>(given)));
  rules.insert(rules.end(), read.begin(), read.end());
}

CaptureOptions options_of(bool with_values, const nb::list& hidden, const std::vector<GivenRule>& rules,
                          std::vector<std::pair<std::string, std::string>> meta) {
  CaptureOptions options{with_values ? Values::kShown : Values::kRedacted, {hidden.ptr()}, {}, std::move(meta)};
  std::vector<PyObject*>& ours = options.hidden;
  // The classes of our classes, which the binding library holds.
  for (PyObject* type = nb::type<HeapData>().ptr(); Py_TYPE(type) != &PyType_Type; type = ours.back())
    ours.push_back(reinterpret_cast<PyObject*>(Py_TYPE(type)));
  for (const nb::handle object : hidden) {
    ours.push_back(object.ptr());
    if (PyModule_Check(object.ptr())) ours.push_back(PyModule_GetDict(object.ptr()));
  }
  for (const GivenRule& given : rules) add_rules(given, options.rules);
  return options;
}

nb::dict as_dict(const CaptureStatistics& taken) {
  nb::dict result;
  result["objects"] = taken.objects;
  result["references"] = taken.edges;
  result["lost_references"] = taken.lost_edges;
  result["file_bytes"] = taken.file_bytes;
  result["stop_ns"] = taken.stop_ns;
  result["mark_ns"] = taken.mark_ns;
  return result;
}

nb::dict take_snapshot(const FilePath& path, bool with_values, const nb::list& hidden,
                       const std::vector<GivenRule>& rules,
                       const std::vector<std::pair<std::string, std::string>>& meta) {
  std::vector<Asked> asked;
  nb::dict result =
      as_dict(value_or_raise(capture_heap(path.bytes, options_of(with_values, hidden, rules, meta), asked)));
  nb::list objects;
  for (const Asked& each : asked) objects.append(nb::make_tuple(each.node, each.function, each.object));
  result["asked"] = objects;
  return result;
}

// What functions of the program said of objects: (node, bytes, text), in the order of nodes.
void tell(const FilePath& path, const std::vector<std::tuple<heap::Node, std::uint64_t, std::string>>& rows) {
  std::vector<heap::Said> said;
  for (const auto& [node, bytes, text] : rows) said.push_back({node, bytes, text});
  check(heap::append_said(path.bytes, said));
}

std::shared_ptr<CaptureChild> start_child(const FilePath& path, bool with_values, const nb::list& hidden,
                                          const std::vector<GivenRule>& rules,
                                          const std::vector<std::pair<std::string, std::string>>& meta) {
  return std::make_shared<CaptureChild>(
      value_or_raise(CaptureChild::start(path.bytes, options_of(with_values, hidden, rules, meta))));
}

// Until the child is done; signals are handled meanwhile.
void await_end(const CaptureChild& child) {
  constexpr int kTurnMs = 100;  // for a signal that comes just before the child is waited for
  const auto is_done = [&] {
    const nb::gil_scoped_release release;
    return child.is_done(kTurnMs);
  };
  while (!is_done())
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

nb::dict wait_for(CaptureChild& child) {
  await_end(child);
  Result<CaptureStatistics> taken = [&] {
    const nb::gil_scoped_release release;
    return child.wait();
  }();
  return as_dict(value_or_raise(std::move(taken)));
}

std::shared_ptr<HeapData> open(const FilePath& path) {
  Result<heap::Snapshot> snapshot = [&] {
    const nb::gil_scoped_release release;
    return heap::read_snapshot_file(path.bytes);
  }();
  return std::make_shared<HeapData>(value_or_raise(std::move(snapshot)));
}

heap::View view_of(const std::vector<std::string>& stages) {
  heap::View view;
  for (const std::string& words : stages) view = value_or_raise(heap::add_view(std::move(view), words));
  return view;
}

// heap::classes_not_there.
std::vector<std::string> classes_not_there(const HeapData& self, const std::vector<std::string>& stages) {
  return heap::classes_not_there(self.snapshot(), view_of(stages));
}

// The snapshot with several objects as one; `stages` as heap::add_view takes them.
std::shared_ptr<HeapData> view(const HeapData& self, const std::vector<std::string>& stages) {
  const heap::View view = view_of(stages);
  const nb::gil_scoped_release release;
  return std::make_shared<HeapData>(heap::seen_as(self.snapshot(), view));
}

nb::dict heap_meta(const HeapData& self) {
  nb::dict result;
  for (const auto& [name, value] : self.snapshot().meta) result[text(name)] = text(value);
  return result;
}

nb::list type_names(const HeapData& self) {
  nb::list names;
  for (const heap::Type& type : self.snapshot().types) names.append(text(type.name));
  return names;
}

nb::list types(HeapData& self) { return rows_of(self.snapshot(), heap::types(self.snapshot(), self.dominance())); }

// Of the last one's objects: see heap/survivors.h.
nb::list survivors(HeapData& self, const HeapData& first, const HeapData& second) {
  for (const HeapData* one : {&first, &second})
    if (!heap::are_of_one_process(one->snapshot(), self.snapshot()))
      throw nb::value_error(std::string(heap::why_not_of_one_process(one->snapshot(), self.snapshot())).c_str());
  const heap::NodeSet chosen = heap::survivors(first.snapshot(), second.snapshot(), self.snapshot());
  return rows_of(self.snapshot(), heap::types(self.snapshot(), self.dominance(), chosen));
}

nb::tuple node(HeapData& self, std::int64_t number) {
  const Node node = self.check(number);
  const heap::Snapshot& snapshot = self.snapshot();
  return nb::make_tuple(text(snapshot.type_name(node)), text(snapshot.text(node)), snapshot.address[node],
                        snapshot.size[node], snapshot.refcount[node], snapshot.is_object(node));
}

// (object, how it is held) for what a node holds.
nb::list referents(const HeapData& self, std::int64_t number) {
  const Node node = self.check(number);
  const heap::Snapshot& snapshot = self.snapshot();
  heap::EdgeWords words(snapshot);
  nb::list rows;
  for (std::uint32_t edge = snapshot.graph.first[node]; edge < snapshot.graph.first[node + 1]; ++edge)
    rows.append(nb::make_tuple(snapshot.graph.targets[edge], text(words.of(node, edge))));
  return rows;
}

std::vector<Node> referrers(HeapData& self, std::int64_t number) {
  const auto holders = self.holders().from(self.check(number));
  return {holders.begin(), holders.end()};
}

std::vector<Node> largest(HeapData& self, std::size_t most) {
  return heap::largest(self.snapshot(), self.dominance(), most);
}

// Each path as (holder, how it holds the next).
nb::list paths(const HeapData& self, std::int64_t number, std::size_t most) {
  const heap::Snapshot& snapshot = self.snapshot();
  nb::list result;
  for (const auto& path : heap::paths_to(snapshot.graph, snapshot.root(), self.check(number), most)) {
    nb::list steps;
    for (const heap::Step& step : path)
      steps.append(nb::make_tuple(step.node, text(heap::describe_edge(snapshot, step.node, step.edge))));
    result.append(steps);
  }
  return result;
}

// All ways, each as steps (holder, how many, words for them, how they hold the next, whether it is a run); and whether
// there are more.
nb::tuple path_patterns(const HeapData& self, std::int64_t number, std::size_t most) {
  const heap::Snapshot& snapshot = self.snapshot();
  const Node node = self.check(number);
  const heap::PathPatterns found = [&] {
    const nb::gil_scoped_release release;
    return heap::path_patterns(snapshot, node, most);
  }();
  nb::list result;
  for (const heap::PathPattern& pattern : found.patterns) {
    nb::list steps;
    for (const heap::PatternStep& step : pattern)
      steps.append(nb::make_tuple(step.holder, step.holders, text(heap::describe_holders(snapshot, step)),
                                  text(heap::describe_hold(snapshot, step)), step.repeats));
    result.append(steps);
  }
  return nb::make_tuple(result, found.is_cut);
}

nb::object dominator(HeapData& self, std::int64_t number) {
  const Node parent = self.dominance().tree.parent[self.check(number)];
  return parent == heap::kNoNode ? nb::none() : nb::cast(parent);
}

std::uint64_t retained_by(HeapData& self, std::int64_t number) { return self.dominance().retained[self.check(number)]; }

// (function, file, line) of each frame that allocated it, the innermost first; None if that was not recorded.
nb::object allocation_stack(const HeapData& self, std::int64_t number) {
  const heap::AllocationStacks& stacks = self.snapshot().allocated;
  std::uint32_t at = stacks.of_node(self.check(number));
  if (at == heap::AllocationStacks::kNone) return nb::none();
  nb::list frames;
  for (; at != heap::AllocationStacks::kNone; at = stacks.frames[at].caller) {
    const heap::AllocationStacks::Frame& frame = stacks.frames[at];
    frames.append(
        nb::make_tuple(text(stacks.codes[frame.code].function), text(stacks.codes[frame.code].file), frame.line));
  }
  return frames;
}

nb::object find(HeapData& self, const std::string& words) {
  const auto found = heap::find_object(self.snapshot(), self.dominance(), words);
  return found ? nb::cast(*found) : nb::none();
}

nb::list diff(const HeapData& before, const HeapData& after) {
  nb::list rows;
  for (const heap::TypeChange& row : heap::changes(before.snapshot(), after.snapshot()))
    rows.append(
        nb::make_tuple(text(row.type), row.count_before, row.count_after, row.size_before, row.size_after, row.born));
  return rows;
}

nb::object object_of(const sql::Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return nb::int_(*whole);
  if (const auto* real = std::get_if<double>(&value)) return nb::float_(*real);
  if (const auto* words = std::get_if<std::string>(&value)) return text(*words);
  return nb::none();
}

// (columns, rows, whether there are more).
nb::tuple query(HeapData& self, const std::string& statement, std::int64_t most) {
  const std::size_t most_rows = most < 0 ? SIZE_MAX : static_cast<std::size_t>(most);
  // Python's handlers of signals, Ctrl-C's among them, run in the main thread, and only if they are asked to.
  const auto has_signal = [] { return PyErr_CheckSignals() != 0; };
  Result<sql::Answer> asked = self.ask(statement, most_rows, has_signal);
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  const sql::Answer answer = value_or_raise(std::move(asked));
  nb::list columns;
  for (const std::string& name : answer.columns) columns.append(text(name));
  nb::list rows;
  for (const std::vector<sql::Value>& row : answer.rows) {
    nb::list values;
    for (const sql::Value& value : row) values.append(object_of(value));
    rows.append(nb::tuple(values));
  }
  return nb::make_tuple(nb::tuple(columns), rows, answer.is_cut);
}

nb::list groups(HeapData& self, const std::string& by, const std::string& type) {
  const auto wanted = heap::group_by(by);
  if (!wanted)
    throw nb::value_error(
        "objects are grouped by place, referrers, module, generation, size, allocation-site or allocation-stack");
  const heap::Snapshot& snapshot = self.snapshot();
  const heap::Dominance& dominance = self.dominance();
  const heap::NodeSet chosen = type.empty() ? heap::all_objects(snapshot) : heap::objects_of(snapshot, type);
  nb::list rows;
  for (const heap::GroupRow& row : heap::groups(snapshot, dominance, *wanted, chosen))
    rows.append(nb::make_tuple(text(row.name), row.count, row.size, row.retained));
  return rows;
}

// In a format by its name, or by how a file is called.
nb::bytes exported(const HeapData& self, const FilePath& path, const std::string& name) {
  const auto format = name.empty() ? formats::heap_format_of(path.bytes) : formats::heap_format_named(name);
  if (!format)
    throw nb::value_error("the formats are heapsnapshot, perfetto and ndjson: .heapsnapshot, .pftrace, .ndjson");
  const std::string bytes = [&] {
    const nb::gil_scoped_release release;
    return formats::write_heap(self.snapshot(), *format);
  }();
  return nb::bytes(bytes.data(), bytes.size());
}

}  // namespace

void bind_heap(nb::module_& module) {
  module.def("heap_snapshot", &take_snapshot, nb::arg("path"), nb::kw_only(), nb::arg("values"), nb::arg("hidden"),
             nb::arg("rules"), nb::arg("meta"));
  module.def("heap_tell", &tell, nb::arg("path"), nb::arg("rows"));
  nb::class_<CaptureChild>(module, "HeapChild", "A child that takes a snapshot; see plimsoll.heap.snapshot.")
      .def_static("start", &start_child, nb::arg("path"), nb::kw_only(), nb::arg("values"), nb::arg("hidden"),
                  nb::arg("rules"), nb::arg("meta"))
      .def_prop_ro("pid", &CaptureChild::pid)
      .def("wait", &wait_for);
  const auto objects = [](const HeapData& self) { return self.snapshot().object_count; };
  const auto as_data = [](nb::handle self) -> HeapData& { return nb::cast<HeapData&>(self); };
  nb::class_<HeapData>(module, "HeapData", "A heap snapshot's tables; see plimsoll.heap.Heap.")
      .def_static("open", &open)
      .def("classes_not_there", &classes_not_there, nb::arg("stages"))
      .def("view", &view, nb::arg("stages"))
      .def_prop_ro("meta", &heap_meta)
      .def_prop_ro("object_count", objects)
      .def_prop_ro("reference_count",
                   [](const HeapData& self) { return self.snapshot().graph.first[self.snapshot().object_count]; })
      .def_prop_ro("lost_references", [](const HeapData& self) { return self.snapshot().lost_edges; })
      .def_prop_ro("complete", [](const HeapData& self) { return self.snapshot().complete; })
      .def_prop_ro("root", [](const HeapData& self) { return self.snapshot().root(); })
      .def("type", [=](nb::handle self) { return column(as_data(self).snapshot().type, objects(as_data(self)), self); })
      .def("size", [=](nb::handle self) { return column(as_data(self).sizes(), objects(as_data(self)), self); })
      .def("address", [=](nb::handle self) { return column(as_data(self).addresses(), objects(as_data(self)), self); })
      .def("refcount",
           [=](nb::handle self) { return column(as_data(self).snapshot().refcount, objects(as_data(self)), self); })
      .def("retained",
           [=](nb::handle self) { return column(as_data(self).dominance().retained, objects(as_data(self)), self); })
      .def("type_names", &type_names)
      .def("types", &types)
      .def("node", &node)
      .def("referents", &referents)
      .def("referrers", &referrers)
      .def("dominator", &dominator)
      .def("retained_by", &retained_by)
      .def("largest", &largest, nb::arg("most"))
      .def("paths", &paths, nb::arg("node"), nb::arg("most"))
      .def("path_patterns", &path_patterns, nb::arg("node"), nb::arg("most"))
      .def("allocation_stack", &allocation_stack)
      .def("find", &find)
      .def("survivors", &survivors)
      .def("diff", &diff)
      .def("query", &query, nb::arg("statement"), nb::arg("most"))
      .def("groups", &groups, nb::arg("by"), nb::arg("type"))
      .def("exported", &exported, nb::arg("path"), nb::arg("format"));
}

}  // namespace plimsoll::python
