#include "profile/plim_tables.h"

#include "profile/plim_columns.h"
#include "profile/plim_format.h"

namespace plimsoll::profile {
namespace {

// An optional reference into a table of `size` rows, whose ids are their indices.
template <typename Id>
bool reference(VarintCursor& cursor, std::size_t size, Id& id) {
  const std::uint64_t written = cursor.bounded(size);
  id = written == 0 ? Id{} : Id{static_cast<std::size_t>(written - 1)};
  return !cursor.failed();
}

// What is said of a stack's frame: these, or 4 and the slot that it is in.
enum FrameSymbol : std::uint64_t {
  kFollowsLast = 0,
  kFollowsBefore = 1,
  kNewFrame = 2,
  kOlderFrame = 3,
  kFrameInSlot = 4
};

}  // namespace

void StackModels::Followers::meet(std::uint32_t frame) {
  if (frame != last) before = std::exchange(last, frame);
}

StackModels::Followers& StackModels::followers_of(std::uint64_t below) {
  return followers[static_cast<std::size_t>(below % kFollowers)];
}

// ---- written ----

std::string TableEncoder::strings(const Profile& profile) {
  std::string out;
  for (std::size_t& row = strings_.now; row < profile.strings.size() && out.size() < kFullSection; ++row)
    put_bytes(out, profile.strings[StringId{row}]);
  return out;
}

std::string TableEncoder::functions(const Profile& profile) {
  std::string out;
  for (std::size_t& row = functions_.now; row < profile.functions.size() && out.size() < kFullSection; ++row) {
    const Function& function = profile.functions[FunctionId{row}];
    put_varint(out, static_cast<std::uint64_t>(strings_.plus_one(function.name)));
    put_varint(out, static_cast<std::uint64_t>(strings_.plus_one(function.file)));
    put_varint(out, function.first_line);
    put_varint(out, static_cast<std::uint64_t>(function.kind));
  }
  return out;
}

std::string TableEncoder::frames(const Profile& profile) {
  std::string out;
  for (std::size_t& row = frames_.now; row < profile.frames.size() && out.size() < kFullSection; ++row) {
    const Frame& frame = profile.frames[FrameId{row}];
    put_varint(out, functions_.before + frame.function.index());
    // Most lines are a little below the first one of their function.
    put_signed(out, std::int64_t{frame.line} - std::int64_t{profile.functions[frame.function].first_line});
    put_varint(out, frame.column);
  }
  return out;
}

// Of the frames that have been written.
std::string TableEncoder::traces(const Profile& profile) {
  std::string out;
  for (std::size_t& row = traces_.now; row < frames_.now && out.size() < kFullSection; ++row) {
    const StringId trace = profile.frames[FrameId{row}].trace;
    if (trace.is_none()) continue;
    put_varint(out, traces_.before + row);
    put_varint(out, static_cast<std::uint64_t>(strings_.plus_one(trace)));
  }
  return out;
}

std::string TableEncoder::addresses(const Profile& profile) {
  std::string out;
  std::size_t last_row = 0;
  std::uint64_t last = 0;
  for (std::size_t& row = addresses_.now; row < frames_.now && out.size() < kFullSection; ++row) {
    const std::uint64_t address = profile.frames[FrameId{row}].address;
    if (address == 0) continue;
    put_varint(out, addresses_.before + row - std::exchange(last_row, addresses_.before + row));
    put_signed(out, static_cast<std::int64_t>(address - std::exchange(last, address)));
  }
  return out;
}

void TableEncoder::stacks(const Profile& profile, std::size_t most, SymbolWriter& out) {
  const std::size_t first = stacks_.now;
  stacks_.now = std::min(first + most, profile.stacks.size());
  chains_.begin(stacks_.before + first);
  out.put(stack_models_.counts, stacks_.now - first);
  for (std::size_t row = first; row < stacks_.now; ++row) {
    const StackNode& node = profile.stacks[StackId{row}];
    // Mostly the node just before: its distance is small and never 0.
    const std::uint64_t up = node.parent.is_none() ? 0 : row - node.parent.index();
    out.put(stack_models_.parents[stack_models_.last_up == 1 ? 1 : 0], up);
    stack_models_.last_up = up;
    const std::uint64_t below = up == 0 ? 0 : frames_.before + profile.stacks[node.parent].frame.index() + 1;
    put_frame(frames_.before + node.frame.index(), below, stack_models_.frames[up == 1 ? 1 : 0], out);
    chains_.add(up == 1);
  }
}

void TableEncoder::put_frame(std::uint64_t frame, std::uint64_t below, SymbolModel& model, SymbolWriter& out) {
  StackModels& models = stack_models_;
  const auto number = static_cast<std::uint32_t>(frame);
  StackModels::Followers& expected = models.followers_of(below);
  const bool is_new = frame == models.next_frame;
  models.next_frame = std::max(models.next_frame, frame + 1);
  if (number == expected.last) {
    out.put(model, kFollowsLast);
  } else if (number == expected.before) {
    out.put(model, kFollowsBefore);
  } else if (is_new) {
    frame_slots_.add(number);
    out.put(model, kNewFrame);
  } else if (const std::optional<unsigned> slot = frame_slots_.meet(number)) {
    out.put(model, kFrameInSlot + *slot);
  } else {
    out.put(model, kOlderFrame);
    out.put(models.older, frames_.before + frames_.now - 1 - frame);
  }
  expected.meet(number);
}

std::string TableEncoder::tag_sets(const Profile& profile) {
  std::string out;
  for (std::size_t& row = tag_sets_.now; row < profile.tag_sets.size() && out.size() < kFullSection; ++row) {
    const TagSet& set = profile.tag_sets[TagSetId{row}];
    put_varint(out, set.size());
    for (const Tag& tag : set) {
      put_varint(out, static_cast<std::uint64_t>(strings_.plus_one(tag.name)));
      put_varint(out, static_cast<std::uint64_t>(strings_.plus_one(tag.value)));
    }
  }
  return out;
}

std::string TableEncoder::processes(const Profile& profile) {
  std::string out;
  for (; processes_ < profile.processes.size(); ++processes_) {
    const Process& process = profile.processes[processes_];
    put_signed(out, process.pid);
    put_signed(out, process.parent_pid);
    put_bytes(out, process.name);
  }
  return out;
}

void TableEncoder::forget() {
  for (Written* table : {&strings_, &functions_, &frames_, &traces_, &addresses_, &stacks_, &tag_sets_})
    table->forget();
}

// ---- read ----

bool TableDecoder::strings(VarintCursor& cursor) {
  while (!cursor.at_end()) {
    const std::string_view text = cursor.bytes();
    if (cursor.failed()) return false;
    string_ids_.push_back(profile_.strings.intern(text));
  }
  return true;
}

bool TableDecoder::functions(VarintCursor& cursor) {
  while (!cursor.at_end()) {
    Function function;
    if (!string_reference(cursor, function.name) || !string_reference(cursor, function.file)) return false;
    function.first_line = static_cast<std::uint32_t>(cursor.bounded(INT32_MAX));
    function.kind = static_cast<FunctionKind>(cursor.bounded(static_cast<std::uint64_t>(FunctionKind::kSynthetic)));
    if (cursor.failed()) return false;
    function_ids_.push_back(profile_.functions.intern(function));
  }
  return true;
}

bool TableDecoder::frames(VarintCursor& cursor) {
  while (!cursor.at_end()) {
    const std::uint64_t function = cursor.varint();
    const std::int64_t below_first = cursor.signed_varint();
    const std::uint64_t column = cursor.bounded(INT32_MAX);
    if (cursor.failed() || function >= function_ids_.size()) return false;
    const FunctionId id = function_ids_[function];
    if (below_first < INT32_MIN || below_first > INT32_MAX) return false;
    const std::int64_t line = profile_.functions[id].first_line + below_first;
    if (line < 0 || line > INT32_MAX) return false;
    frame_ids_.push_back(
        profile_.frames.intern(Frame{id, static_cast<std::uint32_t>(line), static_cast<std::uint32_t>(column)}));
  }
  return true;
}

// A frame was defined without its trace, which older readers do not know.
bool TableDecoder::traces(VarintCursor& cursor) {
  while (!cursor.at_end()) {
    const std::uint64_t number = cursor.varint();
    StringId trace;
    if (!string_reference(cursor, trace) || number >= frame_ids_.size()) return false;
    Frame frame = profile_.frames[frame_ids_[number]];
    frame.trace = trace;
    frame_ids_[number] = profile_.frames.intern(frame);
  }
  return true;
}

bool TableDecoder::addresses(VarintCursor& cursor) {
  std::uint64_t number = 0;
  std::uint64_t address = 0;
  while (!cursor.at_end()) {
    number += cursor.varint();
    address += static_cast<std::uint64_t>(cursor.signed_varint());
    if (cursor.failed() || number >= frame_ids_.size()) return false;
    Frame frame = profile_.frames[frame_ids_[number]];
    frame.address = address;
    frame_ids_[number] = profile_.frames.intern(frame);
  }
  return true;
}

bool TableDecoder::stacks(SymbolReader& rows) {
  const std::uint64_t count = rows.get(stack_models_.counts);
  if (rows.failed() || count > kRowsInSection) return false;
  chains_.begin(stack_ids_.size());
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t up = rows.get(stack_models_.parents[stack_models_.last_up == 1 ? 1 : 0]);
    stack_models_.last_up = up;
    if (rows.failed() || up > stack_ids_.size()) return false;
    const std::size_t parent = stack_ids_.size() - up;
    std::uint64_t frame = 0;
    const std::uint64_t below = up == 0 ? 0 : std::uint64_t{stack_frames_[parent]} + 1;
    if (!read_frame(rows, below, stack_models_.frames[up == 1 ? 1 : 0], frame)) return false;
    stack_ids_.push_back(
        profile_.stacks.intern(StackNode{up == 0 ? StackId{} : stack_ids_[parent], frame_ids_[frame]}));
    stack_frames_.push_back(static_cast<std::uint32_t>(frame));
    chains_.add(up == 1);
  }
  return true;
}

