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

}  // namespace

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

std::string TableEncoder::stacks(const Profile& profile) {
  std::string out;
  for (std::size_t& row = stacks_.now; row < profile.stacks.size() && out.size() < kFullSection; ++row) {
    const StackNode& node = profile.stacks[StackId{row}];
    // Mostly the node just before: its distance is small and never 0.
    put_varint(out, node.parent.is_none() ? 0 : row - node.parent.index());
    put_varint(out, frames_.before + node.frame.index());
  }
  return out;
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

std::string TableEncoder::threads(const ThreadRows& rows, ThreadRows::const_iterator& next) {
  std::string out;
  for (; next != rows.end() && out.size() < kFullSection; ++next) {
    const auto& [index, thread] = *next;
    put_varint(out, index);
    put_varint(out, optional_id(thread.process));
    put_signed(out, thread.os_tid);
    put_bytes(out, thread.name);
    put_varint(out, thread.is_main ? 1 : 0);
    put_signed(out, thread.start_ns);
    put_signed(out, thread.end_ns);
    put_signed(out, thread.cpu_ns);
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

bool TableDecoder::stacks(VarintCursor& cursor) {
  while (!cursor.at_end()) {
    const std::uint64_t up = cursor.bounded(stack_ids_.size());
    const std::uint64_t frame = cursor.varint();
    if (cursor.failed() || frame >= frame_ids_.size()) return false;
    const StackId parent = up == 0 ? StackId{} : stack_ids_[stack_ids_.size() - up];
    stack_ids_.push_back(profile_.stacks.intern(StackNode{parent, frame_ids_[frame]}));
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

bool TableDecoder::threads(VarintCursor& cursor) {
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
