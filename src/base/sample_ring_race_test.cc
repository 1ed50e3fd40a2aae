// base/sample_ring_race_test.cc: many producers, among them signal handlers, and one consumer.
//
// Every record says who wrote it, which one it is and how long, and is filled with bytes that follow from that. Every
// attempt is logged by its producer as sent or refused. In the end every record that was sent has arrived exactly
// once and unharmed, and nothing else has.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/sample_ring.h"

namespace plimsoll {
namespace {

constexpr std::size_t kMostRecords = 1U << 20U;  // of one producer

// What a record starts with.
struct Ticket {
  std::uint32_t producer;
  std::uint32_t number;
  std::uint32_t size;
};
constexpr std::size_t kMostBytes = sizeof(Ticket) + 256;

std::byte filler(const Ticket& ticket, std::size_t at) {
  return static_cast<std::byte>((ticket.producer * 31 + ticket.number * 7 + at * 3) ^ 0x5aU);
}

enum class Fate : std::uint8_t { kNotTried, kSent, kRefused, kArrived };

// One source of records: a thread's main flow, or the signal handler on one thread. Async-signal-safe and re-entrant.
class Producer {
 public:
  explicit Producer(std::uint32_t id) : id_(id), fates_(new std::atomic<Fate>[kMostRecords]()) {}

  // Reserves the most it may need and uses some of it. `between` runs while the record is open.
  template <typename Between>
  void send(SampleRing& ring, Between between) {
    const std::uint32_t number = next_.fetch_add(1);
    if (number >= kMostRecords) return;
    const SampleRing::Slot slot = ring.reserve(kMostBytes);
    if (slot.bytes.empty()) {
      fates_[number] = Fate::kRefused;
      return;
    }
    const Ticket ticket{id_, number, static_cast<std::uint32_t>(sizeof(Ticket) + (number * 13) % 256)};
    fates_[number] = Fate::kSent;
    std::memcpy(slot.bytes.data(), &ticket, sizeof ticket);
    between();
    for (std::size_t at = sizeof ticket; at < ticket.size; ++at) slot.bytes[at] = filler(ticket, at);
    slot.bytes[ticket.size] = std::byte{0xee};  // touched, not used
    ring.commit(slot, ticket.size, ticket.size + 1);
  }
  void send(SampleRing& ring) {
    send(ring, [] {});
  }

  // The consumer's side.
  bool arrived(std::uint32_t number) {
    return number < kMostRecords && fates_[number].exchange(Fate::kArrived) == Fate::kSent;
  }
  [[nodiscard]] std::size_t count(Fate fate) const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < kMostRecords; ++i) found += fates_[i].load() == fate ? 1 : 0;
    return found;
  }
  [[nodiscard]] bool is_spent() const { return next_.load() >= kMostRecords; }

 private:
  const std::uint32_t id_;
  std::atomic<std::uint32_t> next_{0};
  std::unique_ptr<std::atomic<Fate>[]> fates_;
};

// All producers of a test, and what the consumer found wrong.
class Arena {
 public:
  explicit Arena(std::size_t count) : ring(SampleRing::create(0).take()) {
    for (std::uint32_t i = 0; i < count; ++i) producers.push_back(std::make_unique<Producer>(i));
  }

  // One drain. Checks every record.
  bool drain() {
    return ring.drain([this](std::span<const std::byte> bytes) { check(bytes); });
  }
  void expect_all_arrived() {
    EXPECT_EQ(damaged, 0U);
    EXPECT_EQ(uncalled_for, 0U);
    for (const auto& producer : producers) EXPECT_EQ(producer->count(Fate::kSent), 0U) << "sent and never arrived";
  }
  [[nodiscard]] std::size_t count(Fate fate) const {
    std::size_t found = 0;
    for (const auto& producer : producers) found += producer->count(fate);
    return found;
  }

  SampleRing ring;
  std::vector<std::unique_ptr<Producer>> producers;
  std::size_t damaged = 0;
  std::size_t uncalled_for = 0;  // twice, or never sent

 private:
  void check(std::span<const std::byte> bytes) {
    Ticket ticket{};
    if (bytes.size() < sizeof ticket) {
      ++damaged;
      return;
    }
    std::memcpy(&ticket, bytes.data(), sizeof ticket);
    bool is_whole = ticket.producer < producers.size() && ticket.size == bytes.size();
    for (std::size_t at = sizeof ticket; is_whole && at < bytes.size(); ++at)
      is_whole = bytes[at] == filler(ticket, at);
    if (!is_whole)
      ++damaged;
    else if (!producers[ticket.producer]->arrived(ticket.number))
      ++uncalled_for;
  }
};

// What the handler on this thread writes to; null on threads that have no part in a test.
struct HandlerTarget {
  Arena* arena = nullptr;
  Producer* producer = nullptr;
  std::atomic<std::uint32_t> handled{0};
};
thread_local HandlerTarget* handler_target = nullptr;

void on_signal(int) {
  HandlerTarget* target = handler_target;
  if (target == nullptr) return;
  target->producer->send(target->arena->ring);
  target->handled.fetch_add(1);
}

// A real-time signal with on_signal as its handler, which may interrupt itself, for the scope.
class ScopedSignal {
 public:
  ScopedSignal() {
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART | SA_NODEFER;
    ::sigemptyset(&action.sa_mask);
    EXPECT_EQ(::sigaction(number, &action, &before_), 0);
  }
  ScopedSignal(const ScopedSignal&) = delete;
  ScopedSignal& operator=(const ScopedSignal&) = delete;
  // Ignored rather than reset: a signal that is still pending must not end the test.
  ~ScopedSignal() { ::signal(number, SIG_IGN); }

