#include "python/heap_capture.h"

#include <fcntl.h>
#include <nanobind/nanobind.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "heap/address_set.h"
#include "heap/content_hash.h"
#include "heap/generations.h"
#include "heap/pools.h"
#include "heap/snapshot_writer.h"
#include "memory/local.h"
#include "os/process.h"
#include "python/heap_roots.h"
#include "python/interpreter.h"
#include "python/object_edges.h"

namespace plimsoll::python {
namespace {

using heap::AddressSet;
using heap::EdgeKind;
using heap::Node;

Address address_of(const void* pointer) { return Address{reinterpret_cast<std::uint64_t>(pointer)}; }

// Finds all objects that can be reached. A sink for ObjectEdges.
class Finder {
 public:
  static constexpr bool kTellsNames = false;

  Finder(TypePlans& plans, AddressSet& found, const AddressSet* known = nullptr)
      : plans_(plans), found_(found), known_(known), edges_(plans, *this) {}

  void add(PyObject* object) {
    if (object == nullptr || (known_ != nullptr && known_->contains(address_of(object)))) return;
    if (!found_.insert(address_of(object))) return;
    __builtin_prefetch(object);
    open_.push_back(object);
  }
  // Follows the edges of an object that is not itself to be found.
  void follow(PyObject* object) { open_.push_back(object); }
  // Follows all edges from what was added.
  void run() {
    do {
      for (; types_ < plans_.all().size(); ++types_) add(reinterpret_cast<PyObject*>(plans_.all()[types_].type));
      while (!open_.empty()) {
        PyObject* object = open_.back();
        open_.pop_back();
        edges_.visit(object, plans_.of(Py_TYPE(object)));
      }
    } while (types_ < plans_.all().size());
  }

  void edge(EdgeKind, PyObject* held) { add(held); }
  template <typename Name>
  void named(PyObject* held, Name) {
    add(held);
  }
  void type() {}
  void weak(PyObject*) {}
  void name_space(PyObject* dict) {
    add(dict);
    if (dict != nullptr) found_.mark(address_of(dict));
  }
  static bool has_names(PyObject*) { return false; }

 private:
  TypePlans& plans_;
  AddressSet& found_;
  const AddressSet* known_;
  ObjectEdges<Finder> edges_;
  std::vector<PyObject*> open_;
  std::size_t types_ = 0;
};

// Writes objects that were found. A sink for ObjectEdges.
class Recorder {
 public:
  static constexpr bool kTellsNames = true;

  Recorder(TypePlans& plans, const AddressSet& found, const std::vector<PyObject*>& hidden, Values values,
           const heap::Generations& generations, std::span<const heap::Pool> pools, std::uint64_t pool_bytes,
           heap::SnapshotWriter& writer)
      : plans_(plans),
        found_(found),
        hidden_(hidden),
        values_(values),
        generations_(generations),
        blocks_(pools, pool_bytes),
        writer_(writer),
        edges_(plans, *this) {}

  void object(PyObject* object) {
    const TypePlan& plan = plans_.of(Py_TYPE(object));
    const heap::ObjectSize size = size_of(object, plan);
    blocks_.add(raw(address_of(object)), size);
    writer_.begin_node(plan.number, size.total(), reference_count(object), address_of(object));
    writer_.generation(is_on_a_list(object) ? generations_.of(address_of(object)) : heap::Generation::kUntracked);
    hash_content(object);
    edges_.visit(object, plan);
    const std::string text = text_of_object(object, plan);
    if (!text.empty()) writer_.text(text);
    writer_.end_node();
  }
  void root(std::uint32_t type, const RootNode& node, Node first_root) {
    writer_.begin_node(type, 0, 0, Address{});
    for (const RootEdge& each : node.edges) {
      if (each.name != nullptr)
        named(each.held, each.name);
      else
        named(each.held, each.word);
    }
    for (const std::size_t child : node.children)
      writer_.edge(EdgeKind::kElement, first_root + static_cast<Node>(child));
    writer_.text(node.text);
    writer_.end_node();
  }

