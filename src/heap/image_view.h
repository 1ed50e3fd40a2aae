// heap/image_view.h: how objects look in a copy of a process's memory. Whatever the copy says, nothing is read outside
// of it, and the work is bounded: whoever reads rows of words pays for them out of a budget.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "cpython/layout.h"
#include "cpython/object_fields.h"
#include "memory/image.h"

namespace plimsoll::heap {

// A copy of memory with what is known of the Python in it.
class ImageView {
 public:
  ImageView(const memory::Image& image, const cpython::Layout& layout, const cpython::ObjectFields& fields)
      : image_(image), layout_(layout), fields_(fields) {
    refill();
  }

  [[nodiscard]] const memory::Image& image() const { return image_; }
  [[nodiscard]] const cpython::Layout& layout() const { return layout_; }
  [[nodiscard]] const cpython::ObjectFields& fields() const { return fields_; }

  // Numbers at an address and an offset from it, and pointers; 0 if they cannot be read.
  template <typename Number>
  [[nodiscard]] Number number(Address at, std::uint64_t offset) const {
    Number value{};
    return image_.load(offset_by(at, offset), value) ? value : Number{};
  }
  [[nodiscard]] std::uint64_t word(Address at, std::uint64_t offset) const { return number<std::uint64_t>(at, offset); }
  [[nodiscard]] Address pointer(Address at, std::uint64_t offset) const { return Address{word(at, offset)}; }
  [[nodiscard]] Address type_of(Address object) const { return pointer(object, layout_.object.type); }
  // ob_size, without its sign.
  [[nodiscard]] std::uint64_t item_count(Address object) const {
    const auto count = number<std::int64_t>(object, layout_.object.var_size);
    return count < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(count);
  }

  // Calls visit(row) for rows of kWidth words that lie side by side, each an array of them. Stops where one cannot be
  // read, or when the budget is spent.
  template <std::size_t kWidth, typename Visit>
  void each_row(Address at, std::uint64_t count, Visit visit) const {
    constexpr std::uint64_t kTogether = 64;
    std::array<std::array<std::uint64_t, kWidth>, kTogether> rows;
    while (count > 0) {
      const std::uint64_t here = count < kTogether ? count : kTogether;
      std::uint64_t readable = here;
      if (!spend(here * kWidth)) return;
      if (!image_.read(at, rows.data(), here * sizeof rows[0]))
        for (readable = 0; readable < here; ++readable)
          if (!image_.read(offset_by(at, readable * sizeof rows[0]), &rows[readable], sizeof rows[0])) break;
      for (std::uint64_t i = 0; i < readable; ++i) visit(rows[i]);
      if (readable < here) return;
      at = offset_by(at, here * sizeof rows[0]);
      count -= here;
    }
  }

  // The budget: some times the words that there are, as a heap has each reference at one place only.
  void refill() const { budget_ = image_.copied_bytes() + kLeastBudget; }
  [[nodiscard]] bool spend(std::uint64_t words) const {
    if (words > budget_) {
      budget_ = 0;
      return false;
    }
    budget_ -= words;
    return true;
  }
  [[nodiscard]] bool is_spent() const { return budget_ == 0; }

 private:
  static constexpr std::uint64_t kLeastBudget = 1U << 20U;
  const memory::Image& image_;
  const cpython::Layout& layout_;
  const cpython::ObjectFields& fields_;
  mutable std::uint64_t budget_ = 0;
};

// The keys of a dict, or those that instances of a class share.
struct KeyTable {
  Address entries{};
  std::uint64_t count = 0;     // of entries, also those that are no more
  std::uint64_t capacity = 0;  // of those that there can be
  std::uint64_t bytes = 0;     // all of it
  std::uint64_t references = 0;
  bool has_hashes = false;
  bool is_shared = false;  // values are elsewhere
  bool is_sound = false;
};
KeyTable key_table(const ImageView& view, Address keys);

// Values of attributes, or of a dict with shared keys: where they start.
Address shared_values(const ImageView& view, Address values);

// Calls visit(key, value) for each item of a dict, as addresses.
template <typename Visit>
void each_item(const ImageView& view, Address dict, Visit visit) {
  namespace field = cpython::container_field;
  const KeyTable keys = key_table(view, view.pointer(dict, field::kDictKeys));
  const Address values = view.pointer(dict, field::kDictValues);
  if (!keys.is_sound) return;
  if (!is_null(values)) {
    Address at = shared_values(view, values);
    const auto shared = [&](std::uint64_t key) {
      const Address value = view.pointer(at, 0);
      at = offset_by(at, 8);
      if (!is_null(value)) visit(Address{key}, value);
    };
    if (keys.has_hashes) return view.each_row<3>(keys.entries, keys.count, [&](const auto& row) { shared(row[1]); });
    return view.each_row<2>(keys.entries, keys.count, [&](const auto& row) { shared(row[0]); });
  }
  const auto own = [&](std::uint64_t key, std::uint64_t value) {
    if (key != 0 && value != 0) visit(Address{key}, Address{value});
  };
  if (keys.has_hashes)
    view.each_row<3>(keys.entries, keys.count, [&](const auto& row) { own(row[1], row[2]); });
  else
    view.each_row<2>(keys.entries, keys.count, [&](const auto& row) { own(row[0], row[1]); });
}

// UTF-8 of at most `most` characters of a str; empty if it is none. The caller knows that its class is one of str.
std::string text_of(const ImageView& view, Address text, std::uint64_t most);
// A C string, of at most 255 bytes.
std::string c_text(const ImageView& view, Address at);
// What a dict has under an ASCII name; null if nothing, or if it is very large.
Address entry_of(const ImageView& view, Address dict, std::string_view name);

}  // namespace plimsoll::heap
