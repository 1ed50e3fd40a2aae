#include "remote/stack_reader.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "base/clock.h"

namespace plimsoll::remote {
namespace {

// Entries from C are looked at without a frame to show for it.
constexpr std::size_t kSpareLoads = 4096;
// Words that lie nearer together than this are copied as one piece.
constexpr std::uint64_t kGap = 512;
// A proof that takes longer than the fastest ones by more than this was interrupted: the thread may have gone round and
// come back.
constexpr std::int64_t kSpareNs = 1'000;
constexpr double kSlowest = 1.5;
// What the fastest proof took is forgotten slowly, as the machine may have become slower.
constexpr double kForget = 1.002;
// All that is read of a code object lies within its head.
constexpr std::uint64_t kCodeHead = 256;
// A page more that is copied with others costs a quarter of one that is copied alone: of so many it is supposed that
// what was read of them is wanted again.
constexpr std::size_t kMostTogether = 64;
// Of a thread that runs on, only those that the walk comes to first are copied beforehand: its state, its frames.
constexpr std::size_t kFastest = 4;
// More code objects than this, or more bytes of them, are forgotten and learned anew.
constexpr std::size_t kMostCodes = 200'000;
constexpr std::size_t kMostCodeBytes = std::size_t{128} << 20U;

}  // namespace

// (There can be as many marks as frames.)
StackReader::StackReader(const Target& target, std::size_t max_depth, Marks marks)
    : target_(target),
      marks_(marks),
      memory_(target.memory()),
      pages_(memory_),
      marks_end_(
          cpython::end_of_fields({target.layout.code_name(), target.layout.code.filename, target.layout.code.line_table,
                                  target.layout.code.first_line, target.layout.code.version})),
      walk_slots_(marks == Marks::kYes ? 2 * max_depth : max_depth),
      room_(kMostCodeBytes) {
  frames_.extend(walk_slots_);
  log_.extend(walk_slots_ * (cpython::kLoadsPerFrame + 6) + kSpareLoads);
}

void StackReader::show_awaiting(const cpython::TaskLayout& tasks) {
  constexpr std::size_t kSlots = 4096;  // for those who await
  tasks_ = tasks;
  frames_.extend(walk_slots_ + kSlots);
}

template <memory::Reader M>
cpython::Walk StackReader::walk(const M& memory, Address thread_state) {
  const auto with = [&](auto entries) {
    return cpython::walk_thread(memory, target_.layout, target_.code_type, thread_state,
                                std::span(frames_.data(), walk_slots_), entries);
  };
  return marks_ == Marks::kYes ? with(cpython::EntryMarks{}) : with(cpython::NoEntries{});
}

template <memory::Reader M>
bool StackReader::may_be_in_step(const M& memory, Address thread_state) const {
  Address running{};
  return !cpython::load_running_task(memory, target_.layout, *tasks_, thread_state, running) || !is_null(running);
}

template <memory::Reader M>
StackReader::Look StackReader::look(const M& memory, Address thread_state, bool stands_still) {
  Look found;
  found.walk.stop = cpython::WalkStop::kUnreadable;
  // (Its innermost frame first: that is the order of a proof.)
  Address innermost{};
  if (!cpython::current_frame(memory, target_.layout, thread_state, innermost) ||
      !cpython::is_thread_state(memory, target_.layout, thread_state))
    return found;
  found.walk = walk(memory, thread_state);
  if (!cpython::is_proven(found.walk.stop)) return found;
  count_ = found.walk.count;
  if (tasks_ && stands_still) {
    const cpython::TaskPlaces places{target_.layout, *tasks_, target_.code_type};
    const cpython::AwaitingStack stack = cpython::put_awaiting(
        pages_, places, thread_state, std::span(frames_.data(), frames_.size()), found.walk, walk_slots_);
    count_ = stack.count;
    found.walk.stop = stack.stop;
    found.tasks = stack.outcome;
  } else if (tasks_ && may_be_in_step(memory, thread_state)) {
    found.tasks = cpython::AwaitingStack::Outcome::kUnreadable;
  }
  found.has_codes = note_codes(memory);
  return found;
}

cpython::Snapshot StackReader::read(Address thread_state, const std::optional<Standing>& standing) {
  cpython::Snapshot snapshot;
  count_ = 0;
  forget_noted();
  new_codes_.clear();
  // Now: a stack's code is known as long as the stack is here.
  if (codes_.size() > kMostCodes || room_.is_full()) {
    codes_.clear();
    room_.give_all_back();
  }
  pages_.forget();
  copy_visited(thread_state, standing ? kMostTogether : kFastest);
  // What stands still need not be read again, so nothing is kept of how it was read.
  const Logging logging(pages_, std::span(log_.data(), log_.size()));
  const Look found = standing ? look(pages_, thread_state, true) : look(logging, thread_state, false);
  snapshot.walk = found.walk;
  if (!cpython::is_proven(snapshot.walk.stop)) return snapshot;
  if (look_along_ && standing && found.has_codes) look_along_(pages_, thread_state, frames());
  note_visited(thread_state);
  snapshot.time_ns = monotonic_ns();
  if (!found.has_codes) return snapshot;
  if (standing ? !standing->goes_on() : snapshot.walk.leaf_skipped || !proves(logging, thread_state)) return snapshot;
  snapshot.is_proven = true;
  note_tasks(found.tasks);
  for (auto& [code, known] : noted_) {
    KnownCode& place = codes_[raw(code)];
    if (place.info != nullptr) room_.give_back(*place.info);
    place = std::move(known);
    new_codes_.push_back(code);
  }
  return snapshot;
}

void StackReader::forget_noted() {
  for (const auto& [code, known] : noted_)
    if (known.info != nullptr) room_.give_back(*known.info);  // its stack was not proven
  noted_.clear();
}

void StackReader::let_pass(const cpython::Snapshot& last) {
  constexpr std::chrono::microseconds kMoment{20};
  if (cpython::is_passing(last.walk.stop)) std::this_thread::sleep_for(kMoment);
}

void StackReader::copy_visited(Address thread_state, std::size_t most) {
  // What deeper stacks have read once is not copied for ever: now and then it is learned anew what is read.
  constexpr std::uint32_t kAnewAfter = 64;
  const auto found = visited_.find(raw(thread_state));
  if (found == visited_.end()) return;
  Visited& visited = found->second;
  if (++visited.walks % kAnewAfter == 0)
    for (memory::PagedReader::Part& part : visited.parts) part = {part.page, 0, memory::PagedReader::kPageSize};
  const std::span<const memory::PagedReader::Part> all = visited.parts;
  pages_.copy_together(all.first(std::min(all.size(), most)));
}

void StackReader::note_visited(Address thread_state) {
  constexpr std::size_t kMostThreads = 10'000;
  if (visited_.size() > kMostThreads) visited_.clear();
  pages_.visited(visited_[raw(thread_state)].parts, kMostTogether);
}

void StackReader::note_tasks(cpython::AwaitingStack::Outcome outcome) {
  using Outcome = cpython::AwaitingStack::Outcome;
  if (outcome == Outcome::kFound) ++task_counts_.found;
  if (outcome == Outcome::kUnreadable) ++task_counts_.unreadable;
}

template <memory::Reader M>
bool StackReader::note_codes(const M& memory) {
  code_starts_.clear();
  std::uint64_t last = 0;
  cpython::each_from_outermost(frames(), [&](const cpython::PyFrame& frame, std::string_view) {
    const bool is_mark = frame.position == cpython::kEntryMark || frame.position == cpython::kTaskMark;
    if (!is_mark && raw(frame.code) != last) code_starts_.push_back(last = raw(frame.code));
    return true;
  });
  std::sort(code_starts_.begin(), code_starts_.end());
  code_starts_.erase(std::unique(code_starts_.begin(), code_starts_.end()), code_starts_.end());
  return std::all_of(code_starts_.begin(), code_starts_.end(),
                     [&](std::uint64_t code) { return note_code(memory, Address{code}); });
}

template <memory::Reader M>
bool StackReader::note_code(const M& memory, Address code) {
  const cpython::Layout& layout = target_.layout;
  const memory::Fields<M> fields(memory, code, marks_end_);
  CodeMarks marks;
  if (!fields.load(layout.code_name(), marks.name) || !fields.load(layout.code.filename, marks.file) ||
      !fields.load(layout.code.line_table, marks.line_table) || !fields.load(layout.code.first_line, marks.first_line))
    return false;
  if (layout.code.version != cpython::kNoField && !fields.load(layout.code.version, marks.version)) return false;
  const auto known = codes_.find(raw(code));
  if (known != codes_.end() && known->second.marks == marks) return true;
  std::shared_ptr<const cpython::CodeInfo> info = room_.copy(pages_, layout, code);
  if (info == nullptr) return false;
  noted_.emplace_back(code, KnownCode{marks, std::move(info)});
  return true;
}

bool StackReader::is_in_code(Address at) const {
  const auto after = std::upper_bound(code_starts_.begin(), code_starts_.end(), raw(at));
  return after != code_starts_.begin() && raw(at) - *std::prev(after) < kCodeHead;
}

void StackReader::plan(std::size_t loads) {
  pieces_.clear();
  for (std::size_t i = 0; i < loads; ++i) {
    const std::uint64_t at = raw(log_[i].at);
    pieces_.push_back({at, at + log_[i].size, i, is_in_code(log_[i].at)});
  }
  std::sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) { return a.start < b.start; });
  std::size_t kept = 0;
  for (const Piece& piece : pieces_) {
    Piece& last = pieces_[kept == 0 ? 0 : kept - 1];
    const bool joins = kept > 0 && piece.is_code == last.is_code && piece.start <= last.end + kGap;
    if (joins) {
      last.end = std::max(last.end, piece.end);
      last.first_load = std::min(last.first_load, piece.first_load);
    } else {
      pieces_[kept++] = piece;
    }
  }
  pieces_.resize(kept);
  // From where the walk came last, the outermost frame, to where it began.
  order_.resize(kept);
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::sort(order_.begin(), order_.end(),
            [&](std::size_t a, std::size_t b) { return pieces_[a].first_load > pieces_[b].first_load; });
}

