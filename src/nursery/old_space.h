// nursery/old_space.h: where objects go that have survived: blocks of slots of one size, and large objects one by one.
// Nothing moves here. What is not reached any more is swept, a few blocks at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "nursery/object.h"

namespace plimsoll::nursery {

// The old generation of one heap.
class OldSpace {
 public:
  static constexpr std::size_t kBlockBytes = std::size_t{1} << 16U;
  static constexpr std::size_t kLargestSmall = 8192;  // beyond that an object is a large one

  explicit OldSpace(std::size_t most_bytes) : most_bytes_(most_bytes) {}
  OldSpace(const OldSpace&) = delete;
  OldSpace& operator=(const OldSpace&) = delete;
  ~OldSpace();

  // Sees to it that objects of `bytes` together, each at most kLargestSmall, will find room. False if memory is out;
  // the space is as it was.
  bool reserve(std::size_t bytes);
  // The memory that this takes at most.
  static std::size_t reserved_bytes(std::size_t bytes);
  // A slot for `size` bytes, at most kLargestSmall; its memory is not zeroed. Must have been reserved.
  Object* allocate_small(std::size_t size);
  // Zeroed memory; nullptr if it is out. Blocks in no use make room for it.
  Object* allocate_large(std::size_t size);
  void free_large(Object* object);
  // A large object that has survived belongs to the space from now on.
  void adopt_large(Object* object) { large_.push_back(object); }

  void begin_sweep();
  // Frees what is not marked as `mark` in the next blocks, `bytes` of them at least; all large objects come first.
  // Returns true when everything has been swept.
  bool sweep(std::size_t bytes, std::uint64_t mark);

  // Of objects that have not been swept, without what rounding to slots costs; and of all memory held.
  [[nodiscard]] std::size_t used_bytes() const { return used_bytes_; }
  [[nodiscard]] std::size_t held_bytes() const { return held_bytes_; }

 private:
  static constexpr std::size_t kClassCount = 48;
  // Slots of one size. The slots' memory is the block's alone; a free slot's first word is 0.
  struct Block {
    char* memory = nullptr;
    std::uint32_t slot_bytes = 0;
    std::uint32_t size_class = 0;
    std::uint32_t untouched = 0;  // slots from here on have never been used
    std::uint32_t used = 0;
    Object* free = nullptr;
    bool is_listed = false;  // in with_room_
    [[nodiscard]] std::uint32_t slots() const { return static_cast<std::uint32_t>(kBlockBytes / slot_bytes); }
    [[nodiscard]] Object* slot(std::uint32_t number) const;
  };
  static std::uint32_t class_of(std::size_t size);
  static std::size_t bytes_of_class(std::uint32_t size_class);
  Block& block_with_room(std::uint32_t size_class);
  void sweep_block(Block& block, std::uint64_t mark);
  void sweep_large(std::uint64_t mark);
  void unmap_spare();

  const std::size_t most_bytes_;
  std::size_t used_bytes_ = 0;
  std::size_t held_bytes_ = 0;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::array<std::vector<Block*>, kClassCount> with_room_;
  std::vector<char*> spare_;  // memory of blocks, in no use
  std::vector<Object*> large_;
  std::size_t next_to_sweep_ = 0;
  bool large_swept_ = false;
};

}  // namespace plimsoll::nursery
