#include "alloc/object_heap.h"

#include <sys/mman.h>

#include <algorithm>
#include <span>
#include <utility>

#include "alloc/reserved_memory.h"
#include "base/poisson.h"
#include "os/available_memory.h"

namespace plimsoll::alloc {
namespace {

constexpr std::size_t kLargePage = std::size_t{2} << 20U;

// Begins where a large page can.
char* map_region(std::size_t bytes) {
  auto* const memory = static_cast<char*>(reserve_addresses(bytes + kLargePage));
  if (memory == nullptr) return nullptr;
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(memory) % kLargePage;
  if (before != 0) ::munmap(memory, before);
  ::munmap(memory + before + bytes, kLargePage - before);
  return memory + before;
}

}  // namespace

ObjectHeap::ObjectHeap(std::size_t bytes, std::uint64_t seed) : random_(seed | 1U) {
  current_.fill(kNoPage);
  queued_.fill(kNoPage);
  to_sample_.fill(kNever);
  // A limit of address space may leave room for less. Most of it should be left to the program then.
  const std::uint64_t most = os::address_space_left() / 4;
  for (; bytes >= kPageBytes; bytes /= 8) {
    if (bytes > most) continue;
    char* const region = map_region(bytes);
    if (region == nullptr) continue;
    pages_ = static_cast<Page*>(reserve_addresses(bytes / kPageBytes * sizeof(Page)));
    if (pages_ == nullptr) {
      ::munmap(region, bytes);
      continue;
    }
    region_ = region;
    region_bytes_ = bytes;
    if (bytes > kSmallPagesBytes) ::madvise(region + kSmallPagesBytes, bytes - kSmallPagesBytes, MADV_HUGEPAGE);
    return;
  }
}

ObjectHeap::~ObjectHeap() {
  if (region_ == nullptr) return;
  ::munmap(region_, region_bytes_);
  ::munmap(pages_, region_bytes_ / kPageBytes * sizeof(Page));
}

void ObjectHeap::keep_addresses(std::uint64_t bytes) {
  // (What is known of the pages is in whole pages of the system's; so is the region, by large ones.)
  constexpr std::size_t kSystemPage = 4096;
  const auto rounded = [](std::size_t size, std::size_t step) { return (size + step - 1) / step * step; };
  const std::size_t used = pages_touched_ * kPageBytes;
  const std::size_t kept =
      rounded(std::max<std::size_t>(std::min<std::uint64_t>(bytes, region_bytes_), used), kLargePage);
  if (kept >= region_bytes_) return;
  const std::size_t pages = rounded(region_bytes_ / kPageBytes * sizeof(Page), kSystemPage);
  const std::size_t kept_pages = rounded(kept / kPageBytes * sizeof(Page), kSystemPage);
  ::munmap(region_ + kept, region_bytes_ - kept);
  if (kept_pages < pages) ::munmap(reinterpret_cast<char*>(pages_) + kept_pages, pages - kept_pages);
  region_bytes_ = kept;
  open_bytes_ = std::min(open_bytes_, kept);
}

// ---- pages ----

bool ObjectHeap::open_page() {
  const std::size_t needed = (pages_touched_ + 1) * kPageBytes;
  if (needed <= open_bytes_) return true;
  if (needed > region_bytes_) return false;
  const std::size_t wanted = next_opened(open_bytes_, region_bytes_, kLargePage, kLeastOpened);
  if (!make_memory(pages_, wanted / kPageBytes * sizeof(Page)) || !make_memory(region_, wanted)) return false;
  open_bytes_ = wanted;
  return true;
}

ObjectHeap::Page* ObjectHeap::empty_page() {
  Page* page = nullptr;
  if (spare_ != kNoPage) {
    page = &pages_[spare_];
    spare_ = page->next;
    --spare_count_;
  } else if (unbacked_ != kNoPage) {
    page = &pages_[unbacked_];
    unbacked_ = page->next;
    is_taken_back_ = true;
  } else if (open_page()) {
    page = &pages_[pages_touched_++];
  } else {
    return nullptr;
  }
  ++pages_used_;
  *page = Page{};
  return page;
}

void ObjectHeap::enqueue(Page& page) {
  PageNumber& first = queued_[page.size_class];
  page.previous = kNoPage;
  page.next = first;
  if (first != kNoPage) pages_[first].previous = number_of(page);
  first = number_of(page);
}

void ObjectHeap::dequeue(Page& page) {
  if (page.previous != kNoPage)
    pages_[page.previous].next = page.next;
  else
    queued_[page.size_class] = page.next;
  if (page.next != kNoPage) pages_[page.next].previous = page.previous;
}

void ObjectHeap::free_slowly(Page& page) {
  if (page.is_full) {
    page.is_full = false;
    page.countdown = capacity_of(page.size_class) - 1;
    return enqueue(page);
  }
  // All its blocks are back.
  if (current_[page.size_class] == number_of(page)) return;
  dequeue(page);
  --pages_used_;
  page.next = std::exchange(spare_, number_of(page));
  if (++spare_count_ < too_many(most_spare_)) return;
  if (std::exchange(is_taken_back_, false) && most_spare_ < kMostSpare)
    most_spare_ *= 2;
  else
    give_back_spare();
}

void ObjectHeap::give_back_spare() {
  std::array<PageNumber, too_many(kMostSpare)> numbers{};
  const std::span<PageNumber> spare = std::span(numbers).first(spare_count_);
  for (PageNumber& number : spare) number = std::exchange(spare_, pages_[spare_].next);
  std::sort(spare.begin(), spare.end());
  // The lowest ones are used first.
  spare_count_ = most_spare_;
  for (std::size_t i = most_spare_; i-- > 0;) pages_[spare[i]].next = std::exchange(spare_, spare[i]);
  for (std::size_t begin = most_spare_, end = begin; begin < spare.size(); begin = end) {
    for (; end < spare.size() && spare[end] - spare[begin] == end - begin; ++end)
      pages_[spare[end]].next = std::exchange(unbacked_, spare[end]);
    ::madvise(memory_of(pages_[spare[begin]]), (end - begin) * kPageBytes, MADV_DONTNEED);
  }
}

std::vector<HeapPage> ObjectHeap::pages() const {
  std::vector<HeapPage> found;
  found.reserve(pages_touched_);
  for (std::size_t i = 0; i < pages_touched_; ++i) {
    const Page& page = pages_[i];
    const std::uint32_t capacity = capacity_of(page.size_class);
    const auto block_bytes = static_cast<std::uint32_t>(bytes_of(page.size_class));
    found.push_back({memory_of(page), block_bytes, page.is_full ? capacity : page.countdown, capacity});
  }
  // What its class has of a page is not given out yet.
  const auto take_back = [&](const Block* block) {
    for (; block != nullptr; block = block->next) --found[number_of(page_of(block))].used;
  };
  for (std::size_t size_class = 0; size_class < kClasses; ++size_class) {
    take_back(lists_[size_class]);
    take_back(stashed_[size_class].first);
  }
  return found;
}

// ---- lists ----

ObjectHeap::List ObjectHeap::carve(Page& page) {
  const std::size_t bytes = bytes_of(page.size_class);
  page.countdown = capacity_of(page.size_class);
  char* at = memory_of(page) + kFirstBlock;
  auto* first = reinterpret_cast<Block*>(at);
  for (std::uint32_t i = 1; i < page.countdown; ++i, at += bytes)
    reinterpret_cast<Block*>(at)->next = reinterpret_cast<Block*>(at + bytes);
  reinterpret_cast<Block*>(at)->next = nullptr;
  return {first, page.countdown};
}

ObjectHeap::List ObjectHeap::take_freed(Page& page) {
  const std::uint32_t capacity = capacity_of(page.size_class);
  return {std::exchange(page.freed, nullptr), capacity - std::exchange(page.countdown, capacity)};
}

ObjectHeap::List ObjectHeap::next_list(std::size_t size_class) {
  if (current_[size_class] != kNoPage) {
    Page& page = pages_[current_[size_class]];
    if (page.freed != nullptr) return take_freed(page);
    page.is_full = true;
    page.countdown = 1;
    current_[size_class] = kNoPage;
  }
  if (queued_[size_class] != kNoPage) {
    Page& page = pages_[queued_[size_class]];
    dequeue(page);
    current_[size_class] = number_of(page);
    return take_freed(page);
  }
  Page* page = empty_page();
  if (page == nullptr) return {};
  page->size_class = static_cast<std::uint8_t>(size_class);
  current_[size_class] = number_of(*page);
  return carve(*page);
}

void ObjectHeap::set_list(std::size_t size_class, List list) {
  std::uint64_t& to_sample = to_sample_[size_class];
  if (to_sample > list.length) {
    if (to_sample != kNever) to_sample -= list.length;
    lists_[size_class] = list.first;
    return;
  }
  // The k-th block of the list would be the sample: the list ends before it.
  const std::uint64_t k = std::exchange(to_sample, 0);
  Block** end = &list.first;
  for (std::uint64_t i = 1; i < k; ++i) end = &(*end)->next;
  stashed_[size_class] = {std::exchange(*end, nullptr), list.length - k + 1};
  lists_[size_class] = list.first;
}

ObjectHeap::Outcome ObjectHeap::allocate_slowly(std::size_t size_class) {
  if (to_sample_[size_class] == 0) {
    // The list ended here for the sample. The block that would have been given lies at the front of what was behind.
    to_sample_[size_class] = blocks_to_sample(random_, bytes_of(size_class), mean_bytes_);
    set_list(size_class, std::exchange(stashed_[size_class], {}));
    return {nullptr, true, 0};
  }
  const List list = next_list(size_class);
  if (list.first == nullptr) return {};
  set_list(size_class, list);
  if (lists_[size_class] == nullptr) {  // its very first block is the sample
    Outcome outcome = allocate_slowly(size_class);
    outcome.blocks_taken = static_cast<std::uint32_t>(list.length);
    return outcome;
  }
  return {allocate(size_class), false, static_cast<std::uint32_t>(list.length)};
}

ObjectHeap::Outcome ObjectHeap::take(std::size_t size_class) {
  if (void* block = allocate(size_class)) return {block};
  Outcome outcome;
  List& stash = stashed_[size_class];
  if (stash.first == nullptr) {
    stash = next_list(size_class);
    if (stash.first == nullptr) return {};
    outcome.blocks_taken = static_cast<std::uint32_t>(stash.length);
    // As if the list were cut before its first block: the next allocation is for the sampler to decide on.
    if (to_sample_[size_class] != 0) {
      Block* block = std::exchange(stash.first, stash.first->next);
      set_list(size_class, {std::exchange(stash.first, nullptr), std::exchange(stash.length, 0) - 1});
      outcome.block = block;
      return outcome;
    }
  }
  --stash.length;
  outcome.block = std::exchange(stash.first, stash.first->next);
  return outcome;
}

ObjectHeap::List ObjectHeap::take_all(std::size_t size_class) {
  List list{std::exchange(lists_[size_class], nullptr), 0};
  Block** end = &list.first;
  for (; *end != nullptr; end = &(*end)->next) ++list.length;
  const List behind = std::exchange(stashed_[size_class], {});
  *end = behind.first;
  list.length += behind.length;
  return list;
}

std::uint64_t ObjectHeap::unused_bytes() const {
  std::uint64_t bytes = 0;
  for (std::size_t size_class = 0; size_class < kClasses; ++size_class) {
    std::uint64_t blocks = stashed_[size_class].length;
    for (const Block* at = lists_[size_class]; at != nullptr; at = at->next) ++blocks;
    bytes += blocks * bytes_of(size_class);
  }
  return bytes;
}

void ObjectHeap::close() {
  for (std::size_t size_class = 0; size_class < kClasses; ++size_class) stashed_[size_class] = take_all(size_class);
}

void ObjectHeap::set_distance(std::uint64_t mean_bytes) {
  mean_bytes_ = mean_bytes;
  for (std::size_t size_class = 0; size_class < kClasses; ++size_class) {
    // Undo the cut, if there is one, and cut anew.
    const List list = take_all(size_class);
    to_sample_[size_class] = mean_bytes == 0 ? kNever : blocks_to_sample(random_, bytes_of(size_class), mean_bytes);
    set_list(size_class, list);
  }
}

}  // namespace plimsoll::alloc
