// cpython/object_view.h: how objects look in a process's memory, be it a copy or read as it goes. Whatever stands
// there, the work is bounded: whoever reads rows of words pays for them out of a budget.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "cpython/code_object.h"
#include "cpython/layout.h"
#include "cpython/object_fields.h"
#include "memory/reader.h"

namespace plimsoll::cpython {

// Some memory with what is known of the Python in it.
template <memory::Reader M>
class ObjectView {
 public:
  // All must outlive it. `budget`: words that rows may cost, until refill().
  ObjectView(const M& memory, const Layout& layout, const ObjectFields& fields, std::uint64_t budget)
      : memory_(memory),
        layout_(layout),
        fields_(fields),
        head_shift_(layout.object.type - kTypeInHead),
        most_(budget),
        budget_(budget) {}

  [[nodiscard]] const M& memory() const { return memory_; }
  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] const ObjectFields& fields() const { return fields_; }
  // How much longer an object's head is than with a GIL: all constants and ObjectFields are without it.
  [[nodiscard]] std::uint32_t head_shift() const { return head_shift_; }

  // Numbers at an address and an offset from it, and pointers; 0 if they cannot be read.
  template <typename Number>
  [[nodiscard]] Number number(Address at, std::uint64_t offset) const {
    std::make_unsigned_t<Number> value{};
    return memory_.load(offset_by(at, offset), value) ? static_cast<Number>(value) : Number{};
  }
  [[nodiscard]] std::uint64_t word(Address at, std::uint64_t offset) const { return number<std::uint64_t>(at, offset); }
  [[nodiscard]] Address pointer(Address at, std::uint64_t offset) const { return Address{word(at, offset)}; }
  // The same of an object, at a place that constants and ObjectFields have it at: without head_shift().
  [[nodiscard]] Address place_in(Address object, std::uint64_t field) const {
    return offset_by(object, field + head_shift_);
  }
  template <typename Number>
  [[nodiscard]] Number number_in(Address object, std::uint64_t field) const {
    return number<Number>(object, field + head_shift_);
  }
  [[nodiscard]] std::uint64_t word_in(Address object, std::uint64_t field) const {
    return word(object, field + head_shift_);
  }
  [[nodiscard]] Address pointer_in(Address object, std::uint64_t field) const {
    return pointer(object, field + head_shift_);
  }
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
      if (!memory_.read(at, rows.data(), here * sizeof rows[0]))
        for (readable = 0; readable < here; ++readable)
          if (!memory_.read(offset_by(at, readable * sizeof rows[0]), &rows[readable], sizeof rows[0])) break;
      for (std::uint64_t i = 0; i < readable; ++i) visit(rows[i]);
      if (readable < here) return;
      at = offset_by(at, here * sizeof rows[0]);
      count -= here;
    }
  }

  void refill() const { budget_ = most_; }
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
  static constexpr std::uint32_t kTypeInHead = 8;
  const M& memory_;
  const Layout& layout_;
  const ObjectFields& fields_;
  const std::uint32_t head_shift_;
  const std::uint64_t most_;
  mutable std::uint64_t budget_ = 0;
};

// The keys of a dict, or those that instances of a class share.
struct KeyTable {
  Address entries{};
  Address indices{};           // of entries, by hash; what is in no use has all bits set
  std::uint64_t size = 0;      // of indices: a power of two
  std::uint64_t width = 0;     // of an index, in bytes: 1, 2, 4 or 8
  std::uint64_t count = 0;     // of entries, also those that are no more
  std::uint64_t capacity = 0;  // of those that there can be
  std::uint64_t bytes = 0;     // all of it
  std::uint64_t references = 0;
  bool has_hashes = false;
  bool is_shared = false;  // values are elsewhere
  bool is_sound = false;
};

