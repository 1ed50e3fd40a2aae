// native/rule_pool.h: every rule that is in use, once. A program has millions of instructions and a few thousand rules.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>

#include "native/plain_step.h"
#include "native/rule.h"

namespace plimsoll::native {

// The pool. Rules never move and are never taken out: a signal handler may read any that it has the index of. Members
// but rule() are for one thread.
class RulePool {
 public:
  static constexpr RuleIndex kNoModule = 0;  // these are always there
  static constexpr RuleIndex kNoTable = 1;
  static constexpr RuleIndex kNoRule = 2;
  static constexpr std::size_t kMost = 1U << 16U;

  // Untouched memory costs nothing: what is not in use is never paged in.
  RulePool()
      : rules_(static_cast<Rule*>(::operator new(kMost * sizeof(Rule)))),
        steps_(static_cast<PlainStep*>(::operator new(kMost * sizeof(PlainStep)))) {
    for (const UnwindStop stop : {UnwindStop::kNoModule, UnwindStop::kNoTable, UnwindStop::kNoRule})
      intern(Rule::cannot(stop));
  }

  // The rule's index; kNoRule for a new one if the pool is full.
  RuleIndex intern(const Rule& rule) {
    if (const auto known = index_.find(rule); known != index_.end()) return known->second;
    if (index_.size() == kMost) return kNoRule;
    const auto index = static_cast<RuleIndex>(index_.size());
    new (&rules_[index]) Rule(rule);
    new (&steps_[index]) PlainStep(rule, index);
    index_.emplace(rule, index);
    return index;
  }
  // Async-signal-safe.
  [[nodiscard]] const Rule& rule(RuleIndex index) const { return rules_[index]; }
  [[nodiscard]] PlainStep step(RuleIndex index) const { return steps_[index]; }
  [[nodiscard]] std::size_t size() const { return index_.size(); }

 private:
  // By all that distinguishes rules.
  struct Hash {
    std::size_t operator()(const Rule& rule) const {
      constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15U;
      std::uint64_t seed = (static_cast<std::uint64_t>(rule.kind) << 24U) |
                           (static_cast<std::uint64_t>(rule.stop) << 16U) | (std::uint64_t{rule.base} << 8U) |
                           static_cast<std::uint64_t>(rule.frame_pointer);
      for (const std::int32_t part : {rule.offset, rule.extra, rule.frame_pointer_offset, rule.return_offset})
        seed = seed * kGoldenRatio + static_cast<std::uint32_t>(part);
      return seed * kGoldenRatio;
    }
  };
  // For memory that operator new gave.
  struct Free {
    void operator()(void* rows) const { ::operator delete(rows); }
  };

  std::unique_ptr<Rule[], Free> rules_;
  std::unique_ptr<PlainStep[], Free> steps_;  // the same rules
  boost::unordered_flat_map<Rule, RuleIndex, Hash> index_;
};

}  // namespace plimsoll::native
