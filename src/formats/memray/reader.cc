// formats/memray/reader.cc: events -> stacks of threads, and blocks.
#include "formats/memray/reader.h"

#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <string>
#include <utility>
#include <vector>

#include "capture/raw_allocation.h"
#include "cpython/line_table.h"
#include "formats/foreign.h"
#include "formats/lz4.h"
#include "formats/memray/ledger.h"
#include "formats/memray/records.h"

namespace plimsoll::formats::memray {
namespace {

using profile::AllocationRow;

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::size_t kLargestUnpacked = std::size_t{4} << 30U;
constexpr std::size_t kDeepest = 65'536;
constexpr std::uint32_t kPython310 = 0x030a0000, kPython311 = 0x030b0000;

// (What Python has of malloc for itself cannot be told from what others have of it.)
std::uint8_t domain_of(Allocator allocator) {
  using Domain = capture::AllocationDomain;
  const bool is_pythons = allocator >= Allocator::kPymallocMalloc && allocator <= Allocator::kPymallocRealloc;
  const bool is_mapped = allocator == Allocator::kMmap || allocator == Allocator::kMunmap;
  return static_cast<std::uint8_t>(is_pythons ? Domain::kObject : is_mapped ? Domain::kMmap : Domain::kMalloc);
}

std::int64_t nanoseconds(std::int64_t ms) { return ms >= 0 && ms <= kLatestMs ? ms * kMillisecond : 0; }

// Code objects by their numbers; frames of them by where in the code they are.
class Frames {
 public:
  Frames(ForeignProfile& out, std::uint32_t python) : out_(out), python_(python) {}

  void add(const Record& code) { codes_.insert_or_assign(code.id, code); }

  FrameId at(std::uint64_t code, std::int64_t offset) {
    const auto [position, is_new] = known_.try_emplace({code, offset});
    if (is_new) position->second = make(code, offset);
    return position->second;
  }

 private:
  FrameId make(std::uint64_t number, std::int64_t offset) {
    const auto found = codes_.find(number);
    if (found == codes_.end())
      return out_.frame({.name = "[unknown code]", .file = {}, .kind = profile::FunctionKind::kSynthetic});
    const Record& code = found->second;
    const cpython::Location place = location(code, offset);
    return out_.frame({.name = code.text,
                       .file = code.file,
                       .line = place.line,
                       .column = place.column,
                       .first_line = code.line,
                       .kind = profile::FunctionKind::kPython});
  }

  [[nodiscard]] cpython::Location location(const Record& code, std::int64_t offset) const {
    using cpython::LineTableStyle;
    constexpr std::int64_t kLargest = INT32_MAX / 2;
    if (offset < 0 || offset > kLargest || code.line < 0 || code.line > kLargest || code.table.empty()) return {};
    LineTableStyle style = LineTableStyle::kLocations;
    if (python_ < kPython311) style = python_ < kPython310 ? LineTableStyle::kLnotab : LineTableStyle::kDeltas;
    // 3.10 counts instructions, the others bytes.
    const std::int64_t position = style == LineTableStyle::kDeltas ? offset * 2 : offset;
    return cpython::locate_near(style, code.table, static_cast<std::int32_t>(code.line),
                                static_cast<std::int32_t>(position));
  }

  ForeignProfile& out_;
  const std::uint32_t python_;
  boost::unordered_flat_map<std::uint64_t, Record> codes_;
  boost::unordered_flat_map<std::pair<std::uint64_t, std::int64_t>, FrameId,
                            boost::hash<std::pair<std::uint64_t, std::int64_t>>>
      known_;
};

// Fills a Profile from a file.
class Reader {
 public:
  explicit Reader(Records& records) : in_(records), frames_(out_, records.header().python) {}

  Result<profile::Profile> read() {
    session();
    Record record = in_.next();
    for (; record.kind != RecordKind::kEnd && record.kind != RecordKind::kCut; record = in_.next())
      if (!take(record)) break;
    profile::Profile& profile = out_.profile;
    profile.complete = record.kind == RecordKind::kEnd;
    profile.end_ns = std::max(nanoseconds(in_.header().end_ms - in_.header().start_ms), now_ns_);
    if (in_.header().is_aggregated) {
      profile.is_exact = true;
      profile.peak_ns = profile.peak_ns.value_or(0);
    } else {
      ledger_.finish(profile, profile.end_ns);
    }
    if (!rss_.time_ns.empty()) profile.counters.push_back(std::move(rss_));
    return out_.take();
  }

 private:
  // A thread as the events go on.
  struct ThreadState {
    ThreadId id;
    std::vector<StackId> stack;  // outermost first
    std::uint64_t skipped = 0;   // so many of the outermost frames are memray's
  };

  void session() {
    const Header& header = in_.header();
    profile::Profile& profile = out_.profile;
    profile.set_meta("engine", "memray");
    profile.set_meta("python",
                     std::to_string(header.python >> 24U) + "." + std::to_string(header.python >> 16U & 255U));
    if (!header.command_line.empty()) profile.set_meta("argv", header.command_line);
    if (header.is_aggregated) profile.set_meta("aggregated", "only what was alive at the peak and at the end");
    if (header.has_native) profile.set_meta("native frames", "left out");
    profile.set_meta("allocators", header.traces_python ? "malloc, mmap and Python's" : "malloc and mmap");
    profile.start_realtime_ns = nanoseconds(header.start_ms);
    rss_.name = "rss";
    rss_.unit = "bytes";
    thread(header.main_thread);
    rss_.process = ProcessId{0};
  }

