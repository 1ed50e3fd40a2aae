// alloc/exact_hooks.h: books every allocation of a program, and what becomes of it, by hooks over its allocators.
//
// Where nothing else lies below, small blocks come from the heap of sampling_hooks.h, which is faster than the
// runtime's by a third of what the books take; all others from whoever gave them out before. What is known of a block
// is a token, in a map by address; a Ledger keeps the sums, or an EventLog each event. The object and the memory
// allocators are called with the GIL held, which guards the books. The raw allocator may be called without: what it
// does then is put down, and booked with the next call that has the GIL. If there is more than one GIL, or none, a lock
// of ours is around the books instead, for all allocators. It is not held while the allocator below is called; and
// while what is alive is told at the end, it keeps all blocks from being freed.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "alloc/allocator_table.h"
#include "alloc/event_log.h"
#include "alloc/ledger.h"
#include "base/result.h"

namespace plimsoll::alloc {

// Who knows stacks, and is told of the books. Called in the thread that allocates or frees, in the middle of that: it
// must not use the allocators, nor wait for anybody who may be using them.
class ExactTaker {
 public:
  // The number of the stack that the calling thread is on; never 0.
  virtual std::uint32_t stack() = 0;
  // The number of the stack whose key it has just found. Takes the key away if it does not stand for the stack.
  virtual std::uint32_t stack_of(StackKey& key) = 0;
  // Whether the calling thread has the GIL.
  [[nodiscard]] virtual bool is_attached() const = 0;
  // Whether no thread has it at the moment; false if that is not known. For any thread.
  [[nodiscard]] virtual bool is_gil_free() const = 0;
  // A block could not be booked: there is no memory for that.
  virtual void lost() = 0;
  // What has changed could not be told, for the same reason. Without it, what is told later is not right.
  virtual void failed() = 0;
  // What an epoch has changed, which ended then. In the order of epochs, one at a time. Also called by who hands over.
  virtual void closed(std::uint8_t epoch, std::int64_t at_ns, ExactRows rows, std::int64_t peak_ns) = 0;
  // What has been logged. In order, one at a time.
  virtual void logged(EventBatch batch) = 0;
  // At the end, of each living block but those of the raw allocator.
  virtual void alive(const void* at, BlockBooks::Token token, const BlockBooks::Facts& facts) = 0;

  // Finds what the stack that the calling thread is on is known by.
  KeyFinder find_key;
  // Roughly the time now, kept up to date by somebody.
  const std::atomic<std::int64_t>* clock_ns = nullptr;

 protected:
  ~ExactTaker() = default;
};

// The caller serialises these, and has the GIL, or is attached to the interpreter. One recording at a time; both
// objects must outlive it, and the table the process. With kNative malloc and its kin, called by any thread of any
// module, are booked as well.
enum class ExactScope : std::uint8_t { kPython, kNative };
// What is told: sums, or each event.
enum class ExactDetail : std::uint8_t { kSums, kEvents };
Status start_exact(ExactTaker& taker, AllocatorTable& table, Interpreters interpreters,
                   ExactScope scope = ExactScope::kPython, ExactDetail detail = ExactDetail::kSums);
// These words, of what was logged(), have been dealt with, and their memory is for others. While very many have not,
// threads that allocate wait, up to a second at a time. For any thread. May throw std::bad_alloc.
void take_words_back(std::vector<std::uint32_t> words);
// The next call with the books is to tell of what there is; an epoch ends at this moment. False if that was asked for
// before, and no such call has come since: then it ended there. For any thread.
bool ask_for_exact_epoch();
// Tells of it here, if no such call has come since, and the books can be had without waiting: nobody has the GIL at the
// moment, as in a program that sleeps. For a thread of ours, which has no GIL.
void hand_over_exact_epoch();
// The next event is not to be dated by those before it: it may be long since. To be called now and then while events
// are recorded. For any thread.
void note_time_has_passed();
// Nobody wants to be told any more: what is allocated from now on is not booked, up to stop_exact(). For any thread.
void silence_exact();
// Closes the last epoch, and tells of what is alive if that is known.
Stopped stop_exact();
// In the child of a fork: tells nothing.
void abandon_exact();
// Closes the epoch now.
void close_exact_epoch();
// The allocators may be called by several threads at the same time from now on. Sees to lock_heap(), too.
Status lock_exact();
// The number of the stack that allocated the living block of an object at this address; 0 if it is not booked. Needs
// the GIL, and also answers in the child of a fork.
[[nodiscard]] std::uint32_t stack_at(const void* block);
// While paused, what is allocated is not booked; what is freed is.
void pause_exact();
void resume_exact();

}  // namespace plimsoll::alloc
