#include "remote/greenlet_dump.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>
#include <memory>

#include "cpython/collector_lists.h"
#include "cpython/greenlets.h"
#include "remote/code_copies.h"
#include "remote/local_variables.h"
#include "remote/standing.h"

namespace plimsoll::remote {
namespace {

using cpython::GreenletRecord;

// Of one greenlet.
constexpr std::size_t kMostDepth = 10'000;
// Of all greenlets together: each has names.
constexpr std::size_t kMostFrames = 200'000;
constexpr std::size_t kMostGreenlets = 100'000;
// Objects that are looked at to find them: about a second's work.
constexpr std::size_t kMostObjects = 10'000'000;
// A list that changes while it is followed may lead astray, but hardly so often.
constexpr int kTriesToFind = 5;
// A greenlet that goes on while it is read is read so often.
constexpr int kTriesToRead = 10;

void add_sentence(std::string& text, const std::string& sentence) { text += (text.empty() ? "" : "; ") + sentence; }

std::string left_out(std::size_t count, const char* why) {
  return std::to_string(count) + (count == 1 ? " greenlet" : " greenlets") + " left out: " + why;
}

// Finds greenlets, reads them, and puts them into words, of a process that runs or of its core file.
template <memory::Reader M>
class GreenletDumper {
 public:
  // `rest` is called between objects: what is kept of the memory may be given back then.
  GreenletDumper(const M& memory, const cpython::Layout& layout, const cpython::ObjectFields& fields, Address code_type,
                 std::span<const GreenletThread> threads, std::function<void()> rest)
      : layout_(layout),
        code_type_(code_type),
        threads_(threads),
        view_(memory, layout, fields, kWordsPerValue),
        reader_(view_, code_type, states_of(threads), kMostDepth),
        values_(view_, view_.type_of(code_type), {}),
        rest_(std::move(rest)) {}

  void show_locals(const cpython::ValueLimits& limits) { variables_.emplace(view_, code_type_, limits); }

  // All that there are, in found(). Whether the lists came round, or there is no sense in another try.
  bool find() {
    std::vector<Address> interpreters;
    for (const GreenletThread& thread : threads_)
      if (std::find(interpreters.begin(), interpreters.end(), thread.interpreter) == interpreters.end())
        interpreters.push_back(thread.interpreter);
    is_whole_ = true;
    looked_at_ = 0;
    for (const Address interpreter : interpreters) is_whole_ = find_in(interpreter) && is_whole_;
    return is_whole_ || is_over();
  }
  [[nodiscard]] const std::vector<Address>& found() const { return found_; }

  void learn() {
    const auto each = [&](auto learn) {
      for (const Address greenlet : found_) {
        learn(greenlet);
        rest_();
      }
    };
    each([&](Address greenlet) { reader_.learn_frame(greenlet); });
    each([&](Address greenlet) { reader_.learn_main(greenlet); });
  }
  // As many frames as are left for it.
  bool read(Address greenlet, GreenletRecord& out) {
    rest_();
    if (!reader_.read(greenlet, kMostFrames - frames_, out)) return false;
    frames_ += out.frames.size();
    return true;
  }
  // As many as then.
  bool read_again(const GreenletRecord& before, GreenletRecord& out) {
    return reader_.read(before.greenlet, before.most, out);
  }

  // Takes one as it is to be shown.
  void take(const GreenletRecord& record) {
    if (record.state == GreenletRecord::State::kEnded) return;
    rest_();
    view_.refill();
    DumpedGreenlet greenlet;
    greenlet.address = record.greenlet;
    if (const cpython::ValueClass* type = values_.classes().of_object(record.greenlet)) greenlet.type = type->name;
    greenlet.name = values_.classes().short_text(values_.attribute(record.greenlet, "name"));
    greenlet.is_main = record.main == record.greenlet;
    using State = GreenletRecord::State;
    greenlet.state = record.state == State::kNew       ? DumpedGreenlet::State::kNew
                     : record.state == State::kRunning ? DumpedGreenlet::State::kRunning
                                                       : DumpedGreenlet::State::kSuspended;
    greenlet.is_truncated = !is_null(record.innermost) && record.stop != cpython::WalkStop::kComplete;
    add_frames(record, greenlet);
    taken_.push_back({record, std::move(greenlet)});
  }

  GreenletDump finish(std::size_t moved, std::size_t unreadable) {
    set_threads();
    std::stable_sort(taken_.begin(), taken_.end(), [&](const Taken& a, const Taken& b) { return rank(a) < rank(b); });
    boost::unordered_flat_map<std::uint64_t, std::size_t> numbers;
    for (std::size_t i = 0; i < taken_.size(); ++i) numbers.emplace(raw(taken_[i].record.greenlet), i);
    GreenletDump dump;
    for (Taken& each : taken_) {
      const auto parent = numbers.find(raw(each.record.parent));
      if (parent != numbers.end()) each.greenlet.parent = parent->second;
      dump.greenlets.push_back(std::move(each.greenlet));
    }
    dump.problem = problem(moved, unreadable);
    return dump;
  }

