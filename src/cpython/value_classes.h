// cpython/value_classes.h: which classes the objects in a process's memory are of, and how those keep what they hold.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cpython/object_view.h"

namespace plimsoll::cpython {

// How a value is written. Subclasses are of the kind of their base.
enum class ValueKind : std::uint8_t {
  kInstance,  // of a class that is not known here
  kConstant,  // None, ..., NotImplemented
  kBool,
  kInt,
  kFloat,
  kComplex,
  kText,
  kBytes,
  kByteArray,
  kTuple,
  kList,
  kDict,
  kOrderedDict,
  kSet,
  kDeque,
  kRange,
  kSlice,
  kFunction,
  kBuiltIn,
  kMethod,
  kCode,
  kClass,
  kModule,
  kCell,
  kGenerator,
  kException,
  kArray,  // of NumPy
};

// Classes in C that are known, by tp_name.
struct NamedKind {
  std::string_view name;
  ValueKind kind;
};
// (With its size: GCC takes an array whose size it is to count for one that may be written to.)
inline constexpr std::array<NamedKind, 32> kValueKinds{
    NamedKind{"NoneType", ValueKind::kConstant},
    NamedKind{"ellipsis", ValueKind::kConstant},
    NamedKind{"NotImplementedType", ValueKind::kConstant},
    NamedKind{"bool", ValueKind::kBool},
    NamedKind{"int", ValueKind::kInt},
    NamedKind{"float", ValueKind::kFloat},
    NamedKind{"numpy.float64", ValueKind::kFloat},
    NamedKind{"complex", ValueKind::kComplex},
    NamedKind{"str", ValueKind::kText},
    NamedKind{"bytes", ValueKind::kBytes},
    NamedKind{"bytearray", ValueKind::kByteArray},
    NamedKind{"tuple", ValueKind::kTuple},
    NamedKind{"list", ValueKind::kList},
    NamedKind{"dict", ValueKind::kDict},
    NamedKind{"frozendict", ValueKind::kDict},
    NamedKind{"collections.OrderedDict", ValueKind::kOrderedDict},
    NamedKind{"set", ValueKind::kSet},
    NamedKind{"frozenset", ValueKind::kSet},
    NamedKind{"collections.deque", ValueKind::kDeque},
    NamedKind{"range", ValueKind::kRange},
    NamedKind{"slice", ValueKind::kSlice},
    NamedKind{"function", ValueKind::kFunction},
    NamedKind{"builtin_function_or_method", ValueKind::kBuiltIn},
    NamedKind{"method", ValueKind::kMethod},
    NamedKind{"code", ValueKind::kCode},
    NamedKind{"type", ValueKind::kClass},
    NamedKind{"module", ValueKind::kModule},
    NamedKind{"cell", ValueKind::kCell},
    NamedKind{"generator", ValueKind::kGenerator},
    NamedKind{"coroutine", ValueKind::kGenerator},
    NamedKind{"async_generator", ValueKind::kGenerator},
    NamedKind{"numpy.ndarray", ValueKind::kArray},
};

// A class, as far as its instances' values need it.
struct ValueClass : ClassFacts {
  ValueKind kind = ValueKind::kInstance;
  std::string name;       // "collections.OrderedDict", "app.Outer.Inner", "list"
  bool is_exact = false;  // it is itself what the kind is named after
  bool has_attributes = false;
  std::vector<std::pair<std::uint32_t, std::string>> slots;  // of __slots__: offset and name
};

// Looks classes up, each once. Whatever stands in the memory, what is no class is known as none.
template <memory::Reader M>
class ValueClasses {
 public:
  // `type_type` is the address of PyType_Type.
  ValueClasses(const ObjectView<M>& view, Address type_type) : view_(view), type_type_(type_type) {}

  // The class of an object; null if there is no object at the address.
  const ValueClass* of_object(Address object) {
    const bool may_be_object = !is_null(object) && (raw(object) & 7U) == 0;
    return may_be_object ? of(view_.type_of(object)) : nullptr;
  }

  // Null if there is no class at the address.
  const ValueClass* of(Address type) {
    constexpr std::size_t kMostClasses = 1U << 16U;
    if (is_null(type) || (raw(type) & 7U) != 0) return nullptr;
    if (const auto known = by_address_.find(raw(type)); known != by_address_.end()) return &known->second;
    if (!is_class(view_, type_type_, type) || by_address_.size() == kMostClasses) return nullptr;
    ValueClass made = look_at(type);
    return view_.is_spent() ? nullptr : &by_address_.emplace(raw(type), std::move(made)).first->second;
  }

