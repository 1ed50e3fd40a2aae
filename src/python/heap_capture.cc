#include "python/heap_capture.h"

#include <fcntl.h>
#include <nanobind/nanobind.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "heap/pools.h"
#include "memory/local.h"
#include "os/process.h"
#include "python/fetch_queue.h"
#include "python/heap_finder.h"
#include "python/heap_recorder.h"
#include "python/heap_roots.h"
#include "python/heap_rows.h"
#include "python/interpreter.h"
#include "python/recording.h"

namespace plimsoll::python {
namespace {

using heap::AddressSet;
using heap::Node;

// Where what the collector knows is found: on its lists, in its pages, or else here.
struct Tracked {
  TrackedObjects lists;
  TrackedPages pages;
  bool has_pages = false;
  std::vector<nanobind::object> objects;
};

// Both passes over the heap, while nothing else may change it.
class Capture {
 public:
  Capture(CaptureOptions options, Tracked tracked, std::vector<heap::Region> regions)
      : values_(options.values),
        hidden_(std::move(options.hidden)),
        tracked_(std::move(tracked)),
        plans_(std::move(options.rules), options.python_traverse),
        regions_(std::move(regions)) {}

  Status run(heap::SnapshotWriter& writer) {
    const std::int64_t start = monotonic_ns();
    Result<std::vector<RootNode>> roots = find_roots(hidden_);
    if (!roots.ok()) return roots.error();
    PLIMSOLL_TRY(find(roots.value()));
    statistics_.mark_ns = monotonic_ns() - start;
    write(roots.value(), writer);
    // (A reference may be the last one where other threads have run since it was taken.)
    if (!kIsFreeThreaded) tracked_.objects.clear();
    statistics_.stop_ns = monotonic_ns() - start;
    return Ok{};
  }
  // From now on threads of ours do what they can.
  void work_beside() { threads_ = Threads::kBeside; }
  [[nodiscard]] const CaptureStatistics& statistics() const { return statistics_; }
  HeapAllocations& allocations() { return allocations_; }
  std::vector<Asked> take_asked() { return std::move(asked_); }

 private:
  Status find(const std::vector<RootNode>& roots) {
    // What is ours is taken for found, so that nothing is followed from there, and taken out again at the end.
    std::erase_if(hidden_, [&](PyObject* object) { return !found_.insert(address_of(object)); });
    // What the collector has on its lists is read meanwhile: links are waited for, one after the other.
    AddressSet tracked;
    bool is_sure = true;
    const auto read_lists = [&] {
      if (tracked_.has_pages)
        is_sure = tracked_.pages.visit([&](PyObject* object) { tracked.insert(address_of(object)); });
      tracked_.lists.visit([&](std::size_t list, PyObject* object) {
        tracked.insert(address_of(object));
        generations_.add(list, address_of(object));
      });
    };
    os::OwnThread beside;
    if (threads_ == Threads::kNone || !beside.start("plimsoll-lists", read_lists)) read_lists();
    Finder finder(plans_, found_);
    for (const RootNode& node : roots)
      for (const RootEdge& edge : node.edges) finder.add(edge.held);
    finder.run();
    beside.join();
    if (!is_sure) return Error{ErrorKind::kUnsupported, "the pages of this Python's objects are not as expected"};
    find_tracked(tracked, finder);
    finder.run();
    tracked = AddressSet();
    for (PyObject* object : hidden_) found_.erase(address_of(object));
    found_.seal();
    statistics_.objects = found_.size();
    return Ok{};
  }

  // What nothing but the collector's lists leads to: held by C code, or garbage; but not what our own modules hold.
  void find_tracked(const AddressSet& tracked, Finder& finder) {
    AddressSet ours;
    TypePlans our_plans({});
    Finder our_finder(our_plans, ours, &found_);
    for (PyObject* object : hidden_) our_finder.follow(object);
    our_finder.run();
    const auto add = [&](PyObject* object) {
      if (!found_.contains(address_of(object)) && !ours.contains(address_of(object))) finder.add(object);
    };
    tracked.for_each_not_in(found_, [&](Address object) { add(pointer_to<PyObject>(object)); });
    for (const nanobind::object& object : tracked_.objects) add(object.ptr());
  }

