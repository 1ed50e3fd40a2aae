// alloc/object_heap.h: an allocator for blocks of at most 512 bytes whose free lists end at the next sample.
//
// Blocks of one size class come from pages of 16 KiB, out of one range of addresses; a class gives out the free list of
// one page at a time, and a freed block goes back to its own page's other list. So the class's list runs empty again
// and again, and the slow path that finds the next list is where samples are taken, for nothing on the way: a Poisson
// process over bytes splits into one for each class, each a geometric number of blocks apart. When the next sample is
// the k-th block of a list, the list is cut behind k - 1, and the allocation that finds it empty is the sample.
//
// Page-local lists are a must, not a nicety: one list for all pages is put into random order by frees, and then every
// allocation is a cache miss (measured elsewhere at 1.2 to 1.5 times the time of a whole program).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace plimsoll::alloc {

// A page of the heap: its blocks, and how many of them are given out.
struct HeapPage {
  const void* start = nullptr;
  std::uint32_t block_bytes = 0, used = 0, capacity = 0;
};

// The heap. Not thread-safe: the GIL, or a lock of the caller's, is around it.
class ObjectHeap {
 public:
  static constexpr std::size_t kLargest = 512;
  static constexpr std::size_t kStep = 16;
  static constexpr std::size_t kClasses = kLargest / kStep;

  // Reserves `bytes` of addresses, or less if the system has no more to give; memory is used as blocks are. Without
  // any, all allocations are refused.
  ObjectHeap(std::size_t bytes, std::uint64_t seed);
  ObjectHeap(const ObjectHeap&) = delete;
  ObjectHeap& operator=(const ObjectHeap&) = delete;
  ~ObjectHeap();

  // The class of a size from 1 to kLargest, and the bytes of its blocks.
  static constexpr std::size_t class_of(std::size_t size) { return (size - 1) / kStep; }
  static constexpr std::size_t bytes_of(std::size_t size_class) { return (size_class + 1) * kStep; }

  [[nodiscard]] bool owns(const void* block) const {
    return static_cast<std::size_t>(static_cast<const char*>(block) - region_) < region_bytes_;
  }
  // A block, or nullptr if the class's list has ended: then allocate_slowly knows more.
  void* allocate(std::size_t size_class) {
    Block* block = lists_[size_class];
    if (block != nullptr) [[likely]]
      lists_[size_class] = block->next;
    return block;
  }
  // What came of an allocation that found the list empty.
  struct Outcome {
    void* block = nullptr;  // nullptr: memory, or the range, is at its end; or is_sample
    bool is_sample =
        false;  // this allocation is the sample: take() gives a block for it, if one of the heap's is wanted
    std::uint32_t blocks_taken = 0;  // that the class has newly at its disposal
  };
  Outcome allocate_slowly(std::size_t size_class);
  // A block for a sample that is to have one of the heap's; nullptr if there is none. The class's next sample comes one
  // block early then: for when there is no better place.
  Outcome take(std::size_t size_class);
  void free(void* at) {
    Page& page = page_of(at);
    auto* block = static_cast<Block*>(at);
    block->next = page.freed;
    page.freed = block;
    if (--page.countdown == 0) [[unlikely]]
      free_slowly(page);
  }
  // Bytes of the block that `at` is.
  [[nodiscard]] std::size_t size_of(const void* at) const { return bytes_of(page_of(at).size_class); }

  // Gives addresses back that were never used, but for so many in all.
  void keep_addresses(std::uint64_t bytes);
  // From now on one sample in `mean_bytes`; 0 = none.
  void set_distance(std::uint64_t mean_bytes);
  // Until then allocate() finds all lists empty, and its caller has to turn to others.
  void close();
  // All pages that have been used, empty ones among them, in the order of addresses.
  [[nodiscard]] std::vector<HeapPage> pages() const;
  // Of blocks that classes have at their disposal: those of Outcome::blocks_taken that were not given out.
  [[nodiscard]] std::uint64_t unused_bytes() const;
  // Of pages that hold blocks.
  [[nodiscard]] std::size_t used_bytes() const { return pages_used_ * kPageBytes; }

