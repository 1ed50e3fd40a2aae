// capture/held_records.h: records that were taken out of the ring before they could be dealt with, so that there is
// room in it for others.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace plimsoll::capture {

// In the order in which they came. For one thread; allocates.
class HeldRecords {
 public:
  void add(std::span<const std::byte> record) {
    auto copy = std::make_unique_for_overwrite<std::byte[]>(record.size());
    std::memcpy(copy.get(), record.data(), record.size());
    bytes_ += record.size();
    records_.push_back({std::move(copy), record.size()});
  }
  [[nodiscard]] bool is_empty() const { return records_.empty(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  // Calls take(std::span<const std::byte>) for each, aligned as operator new does, and frees it.
  template <typename Take>
  void take_all(Take take) && {
    for (Record& record : records_) {
      take(std::span<const std::byte>(record.bytes.get(), record.size));
      record.bytes.reset();
    }
    records_.clear();
    bytes_ = 0;
  }

 private:
  // One of them.
  struct Record {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
  };
  std::vector<Record> records_;
  std::size_t bytes_ = 0;
};

}  // namespace plimsoll::capture
