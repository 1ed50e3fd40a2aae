// formats/vmprof/writer.cc: header, samples, names, trailer.
#include "formats/vmprof/writer.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_set.hpp>
#include <optional>

#include "base/hexadecimal.h"
#include "formats/labels.h"
#include "formats/vmprof/format.h"
#include "formats/vmprof/periods.h"

namespace plimsoll::formats::vmprof {
namespace {

using profile::FunctionKind;

constexpr std::int64_t kSecondUs = 1'000'000;
constexpr std::int64_t kKibibyte = 1'024;
constexpr int kVersion = 6;

// Puts numbers and records into bytes, as on 64-bit Unix.
class Bytes {
 public:
  void byte(std::uint64_t value) { out_.push_back(static_cast<char>(value)); }
  void word(std::int64_t value) {
    for (unsigned shift = 0; shift < 64; shift += 8) byte(static_cast<std::uint64_t>(value) >> shift);
  }
  void marker(Marker marker) { byte(static_cast<std::uint64_t>(marker)); }
  void text(std::string_view text) {
    word(static_cast<std::int64_t>(text.size()));
    out_ += text;
  }
  void short_text(std::string_view text) {
    byte(text.size());
    out_ += text;
  }
  void time(std::int64_t us) {
    word(us / kSecondUs);
    word(us % kSecondUs);
    word(0);  // the zone, which is never told
  }
  void meta(std::string_view name, std::string_view value) {
    marker(Marker::kMeta);
    text(name);
    text(value);
  }
  void append(std::string_view bytes) { out_ += bytes; }
  [[nodiscard]] std::size_t size() const { return out_.size(); }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// Writes one file.
class FileWriter {
 public:
  explicit FileWriter(const profile::Profile& profile) : profile_(profile), periods_(count_periods(profile)) {
    const auto& frames = profile.frames.rows();
    is_tagged_ = profile.meta_value("python").starts_with("PyPy") ||
                 std::any_of(frames.begin(), frames.end(), [](const auto& frame) { return !frame.trace.is_none(); });
    has_lines_ =
        !is_tagged_ && std::any_of(frames.begin(), frames.end(), [](const auto& frame) { return frame.line != 0; });
    set_thread_ids();
    for (const profile::Counter& counter : profile.counters)
      if (counter.name == "rss" && counter.unit == "bytes" && !counter.value.empty() && rss_ == nullptr)
        rss_ = &counter;
  }

  std::string write() {
    header();
    samples();
    for (const FunctionKind kind : {FunctionKind::kNative, FunctionKind::kPython, FunctionKind::kSynthetic})
      names(kind);
    out_.marker(Marker::kTrailer);
    out_.time((profile_.start_realtime_ns + end_ns()) / kMicrosecond);
    return out_.take();
  }

 private:
  // The kernel's ids, which some formats do not tell and the kernel gives again: each thread has one of its own.
  void set_thread_ids() {
    boost::unordered_flat_set<std::int64_t> used;
    std::int64_t next = 1;
    for (const profile::Thread& thread : profile_.threads) {
      std::int64_t id = thread.os_tid;
      while (!used.insert(id).second) id = next++;
      thread_ids_.push_back(id);
    }
  }

  // A reader wonders at a thread that used more time than passed. Formats without times have such threads.
  [[nodiscard]] std::int64_t end_ns() const {
    std::vector<std::int64_t> used(profile_.threads.size());
    for (std::size_t row = 0; row < profile_.samples.size(); ++row)
      used[profile_.samples.thread[row].index()] += periods_.count[row] * periods_.period_us * kMicrosecond;
    const auto most = std::max_element(used.begin(), used.end());
    return std::max(profile_.end_ns, most == used.end() ? 0 : *most);
  }

  void header() {
    for (const std::int64_t value :
         {std::int64_t{0}, std::int64_t{3}, std::int64_t{0}, periods_.period_us, std::int64_t{0}})
      out_.word(value);
    out_.marker(Marker::kHeader);
    out_.byte(0);  // the version is big-endian
    out_.byte(kVersion);
    out_.byte(flags());
    out_.short_text(is_tagged_ ? "pypy" : "cpython");
    out_.marker(Marker::kStartTime);
    out_.time(profile_.start_realtime_ns / kMicrosecond);
    out_.meta("os", "linux");
    out_.meta("bits", "64");
    if (const std::string_view argv = profile_.meta_value("argv"); !argv.empty()) out_.meta("argv", valid_utf8(argv));
  }
  [[nodiscard]] std::uint8_t flags() const {
    const auto& functions = profile_.functions.rows();
    const bool has_native = std::any_of(functions.begin(), functions.end(),
                                        [](const auto& one) { return one.kind == FunctionKind::kNative; });
    unsigned flags = 0;
    if (rss_ != nullptr) flags |= kFlagMemory;
    if (has_lines_) flags |= kFlagLines;
    if (has_native) flags |= kFlagNative;
    if (is_tagged_) flags |= kFlagTagged;
    if (profile_.meta_value("mode") == "wall") flags |= kFlagRealTime;
    return static_cast<std::uint8_t>(flags);
  }