  void write(std::vector<RootNode>& roots, heap::SnapshotWriter& writer) {
    for (const TypePlan& plan : plans_.all()) {
      writer.add_type(name_of(plan.type));
      const bool is_built_in = (plan.type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0;
      if (is_built_in) roots[1].edges.push_back({reinterpret_cast<PyObject*>(plan.type), nullptr, "types"});
    }
    GrowingArray<heap::Pool> pools = heap::find_pools(memory::LocalReader{}, regions_, own_version());
    add_own_pools(pools);
    RowMaker rows(found_, generations_, hidden_, writer);
    heap::WordStream words([&rows](std::span<const std::uint64_t> some) { rows.take(some); },
                           [&writer] { return writer.help(); });
    if (threads_ == Threads::kBeside) words.take_beside();
    Recorder recorder(plans_, found_, values_, heap::BlockCount(pools, regions_), allocations_, words);
    Node number = 0;
    const auto record = [&](PyObject* object) {
      const TypePlan& plan = plans_.of(Py_TYPE(object));
      if (const auto& asked = plan.facets.asked) asked_.push_back({number, *asked, nanobind::borrow(object)});
      recorder.object(object, plan);
      ++number;
    };
    FetchQueue<16> fetching;
    const auto pass = [&](PyObject* object) {
      PyObject* fetched = fetching.pass(object);
      if (PyObject* half = fetching.halfway(); half != nullptr) fetch_parts(half);
      if (fetched != nullptr) record(fetched);
    };
    found_.for_each([&](Address address) {
      auto* object = pointer_to<PyObject>(address);
      __builtin_prefetch(reinterpret_cast<const char*>(object) - kCollectorHeader);
      pass(object);
    });
    while (!fetching.is_empty()) pass(nullptr);
    words.finish();
    rows.end_objects();
    const Node first_root = writer.node_count();
    for (const RootNode& node : roots) write_root(node, first_root, rows, writer);
    for (const TypePlan& plan : plans_.all())
      if (const Node type = found_.rank(address_of(plan.type)); type != heap::kNoNode)
        writer.add_class(plan.number, type);
    heap::add_memory(writer, pools, regions_, recorder.blocks());
    allocations_.write(writer);
  }

  void write_root(const RootNode& node, Node first_root, RowMaker& rows, heap::SnapshotWriter& writer) {
    writer.begin_node(root_type(node.type, writer), 0, 0, Address{});
    for (const RootEdge& each : node.edges) {
      if (each.name != nullptr)
        rows.named(address_of(each.held), each.name);
      else
        rows.named(address_of(each.held), each.word);
    }
    for (const std::size_t child : node.children)
      writer.edge(heap::EdgeKind::kElement, first_root + static_cast<Node>(child));
    writer.text(node.text);
    writer.end_node();
  }

  std::uint32_t root_type(const char* name, heap::SnapshotWriter& writer) {
    const auto [found, is_new] = root_types_.try_emplace(name, 0);
    if (is_new) found->second = writer.add_type(name);
    return found->second;
  }

  enum class Threads : std::uint8_t { kNone, kBeside };

  Threads threads_ = Threads::kNone;
  Values values_;
  std::vector<PyObject*> hidden_;
  Tracked tracked_;
  TypePlans plans_;
  AddressSet found_;
  heap::Generations generations_;
  std::vector<heap::Region> regions_;
  HeapAllocations allocations_{current_recording()};
  boost::unordered_flat_map<std::string, std::uint32_t> root_types_;
  CaptureStatistics statistics_;
  std::vector<Asked> asked_;
};

std::vector<int> collector_thresholds(nanobind::module_& collector) {
  std::vector<int> thresholds;
  for (const nanobind::handle threshold : collector.attr("get_threshold")())
    thresholds.push_back(nanobind::cast<int>(threshold));
  return thresholds;
}

// A capture with all that must be made before the heap stands still.
class Preparation {
 public:
  static Result<std::unique_ptr<Preparation>> make(const std::string& path, CaptureOptions options) {
    // What is mapped is asked for while other threads go on, which may take some of it away before it is looked at.
    PLIMSOLL_TRY(memory::FaultGuard::ensure_installed());
    std::unique_ptr<Preparation> preparation(new Preparation(std::move(options)));
    PLIMSOLL_TRY(preparation->begin_file(path));
    return preparation;
  }
  // What was begun of a file does not stay, whatever the reason that it was not finished.
  ~Preparation() {
    if (is_file_ours_) writer_.discard();
  }

  // For a program that waits for the snapshot.
  void work_beside() {
    writer_.write_beside();
    capture_->work_beside();
  }
  // Around a fork, in the parent.
  void hold_allocations() { capture_->allocations().hold(); }
  void release_allocations() { capture_->allocations().release(); }
  // In the parent: a child goes on with the file.
  void leave_file() { is_file_ours_ = false; }

  std::vector<Asked> take_asked() { return capture_->take_asked(); }
  // The snapshot, while the heap stands still. Throws nothing, as finish(): it is called by functions in C, for which
  // other threads are stopped, and in a child that is never to go on as the program.
  Status take() noexcept {
    return kept([this] { return capture_->run(writer_); });
  }
  // After that the program may go on: what is left is of its file only.
  Result<CaptureStatistics> finish() noexcept {
    return kept([this] { return finish_file(); });
  }

