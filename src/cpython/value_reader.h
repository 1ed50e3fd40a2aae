// cpython/value_reader.h: what repr would say of an object, or nearly: read from memory, without running any code.
//
// However large or broken the object is, the text is short and the work bounded. What is left out is counted:
// "[1, 2, ... 98 more]". Objects that change meanwhile, or are none, may make a wrong text, but no fault.
#pragma once

#include <bit>
#include <string>
#include <vector>

#include "cpython/int_object.h"
#include "cpython/literals.h"
#include "cpython/ordered_items.h"
#include "cpython/value_classes.h"

namespace plimsoll::cpython {

// How much is said of one value.
struct ValueLimits {
  std::uint32_t depth = 3;         // of containers and instances in each other
  std::uint32_t items = 10;        // of one of them
  std::uint32_t characters = 200;  // of all; names, and what closes brackets, may go beyond
};

// A value in words.
struct Value {
  std::string type;  // the name of its class; empty if it is no object
  std::string text;
};

// Writes values. Used by one thread at a time.
template <memory::Reader M>
class ValueReader {
 public:
  // `view` must outlive it; its budget is refilled for each value.
  ValueReader(const ObjectView<M>& view, Address type_type, const ValueLimits& limits)
      : view_(view), classes_(view, type_type), limits_(limits) {}

  Value read(Address object) {
    view_.refill();
    out_.clear();
    parents_.clear();
    const ValueClass* type = classes_.of_object(object);
    put(object);
    return {type != nullptr ? type->name : std::string(), std::move(out_)};
  }

  // What a cell holds, null if nothing; the object itself if it is no cell.
  Address without_cell(Address object) {
    const ValueClass* type = classes_.of_object(object);
    const bool is_cell = type != nullptr && type->kind == ValueKind::kCell;
    return is_cell ? view_.pointer(object, at(container_field::kCellContent)) : object;
  }

  // An attribute that an instance has itself; null if it has none of the name.
  Address attribute(Address object, std::string_view name) {
    view_.refill();
    Address found{};
    const ValueClass* type = classes_.of_object(object);
    if (type != nullptr)
      each_attribute(object, *type, [&](const std::string& each, Address value) {
        if (each == name) found = value;
      });
    return found;
  }
  ValueClasses<M>& classes() { return classes_; }

 private:
  // Slots of a hash table that are looked at for each item that is wanted.
  static constexpr std::uint64_t kSlotsPerItem = 64;

  [[nodiscard]] std::uint64_t at(std::uint32_t field) const { return std::uint64_t{field} + view_.head_shift(); }
  [[nodiscard]] bool is_full() const { return out_.size() >= limits_.characters; }
  // For a text; a few characters of one that has been begun are always shown.
  [[nodiscard]] std::uint64_t room() const {
    constexpr std::uint64_t kLeast = 16;
    return is_full() ? kLeast : std::max(kLeast, limits_.characters - out_.size());
  }

  void put(Address object) {
    const ValueClass* type = classes_.of_object(object);
    if (type == nullptr) {
      out_ += is_null(object) ? "<nothing>" : "<unreadable>";
      return;
    }
    const bool is_nested = type->kind == ValueKind::kInstance || type->kind == ValueKind::kException ||
                           (type->kind >= ValueKind::kTuple && type->kind <= ValueKind::kCell);
    if (!is_nested) return put_leaf(object, *type);
    const bool is_parent = std::find(parents_.begin(), parents_.end(), object) != parents_.end();
    if (is_parent || parents_.size() == limits_.depth) return put_closed(object, *type);
    parents_.push_back(object);
    put_nested(object, *type);
    parents_.pop_back();
  }

  void put_leaf(Address object, const ValueClass& type) {
    // Of a subclass: "app.Colour(3)".
    const bool is_derived = !type.is_exact && type.kind != ValueKind::kArray;
    if (is_derived) out_ += type.name + "(";
    switch (type.kind) {
      case ValueKind::kConstant: out_ += constant(type.name); break;
      case ValueKind::kBool: out_ += int_digits(view_, object).count == 0 ? "False" : "True"; break;
      case ValueKind::kInt: put_int(object); break;
      case ValueKind::kFloat: out_ += float_literal(real(object, kHead)); break;
      case ValueKind::kComplex: out_ += complex_literal(real(object, kHead), real(object, kHead + 8)); break;
      case ValueKind::kText: put_text(object); break;
      case ValueKind::kBytes: put_bytes(offset_by(object, view_.layout().bytes.data), view_.item_count(object)); break;
      case ValueKind::kByteArray:
        out_ += "bytearray(";
        put_bytes(view_.pointer(object, at(container_field::kByteArrayStart)), view_.item_count(object));
        out_ += ")";
        break;
      case ValueKind::kGenerator: put_generator(object, type); break;
      case ValueKind::kArray: put_array(object, type); break;
      default: break;
    }
    if (is_derived) out_ += ")";
  }

