// heap/address_set.h: the set of objects found, and their numbers.
//
// A bit for every 16 bytes of address space in which there are objects: less than a byte an object, where a hash table
// takes thirty. An object's number is its rank by address, so that numbers need no memory of their own.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "base/sparse_array.h"
#include "heap/graph.h"

namespace plimsoll::heap {

// Addresses that are multiples of 8 and at least 16 bytes apart, as objects are. Insert, then seal, then ask for ranks.
class AddressSet {
 public:
  // False if it is there already, or cannot be the address of an object.
  bool insert(Address address) {
    if (!can_be(raw(address))) return false;
    Region* region = find(raw(address));
    if (region == nullptr) region = make_region(raw(address));
    const std::size_t granule = granule_of(raw(address));
    if (!region->is_used[granule / kSpanGranules]) begin_span(*region, granule / kSpanGranules);
    std::uint64_t& word = region->bits[granule / 64];
    const std::uint64_t bit = std::uint64_t{1} << (granule % 64);
    if ((word & bit) != 0) return false;
    word |= bit;
    ++size_;
    if ((raw(address) & 8U) != 0) {
      set(region->upper_half, granule);
      region->has_upper[granule / kSpanGranules] = true;
    }
    return true;
  }
  // For whoever will ask soon.
  void prefetch(Address address) const {
    if (const Region* region = find(raw(address)); region != nullptr)
      __builtin_prefetch(&region->bits[granule_of(raw(address)) / 64]);
  }
  // Where an address is or will be, so that it need not be looked for again; null if there is nothing near.
  [[nodiscard]] std::uint64_t* place_of(Address address) const {
    Region* region = find(raw(address));
    if (region == nullptr) return nullptr;
    const std::size_t granule = granule_of(raw(address));
    return region->is_used[granule / kSpanGranules] ? &region->bits[granule / 64] : nullptr;
  }
  // Inserts an address whose place was asked for before.
  bool insert(Address address, std::uint64_t* place) {
    // The first one of a span, and those 8 bytes off, need more than a bit.
    if (place == nullptr || (raw(address) & 15U) != 0) return insert(address);
    const std::uint64_t bit = std::uint64_t{1} << (raw(address) >> 4U & 63U);
    if ((*place & bit) != 0) return false;
    *place |= bit;
    ++size_;
    return true;
  }
  void erase(Address address) {
    Region* region = find(raw(address));
    if (region == nullptr || !holds(*region, raw(address))) return;
    const std::size_t granule = granule_of(raw(address));
    const std::uint64_t others = ~(std::uint64_t{1} << (granule % 64));
    region->bits[granule / 64] &= others;
    if (region->upper_half.is_there()) region->upper_half[granule / 64] &= others;
    --size_;
  }
  [[nodiscard]] bool contains(Address address) const {
    const Region* region = find(raw(address));
    return region != nullptr && region->is_used[granule_of(raw(address)) / kSpanGranules] &&
           holds(*region, raw(address));
  }

  // A mark of the caller's on some of the addresses; of objects that are at least 64 bytes apart, as dicts are, which
  // takes a quarter of the memory.
  void mark(Address address) {
    if (Region* region = find(raw(address)); region != nullptr) set(region->marks, granule_of(raw(address)) / kToAMark);
  }
  [[nodiscard]] bool is_marked(Address address) const {
    const Region* region = find(raw(address));
    return region != nullptr && is_set(region->marks, granule_of(raw(address)) / kToAMark);
  }

  // Some of the addresses for later; before the set is sealed.
  void put_aside(Address address);
  // Appends those of one MiB, which are at most 65,536 and are not aside any more. False if there are none.
  bool take_put_aside(std::vector<Address>& out);
  // The memory for that, while nothing is aside.
  void free_aside();

  // Makes the ranks; nothing can be inserted or erased after.
  void seal();
  // kNoNode if the address is not in the set.
  [[nodiscard]] Node rank(Address address) const {
    const Region* region = find(raw(address));
    if (region == nullptr || !holds(*region, raw(address))) return kNoNode;
    const std::size_t granule = granule_of(raw(address));
    const std::uint64_t below = region->bits[granule / 64] & ((std::uint64_t{1} << (granule % 64)) - 1);
    return region->first_rank[granule / kSpanGranules] + region->before[granule / 64] + count_of_ones(below);
  }

  [[nodiscard]] std::size_t size() const { return size_; }

  // visit(Address) for each address that the other set does not have; it may get more meanwhile.
  template <typename Visit>
  void for_each_not_in(const AddressSet& other, Visit visit) const {
    for (const auto& region : regions_)
      for (std::size_t span = 0; span < kSpans; ++span) {
        if (!region->is_used[span]) continue;
        const Region* theirs = other.find(region->start);
        const auto rest = [&](std::size_t word) {
          return region->bits[word] & ~(theirs != nullptr ? theirs->bits[word] : 0);
        };
        visit_span(*region, rest, span, visit);
      }
  }
  // visit(Address) for each address from the lowest on.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const auto& region : regions_)
      for (std::size_t span = 0; span < kSpans; ++span)
        if (region->is_used[span])
          visit_span(
              *region, [&](std::size_t word) { return region->bits[word]; }, span, visit);
  }

