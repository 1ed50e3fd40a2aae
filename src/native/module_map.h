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
#include "native/plain_step.h"
#include "native/unwind_table.h"
#include "os/process.h"

namespace plimsoll::native {

// Some bytes of a file in memory, by which it is told from another one that was loaded into its place: its build-id, or
// else its first ones, which say how it is laid out.
struct ModuleMark {
  std::uint64_t start = 0;
  std::size_t size = 0;
  std::size_t hash = 0;  // of the bytes; 0: they could not be read
};

// A file in memory, or something that the kernel put there. Never changes; shared by all maps that it occurs in.
struct Module {
  os::Mapping first;  // its first mapping, by which it is known, together with
  ModuleMark mark;
  bool is_elf = false;      // else memory that has only a file's name, as what processes share does
  std::uint64_t end = 0;    // of its last mapping
  std::uint64_t slide = 0;  // its addresses in memory, minus those in the file
  UnwindTable table;        // empty: it has none, or a damaged one
};

// How code that was made at run time is unwound; see MadeCodes.
struct MadeTable {
  std::uint64_t start = 0;  // that its offsets are from
  UnwindTable table;
};

// A stretch of executable memory.
struct CodeRange {
  std::uint64_t start = 0, end = 0;
  std::shared_ptr<const Module> module;             // null: memory without a file
  std::shared_ptr<const MadeTable> made = nullptr;  // of that, if its maker tells
};

// Immutable but for its cache and its flag. rule_at is async-signal-safe, and for any number of threads.
class ModuleMap {
 public:
  // `ranges` ascend and do not overlap.
  // `followed` are the starts and ends of a function's code.
  ModuleMap(std::vector<CodeRange> ranges, const RulePool& pool,
            std::vector<std::pair<std::uint64_t, std::uint64_t>> followed = {})
      : ranges_(std::move(ranges)), pool_(pool), followed_(std::move(followed)) {
    ends_.reserve(ranges_.size());
    for (const CodeRange& range : ranges_) ends_.push_back(range.end);
  }

  // The rule at an instruction, if it is a plain one, or where it is; never none.
  [[nodiscard]] PlainStep step_at(std::uint64_t pc) const {
    // The place in the cache is made of the address's low bits, mixed with those above, which are kept beside the step:
    // together they are the whole address.
    const std::uint64_t tag = pc >> kCacheBits;
    std::atomic<std::uint64_t>& cached = cache_[(pc ^ tag) & kCacheMask];
    const std::uint64_t word = cached.load(std::memory_order_relaxed);
    const PlainStep step(static_cast<std::uint32_t>(word & ((1U << PlainStep::kBits) - 1U)));
    if (word >> PlainStep::kBits == tag && !step.is_none()) [[likely]]
      return step;
    return look_up(pc, cached);
  }
  // The rule at an instruction. Rules never move.
  [[nodiscard]] const Rule& rule_at(std::uint64_t pc) const {
    const PlainStep step = step_at(pc);
    return pool_.rule(step.is_plain() ? index_at(pc) : step.index());
  }

  // The range with an address; null if there is none.
  [[nodiscard]] const CodeRange* find(std::uint64_t pc) const {
    // Without branches that depend on the address, which nothing could foresee.
    const std::uint64_t* first = ends_.data();
    for (std::size_t left = ends_.size(); left > 0;) {
      const std::size_t half = (left + 1) / 2;
      first += first[half - 1] <= pc ? half : 0;
      left -= half;
    }
    const auto low = static_cast<std::size_t>(first - ends_.data());
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
  // Whether somebody met code of no file of which nothing is known, since it was asked last.
  [[nodiscard]] bool take_bare() const { return bare_.exchange(false, std::memory_order_relaxed); }

 private:
  static constexpr unsigned kCacheBits = PlainStep::kCacheBits;
  static constexpr std::uint64_t kAddressMask = (std::uint64_t{1} << kAddressBits) - 1;
  static constexpr std::uint64_t kCacheMask = (std::uint64_t{1} << kCacheBits) - 1;

  // Finds the rule, and puts it into the cache together with the address: one word, so that no reader sees half of it.
  [[gnu::noinline]] PlainStep look_up(std::uint64_t pc, std::atomic<std::uint64_t>& cached) const {
    const RuleIndex index = index_at(pc);
    const PlainStep step = pool_.step(index);
    // (Code of no file may be of one in a moment.)
    if (pc <= kAddressMask && index != RulePool::kNoModule)
      cached.store(pc >> kCacheBits << PlainStep::kBits | step.bits(), std::memory_order_relaxed);
    return step;
  }
  [[nodiscard]] RuleIndex index_at(std::uint64_t pc) const {
    const CodeRange* range = find(pc);
    if (range == nullptr) {
      missed_.store(true, std::memory_order_relaxed);
      return RulePool::kNoModule;
    }
    if (range->module == nullptr) return index_in_made(*range, pc);
    if (range->module->table.empty()) return RulePool::kNoTable;
    return range->module->table.find(static_cast<std::uint32_t>(pc - range->module->first.start));
  }

  [[nodiscard]] RuleIndex index_in_made(const CodeRange& range, std::uint64_t pc) const {
    if (range.made != nullptr) return range.made->table.find(static_cast<std::uint32_t>(pc - range.made->start));
    bare_.store(true, std::memory_order_relaxed);
    return RulePool::kNoTable;
  }

  const std::vector<CodeRange> ranges_;
  std::vector<std::uint64_t> ends_;  // of the ranges
  const RulePool& pool_;
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> followed_;
  mutable std::atomic<bool> missed_{false}, bare_{false};
  mutable std::array<std::atomic<std::uint64_t>, std::size_t{1} << kCacheBits> cache_{};
};

}  // namespace plimsoll::native
