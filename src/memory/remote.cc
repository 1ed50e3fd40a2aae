#include "memory/remote.h"

#include <sys/uio.h>

#include <algorithm>
#include <climits>
#include <utility>

namespace plimsoll::memory {
namespace {

// Bytes of the other process.
iovec piece(Address at, std::size_t size) {
  return {reinterpret_cast<void*>(raw(at)), size};  // NOLINT(performance-no-int-to-ptr): an iovec's type
}

}  // namespace

bool RemoteReader::read(Address at, void* out, std::size_t size) const {
  const iovec here{out, size};
  const iovec there = piece(at, size);
  return ::process_vm_readv(process_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
}

bool RemoteReader::read_all(std::span<const Range> ranges, std::byte* out) const {
  std::array<iovec, IOV_MAX> there;
  while (!ranges.empty()) {
    const std::size_t count = std::min<std::size_t>(ranges.size(), there.size());
    std::size_t total = 0;
    for (std::size_t i = 0; i < count; ++i) {
      there[i] = piece(ranges[i].at, ranges[i].size);
      total += ranges[i].size;
    }
    const iovec here{out, total};
    if (::process_vm_readv(process_, &here, 1, there.data(), count, 0) != static_cast<ssize_t>(total)) return false;
    out += total;
    ranges = ranges.subspan(count);
  }
  return true;
}

std::size_t RemoteReader::read_blocks(std::span<const Block> blocks) const {
  constexpr std::size_t kTogether = 64;
  std::array<iovec, kTogether> here;
  std::array<iovec, kTogether> there;
  std::size_t done = 0;
  while (done < blocks.size()) {
    const std::size_t count = std::min(blocks.size() - done, kTogether);
    std::size_t total = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Block& block = blocks[done + i];
      here[i] = {block.out.data(), block.out.size()};
      there[i] = piece(block.at, block.out.size());
      total += block.out.size();
    }
    const ssize_t size = ::process_vm_readv(process_, here.data(), count, there.data(), count, 0);
    if (size != static_cast<ssize_t>(total)) {
      auto left = static_cast<std::size_t>(std::max<ssize_t>(size, 0));
      for (; left >= blocks[done].out.size(); ++done) left -= blocks[done].out.size();
      return done;
    }
    done += count;
  }
  return done;
}

const std::byte* PagedReader::find_page(std::uint64_t number) const {
  const auto [place, is_new] = places_.try_emplace(number, Place{static_cast<std::uint32_t>(places_.size())});
  const std::size_t index = place->second.index;
  if (is_new) {
    if (index == pages_.size() && index < kMostPages) pages_.push_back(std::make_unique_for_overwrite<Page>());
    if (index >= pages_.size() || !memory_.read(Address{number * kPageSize}, pages_[index]->data(), kPageSize)) {
      places_.erase(place);
      return nullptr;
    }
  }
  if (!std::exchange(place->second.is_visited, true)) visited_.push_back(number);
  const std::byte* const page = pages_[index]->data();
  recent_[number % kRecent] = {number, page};
  return page;
}

void PagedReader::copy_together(std::span<const std::uint64_t> numbers) {
  blocks_.clear();
  for (const std::uint64_t number : numbers) {
    const std::size_t index = places_.size();
    if (index == kMostPages || !places_.try_emplace(number, Place{static_cast<std::uint32_t>(index)}).second) continue;
    if (index == pages_.size()) pages_.push_back(std::make_unique_for_overwrite<Page>());
    blocks_.push_back({Address{number * kPageSize}, *pages_[index]});
  }
  const std::size_t read = memory_.read_blocks(blocks_);
  // From the last to the first: the rooms that are free are those at the end.
  for (std::size_t i = blocks_.size(); i-- > read;) places_.erase(raw(blocks_[i].at) / kPageSize);
}

void PagedReader::replace(Address at, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t offset = raw(at) % kPageSize;
    const std::size_t here = std::min(bytes.size(), kPageSize - offset);
    if (const auto place = places_.find(raw(at) / kPageSize); place != places_.end())
      std::memcpy(pages_[place->second.index]->data() + offset, bytes.data(), here);
    bytes = bytes.subspan(here);
    at = offset_by(at, here);
  }
}

}  // namespace plimsoll::memory
