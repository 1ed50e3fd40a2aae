#include "base/sample_ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

namespace plimsoll {
namespace {
constexpr std::size_t kSmallestCapacity = std::size_t{1} << 16U;
constexpr std::size_t kLargestCapacity = std::size_t{1} << 31U;
constexpr std::size_t round_up(std::size_t size) { return (size + 7) & ~std::size_t{7}; }
}  // namespace

Result<SampleRing> SampleRing::create(std::size_t capacity) {
  capacity = std::bit_ceil(std::clamp(capacity, kSmallestCapacity, kLargestCapacity));
  void* memory = ::mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return system_error("cannot map the sample ring", errno);
  return SampleRing(static_cast<std::byte*>(memory), capacity);
}

SampleRing::SampleRing(SampleRing&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      mask_(other.mask_),
      ready_(other.ready_),
      head_(other.head_.load()),
      tail_(other.tail_.load()) {}

SampleRing::~SampleRing() {
  if (memory_ != nullptr) ::munmap(memory_, capacity());
}

SampleRing::Slot SampleRing::reserve(std::size_t size) {
  if (size > capacity() / 2 - sizeof(Header)) return {};
  // Never an empty slot: that would say that the ring is full.
  const std::size_t total = round_up(std::max<std::size_t>(size, 1)) + sizeof(Header);
  std::uint64_t head = head_.load(std::memory_order_relaxed);
  while (true) {
    const std::size_t to_end = capacity() - (head & mask_);
    const std::size_t padding = total <= to_end ? 0 : to_end;
    if (head + padding + total - tail_.load(std::memory_order_acquire) > capacity()) {
      // Since `head` was read, both marks may have moved beyond it: only a head that still stands shows a full ring.
      const std::uint64_t now = head_.load(std::memory_order_relaxed);
      if (now == head) return {};
      head = now;
      continue;
    }
    if (!head_.compare_exchange_weak(head, head + padding + total, std::memory_order_acq_rel,
                                     std::memory_order_relaxed))
      continue;
    if (padding != 0) publish(head, static_cast<std::uint32_t>(padding) | kCommitted | kPadding, 0);
    const std::uint64_t start = head + padding;
    return {{at(start) + sizeof(Header), total - sizeof(Header)}, start, start + total};
  }
}

void SampleRing::commit(const Slot& slot, std::size_t used, std::size_t written) {
  // What lies behind `used` may become the header of somebody else's record: it must be zero.
  if (written > used) std::memset(slot.bytes.data() + used, 0, written - used);
  std::uint64_t total = slot.end - slot.start;
  const std::uint64_t shorter = round_up(used) + sizeof(Header);
  std::uint64_t expected = slot.end;
  if (shorter < total && head_.compare_exchange_strong(expected, slot.start + shorter, std::memory_order_acq_rel,
                                                       std::memory_order_relaxed))
    total = shorter;
  publish(slot.start, static_cast<std::uint32_t>(total) | kCommitted, static_cast<std::uint32_t>(used));
}

void SampleRing::publish(std::uint64_t position, std::uint32_t total_and_flags, std::uint32_t used) {
  auto* header = reinterpret_cast<Header*>(at(position));
  header->used = used;
  std::atomic_ref(header->total_and_flags).store(total_and_flags, std::memory_order_release);
}

SampleRing::Record SampleRing::record_at(std::uint64_t position) const {
  auto* header = reinterpret_cast<Header*>(at(position));
  const std::uint32_t word = std::atomic_ref(header->total_and_flags).load(std::memory_order_acquire);
  if ((word & kCommitted) == 0) return {};
  return {word & ~kFlags, header->used, (word & kPadding) != 0, at(position) + sizeof(Header)};
}

void SampleRing::make_ready(std::size_t bytes) {
  constexpr std::size_t kLargestPage = std::size_t{1} << 16U;
  const std::uint64_t wanted = head_.load(std::memory_order_relaxed) + bytes;
  const std::uint64_t end = std::min<std::uint64_t>((wanted + kLargestPage - 1) & ~(kLargestPage - 1), capacity());
  if (end <= ready_) return;
#ifdef MADV_POPULATE_WRITE
  ::madvise(memory_ + ready_, end - ready_, MADV_POPULATE_WRITE);
#endif
  ready_ = end;
}

void SampleRing::release(std::uint64_t tail, std::uint32_t total) {
  std::memset(at(tail), 0, total);
  tail_.store(tail + total, std::memory_order_release);
}

}  // namespace plimsoll
