#include "nursery/old_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

namespace plimsoll::nursery {

OldSpace::~OldSpace() {
  for (const auto& block : blocks_) ::munmap(block->memory, kBlockBytes);
  for (char* memory : spare_) ::munmap(memory, kBlockBytes);
  for (Object* object : large_) std::free(object);
}

Object* OldSpace::Block::slot(std::uint32_t number) const {
  return reinterpret_cast<Object*>(memory + std::size_t{number} * slot_bytes);
}

// Steps of 16 bytes up to 256, then four to each doubling: at most a quarter of a slot is lost.
std::uint32_t OldSpace::class_of(std::size_t size) {
  constexpr std::size_t kFine = 256;
  if (size <= kFine) return static_cast<std::uint32_t>((size + 15) / 16 - 1);
  const auto doubling = static_cast<std::uint32_t>(std::bit_width(size - 1) - 1);  // 2^doubling < size
  const auto quarter = static_cast<std::uint32_t>((size - 1) >> (doubling - 2)) & 3U;
  return 16 + (doubling - 8) * 4 + quarter;
}

std::size_t OldSpace::bytes_of_class(std::uint32_t size_class) {
  if (size_class < 16) return (std::size_t{size_class} + 1) * 16;
  const std::uint32_t doubling = (size_class - 16) / 4 + 8;
  return (std::size_t{5} + (size_class - 16) % 4) << (doubling - 2);
}

std::size_t OldSpace::reserved_bytes(std::size_t bytes) {
  // What is left over in slots and at the end of blocks is a third of the objects' bytes at most, and each class may
  // begin a block.
  return (bytes / kBlockBytes * 3 / 2 + 1 + kClassCount) * kBlockBytes;
}

bool OldSpace::reserve(std::size_t bytes) {
  const std::size_t blocks = reserved_bytes(bytes) / kBlockBytes;
  while (spare_.size() < blocks) {
    if (held_bytes_ + kBlockBytes > most_bytes_) return false;
    void* memory =
        ::mmap(nullptr, kBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    held_bytes_ += kBlockBytes;
    spare_.push_back(static_cast<char*>(memory));
  }
  return true;
}

OldSpace::Block& OldSpace::block_with_room(std::uint32_t size_class) {
  std::vector<Block*>& listed = with_room_[size_class];
  if (listed.empty()) {
    auto block = std::make_unique<Block>();
    block->memory = spare_.back();
    spare_.pop_back();
    block->size_class = size_class;
    block->slot_bytes = static_cast<std::uint32_t>(bytes_of_class(size_class));
    block->is_listed = true;
    listed.push_back(block.get());
    blocks_.push_back(std::move(block));
  }
  return *listed.back();
}

Object* OldSpace::allocate_small(std::size_t size) {
  Block& block = block_with_room(class_of(size));
  Object* object = block.free;
  if (object != nullptr)
    block.free = object->link();
  else
    object = block.slot(block.untouched++);
  ++block.used;
  used_bytes_ += size;
  if (block.free == nullptr && block.untouched == block.slots()) {
    block.is_listed = false;
    with_room_[block.size_class].pop_back();
  }
  return object;
}

Object* OldSpace::allocate_large(std::size_t size) {
  const auto has_room = [&] { return size <= most_bytes_ - std::min(most_bytes_, held_bytes_); };
  // (One collection of a nursery should still find what it needs at least.)
  while (!has_room() && spare_.size() * kBlockBytes > reserved_bytes(0)) unmap_spare();
  if (!has_room()) return nullptr;
  auto* object = static_cast<Object*>(std::calloc(1, size));
  if (object == nullptr) return nullptr;
  held_bytes_ += size;
  used_bytes_ += size;
  return object;
}

void OldSpace::free_large(Object* object) {
  held_bytes_ -= object->size();
  used_bytes_ -= object->size();
  std::free(object);
}

void OldSpace::begin_sweep() {
  next_to_sweep_ = 0;
  large_swept_ = false;
}

bool OldSpace::sweep(std::size_t bytes, std::uint64_t mark) {
  if (!std::exchange(large_swept_, true)) sweep_large(mark);
  const std::size_t until = std::min(blocks_.size(), next_to_sweep_ + bytes / kBlockBytes + 1);
  for (; next_to_sweep_ < until; ++next_to_sweep_) sweep_block(*blocks_[next_to_sweep_], mark);
  if (next_to_sweep_ < blocks_.size()) return false;
  // Blocks that have become empty may serve another class.
  for (auto& listed : with_room_) std::erase_if(listed, [](const Block* block) { return block->used == 0; });
  for (const auto& block : blocks_)
    if (block->used == 0) spare_.push_back(block->memory);
  std::erase_if(blocks_, [](const auto& block) { return block->used == 0; });
  // The next collections of the nursery will want some; the rest is the system's again.
  const std::size_t keep = kClassCount + blocks_.size() / 2;
  while (spare_.size() > keep) unmap_spare();
  return true;
}

void OldSpace::unmap_spare() {
  ::munmap(spare_.back(), kBlockBytes);
  spare_.pop_back();
  held_bytes_ -= kBlockBytes;
}

void OldSpace::sweep_large(std::uint64_t mark) {
  std::erase_if(large_, [&](Object* object) {
    const bool is_dead = (object->word_ & Object::kMark) != mark;
    if (is_dead) free_large(object);
    return is_dead;
  });
}

void OldSpace::sweep_block(Block& block, std::uint64_t mark) {
  block.free = nullptr;
  block.used = 0;
  for (std::uint32_t number = block.untouched; number-- > 0;) {
    Object* object = block.slot(number);
    if (object->word_ != 0 && (object->word_ & Object::kMark) == mark) {
      ++block.used;
      continue;
    }
    if (object->word_ != 0) used_bytes_ -= object->size();
    object->word_ = 0;
    object->set_link(std::exchange(block.free, object));
  }
  const bool has_room = block.free != nullptr || block.untouched < block.slots();
  if (has_room && !block.is_listed) {
    block.is_listed = true;
    with_room_[block.size_class].push_back(&block);
  }
}

}  // namespace plimsoll::nursery