 private:
  // What came of it; the file is removed if that is an error.
  template <typename Work>
  auto kept(Work work) noexcept -> decltype(work()) {
    try {
      auto outcome = work();
      if (!outcome.ok()) writer_.discard();
      return outcome;
    } catch (const std::bad_alloc&) {
      writer_.discard();
      return std::move(no_memory_);
    }
  }
  Result<CaptureStatistics> finish_file() {
    CaptureStatistics statistics = capture_->statistics();
    add_meta(statistics);
    PLIMSOLL_TRY(writer_.finish());
    is_file_ours_ = false;
    statistics.edges = writer_.edge_count();
    statistics.lost_edges = writer_.lost_edge_count();
    statistics.file_bytes = writer_.file_bytes();
    return statistics;
  }

  explicit Preparation(CaptureOptions options) : values_(options.values), meta_(std::move(options.meta)) {
    std::vector<heap::TypeRule> rules = heap::built_in_rules();
    rules.insert(rules.end(), options.rules.begin(), options.rules.end());
    options.rules = std::move(rules);
    options.python_traverse = python_traverse();
    std::vector<heap::Region> regions = own_regions();
    nanobind::module_ collector = nanobind::module_::import_("gc");
    Tracked tracked;
    tracked.has_pages = tracked.pages.find();
    if (!tracked.has_pages && !tracked.lists.find(collector_thresholds(collector)))
      tracked.objects = all_tracked(collector);
    capture_ = std::make_unique<Capture>(std::move(options), std::move(tracked), std::move(regions));
  }

  // After all else, which may fail.
  Status begin_file(const std::string& path) {
    Result<heap::SnapshotWriter> writer = heap::SnapshotWriter::create(path);
    if (!writer.ok()) return writer.error();
    writer_ = writer.take();
    is_file_ours_ = true;
    for (const auto& [name, value] : meta_) writer_.add_meta(name, value);
    return Ok{};
  }

  // That of any class written in Python. One that is loaded in every program is asked.
  static traverseproc python_traverse() {
    const nanobind::object type = nanobind::getattr(nanobind::module_::import_("codecs"), "Codec", nanobind::none());
    return PyType_Check(type.ptr()) ? reinterpret_cast<PyTypeObject*>(type.ptr())->tp_traverse : nullptr;
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

  Error no_memory_{ErrorKind::kSystem, "no memory was left for the snapshot"};  // and none would be for this
  heap::SnapshotWriter writer_;
  bool is_file_ours_ = false;
  Values values_;
  decltype(CaptureOptions::meta) meta_;
  std::unique_ptr<Capture> capture_;
};

// What a child does, and never returns from: no code of the program's runs in it, neither at its end.
[[noreturn]] void take_in_child(Preparation& preparation, int pipe) {
  constexpr unsigned kLongestSeconds = 3600;  // a child that hangs is not for ever
  ::signal(SIGALRM, SIG_DFL);
  ::alarm(kLongestSeconds);
  const Status looked = preparation.take();
  const Result<CaptureStatistics> taken =
      looked.ok() ? preparation.finish() : Result<CaptureStatistics>(looked.error());
  const void* bytes = taken.ok() ? static_cast<const void*>(&taken.value()) : taken.error().message.data();
  const std::size_t size = taken.ok() ? sizeof(CaptureStatistics) : taken.error().message.size();
  const ssize_t written = ::write(pipe, bytes, size);
  ::_exit(taken.ok() && written == static_cast<ssize_t>(size) ? 0 : 1);
}

}  // namespace

Result<CaptureStatistics> capture_heap(const std::string& path, CaptureOptions options, std::vector<Asked>& asked) {
  const Result<std::unique_ptr<Preparation>> preparation = Preparation::make(path, std::move(options));
  if (!preparation.ok()) return preparation.error();
  preparation.value()->work_beside();
  std::optional<Status> taken;
  run_alone([&] { taken = preparation.value()->take(); });
  if (!taken) return Error{ErrorKind::kUnsupported, "this Python has no object that its collector knows"};
  PLIMSOLL_TRY(*taken);
  asked = preparation.value()->take_asked();
  const nanobind::gil_scoped_release release;
  return preparation.value()->finish();
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
    preparation.value()->hold_allocations();
    child.pid_ = ::fork();
    error = errno;
    if (child.pid_ == 0) take_in_child(*preparation.value(), in_child.get());
    preparation.value()->release_allocations();
  });
  child.pause_ns_ = monotonic_ns() - start;
  if (child.pid_ < 0) return system_error("cannot fork for a snapshot", error);
  preparation.value()->leave_file();
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
