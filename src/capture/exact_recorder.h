// capture/exact_recorder.h: what a program's allocators have given out and taken back, by stack -> sink.
//
// The books are kept by alloc/ledger.h, in the thread that allocates; once in a while an epoch of them is closed and
// comes here, as rows. The drain thread names the stacks, and passes the rows on.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/growing_array.h"
#include "capture/call_tree.h"
#include "capture/living_stacks.h"
#include "capture/resolve.h"
#include "capture/sink.h"

namespace plimsoll::capture {

// Blocks that are alive at the end, and whose type is known.
struct TypedRow : ExactRow {
  std::uint32_t type = 0;  // number of ExactBatch::types
};

// What an epoch has changed.
struct ExactBatch {
  std::uint8_t epoch = 0;
  std::int64_t time_ns = 0;  // of its end
  std::int64_t peak_ns = 0;  // when most was alive, so far
  ExactRows rows;            // `stack` is a CallNode
  std::vector<TypedRow> living;
  std::vector<std::string> types;
};

// What happened, event by event; see SampleSink.
struct EventBatch {
  // A new site, without the names of its stack.
  struct Site {
    CallNode stack = 0;
    AllocationDomain domain{};
    std::uint32_t size = 0;
  };
  std::vector<Site> sites;
  std::vector<std::uint32_t> words;
  // At the end: slots of living blocks, with the numbers of their types.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> living;
  std::vector<std::string> types;
};

// The exact side of one session.
class ExactRecorder {
 public:
  // `modules` is the machine code that stacks are to be of, too; null: Python frames only.
  ExactRecorder(const Interpreter& interpreter, CpuSampler& sampler, SeenFilter& seen, std::size_t max_depth,
                const native::Modules* modules = nullptr);
  ExactRecorder(const ExactRecorder&) = delete;
  ExactRecorder& operator=(const ExactRecorder&) = delete;

  // For any thread.
  CallTree& stacks() { return stacks_; }
  void lost() { sampler_.count_drop(DropReason::kAllocation, 0); }
  void count_cut_short() { sampler_.count_drop(DropReason::kHooksRemoved, 0); }
  // Something could not be added, for want of memory: the recording is to end there.
  void fail() { has_failed_.store(true); }
  void add(ExactBatch batch);
  void add(EventBatch batch);
  // Epochs will be added when they are asked for, by a program that goes on to allocate; and by `hand_over`, if it can,
  // of one that does not. From then on these are called; and `silence` when no more are wanted. (`ask` is false if what
  // was asked for last has not been told yet.)
  using AskForEpoch = bool (*)();
  using HandOver = void (*)();
  using Silence = void (*)();
  void expect_epochs(AskForEpoch ask, HandOver hand_over, Silence silence) {
    silence_.store(silence);
    hand_over_.store(hand_over);
    ask_for_epoch_.store(ask);
  }
  // Events will be added. `words_done` is given the words of each batch when they have been dealt with, and
  // `time_has_passed` is called now and then.
  using WordsDone = void (*)(std::vector<std::uint32_t> words);
  using TimeHasPassed = void (*)();
  void expect_events(WordsDone words_done, TimeHasPassed time_has_passed) {
    words_done_.store(words_done);
    time_has_passed_.store(time_has_passed);
  }
  // The session is over, though the hooks may still be there: what is added from now on is thrown away.
  void close() {
    is_closed_.store(true);
    if (const Silence silence = silence_.load(); silence != nullptr) silence();
  }

  // Roughly what time it is.
  std::atomic<std::int64_t>& clock() { return clock_ns_; }

  // The frames of Python code of a stack that was collected, innermost first; false if it is not known. For the drain
  // thread, or while it does nothing.
  bool find_names(CallNode number, std::vector<NamedFrame>& frames) const;

