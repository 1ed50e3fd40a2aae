// jitlog/reader.cc: markers and payloads. A record fails by a cursor that has failed; it is then left out.
#include "jitlog/reader.h"

#include <algorithm>

namespace plimsoll::jitlog {
namespace {

// What a record is: its first byte.
enum class Marker : std::uint8_t {
  kInputArguments = 0x11,
  kNames = 0x12,
  kOperation = 0x13,
  kOperationWithDescriptor = 0x14,
  kCodeAddress = 0x15,
  kCode = 0x16,
  kRecorded = 0x17,
  kOptimised = 0x18,
  kAssembled = 0x19,
  kStitch = 0x1a,
  kStart = 0x1b,
  kCounter = 0x1c,
  kDeclareMergePoint = 0x1d,
  kHeader = 0x1e,
  kMergePoint = 0x1f,
  kCommonPrefix = 0x20,
  kAbort = 0x21,
  kSource = 0x22,
  kRedirect = 0x23,
  kCallback = 0x24,
};

// What a value of a merge point means.
enum class Meaning : std::uint8_t { kFile = 1, kLine = 2, kPosition = 4, kFunction = 8, kOpcode = 16 };

// How a text of a merge point is stored.
constexpr unsigned kWholeText = 0xff;
constexpr unsigned kSuffix = 0x00;  // of the common prefix
constexpr unsigned kPrefixOnly = 0xef;

// Byte code without a line, as PyPy 3.11 makes some, is on line -1.
constexpr std::uint64_t kNoLine = std::uint64_t{1} << 63U;
constexpr std::uint16_t kVersionFailArguments = 2;  // and the names of drivers
// A text that is in the log once is shown for each of a million records of a few bytes. So names of operations and
// lines of source are cut, far above what is usual, and merge points, which share texts, take a multiple of the log at
// most.
constexpr std::size_t kLongestName = 200;
constexpr std::size_t kLongestLine = 1000;
constexpr std::size_t kMostPlaceBytesPerByte = 64;  // some 10 are usual
constexpr std::size_t kEnoughPlaceBytes = std::size_t{1} << 20U;
// A byte of machine code may be an instruction, whose text takes 70. Traces of PyPy have some hundred kB at most.
constexpr std::size_t kMostCodeBytesOfTrace = std::size_t{4} << 20U;

// Little-endian numbers and texts from bytes; after a read past the end, failed() for good.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool at_end() const { return position_ == bytes_.size(); }
  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }

  std::uint64_t number(unsigned size) {
    std::uint64_t value = 0;
    const std::string_view digits = take(size);
    for (std::size_t i = 0; i < digits.size(); ++i)
      value |= std::uint64_t{static_cast<unsigned char>(digits[i])} << (8 * i);
    return value;
  }
  std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(number(2)); }
  std::uint64_t u64() { return number(8); }
  std::string_view text() { return take(number(4)); }
  void fail() { failed_ = true; }

 private:
  std::string_view take(std::uint64_t size) {
    if (failed_ || size > bytes_.size() - position_) {
      failed_ = true;
      return {};
    }
    const std::string_view part = bytes_.substr(position_, static_cast<std::size_t>(size));
    position_ += part.size();
    return part;
  }
  std::string_view bytes_;
  std::size_t position_ = 0;
  bool failed_ = false;
};

// Cuts a text at its first comma.
std::string_view take_item(std::string_view& list) {
  const std::string_view item = list.substr(0, list.find(','));
  list.remove_prefix(std::min(list.size(), item.size() + 1));
  return item;
}

// Where the descriptor begins, which is the last item and may hold commas itself: inside <...>.
std::size_t descriptor_start(std::string_view items) {
  if (!items.ends_with('>')) return items.rfind(',');
  std::size_t depth = 0;
  for (std::size_t i = items.size(); i > 0; --i) {
    if (items[i - 1] == '>') ++depth;
    if (items[i - 1] == '<' && --depth == 0) return i >= 2 && items[i - 2] == ',' ? i - 2 : std::string_view::npos;
  }
  return items.rfind(',');
}

