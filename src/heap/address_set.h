// heap/address_set.h: the set of objects found, and their numbers.
//
// A bit for every 16 bytes of address space in which there are objects: less than a byte an object, where a hash table
// takes thirty. An object's number is its rank by address, so that numbers need no memory of their own.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "heap/graph.h"

namespace plimsoll::heap {

// Addresses that are multiples of 8 and at least 16 bytes apart, as objects are. Insert, then seal, then ask for ranks.
class AddressSet {
 public:
  // False if it is there already, or cannot be the address of an object.
  bool insert(Address address) {
    if (!can_be(raw(address))) return false;
    Chunk* chunk = find(raw(address));
    if (chunk == nullptr) chunk = make_chunk(raw(address));
    const std::size_t granule = granule_of(raw(address));
    std::uint64_t& word = chunk->bits[granule / 64];
    const std::uint64_t bit = std::uint64_t{1} << (granule % 64);
    if ((word & bit) != 0) return false;
    word |= bit;
    ++size_;
    if ((raw(address) & 8U) != 0) set(chunk->upper_half, granule);
    return true;
  }
  void erase(Address address) {
    Chunk* chunk = find(raw(address));
    if (chunk == nullptr || !holds(*chunk, raw(address))) return;
    const std::size_t granule = granule_of(raw(address));
    const std::uint64_t others = ~(std::uint64_t{1} << (granule % 64));
    chunk->bits[granule / 64] &= others;
    if (chunk->upper_half) (*chunk->upper_half)[granule / 64] &= others;
    --size_;
  }
  [[nodiscard]] bool contains(Address address) const {
    const Chunk* chunk = find(raw(address));
    return chunk != nullptr && holds(*chunk, raw(address));
  }

  // A mark of the caller's on some of the addresses.
  void mark(Address address) {
    if (Chunk* chunk = find(raw(address)); chunk != nullptr) set(chunk->marks, granule_of(raw(address)));
  }
  [[nodiscard]] bool is_marked(Address address) const {
    const Chunk* chunk = find(raw(address));
    return chunk != nullptr && is_set(chunk->marks, granule_of(raw(address)));
  }

  // Some of the addresses for later.
  void put_aside(Address address) {
    Chunk* chunk = find(raw(address));
    if (chunk == nullptr) return;
    if (!chunk->aside) have_aside_.push_back(chunk);
    set(chunk->aside, granule_of(raw(address)));
  }
  // Appends those of one chunk, which are at most 65,536 and are not aside any more. False if there are none.
  bool take_put_aside(std::vector<Address>& out);

  // Makes the ranks; nothing can be inserted or erased after.
  void seal();
  // kNoNode if the address is not in the set.
  [[nodiscard]] Node rank(Address address) const {
    const Chunk* chunk = find(raw(address));
    if (chunk == nullptr || !holds(*chunk, raw(address))) return kNoNode;
    const std::size_t granule = granule_of(raw(address));
    const std::uint64_t below = chunk->bits[granule / 64] & ((std::uint64_t{1} << (granule % 64)) - 1);
    return chunk->first_rank + chunk->before[granule / 64] + count_of_ones(below);
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  // Bytes of memory it takes.
  [[nodiscard]] std::size_t footprint() const;

  // visit(Address) for each address from the lowest on.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const auto& branch : branches_) {
      if (!branch) continue;
      for (const auto& chunk : *branch)
        if (chunk) visit_chunk(*chunk, chunk->bits, visit);
    }
  }

 private:
  // A chunk is 1 MiB of address space, a branch 16 GiB, all of them the 48 bits that a process can have.
  static constexpr unsigned kChunkBits = 20, kBranchBits = 14, kAddressBits = 48;
  static constexpr std::size_t kGranules = std::size_t{1} << (kChunkBits - 4);
  using Bits = std::array<std::uint64_t, kGranules / 64>;

  // A MiB of address space in which there are objects.
  struct Chunk {
    std::uint64_t start = 0;
    Node first_rank = 0;
    std::unique_ptr<Bits> upper_half;  // of the objects that begin 8 bytes into their 16; few do
    std::unique_ptr<Bits> marks;
    std::unique_ptr<Bits> aside;
    Bits bits{};
    std::array<std::uint16_t, kGranules / 64> before{};  // objects in the chunk before the word
  };
  using Branch = std::array<std::unique_ptr<Chunk>, std::size_t{1} << kBranchBits>;

  // std::popcount calls a function that looks bytes up, unless it is compiled for newer CPUs than all that we run on.
  static Node count_of_ones(std::uint64_t word) {
    word -= word >> 1U & 0x5555555555555555U;
    word = (word & 0x3333333333333333U) + (word >> 2U & 0x3333333333333333U);
    word = (word + (word >> 4U)) & 0x0f0f0f0f0f0f0f0fU;
    return static_cast<Node>(word * 0x0101010101010101U >> 56U);
  }
  static std::size_t granule_of(std::uint64_t address) { return (address >> 4U) & (kGranules - 1); }
  static void set(std::unique_ptr<Bits>& bits, std::size_t granule) {
    if (!bits) bits = std::make_unique<Bits>();
    (*bits)[granule / 64] |= std::uint64_t{1} << (granule % 64);
  }
  static bool is_set(const std::unique_ptr<Bits>& bits, std::size_t granule) {
    return bits && ((*bits)[granule / 64] >> (granule % 64) & 1U) != 0;
  }
  static bool can_be(std::uint64_t address) {
    return address >> kAddressBits == 0 && (address & 7U) == 0 && address != 0;
  }
  static bool holds(const Chunk& chunk, std::uint64_t address) {
    const std::size_t granule = granule_of(address);
    return (chunk.bits[granule / 64] >> (granule % 64) & 1U) != 0 &&
           is_set(chunk.upper_half, granule) == ((address & 8U) != 0);
  }
  [[nodiscard]] Chunk* find(std::uint64_t address) const {
    if (address >> kAddressBits != 0) return nullptr;
    const auto& branch = branches_[address >> (kChunkBits + kBranchBits)];
    return branch ? (*branch)[(address >> kChunkBits) & ((1U << kBranchBits) - 1)].get() : nullptr;
  }
  Chunk* make_chunk(std::uint64_t address);

  // visit(Address) for those of the chunk's addresses whose bits are set.
  template <typename Visit>
  static void visit_chunk(const Chunk& chunk, const Bits& bits, Visit& visit) {
    for (std::size_t word = 0; word < bits.size(); ++word)
      for (std::uint64_t rest = bits[word]; rest != 0; rest &= rest - 1) {
        const std::size_t granule = word * 64 + static_cast<std::size_t>(std::countr_zero(rest));
        visit(Address{chunk.start + granule * 16 + (is_set(chunk.upper_half, granule) ? 8 : 0)});
      }
  }

  std::array<std::unique_ptr<Branch>, std::size_t{1} << (kAddressBits - kChunkBits - kBranchBits)> branches_;
  std::vector<Chunk*> have_aside_;
  std::size_t size_ = 0;
};

}  // namespace plimsoll::heap