  const int number = SIGRTMIN + 3;

 private:
  struct sigaction before_ {};
};

TEST(SampleRingRaces, RecordsOfManyThreadsArriveOnce) {
  // GIVEN more threads than processors, each sending as fast as it can, and a ring that is often full
  constexpr std::size_t kThreads = 6;
  constexpr int kEach = 20'000;
  Arena arena(kThreads);
  std::atomic<std::size_t> running{kThreads};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&arena, &running, i] {
      for (int turn = 0; turn < kEach; ++turn) arena.producers[i]->send(arena.ring);
      running.fetch_sub(1);
    });
  // WHEN one thread drains meanwhile and once more in the end
  while (running.load() != 0) arena.drain();
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(arena.drain());
  // THEN every record has arrived once or was refused
  arena.expect_all_arrived();
  EXPECT_EQ(arena.count(Fate::kArrived) + arena.count(Fate::kRefused), kThreads * kEach);
}

TEST(SampleRingRaces, AHandlerMayInterruptAProducerBetweenReserveAndCommit) {
  // GIVEN a thread whose handler sends, too
  const ScopedSignal signal;
  Arena arena(2);
  HandlerTarget target{&arena, arena.producers[1].get(), {}};
  handler_target = &target;
  // WHEN the handler runs, once and nested, while a record is open
  for (int turn = 0; turn < 2000; ++turn) {
    arena.producers[0]->send(arena.ring, [&] {
      for (int times = 0; times < turn % 3; ++times) ::raise(signal.number);
    });
    if (turn % 7 == 0) {
      EXPECT_TRUE(arena.drain());
    }
  }
  handler_target = nullptr;
  EXPECT_TRUE(arena.drain());
  // THEN all records arrive
  arena.expect_all_arrived();
  EXPECT_EQ(arena.producers[0]->count(Fate::kArrived), 2000U);
  EXPECT_EQ(arena.producers[1]->count(Fate::kArrived), target.handled.load());
}

// Threads that send until told to end, each with a handler that sends, too.
class InterruptedThreads {
 public:
  // Producers 2i and 2i + 1 belong to the main flow and the handler of thread i.
  InterruptedThreads(Arena& arena, std::size_t threads) {
    sent_.resize(threads);
    for (std::size_t i = 0; i < threads; ++i)
      targets_.push_back(new HandlerTarget{&arena, arena.producers[2 * i + 1].get(), {}});
    for (std::size_t i = 0; i < threads; ++i)
      threads_.emplace_back([this, &arena, i] {
        handler_target = targets_[i];
        ++begun_;
        while (!is_ending_.load() && !arena.producers[2 * i]->is_spent()) arena.producers[2 * i]->send(arena.ring);
        while (!is_ending_.load()) ::sched_yield();
        handler_target = nullptr;
      });
    while (begun_.load() < threads) ::sched_yield();  // a signal before that would not be handled
  }
  InterruptedThreads(const InterruptedThreads&) = delete;
  InterruptedThreads& operator=(const InterruptedThreads&) = delete;
  ~InterruptedThreads() {
    for (const HandlerTarget* target : targets_) delete target;
  }

  // Interrupts the threads wherever they are until each of them has been interrupted `times` times. Signals that are
  // not handled yet interrupt each other's handlers: more than a few at a time would need more stack than there is.
  void interrupt(int signal, std::uint32_t times) {
    constexpr std::uint32_t kMostPending = 8;
    for (bool is_done = false; !is_done;) {
      is_done = true;
      for (std::size_t i = 0; i < threads_.size(); ++i) {
        if (targets_[i]->handled.load() >= times) continue;
        is_done = false;
        if (sent_[i] - targets_[i]->handled.load() >= kMostPending) continue;
        ++sent_[i];
        ::pthread_kill(threads_[i].native_handle(), signal);
      }
      ::sched_yield();
    }
  }
  void end() {
    is_ending_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::vector<HandlerTarget*> targets_;
  std::vector<std::uint32_t> sent_;  // signals, by thread
  std::atomic<std::size_t> begun_{0};
  std::vector<std::thread> threads_;
  std::atomic<bool> is_ending_{false};
};

TEST(SampleRingRaces, RecordsOfHandlersAndOfTheThreadsTheyInterruptArriveOnce) {
  // GIVEN threads that send without pause
  const ScopedSignal signal;
  constexpr std::size_t kThreads = 3;
  Arena arena(2 * kThreads);
  InterruptedThreads threads(arena, kThreads);
  // WHEN they are interrupted at random by handlers that send, too, and a consumer drains meanwhile; until the ring was
  // not full for some record of each handler
  const auto has_all = [&] {
    for (std::size_t i = 0; i < kThreads; ++i)
      if (arena.producers[2 * i + 1]->count(Fate::kArrived) == 0) return false;
    return true;
  };
  for (std::uint32_t times = 300; times == 300 || !has_all(); times += 100) {
    std::atomic<bool> is_done{false};
    std::thread interrupter([&] {
      threads.interrupt(signal.number, times);
      is_done = true;
    });
    while (!is_done.load()) arena.drain();
    interrupter.join();
  }
  threads.end();
  EXPECT_TRUE(arena.drain());
  // THEN every record has arrived once or was refused
  arena.expect_all_arrived();
}

}  // namespace
}  // namespace plimsoll
