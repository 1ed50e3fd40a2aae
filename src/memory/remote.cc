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

bool PagedReader::read(Address at, void* out, std::size_t size) const {
  auto* to = static_cast<std::byte*>(out);
  while (size > 0) {
    const std::size_t here = std::min(size, kPageSize - raw(at) % kPageSize);
    const std::byte* bytes = window(at, here);
    if (bytes == nullptr) return false;
    std::memcpy(to, bytes, here);
    to += here;
    size -= here;
    at = offset_by(at, here);
  }
  return true;
}

PagedReader::Copy* PagedReader::find(std::uint64_t number) const {
  Copy* const recent = recent_[number % kRecent];
  if (recent != nullptr && recent->number == number) return recent;
  const auto place = rest_.find(number);
  return place != rest_.end() ? place->second : nullptr;
}

PagedReader::Copy* PagedReader::add(std::uint64_t number) const {
  if (count_ == kMostPages) return nullptr;
  if (count_ == copies_.size()) copies_.push_back(std::make_unique_for_overwrite<Copy>());
  Copy* const copy = copies_[count_].get();
  Copy*& recent = recent_[number % kRecent];
  if (recent != nullptr) rest_.emplace(recent->number, recent);
  recent = copy;
  copy->number = number;
  copy->begin = copy->end = copy->copied_begin = copy->copied_end = 0;
  ++count_;
  return copy;
}

void PagedReader::remove_last() const {
  const Copy* const copy = copies_[--count_].get();
  Copy*& recent = recent_[copy->number % kRecent];
  if (recent == copy)
    recent = nullptr;  // who was there before is found all the same
  else
    rest_.erase(copy->number);
}

bool PagedReader::complete(Copy& copy) const {
  const Address start{copy.number * kPageSize};
  const RemoteReader::Block before{start, std::span(copy.bytes).first(copy.copied_begin)};
  const RemoteReader::Block after{offset_by(start, copy.copied_end), std::span(copy.bytes).subspan(copy.copied_end)};
  for (const RemoteReader::Block& missing : {before, after})
    if (!missing.out.empty() && !memory_.read(missing.at, missing.out.data(), missing.out.size())) return false;
  copy.copied_begin = 0;
  copy.copied_end = kPageSize;
  return true;
}

const PagedReader::Copy* PagedReader::copy_with(std::uint64_t number, std::size_t begin, std::size_t end) const {
  Copy* copy = find(number);
  const bool is_new = copy == nullptr;
  if (is_new) copy = add(number);
  if (copy == nullptr) return nullptr;
  if (begin < copy->copied_begin || end > copy->copied_end) {
    if (!complete(*copy)) {
      if (is_new) remove_last();
      return nullptr;
    }
  }
  if (copy->end == 0) {
    visited_.push_back(copy);
    // Of a part that was asked for, all is wanted.
    const bool is_whole = copy->copied_end - copy->copied_begin == kPageSize;
    copy->begin = is_whole ? static_cast<std::uint32_t>(begin) : copy->copied_begin;
    copy->end = is_whole ? static_cast<std::uint32_t>(end) : copy->copied_end;
  }
  // In steps, so that a walk from frame to frame comes here now and then only.
  const auto from = static_cast<std::uint32_t>(begin / kStep * kStep);
  const auto to = static_cast<std::uint32_t>((end + kStep - 1) / kStep * kStep);
  copy->begin = std::max(std::min(copy->begin, from), copy->copied_begin);
  copy->end = std::min(std::max(copy->end, to), copy->copied_end);
  return copy;
}

void PagedReader::forget() {
  count_ = 0;
  recent_.fill(nullptr);
  if (!rest_.empty()) rest_.clear();
  visited_.clear();
}

void PagedReader::copy_together(std::span<const Part> parts) {
  blocks_.clear();
  const std::size_t first = count_;
  for (const Part& part : parts) {
    Copy* const copy = find(part.page) == nullptr ? add(part.page) : nullptr;
    if (copy == nullptr) continue;
    const std::span<std::byte> room = std::span(copy->bytes).subspan(part.begin, part.end - part.begin);
    blocks_.push_back({Address{part.page * kPageSize + part.begin}, room});
  }
  const std::size_t read = memory_.read_blocks(blocks_);
  while (count_ > first + read) remove_last();
  for (std::size_t i = 0; i < read; ++i) {
    Copy& copy = *copies_[first + i];
    copy.copied_begin = static_cast<std::uint32_t>(raw(blocks_[i].at) % kPageSize);
    copy.copied_end = copy.copied_begin + static_cast<std::uint32_t>(blocks_[i].out.size());
  }
}

void PagedReader::visited(std::vector<Part>& out, std::size_t most) const {
  out.clear();
  for (const Copy* copy : std::span(visited_).first(std::min(most, visited_.size())))
    out.push_back({copy->number, copy->begin, copy->end});
}

void PagedReader::replace(Address at, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t offset = raw(at) % kPageSize;
    const std::size_t here = std::min(bytes.size(), kPageSize - offset);
    Copy* const copy = find(raw(at) / kPageSize);
    if (copy != nullptr && window(at, here) != nullptr) std::memcpy(copy->bytes.data() + offset, bytes.data(), here);
    bytes = bytes.subspan(here);
    at = offset_by(at, here);
  }
}

}  // namespace plimsoll::memory
