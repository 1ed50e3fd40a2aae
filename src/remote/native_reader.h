// remote/native_reader.h: a thread of another process with its machine code and its Python frames, as both were at one
// moment.
//
// A thread that waits is not stopped for it. The kernel says where it is in its code and on its stack, and its count of
// turns on a CPU tells that it was still there when all was read. Its other registers are not known: where a frame can
// only be left by its frame pointer, the frames further out are missing, unless a function further in has saved it.
// A thread that runs is stopped for as long as it takes to copy its registers, its stack, and its Python frames.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "capture/interleave.h"
#include "native/modules.h"
#include "native/registers.h"
#include "os/thread_stop.h"
#include "remote/stack_reader.h"

namespace plimsoll::remote {

// Whether native frames are wanted, too. A reader without them stops threads for their Python frames alone.
enum class NativeFrames : std::uint8_t { kNo, kYes };

// Used by one thread, that may stop others (os::ThreadStopper).
class NativeReader {
 public:
  // How much of a stack is looked at, from its innermost frame on.
  static constexpr std::size_t kMostStack = std::size_t{1} << 20U;

  // `target` and `stopper` must outlive it. At most `max_depth` frames of machine code of one stack.
  NativeReader(const Target& target, os::ThreadStopper& stopper, std::size_t max_depth,
               std::size_t most_stack = kMostStack, NativeFrames native = NativeFrames::kYes);

  [[nodiscard]] bool has_native() const { return has_native_; }

  // What a look came to.
  enum class Outcome : std::uint8_t {
    kRead,   // machine code and, if it was asked for, Python
    kMoved,  // the thread went on meanwhile, or its Python frames made no sense
    kEnded,
    kRefused,  // it may not be stopped: another program traces it, or the kernel forbids ptrace
    kLate,     // it did not come out of the kernel
  };
  // A look, and the Python frames that `python` has now; without a thread state there are none.
  struct Look {
    Outcome outcome = Outcome::kMoved;
    cpython::Snapshot snapshot;
    os::Schedule schedule;  // while it stood still
  };

  // Of a thread that was found waiting, or stopped by somebody, after its schedule had been read.
  Look read_waiting(const Standing& standing, const os::KernelWait& wait, Address thread_state, StackReader& python);
  // Of one that runs, or stands stopped by a signal: it is stopped, and goes on when this returns.
  Look read_stopped(Tid tid, const os::ThreadProbe& probe, Address thread_state, StackReader& python);

  // The machine code of the last look, unwound after the thread has gone on. Valid until the next call.
  capture::NativeStack unwind();

  // Puts the machine code of the last look and its Python frames into one order. False if nothing is known of that.
  bool interleave(const capture::NativeStack& native, const StackReader& python, cpython::WalkStop python_stop,
                  std::vector<capture::StackItem>& out) const;

  // Looks what is loaded, if it is time to. Before the first look, and now and then.
  Status refresh();
  [[nodiscard]] const native::Modules& modules() const { return modules_; }
  // How long the thread of the last read_stopped was held; see os::ThreadStopper.
  [[nodiscard]] std::int64_t held_ns() const { return stopper_.held_ns(); }
  [[nodiscard]] std::int64_t asked_ns() const { return stopper_.asked_ns(); }

 private:
  void copy_stack(const native::Registers& registers, native::Known known);
  void note_leaf(Address thread_state);
  Outcome read_python(const Standing& standing, Address thread_state, StackReader& python, Look& look);
  native::Unwind unwind_copy();

  const Target& target_;
  const memory::RemoteReader memory_;
  os::ThreadStopper& stopper_;
  const std::size_t most_stack_;
  const bool has_native_;
  native::Modules modules_;
  bool follows_ = false;
  // Of the last look.
  native::Registers registers_;
  native::Known known_ = native::Known::kAll;
  std::vector<std::byte> stack_;
  std::size_t copied_ = 0;
  bool is_cut_ = false;  // there was more
  Address leaf_{};       // up to Python 3.10, the innermost Python frame
  std::vector<memory::RemoteReader::Block> blocks_;
  std::vector<native::NativeFrame> frames_;
};

}  // namespace plimsoll::remote
