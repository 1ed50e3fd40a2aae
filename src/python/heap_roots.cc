#include "python/heap_roots.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <new>

#include "cpython/collector_pages.h"
#include "cpython/walk.h"
#include "memory/local.h"
#include "os/process.h"
#include "python/interpreter.h"
#include "python/object_compat.h"
#include "python/type_plan.h"

namespace plimsoll::python {
namespace {

void add_items(std::vector<RootEdge>& edges, PyObject* dict) {
  if (dict == nullptr || !PyDict_Check(dict)) return;
  Py_ssize_t position = 0;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  while (PyDict_Next(dict, &position, &key, &value) != 0)
    if (PyUnicode_Check(key)) edges.push_back({value, key});
}

// The nodes of the threads of one interpreter.
class ThreadRoots {
 public:
  ThreadRoots(std::vector<RootNode>& nodes, const cpython::Layout& layout, const std::vector<PyObject*>& hidden)
      : nodes_(nodes), layout_(layout), hidden_(hidden) {}

  // The number of the thread's node.
  std::size_t add(PyThreadState* thread) {
    const std::size_t number = nodes_.size();
    nodes_.push_back({"[thread]", "thread " + std::to_string(thread->thread_id), {}, {}});
    for (PyObject* held : held_by_thread(thread))
      if (held != nullptr && held != Py_None) nodes_[number].edges.push_back({held, nullptr, "state"});
    if constexpr (kFramesAreObjects)
      add_frame_object(thread, number);
    else
      add_frames(thread, number);
    return number;
  }

 private:
  void add_frame_object(PyThreadState* thread, std::size_t number) {
    Address frame{};
    if (cpython::current_frame(memory_, layout_, address_of(thread), frame) && !is_null(frame))
      nodes_[number].edges.push_back({pointer_to<PyObject>(frame), nullptr, "frame"});
  }

  void add_frames(PyThreadState* thread, std::size_t number) {
    constexpr std::size_t kDeepest = 1'000'000;
    Address frame{};
    if (!cpython::current_frame(memory_, layout_, address_of(thread), frame)) return;
    cpython::internal::each_frame(memory_, layout_, address_of(&PyCode_Type), frame, kDeepest,
                                  [&](Address at, const auto& look, const cpython::PyFrame& found) {
                                    if (look.found) add_frame(pointer_to<void>(at), found, number);
                                    return true;
                                  });
  }

  void add_frame(void* frame, const cpython::PyFrame& found, std::size_t thread) {
    auto* globals = field_at<PyObject*>(frame, kFrameFields.globals);
    if (std::find(hidden_.begin(), hidden_.end(), globals) != hidden_.end()) return;
    auto* code = pointer_to<PyCodeObject>(found.code);
    RootNode node{
        "[frame]", text_of(code->co_name, 200) + "()", {{reinterpret_cast<PyObject*>(code), nullptr, "code"}}, {}};
    const auto function = field_at<std::uintptr_t>(frame, kFrameFields.function) & ~std::uintptr_t{3};
    add(node, pointer_to<PyObject>(Address{function}), "function");
    add(node, field_at<PyObject*>(frame, kFrameFields.locals), "locals");
    add(node, field_at<PyObject*>(frame, kFrameFields.object), "frame");
    add_variables(node, frame, variable_names(code));
    for (Py_ssize_t i = PyTuple_GET_SIZE(variable_names(code)); i < places_in_use(frame, code); ++i)
      add(node, held_at(frame, i), "stack");
    nodes_[thread].children.push_back(nodes_.size());
    nodes_.push_back(std::move(node));
  }

  static void add(RootNode& node, PyObject* held, const char* word) {
    if (held != nullptr) node.edges.push_back({held, nullptr, word});
  }

  static void add_variables(RootNode& node, void* frame, PyObject* names) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i)
      if (PyObject* held = held_at(frame, i); held != nullptr) node.edges.push_back({held, PyTuple_GET_ITEM(names, i)});
  }

  // Null for nothing, and for a small number in place of a reference.
  static PyObject* held_at(void* frame, Py_ssize_t place) {
    constexpr std::uintptr_t kTag = 3;  // both bits: such a number
    const auto word = field_at<std::uintptr_t>(frame, kFrameFields.variables + 8 * place);
    if (!kFrameFields.is_tagged) return pointer_to<PyObject>(Address{word});
    return (word & kTag) == kTag ? nullptr : pointer_to<PyObject>(Address{word & ~kTag});
  }

  std::vector<RootNode>& nodes_;
  const cpython::Layout& layout_;
  const std::vector<PyObject*>& hidden_;
  memory::LocalReader memory_;
};