 private:
  static constexpr std::size_t kPageBytes = std::size_t{1} << 14U;
  // Blocks begin where pymalloc's do, behind its pool's header: then what comes before an object that the collector
  // tracks (16 bytes) is in one cache line and the object begins the next one, as far as the block's size allows. With
  // blocks from the page's beginning on, collections took 1.25 times as long (trees of asyncio tasks, bench/suite.py).
  static constexpr std::size_t kFirstBlock = 48;
  // Empty pages kept with their memory: 4 MiB, and up to 16 where memory that was given back was needed again, as
  // programs build up and let go of some megabytes in turn (with pages that come from the system anew each time: six
  // times the page faults, a fifth of the time). When there are half as many again, those at the highest addresses are
  // given back, side by side as they mostly are: the kernel interrupts all CPUs of the process for each piece.
  static constexpr std::size_t kLeastSpare = 256;
  static constexpr std::size_t kMostSpare = 1024;
  static constexpr std::size_t too_many(std::size_t most) { return most + most / 2; }
  // From here on the system is asked for its large pages, which spare page faults and misses of the TLB. Pages are used
  // in their order, so that no more than one is for nothing; but in a small program one would be much.
  static constexpr std::size_t kSmallPagesBytes = std::size_t{8} << 20U;
  // What of the region becomes memory at once, at least; an eighth of what has, if that is more.
  static constexpr std::size_t kLeastOpened = std::size_t{4} << 20U;
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  // A block that nobody has: in a list.
  struct Block {
    Block* next;
  };
  using PageNumber = std::uint32_t;
  static constexpr PageNumber kNoPage = ~PageNumber{0};
  // What is known of a page. Lies apart from it, so that pages that are not used cost no memory.
  struct Page {
    Block* freed = nullptr;       // since the class took its list last
    std::uint32_t countdown = 0;  // frees until something must be done: all that are not in `freed`, or 1 if is_full
    std::uint8_t size_class = 0;
    bool is_full = false;       // its class does not know it: nothing to give, until a block is freed
    PageNumber next = kNoPage;  // in its class's queue, or among empty pages
    PageNumber previous = kNoPage;
  };
  // Blocks one behind the other, the last one's `next` null.
  struct List {
    Block* first = nullptr;
    std::uint64_t length = 0;
  };

  [[nodiscard]] Page& page_of(const void* at) const {
    return pages_[static_cast<std::size_t>(static_cast<const char*>(at) - region_) / kPageBytes];
  }
  [[nodiscard]] char* memory_of(const Page& page) const {
    return region_ + static_cast<std::size_t>(&page - pages_) * kPageBytes;
  }
  [[nodiscard]] PageNumber number_of(const Page& page) const { return static_cast<PageNumber>(&page - pages_); }
  static std::uint32_t capacity_of(std::size_t size_class) {
    return static_cast<std::uint32_t>((kPageBytes - kFirstBlock) / bytes_of(size_class));
  }
  // All blocks of a page that is new to its class. A whole page at a time: by 4 KiB a program pays 1 % more.
  List carve(Page& page);
  // The blocks that have come back to a page.
  static List take_freed(Page& page);
  // Of the class's current page, or the next one that has any; empty if there is none.
  List next_list(std::size_t size_class);
  // Makes a list the class's, up to its next sample.
  void set_list(std::size_t size_class, List list);
  // All that the class has at its disposal, which it has no more.
  List take_all(std::size_t size_class);
  Page* empty_page();
  // Whether the first page that was never used is memory, or has become that now.
  bool open_page();
  void free_slowly(Page& page);
  void enqueue(Page& page);
  void dequeue(Page& page);
  void give_back_spare();

  // What every allocation and every free needs:
  alignas(64) char* region_ = nullptr;
  std::size_t region_bytes_ = 0;
  Page* pages_ = nullptr;
  std::array<Block*, kClasses> lists_{};

  std::array<List, kClasses> stashed_{};  // what lies behind the cut, if the list is cut
  std::array<std::uint64_t, kClasses>
      to_sample_{};  // blocks to the sample, itself included, after the list; 0: list is cut
  std::array<PageNumber, kClasses> current_{};
  std::array<PageNumber, kClasses> queued_{};
  PageNumber spare_ = kNoPage;     // empty pages that still have memory
  PageNumber unbacked_ = kNoPage;  // empty pages whose memory was given back
  std::size_t spare_count_ = 0;
  std::size_t most_spare_ = kLeastSpare;
  bool is_taken_back_ = false;  // an unbacked page has been used since the last were made
  std::size_t open_bytes_ = 0;  // from the region's beginning on: what is memory
  std::size_t pages_touched_ = 0;
  std::size_t pages_used_ = 0;
  std::uint64_t mean_bytes_ = 0;
  std::uint64_t random_;
};

}  // namespace plimsoll::alloc