  void put_nested(Address object, const ValueClass& type) {
    switch (type.kind) {
      case ValueKind::kFunction:
        return put_named("function", view_.pointer(object, at(view_.fields().function_qualname)));
      case ValueKind::kBuiltIn:
        out_ += "<built-in function " + c_text(view_, view_.pointer(view_.pointer(object, at(kHead)), 0)) + ">";
        return;
      case ValueKind::kMethod:
        return put_named("bound method",
                         view_.pointer(view_.pointer(object, at(kHead)), at(view_.fields().function_qualname)));
      case ValueKind::kCode: return put_named("code object", name_of_code(object));
      case ValueKind::kClass: out_ += "<class '" + classes_.name_of(object) + "'>"; return;
      case ValueKind::kModule:
        return put_named("module",
                         entry_of(view_, view_.pointer(object, at(container_field::kModuleDict)), "__name__"));
      case ValueKind::kCell:
        out_ += "<cell: ";
        put(view_.pointer(object, at(container_field::kCellContent)));
        out_ += ">";
        return;
      case ValueKind::kException: return put_exception(object, type);
      case ValueKind::kInstance: return put_instance(object, type);
      default: return put_container(object, type);
    }
  }

  void put_container(Address object, const ValueClass& type) {
    // "set()", and what has no brackets of its own: "frozenset({1})", "app.Point(1, 2)", "collections.deque([1])".
    const bool is_plain = type.is_exact && (type.kind == ValueKind::kTuple || type.kind == ValueKind::kList ||
                                            type.name == "dict" || type.name == "set");
    const bool is_row = type.kind == ValueKind::kRange || type.kind == ValueKind::kSlice;
    const bool has_arguments = type.kind == ValueKind::kTuple || is_row;  // its brackets are those of the call
    if (!is_plain) out_ += type.name + (has_arguments ? "" : "(");
    switch (type.kind) {
      case ValueKind::kTuple: put_tuple(object, type.is_exact); break;
      case ValueKind::kList: put_list(object); break;
      case ValueKind::kDict:
      case ValueKind::kOrderedDict: put_dict(object, type); break;
      case ValueKind::kSet: put_set(object, type); break;
      case ValueKind::kDeque: put_deque(object); break;
      default: put_row(object, 3); break;
    }
    if (!is_plain && !has_arguments) out_ += ")";
  }

  // What it is, without what it holds: it is one of its own holders, or too deep.
  void put_closed(Address object, const ValueClass& type) {
    switch (type.kind) {
      case ValueKind::kTuple: out_ += "(...)"; return;
      case ValueKind::kList: out_ += "[...]"; return;
      case ValueKind::kDict:
      case ValueKind::kOrderedDict:
      case ValueKind::kSet: out_ += "{...}"; return;
      case ValueKind::kInstance:
      case ValueKind::kException:
      case ValueKind::kRange:
      case ValueKind::kSlice:
      case ValueKind::kDeque: out_ += "<" + type.name + ">"; return;
      case ValueKind::kCell: out_ += "<cell>"; return;
      default: return put_nested(object, type);  // which holds nothing that is shown
    }
  }

  static std::string constant(std::string_view name) {
    if (name == "ellipsis") return "Ellipsis";
    return std::string(name.substr(0, name.find("Type")));
  }
  [[nodiscard]] double real(Address object, std::uint32_t field) const {
    return std::bit_cast<double>(view_.word(object, at(field)));
  }