bool TableDecoder::read_frame(SymbolReader& rows, std::uint64_t below, SymbolModel& model, std::uint64_t& frame) {
  StackModels& models = stack_models_;
  StackModels::Followers& expected = models.followers_of(below);
  const std::uint64_t symbol = rows.get(model);
  switch (symbol) {
    case kFollowsLast: frame = expected.last; break;
    case kFollowsBefore: frame = expected.before; break;
    case kNewFrame: frame = models.next_frame; break;
    case kOlderFrame: frame = frame_ids_.size() - 1 - rows.get(models.older); break;
    default:
      if (symbol - kFrameInSlot >= RecentSlots::kCount) return false;
      frame = frame_slots_[static_cast<unsigned>(symbol - kFrameInSlot)];
  }
  if (rows.failed() || frame >= frame_ids_.size()) return false;
  const auto number = static_cast<std::uint32_t>(frame);
  if (symbol == kNewFrame || symbol == kOlderFrame) frame_slots_.add(number);
  if (symbol >= kFrameInSlot) frame_slots_.touch(static_cast<unsigned>(symbol - kFrameInSlot));
  models.next_frame = std::max(models.next_frame, frame + 1);
  expected.meet(number);
  return true;
}

bool TableDecoder::old_stacks(VarintCursor& cursor) {
  while (!cursor.at_end()) {
    const std::uint64_t up = cursor.bounded(stack_ids_.size());
    const std::uint64_t frame = cursor.varint();
    if (cursor.failed() || frame >= frame_ids_.size()) return false;
    const StackId parent = up == 0 ? StackId{} : stack_ids_[stack_ids_.size() - up];
    stack_ids_.push_back(profile_.stacks.intern(StackNode{parent, frame_ids_[frame]}));
    stack_frames_.push_back(static_cast<std::uint32_t>(frame));
  }
  return true;
}