  void edge(EdgeKind kind, PyObject* held) {
    const Node target = found_.rank(address_of(held));
    if (target == heap::kNoNode)
      lose(held);
    else
      writer_.edge(kind, target);
  }
  template <typename Name>
  void named(PyObject* held, Name name) {
    const Node target = found_.rank(address_of(held));
    if (target == heap::kNoNode) return lose(held);
    const auto [found, is_new] = names_.try_emplace(name, 0);
    if (is_new) found->second = writer_.add_name(words(name));
    writer_.named_edge(target, found->second);
  }
  void type() { writer_.edge_to_type(); }
  void weak(PyObject* held) {
    const Node target = found_.rank(address_of(held));
    if (target != heap::kNoNode) writer_.edge(EdgeKind::kWeak, target);
  }
  static void name_space(PyObject*) {}
  bool has_names(PyObject* dict) const { return found_.is_marked(address_of(dict)); }
  [[nodiscard]] const heap::BlockCount& blocks() const { return blocks_; }

 private:
  // Of exactly a str or bytes: others are told apart by what they are.
  void hash_content(PyObject* object) {
    if (PyBytes_CheckExact(object)) {
      const std::string_view bytes(PyBytes_AS_STRING(object), static_cast<std::size_t>(PyBytes_GET_SIZE(object)));
      writer_.content_hash(hash_.of(bytes, 0));
    } else if (PyUnicode_CheckExact(object) && PyUnicode_IS_READY(object) != 0) {
      const auto kind = static_cast<std::size_t>(PyUnicode_KIND(object));
      const auto size = static_cast<std::size_t>(PyUnicode_GET_LENGTH(object)) * kind;
      writer_.content_hash(hash_.of({static_cast<const char*>(PyUnicode_DATA(object)), size}, kind));
    }
  }

  static constexpr Py_ssize_t kLongestName = 200, kLongestValue = 100;

  void lose(PyObject* held) {
    if (std::find(hidden_.begin(), hidden_.end(), held) == hidden_.end()) writer_.count_lost_edge();
  }

  static std::string words(const char* name) { return name; }
  static std::string words(PyObject* name) { return text_of(name, kLongestName); }

  std::string text_of_object(PyObject* object, const TypePlan& plan) const {
    if (plan.shape == Shape::kClass) return name_of(reinterpret_cast<PyTypeObject*>(object));
    if (plan.shape == Shape::kCode) return text_of(reinterpret_cast<PyCodeObject*>(object)->co_name, kLongestName);
    if (plan.shape == Shape::kModule) return module_name(object);
    if (plan.type == &PyFunction_Type)
      return text_of(reinterpret_cast<PyFunctionObject*>(object)->func_qualname, kLongestName);
    if (plan.type == &PyCFunction_Type) return reinterpret_cast<PyCFunctionObject*>(object)->m_ml->ml_name;
    if (plan.facets.label) return label_of(object, plan);
    return values_ == Values::kShown ? value_of(object) : std::string{};
  }

  // The attribute that a rule tells objects apart by, if it is a str or an int, wherever it is kept.
  static std::string label_of(PyObject* object, const TypePlan& plan) {
    const std::string& label = *plan.facets.label;
    for (const Member& member : plan.members)
      if (label == member.name) return words_of(field_at<PyObject*>(object, member.offset));
    if (!plan.has_attributes) return {};
    const Attributes attributes = attributes_of(object, plan.type);
    const SharedNames names = shared_names(plan.type);
    for (std::size_t i = 0; i < (attributes.values != nullptr ? std::min(attributes.capacity, names.count) : 0); ++i)
      if (names[i] != nullptr && PyUnicode_CompareWithASCIIString(names[i], label.c_str()) == 0)
        return words_of(attributes.values[i]);
    const bool has_dict = attributes.dict != nullptr && *attributes.dict != nullptr && PyDict_Check(*attributes.dict);
    return has_dict ? words_of(entry_of(*attributes.dict, label.c_str())) : std::string{};
  }
  static std::string words_of(PyObject* value) {
    if (value == nullptr) return {};
    return PyUnicode_Check(value) ? text_of(value, kLongestValue) : number_text(value);
  }