constexpr std::uint64_t kNoBudget = ~std::uint64_t{0};  // of what is our own, no more is read than there is

Result<cpython::Layout> own_layout() {
  return cpython::find_layout(memory::LocalReader{}, own_version(), address_of(::dlsym(RTLD_DEFAULT, "_PyRuntime")));
}

}  // namespace

Result<std::vector<RootNode>> find_roots(const std::vector<PyObject*>& hidden) {
  const Result<cpython::Layout> layout = own_layout();
  if (!layout.ok()) return layout.error();
  PyInterpreterState* interpreter = PyInterpreterState_Get();
  std::vector<RootNode> nodes;

  nodes.push_back({"[modules]", "modules", {}, {}});
  add_items(nodes[0].edges, PyImport_GetModuleDict());

  nodes.push_back({"[interpreter]", "interpreter", {}, {}});
  nodes[1].edges.push_back({PyImport_GetModuleDict(), nullptr, "modules"});
  if (PyObject* dict = PyInterpreterState_GetDict(interpreter); dict != nullptr)
    nodes[1].edges.push_back({dict, nullptr, "dict"});
  if (PyObject* builtins = PyEval_GetBuiltins(); builtins != nullptr)
    nodes[1].edges.push_back({builtins, nullptr, "builtins"});

  nodes.push_back({"[threads]", "threads", {}, {}});
  ThreadRoots threads(nodes, layout.value(), hidden);
  for (PyThreadState* thread = PyInterpreterState_ThreadHead(interpreter); thread != nullptr;
       thread = PyThreadState_Next(thread)) {
    const std::size_t number = threads.add(thread);
    nodes[2].children.push_back(number);
  }
  return nodes;
}

// The links in front of an object, or the head of a list, which in some builds is aligned to 4 bytes only. The two
// lowest bits are flags.
struct [[gnu::packed, gnu::aligned(4)]] TrackedObjects::Link {
  static constexpr std::uintptr_t kFlags = 3;
  std::uintptr_t next, previous;
};

// struct gc_generation: a list's head, then its threshold and a count.
struct TrackedObjects::Generation {
  Link head;
  int threshold, count;
};

TrackedObjects::Link* TrackedObjects::after(const Link* link) {
  return pointer_to<Link>(Address{link->next & ~Link::kFlags});
}

TrackedObjects::Link* TrackedObjects::before(const Link* link) {
  return pointer_to<Link>(Address{link->previous & ~Link::kFlags});
}

PyObject* TrackedObjects::object_of(const Link* link) { return pointer_to<PyObject>(address_of(link + 1)); }

bool TrackedObjects::is_linked(const Link* link) { return before(after(link)) == link; }

// The head of the youngest generation's list: the one link on it that is not in front of an object but inside the
// interpreter's state.
TrackedObjects::Link* TrackedObjects::find_head(Link* probe) {
  constexpr std::uintptr_t kLargestInterpreter = std::uintptr_t{1} << 20U;
  const auto start = reinterpret_cast<std::uintptr_t>(PyInterpreterState_Get());
  for (Link* link = after(probe); link != probe; link = after(link)) {
    if (!is_linked(link)) return nullptr;
    const auto at = reinterpret_cast<std::uintptr_t>(link);
    if (at >= start && at < start + kLargestInterpreter) return link;
  }
  return nullptr;
}

bool TrackedObjects::find(const std::vector<int>& thresholds) {
  if (kIsFreeThreaded || thresholds.size() != 3) return false;
  PyObject* probe = PyList_New(0);  // the youngest object there is
  if (probe == nullptr) {
    PyErr_Clear();
    return false;
  }
  Link* youngest = find_head(reinterpret_cast<Link*>(probe) - 1);
  Py_DECREF(probe);
  if (youngest == nullptr) return false;
  // The generations lie side by side, and after them what gc.freeze() has set aside; up to 3.13 a pointer to the
  // youngest stands between.
  auto* generation = reinterpret_cast<Generation*>(youngest);
  std::vector<Link*> lists;
  for (const int threshold : thresholds) {
    if (generation->threshold != threshold) return false;
    lists.push_back(&generation->head);
    ++generation;
  }
  auto* pointer = pointer_to<Link*>(Address{(raw(address_of(generation)) + 7) / 8 * 8});
  lists.push_back(*pointer == youngest ? reinterpret_cast<Link*>(pointer + 1) : &generation->head);
  if (!std::all_of(lists.begin(), lists.end(), is_linked)) return false;
  lists_ = std::move(lists);
  return true;
}

