// base/sample_ring.h: a bounded queue of byte records from signal handlers on any number of threads to one reader.
//
// Multi-producer, single-consumer, lock-free for producers. A producer reserves the most it may need by moving `head`,
// fills its record in place, and commits; if nobody has reserved behind it in the meantime it gives the rest back.
// The consumer takes committed records in order of reservation and zeroes what it has taken, so that an uncommitted
// record is recognised by a zero header. A full ring refuses: the caller counts what it drops.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace plimsoll {

// The ring. reserve and commit are async-signal-safe; drain is for one thread at a time.
class SampleRing {
 public:
  // A reserved record: `bytes` may be written until commit.
  struct Slot {
    std::span<std::byte> bytes;  // empty = the ring is full
    std::uint64_t start = 0;
    std::uint64_t end = 0;
  };

  // Maps at least `capacity` bytes (rounded up to a power of two, at least 64 KiB). Memory is used as it is touched.
  static Result<SampleRing> create(std::size_t capacity);
  SampleRing(SampleRing&& other) noexcept;
  SampleRing& operator=(SampleRing&& other) = delete;
  SampleRing(const SampleRing&) = delete;
  SampleRing& operator=(const SampleRing&) = delete;
  ~SampleRing();

  // Room for `size` bytes (a multiple of 8 is best), 8-aligned, in one piece.
  Slot reserve(std::size_t size);
  // Publishes the first `used` bytes of a slot, of which the first `written` may have been touched.
  void commit(const Slot& slot, std::size_t used, std::size_t written);

  // Calls visit(std::span<const std::byte>) for each committed record, oldest first, and frees it. Stops at the first
  // record that is not committed yet. Returns whether the ring was empty when it stopped.
  template <typename Visit>
  bool drain(Visit visit) {
    while (true) {
      const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
      if (tail == head_.load(std::memory_order_acquire)) return true;
      const Record record = record_at(tail);
      if (record.total == 0) return false;
      if (!record.is_padding) visit(std::span<const std::byte>(record.payload, record.used));
      release(tail, record.total);
    }
  }

  // Has the kernel provide memory for the next `bytes` that are reserved. Only the first lap has pages that were never
  // touched; a producer that comes to one waits for the kernel to clear it, 20 us in a virtual machine, which is longer
  // than all else that a handler does. For the one who drains. Does nothing before Linux 5.14.
  void make_ready(std::size_t bytes);

  [[nodiscard]] std::size_t capacity() const { return mask_ + 1; }
  // Bytes that drain has freed so far.
  [[nodiscard]] std::uint64_t taken() const { return tail_.load(std::memory_order_relaxed); }
  // Bytes between the oldest and the newest record, at this instant.
  [[nodiscard]] std::size_t backlog() const {
    return static_cast<std::size_t>(head_.load(std::memory_order_relaxed) - tail_.load(std::memory_order_relaxed));
  }

 private:
  // Before each record: total bytes with header and, in the low bits, flags (both multiples of 8), then bytes used.
  struct Header {
    std::uint32_t total_and_flags;
    std::uint32_t used;
  };
  // A committed record as the reader sees it; total is 0 where there is none yet.
  struct Record {
    std::uint32_t total = 0;
    std::uint32_t used = 0;
    bool is_padding = false;
    const std::byte* payload = nullptr;
  };
  static constexpr std::uint32_t kCommitted = 1;
  static constexpr std::uint32_t kPadding = 2;
  static constexpr std::uint32_t kFlags = 7;

  SampleRing(std::byte* memory, std::size_t capacity) : memory_(memory), mask_(capacity - 1) {}
  [[nodiscard]] std::byte* at(std::uint64_t position) const { return memory_ + (position & mask_); }
  [[nodiscard]] Record record_at(std::uint64_t position) const;
  void publish(std::uint64_t position, std::uint32_t total_and_flags, std::uint32_t used);
  void release(std::uint64_t tail, std::uint32_t total);

  std::byte* memory_ = nullptr;
  std::size_t mask_ = 0;
  std::size_t ready_ = 0;  // so many bytes from the first on are provided
  alignas(64) std::atomic<std::uint64_t> head_{0};
  alignas(64) std::atomic<std::uint64_t> tail_{0};
};

}  // namespace plimsoll
