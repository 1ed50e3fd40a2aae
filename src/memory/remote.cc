#include "memory/remote.h"

#include <sys/uio.h>

#include <algorithm>
#include <climits>

namespace plimsoll::memory {

bool RemoteReader::read(Address at, void* out, std::size_t size) const {
  const iovec here{out, size};
  const iovec there{reinterpret_cast<void*>(raw(at)), size};  // NOLINT(performance-no-int-to-ptr): an iovec's type
  return ::process_vm_readv(process_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
}

bool RemoteReader::read_all(std::span<const Range> ranges, std::byte* out) const {
  std::array<iovec, IOV_MAX> there;
  while (!ranges.empty()) {
    const std::size_t count = std::min<std::size_t>(ranges.size(), there.size());
    std::size_t total = 0;
    for (std::size_t i = 0; i < count; ++i) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): an iovec's type
      there[i] = {reinterpret_cast<void*>(raw(ranges[i].at)), ranges[i].size};
      total += ranges[i].size;
    }
    const iovec here{out, total};
    if (::process_vm_readv(process_, &here, 1, there.data(), count, 0) != static_cast<ssize_t>(total)) return false;
    out += total;
    ranges = ranges.subspan(count);
  }
  return true;
}

const std::byte* PagedReader::find_page(std::uint64_t number) const {
  const auto [place, is_new] = places_.try_emplace(number, static_cast<std::uint32_t>(places_.size()));
  if (is_new) {
    const std::size_t index = place->second;
    if (index == pages_.size() && index < kMostPages) pages_.push_back(std::make_unique_for_overwrite<Page>());
    if (index >= pages_.size() || !memory_.read(Address{number * kPageSize}, pages_[index]->data(), kPageSize)) {
      places_.erase(place);
      return nullptr;
    }
  }
  last_number_ = number;
  last_ = pages_[place->second]->data();
  return last_;
}

void PagedReader::copy_together(std::span<const std::uint64_t> numbers) {
  std::vector<RemoteReader::Range> ranges;
  for (const std::uint64_t number : numbers) ranges.push_back({Address{number * kPageSize}, kPageSize});
  std::vector<std::byte> copies(ranges.size() * kPageSize);
  if (!memory_.read_all(ranges, copies.data())) return;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto place = places_.try_emplace(numbers[i], static_cast<std::uint32_t>(places_.size())).first;
    if (place->second == pages_.size()) pages_.push_back(std::make_unique_for_overwrite<Page>());
    std::memcpy(pages_[place->second]->data(), &copies[i * kPageSize], kPageSize);
  }
}

void PagedReader::replace(Address at, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t offset = raw(at) % kPageSize;
    const std::size_t here = std::min(bytes.size(), kPageSize - offset);
    if (const auto place = places_.find(raw(at) / kPageSize); place != places_.end())
      std::memcpy(pages_[place->second]->data() + offset, bytes.data(), here);
    bytes = bytes.subspan(here);
    at = offset_by(at, here);
  }
}

}  // namespace plimsoll::memory