  // With few digits also where there is no room for them.
  void put_int(Address object) {
    constexpr std::size_t kAlways = 20;
    out_ += int_text(view_, object, std::max<std::size_t>(room(), kAlways));
  }
  void put_text(Address object) {
    const std::uint64_t length = view_.word(object, view_.layout().unicode.length);
    const std::uint64_t shown = std::min(length, room());
    out_ += text_literal(text_of(view_, object, shown, append_with_surrogates));
    put_rest(length - shown);
  }
  void put_bytes(Address first, std::uint64_t count) {
    std::string bytes(std::min(count, room()), '\0');
    if (!bytes.empty() && !view_.memory().read(first, bytes.data(), bytes.size())) {
      out_ += "<unreadable>";
      return;
    }
    out_ += bytes_literal(bytes);
    put_rest(count - bytes.size());
  }
  void put_rest(std::uint64_t left_out) {
    if (left_out > 0) out_ += "... " + std::to_string(left_out) + " more";
  }

  void put_named(const char* what, Address name) {
    const std::string text = classes_.short_text(name);
    out_ += "<" + std::string(what) + (text.empty() ? "" : " " + text) + ">";
  }

  [[nodiscard]] Address name_of_code(Address code) const { return view_.pointer(code, view_.layout().code_name()); }

  // Begins the next item of a container; false if there is no room for it.
  bool begin_item(std::uint64_t& shown) {
    if (shown == limits_.items || is_full()) return false;
    if (shown++ > 0) out_ += ", ";
    return true;
  }
  void end_items(std::uint64_t shown, std::uint64_t count) {
    if (count <= shown) return;
    if (shown > 0) out_ += ", ";
    put_rest(count - shown);
  }

  void put_words(Address first, std::uint64_t count, std::uint64_t& shown) {
    view_.template each_row<1>(first, std::min<std::uint64_t>(count, limits_.items), [&](const auto& row) {
      if (begin_item(shown)) put(Address{row[0]});
    });
  }
  void put_tuple(Address object, bool is_exact) {
    const std::uint64_t count = view_.item_count(object);
    std::uint64_t shown = 0;
    out_ += "(";
    put_words(offset_by(object, at(view_.fields().tuple_items)), count, shown);
    end_items(shown, count);
    out_ += count == 1 && is_exact ? ",)" : ")";
  }
  void put_list(Address object) {
    const std::uint64_t count = view_.item_count(object);
    std::uint64_t shown = 0;
    out_ += "[";
    put_words(view_.pointer(object, at(container_field::kListItems)), count, shown);
    end_items(shown, count);
    out_ += "]";
  }
  // Fields side by side, the last of them only if it is not the usual one.
  void put_row(Address object, std::uint64_t count) {
    const ValueClass* type = classes_.of_object(object);
    const bool is_range = type != nullptr && type->kind == ValueKind::kRange;
    constexpr std::uint32_t kStep = kHead + 16;
    if (is_range && small_int(view_, view_.pointer(object, at(kStep))) == 1) --count;
    std::uint64_t shown = 0;
    out_ += "(";
    put_words(offset_by(object, at(kHead)), count, shown);
    end_items(shown, count);
    out_ += ")";
  }

  void put_dict(Address object, const ValueClass& type) {
    const std::uint64_t count = view_.word(object, at(container_field::kDictUsed));
    std::uint64_t shown = 0;
    out_ += "{";
    const auto put_item = [&](Address key, Address value) {
      if (!begin_item(shown)) return;
      put(key);
      out_ += ": ";
      put(value);
    };
    if (type.kind == ValueKind::kOrderedDict)
      each_ordered_item(view_, object, put_item, limits_.items);
    else
      each_item(view_, object, put_item, kSlotsPerItem * (limits_.items + 1));
    end_items(shown, count);
    out_ += "}";
  }
  void put_set(Address object, const ValueClass& type) {
    constexpr std::uint64_t kDummy = ~std::uint64_t{0};  // the hash of what was taken out
    const std::uint64_t count = view_.word(object, at(container_field::kSetUsed));
    const std::uint64_t slots = view_.word(object, at(container_field::kSetMask)) + 1;
    if (count == 0) {
      out_ += type.name == "set" ? "set()" : "";
      return;
    }
    std::uint64_t shown = 0;
    out_ += "{";
    view_.template each_row<2>(view_.pointer(object, at(container_field::kSetTable)),
                               std::min(slots, kSlotsPerItem * (limits_.items + 1)), [&](const auto& row) {
                                 if (row[0] != 0 && row[1] != kDummy && begin_item(shown)) put(Address{row[0]});
                               });
    end_items(shown, count);
    out_ += "}";
  }
  // Blocks of 64 items, between pointers to the block before and the next.
  void put_deque(Address object) {
    constexpr std::uint64_t kItems = 64, kNext = 8 * (kItems + 1);
    const std::uint64_t count = view_.item_count(object);
    Address block = view_.pointer(object, at(container_field::kDequeLeftBlock));
    std::uint64_t index = view_.word(object, at(container_field::kDequeLeftIndex));
    std::uint64_t shown = 0, left = count;
    out_ += "[";
    while (left > 0 && index < kItems && !is_null(block) && shown < limits_.items && !is_full()) {
      const std::uint64_t here = std::min(left, kItems - index);
      put_words(offset_by(block, 8 + index * 8), here, shown);
      left -= here;
      index = 0;
      block = view_.pointer(block, kNext);
    }
    end_items(shown, count);
    out_ += "]";
  }

