// native/module_map.h: the code of a process at one time, as the unwinder needs it: which rule holds at which address.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "native/unwind_table.h"
#include "os/process.h"

namespace plimsoll::native {

// A file in memory, or something that the kernel put there. Never changes; shared by all maps that it occurs in.
struct Module {
  os::Mapping first;        // its first mapping, by which it is known
  std::uint64_t end = 0;    // of its last mapping
  std::uint64_t slide = 0;  // its addresses in memory, minus those in the file
  UnwindTable table;        // empty: it has none, or a damaged one
};

// A stretch of executable memory.
struct CodeRange {
  std::uint64_t start = 0, end = 0;
  std::shared_ptr<const Module> module;  // null: memory without a file
};

// Immutable but for its cache and its flag. rule_at is async-signal-safe, and for any number of threads.
class ModuleMap {
 public:
  // `ranges` ascend and do not overlap.
  // `followed` are the starts and ends of a function's code.
  ModuleMap(std::vector<CodeRange> ranges, const RulePool& pool,
            std::vector<std::pair<std::uint64_t, std::uint64_t>> followed = {})
      : ranges_(std::move(ranges)), pool_(pool), followed_(std::move(followed)) {}

  // The rule at an instruction. Rules never move.
  [[nodiscard]] const Rule& rule_at(std::uint64_t pc) const {
    constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15U;
    std::atomic<std::uint64_t>& cached = cache_[(pc * kGoldenRatio) >> (64U - kCacheBits)];
    const std::uint64_t word = cached.load(std::memory_order_relaxed);
    if (word >> kRuleBits == pc && pc != 0) return pool_.rule(static_cast<RuleIndex>(word));
    return pool_.rule(look_up(pc, cached));
  }

  // The range with an address; null if there is none.
  [[nodiscard]] const CodeRange* find(std::uint64_t pc) const {
    std::size_t low = 0;
    std::size_t high = ranges_.size();
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (ranges_[middle].end <= pc)
        low = middle + 1;
      else
        high = middle;
    }
    return low < ranges_.size() && ranges_[low].start <= pc ? &ranges_[low] : nullptr;
  }

  // Whether an instruction is of the function that Modules::follow was asked for. Async-signal-safe.
  [[nodiscard]] bool is_followed(std::uint64_t pc) const {
    for (const auto& [start, end] : followed_)
      if (start <= pc && pc < end) return true;
    return false;
  }
  [[nodiscard]] const std::vector<CodeRange>& ranges() const { return ranges_; }
  // Whether somebody asked for an address that is in no range, since it was asked last.
  [[nodiscard]] bool take_missed() const { return missed_.exchange(false, std::memory_order_relaxed); }

 private:
  static constexpr unsigned kCacheBits = 12;
  static constexpr unsigned kRuleBits = 16;  // a program's addresses have 47 bits

  // Finds the rule, and puts it into the cache together with the address: one word, so that no reader sees half of it.
  RuleIndex look_up(std::uint64_t pc, std::atomic<std::uint64_t>& cached) const {
    const CodeRange* range = find(pc);
    if (range == nullptr) {
      missed_.store(true, std::memory_order_relaxed);
      return RulePool::kNoModule;
    }
    if (range->module == nullptr || range->module->table.empty()) return RulePool::kNoTable;
    const RuleIndex rule = range->module->table.find(static_cast<std::uint32_t>(pc - range->module->first.start));
    if (pc >> (64U - kRuleBits) == 0) cached.store(pc << kRuleBits | rule, std::memory_order_relaxed);
    return rule;
  }

  const std::vector<CodeRange> ranges_;
  const RulePool& pool_;
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> followed_;
  mutable std::atomic<bool> missed_{false};
  mutable std::array<std::atomic<std::uint64_t>, std::size_t{1} << kCacheBits> cache_{};
};

}  // namespace plimsoll::native
