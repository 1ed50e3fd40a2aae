#include "python/heap_allocations.h"

#include <algorithm>

#include "alloc/exact_hooks.h"
#include "alloc/native_sampling.h"
#include "alloc/sampling_hooks.h"
#include "python/compat.h"

namespace plimsoll::python {

void add_own_pools(GrowingArray<heap::Pool>& pools) {
  constexpr std::uint32_t kOurArenas = std::uint32_t{1} << 24U;  // more than pymalloc has
  constexpr std::uint64_t kArenaBytes = std::uint64_t{1} << 20U;
  const std::vector<alloc::HeapPage> pages = alloc::heap_pages();
  for (const alloc::HeapPage& page : pages) {
    const std::uint64_t start = raw(address_of(page.start));
    const auto arena = static_cast<std::uint32_t>((start - raw(address_of(pages.front().start))) / kArenaBytes);
    pools.push_back({start, page.block_bytes, page.used, page.capacity, kOurArenas + arena});
  }
  std::sort(pools.begin(), pools.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
}

void HeapAllocations::hold() {
  if (session_ != nullptr) lock_ = session_->catch_up();
}

std::optional<std::uint32_t> HeapAllocations::stack_of(const void* block) {
  if (session_ == nullptr) return std::nullopt;
  std::uint64_t key = 0;
  if (session_->exact() != nullptr) {
    key = alloc::stack_at(block);
    if (key == 0) return std::nullopt;
  } else {
    const auto sample = kIsFreeThreaded ? alloc::native_sample_at(block) : alloc::sample_at(block);
    if (!sample) return std::nullopt;
    key = *sample;
  }
  const auto [found, is_new] = number_of_.try_emplace(key, static_cast<std::uint32_t>(used_.size()));
  if (is_new) used_.push_back(key);
  return found->second;
}

void HeapAllocations::write(heap::SnapshotWriter& writer) {
  if (used_.empty()) return;
  if (!lock_.owns_lock()) hold();
  heap::StackBuilder builder;
  std::vector<std::uint32_t> stack_of;
  std::vector<capture::NamedFrame> frames;
  for (const std::uint64_t key : used_) {
    std::uint32_t stack = heap::AllocationStacks::kNone;
    const capture::ExactRecorder* exact = session_->exact();
    const bool is_known =
        lock_.owns_lock() && (exact != nullptr ? exact->find_names(static_cast<capture::CallNode>(key), frames)
                                               : session_->living_stacks().find(key, frames));
    for (auto frame = frames.rbegin(); is_known && frame != frames.rend(); ++frame)
      stack = builder.call(stack, frame->code->name, frame->code->file, frame->line);
    if (is_known && frames.empty()) stack = builder.call(stack, "[no Python code]", {}, 0);
    stack_of.push_back(stack);
  }
  release();
  writer.add_stacks(builder.stacks(), stack_of);
  writer.add_meta("allocations", session_->exact() != nullptr ? "exact" : "sampled");
}

}  // namespace plimsoll::python
