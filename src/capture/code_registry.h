// capture/code_registry.h: which code object an address meant at the time of a sample.
//
// Code objects die and their addresses are used again, so an address is not an identity. The registry knows a code
// object by a CodeId of ours. A frame holds its code object alive, so a sample taken at time t proves that the object
// was alive at t; and a hook on the destruction of code objects (python/code_hook.cc) reports every death of an object
// that a sampler has seen, with a copy of its names, before its memory is freed. Together:
//
//   address at time t  =  the object whose death is the first at or after t;  with no such death, the living one.
//
// The hook costs one look into a small filter for objects that no sample has seen, which is nearly all of them.
#pragma once

#include <array>
#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "capture/raw_sample.h"
#include "cpython/code_object.h"

namespace plimsoll::capture {

// A set of addresses that may answer yes by mistake, never no. mark is async-signal-safe and costs one load when the
// address is there already.
class SeenFilter {
 public:
  void mark(Address code) {
    std::atomic<std::uint64_t>& word = words_[word_of(code)];
    const std::uint64_t bit = bit_of(code);
    if ((word.load(std::memory_order_relaxed) & bit) == 0) word.fetch_or(bit, std::memory_order_relaxed);
  }
  [[nodiscard]] bool may_contain(Address code) const {
    return (words_[word_of(code)].load(std::memory_order_relaxed) & bit_of(code)) != 0;
  }
  // A code object that may be in the set is about to be freed: what is known by its address is not to be believed.
  void note_death(Address code) {
    deaths_at_[death_row(code)].fetch_add(1, std::memory_order_relaxed);
    deaths_.fetch_add(1, std::memory_order_relaxed);
  }
  // Changes when any died, and when one died at this address.
  [[nodiscard]] std::uint32_t deaths() const { return deaths_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t deaths_at(Address code) const {
    return deaths_at_[death_row(code)].load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kWords = 2048;  // 16 KiB, 128 Ki bits
  static std::uint64_t hash(Address code) { return (raw(code) >> 4U) * 0x9e3779b97f4a7c15U; }
  static std::size_t word_of(Address code) { return hash(code) >> 53U; }
  static std::uint64_t bit_of(Address code) { return std::uint64_t{1} << ((hash(code) >> 47U) & 63U); }
  static_assert(kWords == std::size_t{1} << (64U - 53U));

  static constexpr unsigned kDeathBits = 12;
  static std::size_t death_row(Address code) { return hash(code) >> (64U - kDeathBits); }

  std::array<std::atomic<std::uint64_t>, kWords> words_{};
  std::array<std::atomic<std::uint32_t>, std::size_t{1} << kDeathBits> deaths_at_{};
  std::atomic<std::uint32_t> deaths_{0};
};

// The registry. on_destroy runs on any thread (it allocates: never in a signal handler); all other members but seen()
// belong to the drain thread.
class CodeRegistry {
 public:
  // Where code objects are: in this process, to be read when they are first asked for; or elsewhere, and then the
  // registry knows what it was taught.
  enum class Source : std::uint8_t { kThisProcess, kTaught };

  explicit CodeRegistry(const cpython::Layout& layout, Source source = Source::kThisProcess)
      : layout_(layout), source_(source) {
    reported_.reserve(kDeathsWithoutMemory);
    taken_.reserve(kDeathsWithoutMemory);
  }

  // The filter that the sampler marks with every code object it records.
  SeenFilter& seen() { return seen_; }

  // A code object is about to be freed. Copies it if a sample may have seen it. (Without memory for that, samples of it
  // are of unknown code; and after very many such deaths, all that were taken until then and are not resolved yet.)
  void on_destroy(Address code) noexcept;
  // Nothing will be asked for any more, though on_destroy is still called: nothing is kept for it.
  void close();

  // What an address meant at a time. known_since_ns is when the registry read the object first.
  struct Entry {
    CodeId id;
    std::shared_ptr<const cpython::CodeInfo> info;
    std::int64_t known_since_ns = 0;
  };
  // Finds or reads the object; nullptr if it cannot be read. The pointer is good until the next call.
  const Entry* find(Address code, std::int64_t time_ns);

  // From `time_ns` on, this code object is at the address. What was there before has died.
  void learn(Address code, std::shared_ptr<const cpython::CodeInfo> info, std::int64_t time_ns);

  // All samples taken before `time_ns` have been resolved: forgets the objects that died before it.
  // Returns the ids that will not occur again.
  std::vector<CodeId> forget_deaths_before(std::int64_t time_ns);

  // An id for something that is no code object.
  CodeId new_id() { return CodeId{next_id_++}; }

 private:
  // A code object that was freed while something still named it.
  struct Death {
    std::int64_t time_ns = 0;
    Address code{};
    std::shared_ptr<const cpython::CodeInfo> info;  // null: there was no memory for it
  };
  // What an address stood for before its code object died.
  struct DeadEntry {
    std::int64_t death_ns = 0;
    Entry entry;  // without `info`: something that is not known
  };
  static constexpr std::size_t kDeathsWithoutMemory = 64;  // between two times that they are taken
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

  void take_deaths();  // takes the lock
  // Whether what was at the address then has died. Null if it is not known what that was.
  bool is_dead(Address code, std::int64_t time_ns, const Entry*& entry);
  const cpython::Layout layout_;
  const Source source_;
  SeenFilter seen_;
  std::atomic<bool> is_closed_{false};
  std::mutex mutex_;
  std::vector<Death> reported_;             // guarded by mutex_
  std::int64_t missed_ns_ = kNever;         // likewise: when the last died that there was no place for there
  std::atomic<bool> has_reported_{false};   // spares the drain thread the lock
  std::vector<Death> taken_;                // kept for its room
  std::int64_t unknown_until_ns_ = kNever;  // as missed_ns_, of those that were taken
  boost::unordered_flat_map<std::uint64_t, Entry> living_;
  boost::unordered_flat_map<std::uint64_t, std::vector<DeadEntry>> dead_;  // per address, in order of death
  std::size_t next_id_ = 0;
};

}  // namespace plimsoll::capture