void TrackedObjects::visit(const std::function<void(std::size_t, PyObject*)>& visit_one) const {
  // From both ends at once: where the next link is cannot be known before this one is there, but of two chains one can
  // be fetched while the other is waited for.
  for (std::size_t i = 0; i < lists_.size(); ++i) {
    const Link* first = after(lists_[i]);
    const Link* last = before(lists_[i]);
    for (; first != last && after(last) != first; first = after(first), last = before(last)) {
      visit_one(i, object_of(first));
      visit_one(i, object_of(last));
    }
    if (first == last && first != lists_[i]) visit_one(i, object_of(first));
  }
}

namespace {

// Reads numbers of two bytes, too.
struct PageReader : memory::LocalReader {
  using LocalReader::load;
  [[nodiscard]] bool load(Address at, std::uint16_t& out) const { return read(at, &out, sizeof out); }
};

// Of several interpreters nobody knows whose a page is, also when one has ended; and while a snapshot is taken only
// ours stands still.
bool may_have_other_interpreters() {
  return PyInterpreterState_Next(PyInterpreterState_Head()) != nullptr ||
         PyDict_GetItemString(PyImport_GetModuleDict(), "_interpreters") != nullptr;
}

}  // namespace

bool TrackedPages::find() {
  if (!kIsFreeThreaded || may_have_other_interpreters()) return false;
  Result<cpython::Layout> layout = own_layout();
  Result<cpython::ObjectFields> fields = cpython::object_fields(own_version());
  if (!layout.ok() || !fields.ok()) return false;
  PyObject* probe = PyList_New(0);
  if (probe == nullptr) {
    PyErr_Clear();
    return false;
  }
  layout_ = layout.take();
  fields_ = fields.take();
  known_ = {address_of(PyImport_GetModuleDict()), address_of(PyEval_GetBuiltins()), address_of(probe)};
  const bool is_seen = has(probe);
  PyObject_GC_UnTrack(probe);
  const bool is_seen_untracked = has(probe);
  Py_DECREF(probe);
  known_.pop_back();
  return is_seen && !is_seen_untracked;
}

bool TrackedPages::has(PyObject* object) const {
  constexpr std::uint64_t kSegment = cpython::page_size::kSegment;
  bool is_seen = false;
  const std::uint64_t start = raw(address_of(object)) / kSegment * kSegment;
  visit_between(start, start + kSegment, [&](PyObject* each) { is_seen = is_seen || each == object; });
  return is_seen;
}

bool TrackedPages::visit_between(std::uint64_t start, std::uint64_t end,
                                 const std::function<void(PyObject*)>& visit_one) const {
  constexpr std::uint64_t kSegment = cpython::page_size::kSegment;
  const PageReader memory;
  const cpython::ObjectView view(memory, layout_, fields_, kNoBudget);
  cpython::CollectorPages pages(view, known_);
  bool is_whole = pages.is_found();
  for (std::uint64_t at = (start + kSegment - 1) / kSegment * kSegment; pages.is_found() && at < end; at += kSegment)
    is_whole = pages.each_in(Address{at}, [&](Address object) { visit_one(pointer_to<PyObject>(object)); }) && is_whole;
  return is_whole;
}

bool TrackedPages::visit(const std::function<void(PyObject*)>& visit_one) const {
  const Result<std::vector<os::Mapping>> mappings = os::mappings_of(os::Pid{::getpid()});
  bool is_whole = mappings.ok() && PyInterpreterState_Next(PyInterpreterState_Head()) == nullptr;
  for (std::size_t i = 0; is_whole && i < mappings.value().size(); ++i) {
    const os::Mapping& mapping = mappings.value()[i];
    if (mapping.is_readable && mapping.is_writable && mapping.inode == 0)
      is_whole = visit_between(mapping.start, mapping.end, visit_one);
  }
  return is_whole;
}

std::vector<nanobind::object> all_tracked(nanobind::module_& collector) {
  std::vector<nanobind::object> tracked;
  if constexpr (!kIsFreeThreaded) {
    for (const nanobind::handle object : collector.attr("get_objects")()) tracked.push_back(nanobind::borrow(object));
    return tracked;
  }
  bool is_out_of_memory = false;
  visit_each_alone([&](PyObject* object) {
    // Who is still making one of these may have an error if another one has a reference to it.
    if (PyTuple_CheckExact(object) || PyFrozenSet_CheckExact(object)) return true;
    try {
      tracked.push_back(nanobind::borrow(object));
    } catch (const std::bad_alloc&) {
      is_out_of_memory = true;
    }
    return !is_out_of_memory;
  });
  if (is_out_of_memory) throw std::bad_alloc();
  return tracked;
}

}  // namespace plimsoll::python