namespace internal {

// Two thirds of a table can be used.
constexpr std::uint64_t usable(std::uint64_t size) { return size * 2 / 3; }

// PyDictKeysObject of 3.9 and 3.10: dk_refcnt, dk_size, dk_lookup, dk_usable, dk_nentries, dk_indices.
template <memory::Reader M>
KeyTable sized_table(const ObjectView<M>& view, Address keys) {
  KeyTable table;
  const std::uint64_t size = view.word(keys, 8);
  const std::uint64_t width = size <= 0xff ? 1 : size <= 0xffff ? 2 : size <= 0xffffffffU ? 4 : 8;
  constexpr std::uint64_t kIndices = 40, kEntry = 24;
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 36U;
  table.references = view.word(keys, 0);
  table.indices = offset_by(keys, kIndices);
  table.size = size;
  table.width = width;
  table.count = view.word(keys, 32);
  table.capacity = usable(size);
  table.entries = offset_by(keys, kIndices + size * width);
  table.bytes = kIndices + size * width + table.capacity * kEntry;
  table.has_hashes = true;
  table.is_shared = true;  // what the instances of a class share is told by the class only
  table.is_sound = size != 0 && size <= kLargest && (size & (size - 1)) == 0 && table.count <= size;
  return table;
}

// From 3.11 on: dk_refcnt, dk_log2_size, dk_log2_index_bytes, dk_kind, dk_version, dk_usable, dk_nentries, dk_indices.
template <memory::Reader M>
KeyTable table_of_kind(const ObjectView<M>& view, Address keys) {
  KeyTable table;
  constexpr std::uint64_t kIndices = 32;
  constexpr std::uint8_t kLargestLog = 36, kGeneral = 0, kSplit = 2;
  const auto log2_size = view.template number<std::uint8_t>(keys, 8);
  const auto log2_bytes = view.template number<std::uint8_t>(keys, 9);
  const auto kind = view.template number<std::uint8_t>(keys, 10);
  const std::uint64_t free = view.word(keys, 16);
  table.references = view.word(keys, 0);
  table.count = view.word(keys, 24);
  if (log2_size > kLargestLog || log2_bytes < log2_size || log2_bytes > log2_size + 3 || kind > kSplit) return table;
  const std::uint64_t size = std::uint64_t{1} << log2_size;
  if (table.count > size || free > size) return table;
  table.indices = offset_by(keys, kIndices);
  table.size = size;
  table.width = std::uint64_t{1} << (log2_bytes - log2_size);
  table.has_hashes = kind == kGeneral;
  table.is_shared = kind == kSplit;
  table.capacity = table.is_shared ? table.count + free : usable(size);
  table.entries = offset_by(keys, kIndices + (std::uint64_t{1} << log2_bytes));
  table.bytes = kIndices + (std::uint64_t{1} << log2_bytes) + usable(size) * (table.has_hashes ? 24 : 16);
  table.is_sound = true;
  return table;
}

}  // namespace internal

template <memory::Reader M>
KeyTable key_table(const ObjectView<M>& view, Address keys) {
  if (is_null(keys)) return {};
  return view.fields().keys_style == KeysStyle::kSized ? internal::sized_table(view, keys)
                                                       : internal::table_of_kind(view, keys);
}

// Values of attributes, or of a dict with shared keys: where they start.
template <memory::Reader M>
Address shared_values(const ObjectView<M>& view, Address values) {
  // capacity, size, embedded and valid stand in front, in 8 bytes.
  return view.fields().values_style == ValuesStyle::kInside ? offset_by(values, 8) : values;
}

// Calls visit(key, value) for each item of a dict, as addresses; of its first `most` entries.
template <memory::Reader M, typename Visit>
void each_item(const ObjectView<M>& view, Address dict, Visit visit, std::uint64_t most = ~std::uint64_t{0}) {
  namespace field = container_field;
  KeyTable keys = key_table(view, view.pointer_in(dict, field::kDictKeys));
  const Address values = view.pointer_in(dict, field::kDictValues);
  if (!keys.is_sound) return;
  keys.count = std::min(keys.count, most);
  if (!is_null(values)) {
    Address at = shared_values(view, values);
    const auto shared = [&](std::uint64_t key) {
      const Address value = view.pointer(at, 0);
      at = offset_by(at, 8);
      if (!is_null(value)) visit(Address{key}, value);
    };
    if (keys.has_hashes)
      return view.template each_row<3>(keys.entries, keys.count, [&](const auto& row) { shared(row[1]); });
    return view.template each_row<2>(keys.entries, keys.count, [&](const auto& row) { shared(row[0]); });
  }
  const auto own = [&](std::uint64_t key, std::uint64_t value) {
    if (key != 0 && value != 0) visit(Address{key}, Address{value});
  };
  if (keys.has_hashes)
    view.template each_row<3>(keys.entries, keys.count, [&](const auto& row) { own(row[1], row[2]); });
  else
    view.template each_row<2>(keys.entries, keys.count, [&](const auto& row) { own(row[0], row[1]); });
}