 private:
  // One that is shown.
  struct Taken {
    GreenletRecord record;
    DumpedGreenlet greenlet;
  };

  static std::vector<Address> states_of(std::span<const GreenletThread> threads) {
    std::vector<Address> states;
    for (const GreenletThread& thread : threads) states.push_back(thread.state);
    return states;
  }
  [[nodiscard]] bool is_over() const { return looked_at_ >= kMostObjects || found_.size() >= kMostGreenlets; }

  bool find_in(Address interpreter) {
    const cpython::CollectorLists lists(view_, interpreter,
                                        [this](Address object) { return reader_.is_tracked(object); });
    return lists.each([&](std::size_t, Address object) {
      if (is_over()) return false;
      ++looked_at_;
      if (reader_.is_greenlet(object) && known_.try_emplace(raw(object), true).second) found_.push_back(object);
      rest_();
      return true;
    });
  }

  void add_frames(const GreenletRecord& record, DumpedGreenlet& greenlet) {
    std::vector<Address> addresses;
    if (variables_) addresses = reader_.addresses(record);
    for (std::size_t i = 0; i < record.frames.size(); ++i) {
      const cpython::PyFrame& frame = record.frames[i];
      const cpython::CodeInfo* info = info_of(frame.code);
      if (info == nullptr) {
        greenlet.is_truncated = true;
        return;
      }
      if (info->is_init_cleanup()) continue;
      greenlet.frames.push_back(python_frame(layout_, *info, frame.position));
      if (i < addresses.size()) greenlet.frames.back().locals = variables_->read(addresses[i], frame.code);
    }
  }

  // Null if it cannot be read.
  const cpython::CodeInfo* info_of(Address code) { return codes_.find(view_.memory(), layout_, code).get(); }

  [[nodiscard]] const GreenletThread* thread_of(Address state) const {
    const auto found = std::find_if(threads_.begin(), threads_.end(),
                                    [&](const GreenletThread& thread) { return thread.state == state; });
    return is_null(state) || found == threads_.end() ? nullptr : &*found;
  }

  // A suspended greenlet says which thread it is of, and so those of the same main greenlet are. One that has not begun
  // is of its parent's.
  void set_threads() {
    boost::unordered_flat_map<std::uint64_t, Tid> threads;  // of greenlets, by address
    for (const Taken& each : taken_)
      if (const GreenletThread* thread = thread_of(each.record.thread_state))
        for (const Address one : {each.record.main, each.record.greenlet}) threads[raw(one)] = thread->tid;
    constexpr int kRounds = 64;  // parents of parents
    bool is_new = true;
    for (int i = 0; i < kRounds && is_new; ++i) {
      is_new = false;
      for (const Taken& each : taken_) {
        if (threads.contains(raw(each.record.greenlet))) continue;
        auto from = threads.find(raw(each.record.main));
        if (is_null(each.record.main) || from == threads.end()) from = threads.find(raw(each.record.parent));
        if (from == threads.end() || from->first == 0) continue;
        const Tid tid = from->second;
        threads[raw(each.record.greenlet)] = tid;
        is_new = true;
      }
    }
    for (Taken& each : taken_)
      if (const auto known = threads.find(raw(each.record.greenlet)); known != threads.end())
        each.greenlet.thread = known->second;
  }

  using Rank = std::array<std::uint64_t, 4>;
  [[nodiscard]] Rank rank(const Taken& each) const {
    const auto of_thread = [&](const GreenletThread& thread) { return thread.tid == each.greenlet.thread; };
    const auto thread = std::find_if(threads_.begin(), threads_.end(), of_thread);
    return {static_cast<std::uint64_t>(thread - threads_.begin()), each.greenlet.is_main ? 0U : 1U,
            static_cast<std::uint64_t>(each.greenlet.state), raw(each.greenlet.address)};
  }

  [[nodiscard]] std::string problem(std::size_t moved, std::size_t unreadable) const {
    std::string text;
    if (moved > 0) add_sentence(text, left_out(moved, "they ran on while they were read"));
    if (unreadable > 0 && reader_.places().top_frame != 0)
      add_sentence(text, left_out(unreadable, "they could not be read"));
    if (reader_.has_met_old_ones()) add_sentence(text, "greenlets of a greenlet before 2.0 are not shown");
    if (looked_at_ >= kMostObjects)
      add_sentence(text, "there may be more greenlets: they were looked for among the first " +
                             std::to_string(kMostObjects) + " objects only");
    else if (found_.size() >= kMostGreenlets)
      add_sentence(text, "there are more greenlets than " + std::to_string(kMostGreenlets));
    else if (!is_whole_)
      add_sentence(text, "there may be more greenlets: the list of all objects could not be followed to its end");
    if (frames_ >= kMostFrames) add_sentence(text, "there are more frames than are shown");
    return text;
  }