  // For the drain thread. Takes over what there is, before the resolver forgets any code object. Throws std::bad_alloc,
  // also if there was none before.
  void collect(Resolver& resolver);
  // Passes it on; the sink knows the threads that it is of.
  void pass_on(Resolver& resolver, SampleSink& sink);
  // Asks for an epoch to be closed when it is time. The longer a recording lasts, the longer the epochs: so what is
  // written grows with the logarithm of time only. Events are asked for a few times a second. What a program that is
  // idle has not told a moment later is fetched.
  void keep_time(std::int64_t now_ns, std::int64_t start_ns);
  // The end may be near: fetches what there is, if it can, for the next collect().
  void fetch();

 private:
  // A frame with its name and line. Very many nodes have the same.
  struct ResolvedFrame {
    SampleFrame frame;
    std::shared_ptr<const cpython::CodeInfo> code;  // null: machine code, or not to be shown
  };
  // A node, with its frame's number.
  struct ResolvedNode {
    CallNode parent = 0;
    std::uint32_t frame = 0;
    ThreadSerial thread;
    CallNodeInfo::Kind kind{};
    bool is_known = true;  // it, and all below
  };
  // What was resolved last of those that share a place.
  struct LastResolved {
    Address code{};
    std::int64_t time_ns = 0;
    std::int32_t position = 0;
    CallNodeInfo::Kind kind{};
    std::uint32_t frame = 0;  // 0: nothing
  };
  void resolve_new(Resolver& resolver);
  // The number of the frame that a node adds; 0 if it is not known.
  std::uint32_t resolve(const CallNodeInfo& info, Resolver& resolver);
  void pass_on_batch(ExactBatch& batch, Resolver& resolver, SampleSink& sink);
  void give_back(std::vector<std::uint32_t> words);
  void pass_on_events(EventBatch batch, Resolver& resolver, SampleSink& sink);
  // Tells the sink of a stack, and those below it, as far as it does not know them. Returns the number that it has
  // there: 0 if it is not known here, either.
  CallNode tell_stack(CallNode number, Resolver& resolver, SampleSink& sink);
  // What it is, on top of the one below. Describes its code.
  ExactStack stack_of(CallNode number, Resolver& resolver) const;
  [[nodiscard]] ThreadSerial thread_of(CallNode number) const;
  // Rows of one kind are one row: they came from several sites, whose blocks differ in size.
  // They are in front; returns how many.
  template <typename Row>
  std::size_t merge(std::span<Row> rows);

  CpuSampler& sampler_;
  CallTree stacks_;
  std::atomic<std::int64_t> clock_ns_{0};
  std::atomic<bool> is_closed_{false}, has_failed_{false};
  std::atomic<AskForEpoch> ask_for_epoch_{nullptr};
  std::atomic<HandOver> hand_over_{nullptr};
  std::atomic<Silence> silence_{nullptr};
  std::atomic<WordsDone> words_done_{nullptr};  // null: there are no events
  std::atomic<TimeHasPassed> time_has_passed_{nullptr};
  std::mutex mutex_;  // guards batches_ and events_
  std::vector<ExactBatch> batches_;
  std::vector<EventBatch> events_;
  std::vector<ExactBatch> collected_;
  std::vector<EventBatch> collected_events_;
  std::int64_t next_epoch_ns_ = 0;
  std::int64_t asked_ns_ = 0;          // since when an epoch is asked for
  std::int64_t pass_on_ns_ = 0;        // how long the last epochs took to tell of
  GrowingArray<ResolvedNode> nodes_;   // by CallNode; the first is none
  std::vector<ResolvedFrame> frames_;  // the first is none
  std::array<LastResolved, 1024> last_resolved_{};
  GrowingArray<CallNodeInfo> new_;            // kept to save allocations
  std::vector<CallNode> untold_;              // likewise
  GrowingArray<std::uint32_t> row_of_stack_;  // likewise
  std::vector<std::int64_t> epoch_ends_;
};

}  // namespace plimsoll::capture