 private:
  // A region is a GiB of address space, all of them the 48 bits that a process can have. A span is a MiB thereof.
  static constexpr unsigned kRegionBits = 30, kSpanBits = 20, kAddressBits = 48;
  static constexpr std::size_t kSpanGranules = std::size_t{1} << (kSpanBits - 4);
  static constexpr std::size_t kSpans = std::size_t{1} << (kRegionBits - kSpanBits);
  static constexpr std::size_t kSpanWords = kSpanGranules / 64;
  static constexpr std::size_t kWords = kSpans * kSpanWords;
  using Bits = SparseArray<std::uint64_t, kWords>;
  static constexpr std::size_t kToAMark = 4;  // granules
  using Marks = SparseArray<std::uint64_t, kWords / kToAMark>;

  // Where there are objects. Its arrays take memory for half a MiB of addresses at a time.
  struct Region {
    std::uint64_t start = 0;
    Bits bits;
    Bits upper_half;  // of the objects that begin 8 bytes into their 16; few do
    Marks marks;
    Bits aside;
    SparseArray<std::uint16_t, kWords> before;  // objects in the span before the word
    std::array<Node, kSpans> first_rank{};
    std::array<bool, kSpans> is_used{};  // has objects, or had
    std::array<bool, kSpans> has_upper{}, has_aside{};
  };

  // std::popcount calls a function that looks bytes up, unless it is compiled for newer CPUs than all that we run on.
  [[nodiscard]] Node count_of_ones(std::uint64_t word) const {
#ifdef __x86_64__
    if (has_popcnt_) {
      asm("popcnt %0, %0" : "+r"(word) : : "cc");
      return static_cast<Node>(word);
    }
#endif
    word -= word >> 1U & 0x5555555555555555U;
    word = (word & 0x3333333333333333U) + (word >> 2U & 0x3333333333333333U);
    word = (word + (word >> 4U)) & 0x0f0f0f0f0f0f0f0fU;
    return static_cast<Node>(word * 0x0101010101010101U >> 56U);
  }
  static std::size_t granule_of(std::uint64_t address) { return (address >> 4U) & (kWords * 64 - 1); }
  template <typename AnyBits>
  static void set(AnyBits& bits, std::size_t at) {
    if (!bits.is_there()) bits = AnyBits::zeros();
    bits[at / 64] |= std::uint64_t{1} << (at % 64);
  }
  template <typename AnyBits>
  static bool is_set(const AnyBits& bits, std::size_t at) {
    return bits.is_there() && (bits[at / 64] >> (at % 64) & 1U) != 0;
  }
  static bool can_be(std::uint64_t address) {
    return address >> kAddressBits == 0 && (address & 7U) == 0 && address != 0;
  }
  [[gnu::always_inline]] static bool holds(const Region& region, std::uint64_t address) {
    const std::size_t granule = granule_of(address);
    return (region.bits[granule / 64] >> (granule % 64) & 1U) != 0 &&
           is_upper(region, granule) == ((address & 8U) != 0);
  }
  static bool is_upper(const Region& region, std::size_t granule) {
    return region.has_upper[granule / kSpanGranules] && is_set(region.upper_half, granule);
  }
  [[nodiscard]] Region* find(std::uint64_t address) const {
    return address >> kAddressBits == 0 ? by_address_[address >> kRegionBits] : nullptr;
  }
  Region* make_region(std::uint64_t address);
  static void begin_span(Region& region, std::size_t span);

  // visit(Address) for those of a span's addresses whose bits are set in bits(word).
  template <typename BitsOf, typename Visit>
  static void visit_span(const Region& region, const BitsOf& bits, std::size_t span, Visit& visit) {
    for (std::size_t word = span * kSpanWords; word < (span + 1) * kSpanWords; ++word)
      for (std::uint64_t rest = bits(word); rest != 0; rest &= rest - 1) {
        const std::size_t granule = word * 64 + static_cast<std::size_t>(std::countr_zero(rest));
        visit(Address{region.start + granule * 16 + (is_upper(region, granule) ? 8 : 0)});
      }
  }

  using RegionTable = SparseArray<Region*, std::size_t{1} << (kAddressBits - kRegionBits)>;
  RegionTable by_address_ = RegionTable::zeros();
  std::vector<std::unique_ptr<Region>> regions_;  // by address
  std::vector<std::pair<Region*, std::size_t>> have_aside_;
  std::size_t size_ = 0;
#ifdef __x86_64__
  bool has_popcnt_ = __builtin_cpu_supports("popcnt") != 0;
#endif
};

}  // namespace plimsoll::heap
