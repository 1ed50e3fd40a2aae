// cpython/value_testing.h: classes and objects drawn into memory, for tests only. No product code may include it.
#pragma once

#include <bit>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cpython/object_fields.h"
#include "cpython/testing.h"

namespace plimsoll::cpython::testing {

// Objects as a version lays them out, in the memory of a DrawnInterpreter.
class DrawnObjects {
 public:
  explicit DrawnObjects(DrawnInterpreter& interpreter)
      : fields(object_fields(interpreter.layout.version).value()), python_(interpreter) {
    type_type = python_.allocate();
    set_class(type_type, "type", type_flag::kType);
  }

  const ObjectFields fields;
  Address type_type{};

  // A built-in class.
  Address type(const std::string& name) {
    Address& known = types_[name];
    if (is_null(known)) {
      known = python_.allocate(1024);
      set_class(known, name, 0);
    }
    return known;
  }
  Address object(const std::string& type_name) {
    const Address at = python_.allocate();
    put(at, python_.layout.object.type, type(type_name));
    return at;
  }

  Address integer(std::int64_t value) {
    const Address at = object("int");
    const auto digits = static_cast<std::uint64_t>(value < 0 ? -value : value);
    const std::uint64_t count = digits == 0 ? 0 : digits < (1U << 30U) ? 1 : 2;
    if (python_.layout.version.minor >= 12)
      put(at, head(), (count << 3U) | (digits == 0 ? 1U : value < 0 ? 2U : 0U));
    else
      put(at, head(), value < 0 ? std::uint64_t{0} - count : count);
    put(at, head() + 8, static_cast<std::uint32_t>(digits % (1U << 30U)));
    put(at, head() + 12, static_cast<std::uint32_t>(digits >> 30U));
    return at;
  }
  Address real(double value) {
    const Address at = object("float");
    put(at, head(), std::bit_cast<std::uint64_t>(value));
    return at;
  }
  Address text(std::u32string_view value) {
    const Address at = python_.str(value);
    put(at, python_.layout.object.type, type("str"));
    return at;
  }
  Address tuple(const std::vector<Address>& items) {
    const Address at = object("tuple");
    put(at, python_.layout.object.var_size, std::uint64_t{items.size()});
    for (std::size_t i = 0; i < items.size(); ++i) put(at, shift() + fields.tuple_items + i * 8, items[i]);
    return at;
  }
  Address list(const std::vector<Address>& items) {
    const Address at = object("list");
    const Address row = python_.allocate(items.size() * 8);
    put(at, python_.layout.object.var_size, std::uint64_t{items.size()});
    put(at, shift() + container_field::kListItems, row);
    for (std::size_t i = 0; i < items.size(); ++i) put(row, i * 8, items[i]);
    return at;
  }
  // A cell, or what else has one reference behind its head.
  Address holder(const std::string& type_name, Address held) {
    const Address at = object(type_name);
    put(at, head(), held);
    return at;
  }

  template <typename Word>
  void put(Address at, std::uint64_t offset, Word value) {
    python_.memory.put(offset_by(at, offset), value);
  }
  [[nodiscard]] std::uint32_t shift() const { return python_.layout.object.type - 8; }
  [[nodiscard]] std::uint32_t head() const { return python_.layout.object.type + 8; }

 private:
  void set_class(Address at, const std::string& name, std::uint64_t flags) {
    const Address letters = python_.allocate(name.size() + 1);
    python_.memory.put_bytes(letters, name + '\0');
    put(at, python_.layout.object.type, type_type);
    put(at, shift() + type_field::kName, letters);
    put(at, shift() + type_field::kBasicSize, std::uint64_t{64});
    put(at, shift() + type_field::kItemSize, std::uint64_t{0});
    put(at, shift() + type_field::kFlags, type_flag::kReady | flags | (name == "str" ? type_flag::kText : 0));
    put(at, shift() + type_field::kBase, Address{});
  }

  DrawnInterpreter& python_;
  std::map<std::string, Address> types_;
};

}  // namespace plimsoll::cpython::testing
