#include "heap/address_set.h"

#include <utility>

namespace plimsoll::heap {

AddressSet::Chunk* AddressSet::make_chunk(std::uint64_t address) {
  auto& branch = branches_[address >> (kChunkBits + kBranchBits)];
  if (!branch) branch = std::make_unique<Branch>();
  auto& chunk = (*branch)[(address >> kChunkBits) & ((1U << kBranchBits) - 1)];
  chunk = std::make_unique<Chunk>();
  chunk->start = address >> kChunkBits << kChunkBits;
  return chunk.get();
}

bool AddressSet::take_put_aside(std::vector<Address>& out) {
  if (have_aside_.empty()) return false;
  Chunk& chunk = *have_aside_.back();
  have_aside_.pop_back();
  const std::unique_ptr<Bits> bits = std::move(chunk.aside);
  const auto append = [&](Address address) { out.push_back(address); };
  visit_chunk(chunk, *bits, append);
  return true;
}

void AddressSet::seal() {
  Node rank = 0;
  for (const auto& branch : branches_) {
    if (!branch) continue;
    for (const auto& chunk : *branch) {
      if (!chunk) continue;
      chunk->first_rank = rank;
      std::uint32_t before = 0;
      for (std::size_t word = 0; word < chunk->bits.size(); ++word) {
        chunk->before[word] = static_cast<std::uint16_t>(before);
        before += count_of_ones(chunk->bits[word]);
      }
      rank += before;
    }
  }
}

std::size_t AddressSet::footprint() const {
  std::size_t bytes = sizeof *this;
  for (const auto& branch : branches_) {
    if (!branch) continue;
    bytes += sizeof(Branch);
    for (const auto& chunk : *branch)
      if (chunk) bytes += sizeof(Chunk) + (chunk->upper_half ? sizeof(Bits) : 0) + (chunk->marks ? sizeof(Bits) : 0);
  }
  return bytes;
}

}  // namespace plimsoll::heap
