// remote/stack_reader.h: the Python stack of a thread of another process, which may run on while it is read.
//
// A stack is proven in one of two ways. That of a thread that stands still (remote/standing.h) is read at leisure. For
// any other, all words that the walk has read are read twice more, in one system call (or, of very deep stacks, in a
// few, as one copies a thousand pieces at most): the frames from the outermost to the innermost, then back again
// (cpython/snapshot.h says why); and last what their code objects are known by. What does not read the same each time
// is not believed.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/growing_array.h"
#include "capture/raw_sample.h"
#include "cpython/awaiting.h"
#include "cpython/snapshot.h"
#include "memory/remote.h"
#include "os/os.h"
#include "remote/code_copies.h"
#include "remote/standing.h"
#include "remote/target.h"

namespace plimsoll::remote {

// What a code object is known by: its address may be used again.
struct CodeMarks {
  Address name{}, file{}, line_table{};
  std::uint32_t first_line = 0;
  std::uint32_t version = 0;  // a number that no two code objects share, from 3.12 on
  bool operator==(const CodeMarks&) const = default;
};

// A code object that proven stacks have been in.
struct KnownCode {
  CodeMarks marks;
  std::shared_ptr<const cpython::CodeInfo> info;
};

// Whether the second way proves anything: up to 3.10 each frame is an object of its own, so that they cannot be copied
// together, and a loop of a few microseconds comes round between one copy and the next.
constexpr bool can_prove_running(const cpython::Layout& layout) {
  return layout.frame_style != cpython::FrameStyle::kFrameObject;
}

// Whether a stack tells where C code entered Python, by marks among its frames (cpython::EntryMarks).
enum class Marks : std::uint8_t { kNo, kYes };

// Used by one thread at a time.
class StackReader {
 public:
  // `target` must outlive it.
  StackReader(const Target& target, std::size_t max_depth, Marks marks = Marks::kNo);

  // From now on a thread that stands still in a task's step has the tasks that await it on its stack.
  void show_awaiting(const cpython::TaskLayout& tasks);
  [[nodiscard]] bool shows_awaiting() const { return tasks_.has_value(); }
  // Of proven looks.
  [[nodiscard]] const capture::TaskCounts& task_counts() const { return task_counts_; }

  // From now on `look` is called with the memory of each thread that stands still, its state and its frames: what it
  // reads is part of the proof of its stack. It may be called again for the same stack, when it comes to nothing.
  using LookAlong = std::function<void(const memory::PagedReader& memory, Address thread_state,
                                       std::span<const cpython::PyFrame> frames)>;
  void look_along(LookAlong look) { look_along_ = std::move(look); }

  // Reads a stack, innermost frame first, into frames(). Tried once. `standing`: of its thread, if it stood
  // still just before; it is not proven if the thread has gone on.
  cpython::Snapshot read(Address thread_state, const std::optional<Standing>& standing);
  // Before another try: if the last one met the thread in the midst of a change of frames, lets it run on for a moment.
  static void let_pass(const cpython::Snapshot& last);

  [[nodiscard]] std::span<const cpython::PyFrame> frames() const { return {frames_.data(), count_}; }
  // What the frames' code objects are; of proven stacks, and not of marks, nor of those that stand for tasks.
  [[nodiscard]] const KnownCode& code_of(const cpython::PyFrame& frame) const { return codes_.at(raw(frame.code)); }
  [[nodiscard]] const std::shared_ptr<const cpython::CodeInfo>& info_of(Address code) const {
    return codes_.at(raw(code)).info;
  }
  // The code objects of the last proven stack that are new, or stand where another one stood.
  [[nodiscard]] std::span<const Address> new_codes() const { return new_codes_; }

 private:
  using Logging = cpython::LoggingReader<memory::PagedReader>;
  // Bytes that are read again in one go, and when the walk first came there.
  struct Piece {
    std::uint64_t start = 0, end = 0;
    std::size_t first_load = 0;
    bool is_code = false;
    std::size_t places[2] = {0, 0};  // where its copies stand
  };

  // What was found, before it is proven.
  struct Look {
    cpython::Walk walk;
    cpython::AwaitingStack::Outcome tasks = cpython::AwaitingStack::Outcome::kNoStep;
    bool has_codes = false;  // and the frames' code objects are known
  };
  template <memory::Reader M>
  Look look(const M& memory, Address thread_state, bool stands_still);
  // Of a thread that runs on, the tasks that await its own cannot be read.
  template <memory::Reader M>
  [[nodiscard]] bool may_be_in_step(const M& memory, Address thread_state) const;
  template <memory::Reader M>
  cpython::Walk walk(const M& memory, Address thread_state);
  void forget_noted();
  void note_tasks(cpython::AwaitingStack::Outcome outcome);
  template <memory::Reader M>
  bool note_codes(const M& memory);
  template <memory::Reader M>
  bool note_code(const M& memory, Address code);
  bool proves(const Logging& logging, Address thread_state);
  void copy_visited(Address thread_state, std::size_t most);
  void note_visited(Address thread_state);
  void plan(std::size_t loads);
  bool was_quick(std::int64_t took_ns);
  [[nodiscard]] bool is_in_code(Address at) const;
  [[nodiscard]] const Piece& piece_of(Address at) const;

  const Target& target_;
  std::optional<cpython::TaskLayout> tasks_;
  capture::TaskCounts task_counts_;
  LookAlong look_along_;
  const Marks marks_;
  const memory::RemoteReader memory_;
  memory::PagedReader pages_;
  const std::size_t marks_end_;  // of a code object: how many bytes hold its CodeMarks
  const std::size_t walk_slots_;
  GrowingArray<cpython::PyFrame> frames_;  // so many, and room for those who await them
  std::size_t count_ = 0;
  GrowingArray<cpython::LoggedLoad> log_;  // of both only what is needed is touched
  CodeRoom room_;                          // for what is in the next two
  boost::unordered_flat_map<std::uint64_t, KnownCode> codes_;
  std::vector<std::pair<Address, KnownCode>> noted_;  // new in the stack that is being read
  std::vector<Address> new_codes_;
  // What walks of a thread have read lately.
  struct Visited {
    std::vector<memory::PagedReader::Part> parts;  // of the pages of the last one, in their order
    std::uint32_t walks = 0;
  };
  boost::unordered_flat_map<std::uint64_t, Visited> visited_;  // by thread state

  // Of the proof at hand.
  std::vector<std::uint64_t> code_starts_;
  std::vector<Piece> pieces_;  // by address
  std::vector<std::size_t> order_;
  std::vector<memory::RemoteReader::Range> ranges_;
  std::vector<std::byte> copies_;
  double fastest_ns_ = 1e6;  // that the copy of a piece has taken lately
};

}  // namespace plimsoll::remote