  static std::string module_name(PyObject* module) {
    PyObject* dict = PyModule_GetDict(module);
    return dict != nullptr ? text_of(entry_of(dict, "__name__"), kLongestName) : std::string{};
  }

  static std::string value_of(PyObject* object) {
    char digits[32];
    if (PyUnicode_CheckExact(object)) return "'" + text_of(object, kLongestValue) + "'";
    if (PyBytes_CheckExact(object)) {
      const auto size = static_cast<std::size_t>(std::min<Py_ssize_t>(PyBytes_GET_SIZE(object), kLongestValue));
      return "b'" + std::string(PyBytes_AS_STRING(object), size) + "'";
    }
    if (PyFloat_CheckExact(object))
      return {digits, std::to_chars(digits, digits + sizeof digits, PyFloat_AS_DOUBLE(object)).ptr};
    return number_text(object);
  }

  static std::string number_text(PyObject* object) {
    if (!PyLong_Check(object)) return {};
    char digits[32];
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow != 0) return {};
    return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
  }

  TypePlans& plans_;
  const AddressSet& found_;
  const std::vector<PyObject*>& hidden_;
  Values values_;
  const heap::Generations& generations_;
  heap::BlockCount blocks_;
  heap::ContentHash hash_{heap::random_key()};
  heap::SnapshotWriter& writer_;
  ObjectEdges<Recorder> edges_;
  boost::unordered_flat_map<const void*, std::uint32_t> names_;
};

// Both passes over the heap, while nothing else may change it.
class Capture {
 public:
  Capture(CaptureOptions options, TrackedObjects lists, PyObject* tracked, std::vector<heap::Region> regions)
      : values_(options.values),
        hidden_(std::move(options.hidden)),
        lists_(std::move(lists)),
        tracked_(tracked),
        plans_(std::move(options.rules)),
        regions_(std::move(regions)) {}

  Status run(heap::SnapshotWriter& writer) {
    const std::int64_t start = monotonic_ns();
    Result<std::vector<RootNode>> roots = find_roots(hidden_);
    if (!roots.ok()) return roots.error();
    find(roots.value());
    statistics_.mark_ns = monotonic_ns() - start;
    write(roots.value(), writer);
    statistics_.stop_ns = monotonic_ns() - start;
    return Ok{};
  }
  [[nodiscard]] const CaptureStatistics& statistics() const { return statistics_; }

 private:
  void find(const std::vector<RootNode>& roots) {
    // What is ours is taken for found, so that nothing is followed from there, and taken out again at the end.
    std::erase_if(hidden_, [&](PyObject* object) { return !found_.insert(address_of(object)); });
    Finder finder(plans_, found_);
    for (const RootNode& node : roots)
      for (const RootEdge& edge : node.edges) finder.add(edge.held);
    finder.run();
    find_tracked(finder);
    finder.run();
    for (PyObject* object : hidden_) found_.erase(address_of(object));
    found_.seal();
    statistics_.objects = found_.size();
    statistics_.index_bytes = found_.footprint();
  }

  // What nothing but the collector's lists leads to: held by C code, or garbage; but not what our own modules hold.
  void find_tracked(Finder& finder) {
    AddressSet ours;
    TypePlans our_plans({});
    Finder our_finder(our_plans, ours, &found_);
    for (PyObject* object : hidden_) our_finder.follow(object);
    our_finder.run();
    const auto add = [&](PyObject* object) {
      if (!ours.contains(address_of(object))) finder.add(object);
    };
    lists_.visit([&](std::size_t list, PyObject* object) {
      add(object);
      generations_.add(list, address_of(object));
    });
    for (Py_ssize_t i = 0; tracked_ != nullptr && i < PyList_GET_SIZE(tracked_); ++i) add(PyList_GET_ITEM(tracked_, i));
  }