  void samples() {
    const profile::SampleTable& samples = profile_.samples;
    for (std::size_t row = 0; row < samples.size(); ++row) {
      if (periods_.count[row] == 0) continue;
      const std::string record = stack_record(samples.thread[row], samples.stack[row], rss_at(samples.time_ns[row]));
      for (std::uint32_t i = 0; i < periods_.count[row]; ++i) out_.append(record);
    }
  }

  // KiB of memory in use at that time.
  std::int64_t rss_at(std::int64_t time_ns) {
    if (rss_ == nullptr) return 0;
    const auto after = std::upper_bound(rss_->time_ns.begin(), rss_->time_ns.end(), time_ns);
    const std::ptrdiff_t at = std::max<std::ptrdiff_t>(after - rss_->time_ns.begin() - 1, 0);
    return rss_->value[static_cast<std::size_t>(at)] / kKibibyte;
  }

  std::string stack_record(ThreadId thread, StackId stack, std::int64_t rss_kib) {
    entries_.clear();
    StringId trace;
    for (StackId at = stack; !at.is_none(); at = profile_.stacks[at].parent)
      add_frame(profile_.frames[profile_.stacks[at].frame], trace);
    // A deeper stack than vmprof's reader takes loses its outermost frames.
    const std::size_t depth = std::min<std::size_t>(entries_.size(), kDeepestStack);
    Bytes record;
    record.marker(Marker::kStack);
    record.word(1);
    record.word(static_cast<std::int64_t>(depth));
    for (std::size_t i = 0; i < depth; ++i) record.word(entries_[i]);
    record.word(thread_ids_[thread.index()]);
    if (rss_ != nullptr) record.word(rss_kib);
    return record.take();
  }

  // Appends a frame; `trace` is that of the frame it calls.
  void add_frame(const profile::Frame& frame, StringId& trace) {
    const std::int64_t id = id_of(frame.function);
    if (has_lines_) entries_.push_back(frame.line);
    if (is_tagged_) add_tag(frame, trace);
    entries_.push_back(id);
  }
  void add_tag(const profile::Frame& frame, StringId& trace) {
    const auto add = [&](Tag tag) { entries_.push_back(static_cast<std::int64_t>(tag)); };
    const FunctionKind kind = profile_.functions[frame.function].kind;
    if (frame.trace.is_none()) {
      add(kind == FunctionKind::kNative ? Tag::kNative : Tag::kCode);
    } else {
      const std::optional<std::uint64_t> address = from_hexadecimal(profile_.strings[frame.trace]);
      if (address && frame.trace != trace) {
        add(Tag::kAssembler);
        entries_.push_back(static_cast<std::int64_t>(*address));
      }
      add(Tag::kJitted);
    }
    trace = frame.trace;
  }

  [[nodiscard]] std::int64_t id_of(FunctionId function) const {
    const std::int64_t number = std::int64_t{function.index()} + 1;
    return profile_.functions[function].kind == FunctionKind::kNative ? number * 2 + 1 : number * 2;
  }

  void names(FunctionKind kind) {
    for (std::size_t i = 0; i < profile_.functions.size(); ++i) {
      const profile::Function& function = profile_.functions[FunctionId{i}];
      if (function.kind != kind) continue;
      const bool is_native = kind == FunctionKind::kNative;
      out_.marker(is_native ? Marker::kNativeName : Marker::kName);
      out_.word(id_of(FunctionId{i}));
      const std::string_view file = profile_.strings[function.file];
      out_.text(std::string(is_native ? "n:" : "py:") + valid_utf8(profile_.strings[function.name]) + ":" +
                std::to_string(function.first_line) + ":" + (file.empty() ? "-" : valid_utf8(file)));
    }
  }

  const profile::Profile& profile_;
  const Periods periods_;
  const profile::Counter* rss_ = nullptr;
  bool is_tagged_ = false;
  bool has_lines_ = false;
  std::vector<std::int64_t> thread_ids_;
  std::vector<std::int64_t> entries_;
  Bytes out_;
};

}  // namespace

std::string write(const profile::Profile& profile) { return FileWriter(profile).write(); }

}  // namespace plimsoll::formats::vmprof