// Where a str or bytes has its content. Equal contents of one kind are equal bytes.
struct Content {
  Address at{};
  std::uint64_t size = 0;  // bytes
  std::uint64_t kind = 0;  // of a str, bytes a character; 0 for bytes
};
template <memory::Reader M>
Content text_content(const ObjectView<M>& view, Address text) {
  const auto& unicode = view.layout().unicode;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 46U;
  const std::uint64_t length = view.word(text, unicode.length);
  const std::uint32_t state = view.template number<std::uint32_t>(text, unicode.state) >> unicode.kind_shift;
  const std::uint32_t width = state & 7U;
  const bool is_compact = (state & 8U) != 0, is_ascii = (state & 16U) != 0;
  if (is_null(text) || (width != 1 && width != 2 && width != 4) || length > kMost) return {};
  Address data = offset_by(text, is_ascii ? unicode.ascii_size : unicode.compact_size);
  if (!is_compact) data = view.pointer(text, unicode.compact_size);
  return {data, length * width, width};
}
template <memory::Reader M>
Content bytes_content(const ObjectView<M>& view, Address bytes) {
  return {offset_by(bytes, view.layout().bytes.data), view.item_count(bytes), 0};
}

// UTF-8 of at most `most` characters of a str; empty if it is none. The caller knows that its class is one of str.
template <memory::Reader M>
std::string text_of(const ObjectView<M>& view, Address text, std::uint64_t most,
                    void (*append)(std::string& out, std::uint32_t character) = append_utf8) {
  const Content content = text_content(view, text);
  std::string out;
  if (content.kind == 0) return out;
  const auto width = static_cast<std::uint32_t>(content.kind);
  std::string bytes(std::min(content.size, most * width), '\0');
  if (!view.memory().read(content.at, bytes.data(), bytes.size())) return out;
  for (std::size_t at = 0; at < bytes.size(); at += width) {
    std::uint32_t character = 0;
    for (std::uint32_t i = 0; i < width; ++i)
      character |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    append(out, character);
  }
  return out;
}

// Whether it is an interned str.
template <memory::Reader M>
bool is_interned_text(const ObjectView<M>& view, Address object) {
  if ((view.word_in(view.type_of(object), type_field::kFlags) & type_flag::kText) == 0) return false;
  const auto& unicode = view.layout().unicode;
  return (view.template number<std::uint32_t>(object, unicode.state) & ((1U << unicode.kind_shift) - 1)) != 0;
}

// A C string, of at most 255 bytes.
template <memory::Reader M>
std::string c_text(const ObjectView<M>& view, Address at) {
  constexpr std::size_t kLongest = 255;
  std::string text;
  for (std::uint8_t letter = 0; text.size() < kLongest && !is_null(at) && view.spend(1);) {
    if (!view.memory().load(at, letter) || letter == 0) break;
    text += static_cast<char>(letter);
    at = offset_by(at, 1);
  }
  return text;
}

// What a dict has under an ASCII name; null if nothing, or if it is very large.
template <memory::Reader M>
Address entry_of(const ObjectView<M>& view, Address dict, std::string_view name) {
  constexpr std::uint64_t kMost = 1U << 16U;
  Address found{};
  if (is_null(dict) || view.word_in(dict, container_field::kDictUsed) > kMost) return found;
  each_item(view, dict, [&](Address key, Address value) {
    if (is_null(found) && view.word(key, view.layout().unicode.length) == name.size() &&
        text_of(view, key, name.size()) == name)
      found = value;
  });
  return found;
}

// Whether a dict is an interpreter's table of interned strs, which from 3.14 on the collector knows. Each of them is a
// key and the value of it, and neither is counted as a reference: known by one that has fewer than those two would be.
template <memory::Reader M>
bool is_table_of_interned(const ObjectView<M>& view, Address dict) {
  if (view.head_shift() != 0) return false;  // counts are divided
  bool is_table = true, is_uncounted = false;
  each_item(view, dict, [&](Address key, Address value) {
    is_table = is_table && key == value && is_interned_text(view, key);
    is_uncounted = is_uncounted || view.template number<std::uint32_t>(key, 0) == 1;
  });
  return is_table && is_uncounted;
}

// Whether there is a class at an address. `type_type` is that of PyType_Type: what is derived from that is a class of
// classes. (Not by the classes of classes, which may go round: h11 has some that are their own.)
template <memory::Reader M>
bool is_class(const ObjectView<M>& view, Address type_type, Address type) {
  constexpr std::int64_t kHead = 16, kLargestObject = std::int64_t{1} << 20U;
  constexpr int kLongestChain = 64;
  Address meta = view.type_of(type);
  const bool is_plain = meta == type_type;
  for (int length = 0; meta != type_type; ++length) {
    const bool may_be_class = length < kLongestChain && !is_null(meta) && (raw(meta) & 7U) == 0;
    if (!may_be_class || (view.word_in(meta, type_field::kFlags) & type_flag::kType) == 0) return false;
    meta = view.pointer_in(meta, type_field::kBase);
  }
  const auto basic = view.template number_in<std::int64_t>(type, type_field::kBasicSize);
  const auto item = view.template number_in<std::int64_t>(type, type_field::kItemSize);
  // Up to 3.9 some of C code's own are used without ever having been made ready: what links the entries of
  // functools.lru_cache, the iterators of arrays.
  const std::uint64_t flags = view.word_in(type, type_field::kFlags);
  const bool is_usable = (flags & type_flag::kReady) != 0 || (is_plain && (flags & type_flag::kHeapType) == 0);
  return is_usable && basic >= kHead + view.head_shift() && basic <= kLargestObject && item >= 0 &&
         item <= kLargestObject;
}