  void write(std::vector<RootNode>& roots, heap::SnapshotWriter& writer) {
    for (const TypePlan& plan : plans_.all()) {
      writer.add_type(name_of(plan.type));
      const bool is_built_in = (plan.type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0;
      if (is_built_in) roots[1].edges.push_back({reinterpret_cast<PyObject*>(plan.type), nullptr, "types"});
    }
    const cpython::Version version = own_version();
    const std::vector<heap::Pool> pools = heap::find_pools(memory::LocalReader{}, regions_, version);
    Recorder recorder(plans_, found_, hidden_, values_, generations_, pools, heap::pool_bytes(version), writer);
    found_.for_each([&](Address address) { recorder.object(reinterpret_cast<PyObject*>(raw(address))); });
    writer.end_objects();
    const Node first_root = writer.node_count();
    for (const RootNode& node : roots) recorder.root(root_type(node.type, writer), node, first_root);
    for (const TypePlan& plan : plans_.all())
      if (const Node type = found_.rank(address_of(plan.type)); type != heap::kNoNode)
        writer.add_class(plan.number, type);
    heap::add_memory(writer, pools, regions_, recorder.blocks());
  }

  std::uint32_t root_type(const char* name, heap::SnapshotWriter& writer) {
    const auto [found, is_new] = root_types_.try_emplace(name, 0);
    if (is_new) found->second = writer.add_type(name);
    return found->second;
  }

  Values values_;
  std::vector<PyObject*> hidden_;
  TrackedObjects lists_;
  PyObject* tracked_;  // else a list of what is on them
  TypePlans plans_;
  AddressSet found_;
  heap::Generations generations_;
  std::vector<heap::Region> regions_;
  boost::unordered_flat_map<std::string, std::uint32_t> root_types_;
  CaptureStatistics statistics_;
};

std::vector<int> collector_thresholds(nanobind::module_& collector) {
  std::vector<int> thresholds;
  for (const nanobind::handle threshold : collector.attr("get_threshold")())
    thresholds.push_back(nanobind::cast<int>(threshold));
  return thresholds;
}

// Runs `work` while no other thread runs Python code. False if it did not run.
bool run_alone(const std::function<void()>& work) {
  if constexpr (!kIsFreeThreaded) {
    work();
    return true;
  }
  struct Call {
    const std::function<void()>& work;
    bool is_done;
  } call{work, false};
  // The world is stopped around all calls; the first does everything.
  visit_objects_alone(
      [](PyObject*, void* argument) {
        auto* self = static_cast<Call*>(argument);
        if (!self->is_done) self->work();
        self->is_done = true;
        return 0;
      },
      &call);
  return call.is_done;
}

// A capture with all that must be made before the heap stands still.
class Preparation {
 public:
  static Result<std::unique_ptr<Preparation>> make(const std::string& path, CaptureOptions options) {
    Result<heap::SnapshotWriter> writer = heap::SnapshotWriter::create(path);
    if (!writer.ok()) return writer.error();
    for (const auto& [name, value] : options.meta) writer.value().add_meta(name, value);
    return std::unique_ptr<Preparation>(new Preparation(writer.take(), std::move(options)));
  }

  // The snapshot, while the heap stands still.
  Result<CaptureStatistics> take() {
    PLIMSOLL_TRY(capture_->run(writer_));
    CaptureStatistics statistics = capture_->statistics();
    add_meta(statistics);
    PLIMSOLL_TRY(writer_.finish());
    statistics.edges = writer_.edge_count();
    statistics.lost_edges = writer_.lost_edge_count();
    statistics.file_bytes = writer_.file_bytes();
    return statistics;
  }

 private:
  Preparation(heap::SnapshotWriter writer, CaptureOptions options)
      : writer_(std::move(writer)), values_(options.values) {
    std::vector<TypeRule> rules = built_in_rules();
    rules.insert(rules.end(), options.rules.begin(), options.rules.end());
    options.rules = std::move(rules);
    std::vector<heap::Region> regions = own_regions();
    nanobind::module_ collector = nanobind::module_::import_("gc");
    TrackedObjects lists;
    if (!lists.find(collector_thresholds(collector))) {
      tracked_ = collector.attr("get_objects")();
      options.hidden.push_back(tracked_.ptr());
    }
    capture_ = std::make_unique<Capture>(std::move(options), std::move(lists), tracked_.ptr(), std::move(regions));
  }

