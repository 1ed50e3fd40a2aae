// alloc/testing.h: what tests and fuzzers of hooks have in common. No product code may include it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

#include "alloc/allocator_table.h"
#include "alloc/event_log.h"
#include "base/allocation_words.h"

namespace plimsoll::alloc::testing {

// Fails loudly in any program: tests see a crash, fuzzers an input that makes it.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

// Python's allocators, over the C library's.
class CLibraryTable final : public AllocatorTable {
 public:
  CLibraryTable() {
    now_.fill(
        {nullptr, [](void*, std::size_t size) { return std::malloc(std::max<std::size_t>(size, 1)); },
         [](void*, std::size_t count, std::size_t item) { return std::calloc(count, std::max<std::size_t>(item, 1)); },
         [](void*, void* at, std::size_t size) { return std::realloc(at, std::max<std::size_t>(size, 1)); },
         [](void*, void* at) { std::free(at); }});
  }
  [[nodiscard]] Allocator get(Domain domain) const override { return now_[static_cast<std::size_t>(domain)]; }
  void set(Domain domain, const Allocator& allocator) override { now_[static_cast<std::size_t>(domain)] = allocator; }
  [[nodiscard]] bool is_plain() const override { return true; }

 private:
  std::array<Allocator, kAllDomains> now_;
};

// Reads a log, as somebody would who believes what base/allocation_words.h says of slots.
class LogReader {
 public:
  // A block, from its beginning to its end.
  struct Block {
    std::uint32_t stack = 0;
    Domain domain{};
    std::uint64_t size = 0;
  };
  // visit(AllocationEvent, Block) for each that begins or ends.
  template <typename Visit>
  void read(const EventBatch& batch, Visit visit) {
    sites_.insert(sites_.end(), batch.sites.begin(), batch.sites.end());
    AllocationWords::for_each(batch.words, [&](AllocationEvent event, std::uint64_t value) {
      if (event == AllocationEvent::kTime) passed_us += value;
      if (event == AllocationEvent::kSize) size_ = value;
      if (event == AllocationEvent::kAllocated) visit(event, begin(value));
      if (event == AllocationEvent::kFreed || event == AllocationEvent::kMoved) visit(event, end(value));
    });
  }
  // That in a slot; none if it is free.
  [[nodiscard]] std::optional<Block> at(std::size_t slot) const {
    return slot < blocks_.size() ? blocks_[slot] : std::nullopt;
  }
  [[nodiscard]] std::size_t slots() const { return blocks_.size(); }

  std::uint64_t passed_us = 0;

 private:
  Block begin(std::uint64_t number) {
    require(number < sites_.size(), "sites are told of before");
    const LoggedSite& site = sites_[number];
    const Block block{site.stack, site.domain, site.size != 0 ? site.size : size_};
    if (free_.empty()) {
      blocks_.emplace_back(block);
    } else {
      blocks_[free_.back()] = block;
      free_.pop_back();
    }
    return block;
  }
  Block end(std::uint64_t slot) {
    require(slot < blocks_.size() && blocks_[slot].has_value(), "what ends was alive");
    const Block block = *blocks_[slot];
    blocks_[slot].reset();
    free_.push_back(slot);
    return block;
  }

  std::vector<LoggedSite> sites_;
  std::vector<std::optional<Block>> blocks_;  // by slot
  std::vector<std::size_t> free_;
  std::uint64_t size_ = 0;
};

}  // namespace plimsoll::alloc::testing