  void put_exception(Address object, const ValueClass& type) {
    out_ += type.name;
    put_tuple(view_.pointer(object, at(container_field::kExceptionArguments)), false);
  }

  void put_instance(Address object, const ValueClass& type) {
    std::uint64_t shown = 0;
    bool has_more = false;
    out_ += "<" + type.name;
    each_attribute(object, type, [&](const std::string& name, Address value) {
      has_more = has_more || shown == limits_.items || is_full();
      if (has_more) return;
      out_ += (shown++ == 0 ? " " : ", ") + name + "=";
      put(value);
    });
    out_ += has_more ? ", ...>" : ">";
  }
  template <typename Visit>
  void each_attribute(Address object, const ValueClass& type, Visit visit) {
    for (const auto& [offset, name] : type.slots)
      if (const Address value = view_.pointer(object, offset); !is_null(value)) visit(name, value);
    if (!type.has_attributes) return;
    const std::uint64_t most = kSlotsPerItem * (limits_.items + 1);
    const Attributes found = attributes_of(view_, object, type);
    if (!is_null(found.dict))
      return each_item(
          view_, found.dict, [&](Address key, Address value) { visit(classes_.short_text(key), value); }, most);
    const KeyTable names = shared_names(view_, type);
    if (is_null(found.values) || !names.is_sound) return;
    Address next = found.values;
    view_.template each_row<2>(names.entries, std::min({found.capacity, names.count, most}), [&](const auto& row) {
      const Address value = view_.pointer(next, 0);
      next = offset_by(next, 8);
      if (row[0] != 0 && !is_null(value)) visit(classes_.short_text(Address{row[0]}), value);
    });
  }

  // By the code that it runs, as long as it has a frame.
  void put_generator(Address object, const ValueClass& type) {
    constexpr std::uint32_t kCode39 = 32, kCode310 = 24;  // gi_code
    const Layout& layout = view_.layout();
    const std::uint32_t frame = view_.fields().generator.frame;
    Address code = view_.pointer(object, layout.version.minor >= 10 ? kCode310 : kCode39);
    if (frame != kNoField)
      code = Address{view_.word(object, at(frame) + layout.frame.executable) & ~layout.executable_tag_mask};
    const ValueClass* of_code = classes_.of_object(code);
    const bool is_code = of_code != nullptr && of_code->kind == ValueKind::kCode;
    put_named(type.name.c_str(), is_code ? name_of_code(code) : Address{});
  }

  // "<numpy.ndarray (100, 3) of numpy.float64>": behind the head its data, the number of its dimensions, those, ...
  void put_array(Address object, const ValueClass& type) {
    namespace field = numpy_field;
    const std::uint32_t count = view_.template number<std::uint32_t>(object, at(field::kDimensionCount));
    out_ += "<" + type.name;
    if (count <= field::kMostDimensions) {
      std::string sizes;
      view_.template each_row<1>(view_.pointer(object, at(field::kDimensions)), count, [&](const auto& row) {
        sizes += (sizes.empty() ? "" : ", ") + std::to_string(row[0]);
      });
      out_ += " (" + sizes + (count == 1 ? ",)" : ")");
    }
    const Address element = view_.pointer(view_.pointer(object, at(field::kDescription)), at(field::kElementType));
    if (const ValueClass* of_element = classes_.of(element); of_element != nullptr) out_ += " of " + of_element->name;
    out_ += ">";
  }

  static constexpr std::uint32_t kHead = 16;  // PyObject_HEAD
  const ObjectView<M>& view_;
  ValueClasses<M> classes_;
  const ValueLimits limits_;
  std::string out_;
  std::vector<Address> parents_;
};

}  // namespace plimsoll::cpython