  // The kernel looks at each page for that; the program goes on meanwhile.
  static std::vector<heap::Region> own_regions() {
    const nanobind::gil_scoped_release release;
    const auto mappings = os::resident_mappings_of(os::Pid{::getpid()});
    return mappings.ok() ? heap::regions_of(mappings.value()) : std::vector<heap::Region>{};
  }

  void add_meta(const CaptureStatistics& statistics) {
    writer_.add_meta("plimsoll", PLIMSOLL_VERSION);
    writer_.add_meta("python", Py_GetVersion());
    writer_.add_meta("pid", std::to_string(::getpid()));
    writer_.add_meta("time_ns", std::to_string(realtime_ns()));
    writer_.add_meta("stop_ns", std::to_string(statistics.stop_ns));
    writer_.add_meta("values", values_ == Values::kShown ? "shown" : "redacted");
  }

  heap::SnapshotWriter writer_;
  Values values_;
  nanobind::object tracked_;
  std::unique_ptr<Capture> capture_;
};

// What a child does, and never returns from: no code of the program's runs in it, neither at its end.
[[noreturn]] void take_in_child(Preparation& preparation, int pipe) {
  constexpr unsigned kLongestSeconds = 3600;  // a child that hangs is not for ever
  ::signal(SIGALRM, SIG_DFL);
  ::alarm(kLongestSeconds);
  const Result<CaptureStatistics> taken = preparation.take();
  const void* bytes = taken.ok() ? static_cast<const void*>(&taken.value()) : taken.error().message.data();
  const std::size_t size = taken.ok() ? sizeof(CaptureStatistics) : taken.error().message.size();
  const ssize_t written = ::write(pipe, bytes, size);
  ::_exit(taken.ok() && written == static_cast<ssize_t>(size) ? 0 : 1);
}

}  // namespace

Result<CaptureStatistics> capture_heap(const std::string& path, CaptureOptions options) {
  const Result<std::unique_ptr<Preparation>> preparation = Preparation::make(path, std::move(options));
  if (!preparation.ok()) return preparation.error();
  std::optional<Result<CaptureStatistics>> taken;
  run_alone([&] { taken = preparation.value()->take(); });
  if (!taken) return Error{ErrorKind::kUnsupported, "this Python has no object that its collector knows"};
  return *taken;
}

Result<CaptureChild> CaptureChild::start(const std::string& path, CaptureOptions options) {
  const Result<std::unique_ptr<Preparation>> preparation = Preparation::make(path, std::move(options));
  if (!preparation.ok()) return preparation.error();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("cannot make a pipe", errno);
  CaptureChild child;
  child.pipe_ = UniqueFd(ends[0]);
  UniqueFd in_child(ends[1]);
  const std::int64_t start = monotonic_ns();
  int error = 0;
  run_alone([&] {
    child.pid_ = ::fork();
    error = errno;
    if (child.pid_ == 0) take_in_child(*preparation.value(), in_child.get());
  });
  child.pause_ns_ = monotonic_ns() - start;
  if (child.pid_ < 0) return system_error("cannot fork for a snapshot", error);
  return child;
}

Result<CaptureStatistics> CaptureChild::wait() {
  if (pid_ <= 0) return Error{ErrorKind::kUsage, "the snapshot has been waited for already"};
  std::string told;
  char block[512];
  for (;;) {
    const ssize_t got = ::read(pipe_.get(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    told.append(block, static_cast<std::size_t>(got));
  }
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  pipe_.reset();
  // The program may wait for any child of its own, and get ours.
  const bool is_fine = ended < 0 || status == 0;
  if (is_fine && told.size() == sizeof(CaptureStatistics)) {
    CaptureStatistics statistics;
    std::memcpy(&statistics, told.data(), sizeof statistics);
    statistics.stop_ns = pause_ns_;
    return statistics;
  }
  if (!told.empty() && told.size() != sizeof(CaptureStatistics)) return Error{ErrorKind::kSystem, told};
  const std::string how = WIFSIGNALED(status) ? " by signal " + std::to_string(WTERMSIG(status)) : std::string{};
  return Error{ErrorKind::kSystem, "the child that took the snapshot was ended" + how + "; its file is incomplete"};
}

}  // namespace plimsoll::python