  const cpython::Layout& layout_;
  const Address code_type_;
  const std::span<const GreenletThread> threads_;
  const cpython::ObjectView<M> view_;
  cpython::GreenletReader<M> reader_;
  cpython::ValueReader<M> values_;
  std::optional<cpython::VariablesReader<M>> variables_;
  const std::function<void()> rest_;
  std::vector<Address> found_;
  boost::unordered_flat_map<std::uint64_t, bool> known_;
  bool is_whole_ = true;
  std::size_t looked_at_ = 0;
  std::vector<Taken> taken_;
  CodeCopies codes_;
  std::size_t frames_ = 0;  // that were read, of all greenlets
};

// What the objects' layout says of a version; else the dump says why there are none.
std::optional<cpython::ObjectFields> fields_of(const cpython::Layout& layout, GreenletDump& dump) {
  if (layout.version.threading == cpython::Version::Threading::kFree) {
    dump.problem = "suspended greenlets are not shown: a free-threaded Python has no list of its objects";
    return std::nullopt;
  }
  const Result<cpython::ObjectFields> fields = cpython::object_fields(layout.version);
  if (fields.ok()) return fields.value();
  dump.problem = fields.error().message;
  return std::nullopt;
}

// Of a process: its memory, page by page, and whether it stands still.
class ProcessGreenlets {
 public:
  ProcessGreenlets(const Target& target, const cpython::ObjectFields& fields, std::span<const GreenletThread> threads)
      : memory_(target.memory()),
        pages_(memory_),
        dumper_(pages_, target.layout, fields, target.code_type, threads, [this] { give_back(); }) {
    for (const GreenletThread& thread : threads)
      probes_.emplace_back(thread.tid, os::ThreadProbe::Keep::kClosed, static_cast<std::int32_t>(target.pid));
  }

  GreenletDump run(const std::optional<cpython::ValueLimits>& locals) {
    if (locals) dumper_.show_locals(*locals);
    for (int tried = 0; tried < kTriesToFind; ++tried) {
      pages_.forget();
      if (dumper_.find()) break;
    }
    const std::vector<Standing> standing = all_standing();
    pages_.forget();
    dumper_.learn();
    std::vector<GreenletRecord> records;
    for (const Address greenlet : dumper_.found())
      if (GreenletRecord record; dumper_.read(greenlet, record)) records.push_back(std::move(record));
    const bool stood =
        !probes_.empty() && standing.size() == probes_.size() &&
        std::all_of(standing.begin(), standing.end(), [](const Standing& each) { return each.goes_on(); });
    const std::size_t read = records.size();
    if (!stood) std::erase_if(records, [&](GreenletRecord& record) { return !is_confirmed(record); });
    for (const GreenletRecord& record : records) dumper_.take(record);
    return dumper_.finish(read - records.size(), dumper_.found().size() - read);
  }

 private:
  static constexpr std::size_t kMostPages = 96;  // that are kept: few are needed again

  void give_back() {
    if (pages_.visited_count() > kMostPages) pages_.forget();
  }

  // Of the threads, as long as each stands still.
  [[nodiscard]] std::vector<Standing> all_standing() const {
    std::vector<Standing> standing;
    for (const os::ThreadProbe& probe : probes_) {
      const std::optional<Standing> one = standing_still(probe);
      if (!one) break;
      standing.push_back(*one);
    }
    return standing;
  }

  // A suspended one without a frame runs C code alone; or it is at the moment when it goes on, or stops, at which it
  // looks the same, and may do so twice.
  static bool may_be_switching(const GreenletRecord& record) {
    return record.state == GreenletRecord::State::kSuspended && is_null(record.innermost);
  }

  // Reads it again until two readings agree.
  bool is_confirmed(GreenletRecord& record) {
    for (int tried = 0; tried < kTriesToRead; ++tried) {
      pages_.forget();
      GreenletRecord again;
      if (!dumper_.read_again(record, again)) return false;
      if (is_same(record, again) && !may_be_switching(again)) return true;
      record = std::move(again);
    }
    return false;
  }

  const memory::RemoteReader memory_;
  memory::PagedReader pages_;
  std::vector<os::ThreadProbe> probes_;
  GreenletDumper<memory::PagedReader> dumper_;
};

}  // namespace

GreenletDump dump_greenlets(const Target& target, std::span<const GreenletThread> threads,
                            const std::optional<cpython::ValueLimits>& locals) {
  GreenletDump dump;
  const std::optional<cpython::ObjectFields> fields = fields_of(target.layout, dump);
  return fields ? ProcessGreenlets(target, *fields, threads).run(locals) : dump;
}

GreenletDump dump_core_greenlets(const CoreFile& core, std::span<const GreenletThread> threads,
                                 const std::optional<cpython::ValueLimits>& locals) {
  GreenletDump dump;
  const std::optional<cpython::ObjectFields> fields = fields_of(core.layout, dump);
  if (!fields) return dump;
  GreenletDumper<memory::Image> dumper(core.image, core.layout, *fields, core.code_type, threads, [] {});
  if (locals) dumper.show_locals(*locals);
  dumper.find();
  dumper.learn();
  std::size_t unreadable = 0;
  for (const Address greenlet : dumper.found())
    if (GreenletRecord record; dumper.read(greenlet, record))
      dumper.take(record);
    else
      ++unreadable;
  return dumper.finish(0, unreadable);
}

}  // namespace plimsoll::remote
