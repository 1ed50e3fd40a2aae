// capture/exact_recorder.h: what a program's allocators have given out and taken back, by stack -> sink.
//
// The books are kept by alloc/ledger.h, in the thread that allocates; once in a while an epoch of them is closed and
// comes here, as rows. The drain thread names the stacks, and passes the rows on.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capture/call_tree.h"
#include "capture/living_stacks.h"
#include "capture/resolve.h"
#include "capture/sink.h"

namespace plimsoll::capture {

// Blocks of one stack and one allocator: what has become of them in an epoch.
struct ExactRow {
  ExactChange change{};
  AllocationDomain domain{};
  std::uint8_t epoch = 0;  // that they were allocated in
  CallNode stack = 0;
  std::uint32_t type = 0;  // 1 + number of ExactBatch::types; 0 = none
  std::int64_t blocks = 0;
  std::int64_t bytes = 0;
};

// What an epoch has changed.
struct ExactBatch {
  std::uint8_t epoch = 0;
  std::int64_t time_ns = 0;  // of its end
  std::int64_t peak_ns = 0;  // when most was alive, so far
  std::vector<ExactRow> rows;
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
  void add(ExactBatch batch);
  void add(EventBatch batch);
  // Events will be added. `words_done` is told of the number of words of each batch that has been dealt with.
  using WordsDone = void (*)(std::size_t words);
  void expect_events(WordsDone words_done) { words_done_.store(words_done); }
  // The session is over: what is added from now on is thrown away.
  void close() { is_closed_.store(true); }

  // What the hooks look at: whether an epoch should be closed, and roughly what time it is.
  static constexpr std::uint32_t kWantsEpoch = 1;
  std::atomic<std::uint32_t>& attention() { return attention_; }
  std::atomic<std::int64_t>& clock() { return clock_ns_; }

  // The frames of a stack that was collected, innermost first; false if it is not known. For the drain thread, or while
  // it does nothing.
  bool find_names(CallNode number, std::vector<NamedFrame>& frames) const;

  // For the drain thread. Takes over what there is, before the resolver forgets any code object.
  void collect(Resolver& resolver);
  // Passes it on; the sink knows the threads that it is of.
  void pass_on(Resolver& resolver, SampleSink& sink);
  // Asks for an epoch to be closed when it is time. The longer a recording lasts, the longer the epochs: so what is
  // written grows with the logarithm of time only. Events are asked for a few times a second.
  void keep_time(std::int64_t now_ns, std::int64_t start_ns);

 private:
  // A node with its name and line.
  struct ResolvedNode {
    CallNode parent = 0;
    CallNodeInfo::Kind kind{};
    ThreadSerial thread;
    bool is_known = false;
    SampleFrame frame;
    std::shared_ptr<const cpython::CodeInfo> code;  // null: the frame is not to be shown
  };
  void resolve_new(Resolver& resolver);
  void pass_on_batch(const ExactBatch& batch, Resolver& resolver, SampleSink& sink);
  void note_words_done(std::size_t words);
  void pass_on_events(EventBatch batch, Resolver& resolver, SampleSink& sink);
  // Says which thread a stack is of, and if the sink does not know it yet, what its frames are.
  void describe(CallNode number, Sample& sample, Resolver& resolver, const SampleSink& sink);
  // Fills frames_, and what a sample says of the rest. False if a frame is not known: then there are none.
  bool find_stack(CallNode node, Sample& sample, Resolver& resolver);

  CpuSampler& sampler_;
  CallTree stacks_;
  std::atomic<std::uint32_t> attention_{0};
  std::atomic<std::int64_t> clock_ns_{0};
  std::atomic<bool> is_closed_{false};
  std::atomic<WordsDone> words_done_{nullptr};  // null: there are no events
  std::mutex mutex_;                            // guards batches_ and events_
  std::vector<ExactBatch> batches_;
  std::vector<EventBatch> events_;
  std::vector<ExactBatch> collected_;
  std::vector<EventBatch> collected_events_;
  std::int64_t next_epoch_ns_ = 0;
  std::int64_t pass_on_ns_ = 0;      // how long the last epochs took to tell of
  std::vector<ResolvedNode> nodes_;  // by CallNode; the first is none
  std::vector<CallNodeInfo> new_;    // kept to save allocations
  std::vector<SampleFrame> frames_;  // likewise
  std::vector<std::int64_t> epoch_ends_;
};

}  // namespace plimsoll::capture