const StackReader::Piece& StackReader::piece_of(Address at) const {
  const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), raw(at),
                                      [](std::uint64_t wanted, const Piece& piece) { return wanted < piece.start; });
  return *std::prev(after);
}

bool StackReader::was_quick(std::int64_t took_ns) {
  const auto pieces = static_cast<double>(ranges_.size());
  fastest_ns_ = std::min(fastest_ns_ * kForget, static_cast<double>(took_ns) / pieces);
  return took_ns <= kSpareNs + static_cast<std::int64_t>(kSlowest * fastest_ns_ * pieces);
}

bool StackReader::proves(const Logging& logging, Address thread_state) {
  plan(logging.count());
  ranges_.clear();
  std::size_t bytes = 0;
  const auto copy = [&](std::size_t index, int time) {
    Piece& piece = pieces_[index];
    piece.places[time] = bytes;
    ranges_.push_back({Address{piece.start}, static_cast<std::size_t>(piece.end - piece.start)});
    bytes += ranges_.back().size;
  };
  for (const std::size_t index : order_)
    if (!pieces_[index].is_code) copy(index, 0);
  for (auto index = order_.rbegin(); index != order_.rend(); ++index)
    if (!pieces_[*index].is_code) copy(*index, 1);
  for (const std::size_t index : order_) {
    if (!pieces_[index].is_code) continue;
    copy(index, 0);
    pieces_[index].places[1] = pieces_[index].places[0];
  }
  copies_.resize(bytes);
  const std::int64_t start_ns = monotonic_ns();
  if (!memory_.read_all(ranges_, copies_.data())) return false;
  if (!was_quick(monotonic_ns() - start_ns)) return false;

  // The innermost frame goes on all the time, so its position is not compared, but taken from between the two readings
  // of whose it is.
  Address innermost{};
  if (!cpython::current_frame(pages_, target_.layout, thread_state, innermost)) return false;
  const Address moving = offset_by(innermost, target_.layout.frame.position);
  bool is_at_code = false;  // else it is an entry from C, which has no position
  for (std::size_t i = 0; i < logging.count(); ++i) {
    const cpython::LoggedLoad& load = log_[i];
    if (load.at == moving) {
      is_at_code = count_ > 0;
      continue;
    }
    const Piece& piece = piece_of(load.at);
    for (const std::size_t place : piece.places)
      if (std::memcmp(&copies_[place + raw(load.at) - piece.start], &load.value, load.size) != 0) return false;
  }
  if (!is_at_code) return true;
  const Piece& piece = piece_of(moving);
  const bool is_pointer = target_.layout.position_style == cpython::PositionStyle::kInstruction;
  pages_.replace(moving, {&copies_[piece.places[1] + raw(moving) - piece.start], is_pointer ? 8U : 4U});
  frames_[0].position = cpython::internal::position_of(pages_, target_.layout, innermost, frames_[0].code);
  return frames_[0].position != cpython::kNoPosition;
}

}  // namespace plimsoll::remote
