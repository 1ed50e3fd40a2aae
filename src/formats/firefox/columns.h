// formats/firefox/columns.h: columns of numbers, in the JSON text or as slabs beside it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/firefox/jslb.h"
#include "formats/json.h"

namespace plimsoll::formats::firefox {

// Writes columns where the file wants them. Only those that the page takes as typed arrays from version 67 on may be
// slabs. A value is what value_of(element) gives for each element of a range.
class Columns {
 public:
  // `slabs` takes the columns; null = they go into the JSON text.
  Columns(JsonWriter& json, Slabs* slabs) : json_(json), slabs_(slabs) {}

  template <typename Range, typename ValueOf>
  void int32(std::string_view name, const Range& range, ValueOf value_of) {
    numbers<std::int32_t>(SlabType::kI32, name, range, value_of);
  }
  template <typename Range, typename ValueOf>
  void uint8(std::string_view name, const Range& range, ValueOf value_of) {
    numbers<std::uint8_t>(SlabType::kU8, name, range, value_of);
  }
  // Nanoseconds, in the file milliseconds.
  template <typename Range, typename ValueOf>
  void milliseconds(std::string_view name, const Range& range, ValueOf ns_of) {
    constexpr double kMillisecond = 1e6;
    if (slabs_ == nullptr)
      return json_.column(name, range, [&](const auto& element) { json_.milliseconds(ns_of(element)); });
    std::string bytes;
    for (const auto& element : range) append(bytes, static_cast<double>(ns_of(element)) / kMillisecond);
    slab(name, SlabType::kF64, std::move(bytes));
  }

 private:
  template <typename Number, typename Range, typename ValueOf>
  void numbers(SlabType type, std::string_view name, const Range& range, ValueOf value_of) {
    if (slabs_ == nullptr)
      return json_.column(name, range, [&](const auto& element) { json_.integer(value_of(element)); });
    std::string bytes;
    for (const auto& element : range) append(bytes, static_cast<Number>(value_of(element)));
    slab(name, type, std::move(bytes));
  }
  template <typename Number>
  static void append(std::string& bytes, Number number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void slab(std::string_view name, SlabType type, std::string bytes) {
    json_.key(name);
    json_.begin_object();
    json_.member("$s", static_cast<std::int64_t>(slabs_->add(type, std::move(bytes))));
    json_.end_object();
  }

  JsonWriter& json_;
  Slabs* slabs_;
};

}  // namespace plimsoll::formats::firefox