// What of a class tells where its instances keep their attributes.
struct ClassFacts {
  Address address{};
  std::uint64_t flags = 0, basic_size = 0, item_size = 0;
  std::int64_t dict_offset = 0;
  [[nodiscard]] bool is(std::uint64_t flag) const { return (flags & flag) != 0; }
};

// The names that instances of a class share; not sound if they share none.
template <memory::Reader M>
KeyTable shared_names(const ObjectView<M>& view, const ClassFacts& type) {
  if (!type.is(type_flag::kHeapType) || view.fields().values_style == ValuesStyle::kNone) return {};
  const Address keys = view.pointer_in(type.address, view.fields().heap_type.shared_keys);
  KeyTable table = key_table(view, keys);
  if (!table.is_shared) table.is_sound = false;
  return table;
}

// The attributes of an instance as it keeps them: values that share their names with other instances, or a dict.
struct Attributes {
  Address dict{};
  Address values{};
  std::uint64_t capacity = 0;      // of values
  std::uint64_t inline_bytes = 0;  // after the object in its block
  std::uint64_t block_bytes = 0;   // in a block of their own
};

// The dict of an instance whose class says where it is: tp_dictoffset. Null if it has none.
template <memory::Reader M>
Address dict_by_offset(const ObjectView<M>& view, Address object, const ClassFacts& type) {
  constexpr std::uint64_t kMostItems = std::uint64_t{1} << 40U;
  if (type.dict_offset == 0) return {};
  if (type.dict_offset > 0) return view.pointer(object, static_cast<std::uint64_t>(type.dict_offset));
  // Counted from the end of an object with items.
  const std::uint64_t items = view.item_count(object);
  if (items >= kMostItems) return {};
  const std::uint64_t size = (type.basic_size + items * type.item_size + 7) / 8 * 8;
  return view.pointer(object, size + static_cast<std::uint64_t>(type.dict_offset));
}

template <memory::Reader M>
Attributes attributes_of(const ObjectView<M>& view, Address object, const ClassFacts& type) {
  const ObjectFields& fields = view.fields();
  const std::uint64_t in_front = view.head_shift() == 0 ? 24 : 8;  // free-threaded objects have no links of a collector
  Attributes found;
  if (!type.is(fields.managed_dict_flag)) {
    found.dict = dict_by_offset(view, object, type);
    return found;
  }
  const Address slot{raw(object) - in_front};
  if (fields.values_style == ValuesStyle::kInside) {
    found.dict = view.pointer(slot, 0);
    if (!type.is(fields.inline_values_flag)) return found;
    // struct _dictvalues: capacity, size, embedded, valid; values; the order in which they were set, a byte each.
    const Address values = offset_by(object, type.basic_size);
    const std::uint64_t capacity = view.template number<std::uint8_t>(values, 0);
    found.inline_bytes = 8 + capacity * 8 + (capacity + 7) / 8 * 8;
    if (view.template number<std::uint8_t>(values, 3) == 0) return found;
    found.values = offset_by(values, 8);
    found.capacity = capacity;
    return found;
  }
  if (fields.values_style == ValuesStyle::kOneWord) {
    const std::uint64_t word = view.word(slot, 0);
    if ((word & 1U) != 0)
      found.values = Address{word + 1};
    else
      found.dict = Address{word};
  } else {
    found.values = view.pointer(Address{raw(slot) - 8}, 0);
    found.dict = view.pointer(slot, 0);
  }
  if (is_null(found.values)) return found;
  // In front of the values are their order, their number, and how many bytes that takes.
  const std::uint64_t prefix = view.template number<std::uint8_t>(Address{raw(found.values) - 1}, 0);
  found.capacity = shared_names(view, type).capacity;
  const std::uint64_t least = prefix > 8 ? prefix - 9 : 0;
  found.block_bytes = prefix + std::max(found.capacity, least) * 8;
  return found;
}

}  // namespace plimsoll::cpython