bool TableDecoder::tag_sets(VarintCursor& cursor) {
  while (!cursor.at_end()) {
    TagSet set(cursor.bounded(plim::kMostTags));
    for (Tag& tag : set)
      if (!string_reference(cursor, tag.name) || !string_reference(cursor, tag.value)) return false;
    if (cursor.failed()) return false;
    tag_set_ids_.push_back(profile_.tag_sets.intern(set));
  }
  return true;
}

bool TableDecoder::processes(VarintCursor& cursor) {
  while (!cursor.at_end()) {
    Process process;
    process.pid = cursor.signed_varint();
    process.parent_pid = cursor.signed_varint();
    process.name = cursor.bytes();
    if (cursor.failed()) return false;
    profile_.processes.push_back(std::move(process));
  }
  return true;
}

bool TableDecoder::old_threads(VarintCursor& cursor) {
  while (!cursor.at_end()) {
    const std::uint64_t index = cursor.varint();
    Thread thread;
    if (!process_reference(cursor, thread.process)) return false;
    thread.os_tid = cursor.signed_varint();
    thread.name = cursor.bytes();
    thread.is_main = cursor.bounded(1) == 1;
    thread.start_ns = cursor.signed_varint();
    thread.end_ns = cursor.signed_varint();
    thread.cpu_ns = cursor.signed_varint();
    if (cursor.failed() || index > profile_.threads.size()) return false;
    if (index == profile_.threads.size()) profile_.threads.emplace_back();
    profile_.threads[index] = std::move(thread);
  }
  return true;
}

bool TableDecoder::string_reference(VarintCursor& cursor, StringId& id) const {
  const std::uint64_t written = cursor.varint();
  return !cursor.failed() && string(written, id);
}
bool TableDecoder::process_reference(VarintCursor& cursor, ProcessId& id) const {
  return reference(cursor, profile_.processes.size(), id);
}
bool TableDecoder::thread_reference(VarintCursor& cursor, ThreadId& id) const {
  return reference(cursor, profile_.threads.size(), id);
}

bool TableDecoder::thread(std::uint64_t number, ThreadId& id) const {
  if (number >= profile_.threads.size()) return false;
  id = ThreadId{static_cast<std::size_t>(number)};
  return true;
}

}  // namespace plimsoll::profile
