// alloc/exact_testing.h: what fuzzers of exact recordings have in common: somebody who adds up what the books say.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "alloc/exact_hooks.h"
#include "alloc/testing.h"

namespace plimsoll::alloc::testing {

inline constexpr std::uint32_t kOthers = 1;  // the stack of those who are not the program

// Blocks and bytes.
struct Sum {
  std::int64_t blocks = 0, bytes = 0;
  void add(std::int64_t more_blocks, std::int64_t more_bytes) {
    blocks += more_blocks;
    bytes += more_bytes;
  }
  bool operator==(const Sum&) const = default;
};

// What was allocated, and what of it came to an end.
struct Account {
  Sum born, ended;
  bool operator==(const Account&) const = default;
};

// Who allocated, and from which allocator.
using Site = std::pair<std::uint32_t, Domain>;
using Accounts = std::map<Site, Account>;
// Who allocated what is alive, and its size.
using LivingBlocks = std::map<const void*, std::pair<Site, std::size_t>>;

// Adds up what the exact books say.
class Accountant final : public ExactTaker {
 public:
  Accountant() {
    // Half of the stacks have a key.
    find_key = {[](void* self) {
                  const std::uint32_t stack = static_cast<Accountant*>(self)->stack_now;
                  return StackKey{stack, stack % 2 == 0 ? std::uint64_t{stack} + 1 : 0};
                },
                this};
    clock_ns = &clock_;
  }
  std::uint32_t stack() override { return stack_now; }
  std::uint32_t stack_of(StackKey& /*key*/) override { return stack_now; }
  [[nodiscard]] bool is_attached() const override { return is_with_gil; }
  [[nodiscard]] bool is_gil_free() const override { return false; }
  void failed() override { std::abort(); }
  void lost() override { require(false, "there is memory for the books"); }
  void closed(std::uint8_t, std::int64_t, ExactRows rows, std::int64_t) override {
    for (const ExactRow& row : rows) {
      if (row.change == ExactChange::kPeak || row.stack == kOthers) continue;
      Account& account = accounts_[{row.stack, row.domain}];
      (row.change == ExactChange::kBorn ? account.born : account.ended).add(row.blocks, row.bytes);
    }
  }
  void logged(EventBatch batch) override {
    reader_.read(batch, [&](AllocationEvent event, const LogReader::Block& block) {
      if (block.stack == kOthers) return;
      Account& account = accounts_[{block.stack, block.domain}];
      (event == AllocationEvent::kAllocated ? account.born : account.ended)
          .add(1, static_cast<std::int64_t>(block.size));
    });
    take_words_back(std::move(batch.words));
  }
  void alive(const void* at, BlockBooks::Token token, const BlockBooks::Facts& facts) override {
    if (const auto block = reader_.at(EventLog::slot_of(token)); has_events_)
      require(block && block->stack == facts.stack && block->size == facts.size, "a token is that of its slot");
    if (facts.stack != kOthers) living_[at] = {{facts.stack, facts.domain}, facts.size};
  }

  // A recording begins.
  void begin(ExactDetail detail) {
    reader_ = {};
    has_events_ = detail == ExactDetail::kEvents;
  }
  // A recording is over that was told all this, and nothing else of the program.
  void check(const Accounts& accounts, const LivingBlocks& living) const {
    require(living_ == living, "what is alive is told of, and nothing else");
    require(accounts_ == accounts, "the books are right");
  }
  void forget() {
    accounts_.clear();
    living_.clear();
  }

  std::uint32_t stack_now = kOthers;
  bool is_with_gil = true;

 private:
  Accounts accounts_;
  LivingBlocks living_;
  LogReader reader_;
  bool has_events_ = false;
  std::atomic<std::int64_t> clock_{1};
};

}  // namespace plimsoll::alloc::testing