  // "app.Outer.Inner". The caller knows that it is a class.
  std::string name_of(Address type) const {
    std::string name = c_text(view_, view_.pointer(type, at(type_field::kName)));
    if (is_heap_type(type)) {
      const std::string qualified = short_text(view_.pointer(type, at(view_.fields().heap_type.qualname)));
      const std::string module = short_text(entry_of(view_, view_.pointer(type, at(type_field::kDict)), "__module__"));
      if (!qualified.empty()) name = module.empty() ? qualified : module + "." + qualified;
    }
    if (name.empty()) name = "?";
    constexpr std::string_view kBuiltIns = "builtins.";
    return name.starts_with(kBuiltIns) ? name.substr(kBuiltIns.size()) : name;
  }

  // The text of a str that is a name; empty if it is none.
  std::string short_text(Address object) const {
    constexpr std::uint64_t kLongest = 200;
    const std::uint64_t flags = view_.word(view_.type_of(object), at(type_field::kFlags));
    return (flags & type_flag::kText) != 0 ? text_of(view_, object, kLongest) : std::string();
  }

 private:
  static constexpr int kLongestChain = 64;  // of base classes

  [[nodiscard]] std::uint64_t at(std::uint32_t field) const { return std::uint64_t{field} + view_.head_shift(); }
  [[nodiscard]] bool is_heap_type(Address type) const {
    return (view_.word(type, at(type_field::kFlags)) & type_flag::kHeapType) != 0;
  }

  ValueClass look_at(Address type) const {
    ValueClass made;
    made.address = type;
    made.flags = view_.word(type, at(type_field::kFlags));
    made.basic_size = view_.word(type, at(type_field::kBasicSize));
    made.item_size = view_.word(type, at(type_field::kItemSize));
    made.dict_offset = view_.template number<std::int64_t>(type, at(type_field::kDictOffset));
    made.has_attributes = made.dict_offset != 0 || made.is(view_.fields().managed_dict_flag);
    made.name = name_of(type);
    Address base = type;
    for (int i = 0; i < kLongestChain && !is_null(base); ++i, base = view_.pointer(base, at(type_field::kBase))) {
      const std::string name = c_text(view_, view_.pointer(base, at(type_field::kName)));
      // Names with a dot are of classes in C, too.
      const bool is_of_c = !is_heap_type(base) || name.find('.') != std::string::npos;
      if (made.kind == ValueKind::kInstance && is_of_c) made.kind = kind_of(name, base);
      if (made.kind != ValueKind::kInstance && i == 0) made.is_exact = true;
      if (is_heap_type(base)) add_slots(base, made);
    }
    return made;
  }

  [[nodiscard]] ValueKind kind_of(std::string_view name, Address type) const {
    const auto found =
        std::find_if(kValueKinds.begin(), kValueKinds.end(), [&](const NamedKind& each) { return each.name == name; });
    if (found != kValueKinds.end()) return found->kind;
    const bool is_exception = (view_.word(type, at(type_field::kFlags)) & type_flag::kException) != 0;
    return is_exception ? ValueKind::kException : ValueKind::kInstance;
  }

  void add_slots(Address type, ValueClass& made) const {
    namespace member = member_field;
    constexpr std::size_t kMostSlots = 64;
    constexpr int kMostMembers = 256;
    Address each = view_.pointer(type, at(type_field::kMembers));
    for (int i = 0; i < kMostMembers && !is_null(each) && made.slots.size() < kMostSlots; ++i) {
      const Address name = view_.pointer(each, member::kName);
      if (is_null(name)) return;
      const std::uint64_t offset = view_.word(each, member::kOffset);
      if (view_.template number<std::uint32_t>(each, member::kType) == member::kObjectEx &&
          offset + 8 <= made.basic_size)
        made.slots.emplace_back(static_cast<std::uint32_t>(offset), c_text(view_, name));
      each = offset_by(each, member::kSize);
    }
  }

  const ObjectView<M>& view_;
  const Address type_type_;
  std::unordered_map<std::uint64_t, ValueClass> by_address_;
};

}  // namespace plimsoll::cpython