  ThreadState& thread(std::uint64_t number) {
    const auto [position, is_new] = threads_.try_emplace(number);
    ThreadState& state = position->second;
    if (!is_new) return state;
    const Header& header = in_.header();
    state.id = out_.thread(std::to_string(number), "", static_cast<std::int64_t>(number & INT32_MAX), header.pid);
    if (number == header.main_thread) state.skipped = header.skipped_frames;
    return state;
  }

  // False if the record makes no sense.
  bool take(const Record& record) {
    switch (record.kind) {
      case RecordKind::kMemory: return memory(record);
      case RecordKind::kThreadName: out_.profile.threads[thread(current_).id.index()].name = record.text; return true;
      case RecordKind::kThread: current_ = record.id; return true;
      case RecordKind::kCode: frames_.add(record); return true;
      case RecordKind::kPush: return push(thread(current_), record);
      case RecordKind::kPop: return pop(thread(current_), record.count);
      case RecordKind::kAllocation: allocation(record); return true;
      case RecordKind::kFrame: aggregated_frames_.push_back(frames_.at(record.id, record.offset)); return true;
      case RecordKind::kTrace: return trace(record);
      case RecordKind::kLeft: return left(record);
      default: return true;
    }
  }

  bool memory(const Record& record) {
    if (record.time_ms < 0 || record.time_ms > kLatestMs || record.size > INT64_MAX) return false;
    now_ns_ = std::max(now_ns_, nanoseconds(record.time_ms));
    rss_.time_ns.push_back(now_ns_);
    rss_.value.push_back(static_cast<std::int64_t>(record.size));
    if (record.count > most_bytes_) {
      most_bytes_ = record.count;
      out_.profile.peak_ns = now_ns_;
    }
    return true;
  }

  bool push(ThreadState& state, const Record& record) {
    if (state.stack.size() >= kDeepest) return false;
    const StackId below = state.stack.empty() ? StackId{} : state.stack.back();
    const bool is_hidden = state.stack.size() < state.skipped;
    state.stack.push_back(is_hidden ? StackId{} : out_.push(below, frames_.at(record.id, record.offset)));
    return true;
  }
  static bool pop(ThreadState& state, std::uint64_t count) {
    if (count > state.stack.size()) return false;
    state.stack.resize(state.stack.size() - count);
    return true;
  }

  void allocation(const Record& record) {
    const ThreadState& state = thread(current_);
    const Site site{state.id, state.stack.empty() ? StackId{} : state.stack.back(), domain_of(record.allocator)};
    if (is_free(record.allocator))
      ledger_.free(record.address, now_ns_);
    else if (record.allocator == Allocator::kMmap)
      ledger_.map(site, record.address, record.size, now_ns_);
    else if (record.allocator == Allocator::kMunmap)
      ledger_.unmap(record.address, record.size, now_ns_);
    else
      ledger_.allocate(site, record.address, record.size, now_ns_);
  }

  // ---- aggregated files ----

  bool trace(const Record& record) {
    if (record.id >= aggregated_frames_.size() || record.size > aggregated_stacks_.size()) return false;
    const AggregatedStack outer = record.size == 0 ? AggregatedStack{} : aggregated_stacks_[record.size - 1];
    AggregatedStack stack{.plain = out_.push(outer.plain, aggregated_frames_[record.id]), .depth = outer.depth + 1};
    // The same stack may be one of the main thread, whose outermost frames are memray's, and of others.
    if (stack.depth > in_.header().skipped_frames) stack.main = out_.push(outer.main, aggregated_frames_[record.id]);
    aggregated_stacks_.push_back(stack);
    return true;
  }

  bool left(const Record& record) {
    if (record.id > aggregated_stacks_.size()) return false;
    const bool is_main = record.thread == in_.header().main_thread;
    AllocationRow row;
    row.thread = thread(record.thread).id;
    if (record.id != 0) {
      const AggregatedStack& stack = aggregated_stacks_[record.id - 1];
      row.stack = is_main ? stack.main : stack.plain;
    }
    row.domain = domain_of(record.allocator);
    row.size = record.size;
    row.blocks = record.count;
    if (record.count != 0) out_.profile.allocations.push_back(row);
    row.size = record.peak_size;
    row.blocks = record.peak_count;
    if (record.peak_count != 0) out_.profile.peak_allocations.push_back(row);
    return true;
  }

  // A stack of either sort of thread, and how deep it is.
  struct AggregatedStack {
    StackId plain{}, main{};
    std::uint64_t depth = 0;
  };

  Records& in_;
  ForeignProfile out_{"memray"};
  Frames frames_;
  Ledger ledger_;
  boost::unordered_flat_map<std::uint64_t, ThreadState> threads_;
  std::uint64_t current_ = 0;
  std::int64_t now_ns_ = 0;
  std::uint64_t most_bytes_ = 0;  // aggregated
  profile::Counter rss_;
  std::vector<FrameId> aggregated_frames_;
  std::vector<AggregatedStack> aggregated_stacks_;
};

}  // namespace

bool is_memray(std::string_view bytes) { return has_magic(bytes) || is_lz4(bytes); }

Result<profile::Profile> read(std::string_view bytes) {
  std::string plain;
  if (is_lz4(bytes)) {
    Result<std::string> unpacked = unpack_lz4(bytes, kLargestUnpacked);
    if (!unpacked.ok()) return unpacked.error();
    plain = unpacked.take();
    if (!has_magic(plain)) return Error{ErrorKind::kBadInput, "a file compressed with LZ4, but not one of memray"};
    bytes = plain;
  }
  Result<Records> records = Records::open(bytes);
  if (!records.ok()) return records.error();
  return Reader(records.value()).read();
}

}  // namespace plimsoll::formats::memray