// Fills a Forest from a log.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : in_(bytes) {}

  Result<Forest> read() {
    if (in_.u8() != static_cast<std::uint8_t>(Marker::kHeader)) return not_a_log();
    forest_.version = in_.u16();
    const std::uint8_t is_32bit = in_.u8();
    forest_.machine = in_.text();
    if (in_.failed() || is_32bit > 1) return not_a_log();
    if (forest_.version < 1) return Error{ErrorKind::kBadInput, "a jitlog of version 0: there is none"};
    forest_.is_32bit = is_32bit == 1;
    address_size_ = forest_.is_32bit ? 4 : 8;
    while (!in_.at_end() && forest_.problem.empty()) record();
    finish();
    return std::move(forest_);
  }

 private:
  static Error not_a_log() { return {ErrorKind::kBadInput, "not a jitlog"}; }
  std::uint64_t address() { return in_.number(address_size_); }
  void problem(std::string text, std::size_t at) {
    forest_.problem = std::move(text) + " at byte " + std::to_string(at);
  }

  void record() {
    const std::size_t start = in_.position();
    const auto marker = static_cast<Marker>(in_.u8());
    if (!payload(marker)) problem("bytes that make no sense", start);
    if (in_.failed()) problem("the log ends within a record", start);
  }

  // False if the record cannot be one, or not there.
  bool payload(Marker marker) {
    switch (marker) {
      case Marker::kStart: return start_trace();
      case Marker::kRecorded: return open_stage(StageKind::kRecorded);
      case Marker::kOptimised: return open_stage(StageKind::kOptimised);
      case Marker::kAssembled: return open_stage(StageKind::kAssembled);
      case Marker::kInputArguments: return input_arguments();
      case Marker::kNames: return names();
      case Marker::kOperation: return operation(false);
      case Marker::kOperationWithDescriptor: return operation(true);
      case Marker::kCodeAddress: return code_address();
      case Marker::kCode: return code();
      case Marker::kDeclareMergePoint: return declare_merge_point();
      case Marker::kCommonPrefix: return common_prefix();
      case Marker::kMergePoint: return merge_point();
      default: return rest(marker);
    }
  }
  bool rest(Marker marker) {
    switch (marker) {
      case Marker::kStitch: return stitch();
      case Marker::kCounter: return counter();
      case Marker::kAbort: return abort();
      case Marker::kSource: return source();
      case Marker::kRedirect: return redirect();
      case Marker::kCallback: return callback();
      default: return false;
    }
  }

  bool start_trace() {
    Trace trace;
    trace.id = address();
    trace.kind = in_.text() == "bridge" ? Trace::Kind::kBridge : Trace::Kind::kLoop;
    const std::uint64_t guard = address();
    if (trace.kind == Trace::Kind::kBridge) trace.guard = guard;
    if (forest_.version >= kVersionFailArguments) trace.driver = in_.text();
    if (in_.failed()) return true;
    started_ = static_cast<TraceIndex>(forest_.traces.size());
    add(std::move(trace));
    return true;
  }
  void add(Trace trace) {
    forest_.by_id[trace.id] = static_cast<TraceIndex>(forest_.traces.size());
    forest_.traces.push_back(std::move(trace));
    stage_ = nullptr;
    code_bytes_ = 0;
    code_offset_ = 0;
  }
  bool open_stage(StageKind kind) {
    const std::uint64_t id = address();
    if (in_.failed()) return true;
    if (forest_.traces.empty() || forest_.traces.back().id != id) return false;
    const Trace& last = forest_.traces.back();
    if (kind == StageKind::kRecorded && (last.is_aborted || !last.stage(StageKind::kAssembled).operations.empty())) {
      // A long loop, which PyPy does not unroll: it does not log that a trace starts, and writes the id of the last
      // one.
      unstarted_.push_back({static_cast<TraceIndex>(forest_.traces.size()), started_});
      Trace loop;
      loop.id = id;
      add(std::move(loop));
    }
    // The same stage again is the loop behind its first round: its operations follow.
    stage_ = &forest_.traces.back().stages[static_cast<std::size_t>(kind)];
    return true;
  }
  bool input_arguments() {
    const std::string_view arguments = in_.text();
    if (stage_ == nullptr) return in_.failed();
    if (stage_->arguments.empty()) stage_->arguments = arguments;
    return true;
  }
  bool names() {
    const unsigned count = in_.u16();
    for (unsigned i = 0; i < count && !in_.failed(); ++i) {
      const std::uint16_t number = in_.u16();
      const std::string_view name = in_.text();
      if (!in_.failed()) forest_.names[number] = name.substr(0, kLongestName);
    }
    return true;
  }

  bool operation(bool has_descriptor) {
    Operation operation;
    operation.number = in_.u16();
    std::string_view items = in_.text();
    if (has_descriptor) operation.descriptor_id = address();
    if (forest_.version >= kVersionFailArguments) operation.fail_arguments = in_.text();
    if (stage_ == nullptr) return in_.failed();
    if (in_.failed()) return true;
    operation.result = take_item(items);
    operation.arguments = items;
    if (has_descriptor) cut_descriptor(operation);
    stage_->operations.push_back(operation);
    return true;
  }
  static void cut_descriptor(Operation& operation) {
    const std::string_view items = operation.arguments;
    const std::size_t comma = descriptor_start(items);
    operation.descriptor = comma == std::string_view::npos ? items : items.substr(comma + 1);
    operation.arguments = comma == std::string_view::npos ? std::string_view{} : items.substr(0, comma);
  }

  bool code_address() {
    const std::uint64_t start = address();
    const std::uint64_t end = address();
    if (forest_.traces.empty()) return in_.failed();
    if (in_.failed()) return true;
    Trace& trace = forest_.traces.back();
    trace.code_start = start;
    trace.code_end = end;
    forest_.by_code_address[start] = static_cast<TraceIndex>(forest_.traces.size() - 1);
    return true;
  }
  bool code() {
    const std::uint16_t low = in_.u16();
    const std::string_view bytes = in_.text();
    if (in_.failed()) return true;
    if (stage_ == nullptr) return true;
    // The log has 16 bits of an offset, and traces may be longer: it is the one that is nearest to the last.
    const std::int64_t nearest = code_offset_ + static_cast<std::int16_t>(low - code_offset_);
    code_offset_ = nearest < 0 ? low : nearest;
    const auto offset = static_cast<std::uint32_t>(code_offset_);
    code_bytes_ += bytes.size();
    if (code_bytes_ > kMostCodeBytesOfTrace) return false;
    if (stage_->operations.empty()) {
      forest_.traces.back().entry_offset = offset;
      forest_.traces.back().entry_code = bytes;
      return true;
    }
    stage_->operations.back().code_offset = offset;
    stage_->operations.back().code = bytes;
    return true;
  }

  bool declare_merge_point() {
    const unsigned count = in_.u16();
    fields_.clear();
    for (unsigned i = 0; i < count && !in_.failed(); ++i) {
      const auto meaning = static_cast<Meaning>(in_.u8());
      const std::uint8_t type = in_.u8();
      if (!in_.failed() && type != 'i' && type != 's') return false;
      fields_.push_back({meaning, type == 's', {}});
    }
    return true;
  }
  bool common_prefix() {
    const std::size_t index = in_.u8();
    const std::string_view prefix = in_.text();
    if (in_.failed()) return true;
    if (index >= fields_.size()) return false;
    fields_[index].prefix = prefix;
    return true;
  }
  bool merge_point() {
    MergePoint place;
    for (const Field& field : fields_)
      if (!value(field, place)) return false;
    if (in_.failed()) return true;
    if (stage_ == nullptr) return false;
    place_bytes_ += sizeof place;
    if (place_bytes_ > kEnoughPlaceBytes + kMostPlaceBytesPerByte * in_.size()) return false;
    place.before = stage_->operations.size();
    stage_->merge_points.push_back(std::move(place));
    return true;
  }
  // A declared value of merge points.
  struct Field {
    Meaning meaning{};
    bool is_text = false;
    std::string_view prefix;
  };
  bool value(const Field& field, MergePoint& place) {
    const unsigned tag = in_.u8();
    if (!field.is_text) {
      const std::uint64_t number = in_.u64();
      if (field.meaning == Meaning::kLine && number < kNoLine) place.line = number;
      if (field.meaning == Meaning::kPosition) place.position = number;
      return true;
    }
    if (tag != kWholeText && tag != kSuffix && tag != kPrefixOnly) return in_.failed();
    std::string text(tag == kWholeText ? std::string_view{} : field.prefix);
    if (tag != kPrefixOnly) text += in_.text();
    place_bytes_ += text.size();  // of a meaning that we do not know, too: it takes as long
    if (field.meaning == Meaning::kFile)
      place.file = std::move(text);
    else if (field.meaning == Meaning::kFunction)
      place.function = std::move(text);
    else if (field.meaning == Meaning::kOpcode)
      place.opcode = std::move(text);
    return true;
  }

  bool stitch() {
    const Stitch stitch{address(), address()};
    if (in_.failed()) return true;
    forest_.stitches.push_back(stitch);
    forest_.stitch_targets[stitch.guard] = stitch.target;
    return true;
  }
  bool counter() {
    const std::uint64_t key = address();
    const std::uint8_t type = in_.u8();
    const std::uint64_t count = in_.u64();
    if (in_.failed()) return true;
    if (type == 'e')
      entries_.emplace_back(key, count);
    else if (type == 'b' || type == 'l')
      forest_.counts[key] += count;
    else
      return false;
    return true;
  }
  bool abort() {
    const std::uint64_t id = address();
    if (const auto found = forest_.by_id.find(id); !in_.failed() && found != forest_.by_id.end())
      forest_.traces[found->second].is_aborted = true;
    return true;
  }
  bool source() {
    const std::string_view file = in_.text();
    const unsigned count = in_.u16();
    for (unsigned i = 0; i < count && !in_.failed(); ++i) {
      const std::uint16_t line = in_.u16();
      in_.u8();  // the indent
      const std::string_view text = in_.text();
      if (!in_.failed()) forest_.sources[{file, line}] = text.substr(0, kLongestLine);
    }
    return true;
  }
  bool redirect() {
    const Redirect redirect{address(), address(), address()};
    if (!in_.failed()) forest_.redirects.push_back(redirect);
    return true;
  }
  bool callback() {
    address();
    in_.u64();
    if (!in_.failed()) ++forest_.callbacks;
    return true;
  }

  // Counters and guards may come before or after what they belong to.
  void finish() {
    for (TraceIndex index = 0; index < forest_.traces.size(); ++index) index_guards(index);
    count_entries();
    number_unstarted();
    for (Trace& trace : forest_.traces) {
      if (trace.kind != Trace::Kind::kBridge) continue;
      if (const auto parent = forest_.by_guard.find(trace.guard); parent != forest_.by_guard.end())
        trace.parent = parent->second;
      if (const auto count = forest_.counts.find(trace.guard); count != forest_.counts.end())
        trace.entries = std::max(trace.entries, count->second);
    }
  }
  // Traces of one id are counted one by one, in the order of their machine code.
  void count_entries() {
    struct Counted {
      std::vector<TraceIndex> traces;
      std::size_t next = 0;
    };
    boost::unordered_flat_map<std::uint64_t, Counted> by_id;
    const auto has_entry_counter = [&](const Trace& trace) {
      return trace.code_start != 0 && (trace.kind == Trace::Kind::kLoop || !forest_.counts.contains(trace.guard));
    };
    for (TraceIndex index = 0; index < forest_.traces.size(); ++index) {
      std::vector<TraceIndex>& traces = by_id[forest_.traces[index].id].traces;
      if (!traces.empty() && !has_entry_counter(forest_.traces[traces.back()])) traces.pop_back();
      traces.push_back(index);
    }
    for (const auto& [id, count] : entries_) {
      const auto found = by_id.find(id);
      if (found == by_id.end()) continue;
      Counted& counted = found->second;
      forest_.traces[counted.traces[std::min(counted.next++, counted.traces.size() - 1)]].entries += count;
    }
  }
  void number_unstarted() {
    std::uint64_t id = 0;
    for (const Trace& trace : forest_.traces) id = std::max(id, trace.id);
    for (const auto& [unstarted, started] : unstarted_) {
      forest_.by_id[forest_.traces[unstarted].id] = started;
      forest_.traces[unstarted].id = ++id;
    }
    for (const auto& [unstarted, started] : unstarted_) forest_.by_id[forest_.traces[unstarted].id] = unstarted;
  }
  void index_guards(TraceIndex index) {
    Trace& trace = forest_.traces[index];
    for (const Stage& stage : trace.stages) {
      for (const Operation& operation : stage.operations) {
        if (operation.descriptor_id == 0) continue;
        const std::string_view name = forest_.name_of(operation);
        if (name.starts_with("guard")) forest_.by_guard.try_emplace(operation.descriptor_id, index);
        if (name != "label") continue;
        if (const auto count = forest_.counts.find(operation.descriptor_id); count != forest_.counts.end())
          trace.rounds = std::max(trace.rounds, count->second);
      }
    }
  }

  Cursor in_;
  unsigned address_size_ = 8;
  Forest forest_;
  Stage* stage_ = nullptr;  // of the last trace
  std::vector<Field> fields_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> entries_;  // trace id, count
  TraceIndex started_ = 0;                                        // the last trace of which the log says that it starts
  std::vector<std::pair<TraceIndex, TraceIndex>> unstarted_;      // others, with the one before that has their id
  std::size_t place_bytes_ = 0;
  std::size_t code_bytes_ = 0;    // of the last trace
  std::int64_t code_offset_ = 0;  // of its last code
};

}  // namespace

bool is_jitlog(std::string_view bytes) {
  return bytes.size() >= 4 && static_cast<std::uint8_t>(bytes[0]) == static_cast<std::uint8_t>(Marker::kHeader) &&
         bytes[2] == 0 && (bytes[3] == 0 || bytes[3] == 1);
}

Result<Forest> read(std::string_view bytes) { return Reader(bytes).read(); }

}  // namespace plimsoll::jitlog
