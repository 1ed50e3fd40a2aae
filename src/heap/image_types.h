// heap/image_types.h: what there is to know of a class before its objects are looked at, worked out once, from a copy
// of a process's memory. As python/type_plan.h, without Python.
#pragma once

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "heap/image_view.h"
#include "heap/object_size.h"
#include "heap/own_memory.h"
#include "heap/type_rules.h"

namespace plimsoll::heap {

// How an object keeps what it holds.
enum class ImageShape : std::uint8_t {
  kLeaf,   // holds nothing but its class
  kTuple,  // exactly a tuple
  kList,   // exactly a list
  kDict,   // exactly a dict
  kCode,
  kClass,
  kModule,
  kWeakref,
  kSet,
  kTupleLike,    // of a subclass of tuple
  kListLike,     // of list
  kDictLike,     // of dict, and frozendict
  kOrderedDict,  // and its subclasses
  kDeque,
  kSimpleQueue,
  kGenerator,  // coroutines and async generators, too
  kFrame,
  kWords,  // in fields of its own only
};

// A field that is a reference: tp_members names it, or own_memory.h.
struct ImageMember {
  std::uint32_t offset = 0;
  std::string name;
  std::uint32_t flag = 0;  // where a byte is that is 0 in objects without it; 0: all have it

  [[nodiscard]] bool is_in(Address object, const ImageView& view) const {
    return flag == 0 || view.number<std::uint8_t>(object, flag) != 0;
  }
};

// The plan of a class.
struct ImageType : cpython::ClassFacts {
  std::uint32_t number = 0;
  ImageShape shape = ImageShape::kLeaf;
  std::uint64_t header = 0;    // bytes in front of the object in its block
  std::uint64_t sentinel = 0;  // bytes behind it that nobody uses
  std::string c_name;          // of the class in C that its objects are laid out as: "list", "dict", "array.array"
  OwnMemory own_memory = OwnMemory::kNone;
  bool has_attributes = false;
  // Which fields are references is not known: those that look like one are taken for it.
  bool is_guessed = false;
  std::vector<ImageMember> members;
  std::vector<std::uint32_t> words;  // offsets of other fields that may be references
  Facets facets;                     // once ImageTypes::apply has been called
};

// The plans of all classes met so far.
class ImageTypes {
 public:
  // `type_type` is the address of PyType_Type, which is the class of all classes without another.
  ImageTypes(const ImageView& view, Address type_type) : view_(view), type_type_(type_type) {}

  // Null if there is no class at the address.
  const ImageType* of(Address type) {
    if (last_ != nullptr && last_->address == type) return last_;
    const auto known = by_address_.find(raw(type));
    const ImageType* found = known != by_address_.end() ? known->second : add(type);
    if (found != nullptr) last_ = found;
    return found;
  }
  // The class of an object; null if there is no object at the address: one that has been freed is none.
  const ImageType* of_object(Address object) {
    if ((raw(object) & 7U) != 0 || is_null(object)) return nullptr;
    if (view_.head_shift() != 0) return of_divided(object);
    std::array<std::uint64_t, 2> head;
    if (!view_.image().read(object, head.data(), sizeof head) || !is_count(head[0])) return nullptr;
    return of(Address{head[1]});
  }
  // The same for a word that may be no reference, so that there may be a freed object that still looks like one.
  const ImageType* of_guess(Address object) {
    const ImageType* type = of_object(object);
    return type != nullptr && is_likely(object, *type) ? type : nullptr;
  }
  // What the count of references says; 0 where it is not known: immortal objects, and all of free-threaded builds,
  // which defer or divide the counts.
  [[nodiscard]] std::uint32_t reference_count(Address object) const;

  [[nodiscard]] const std::deque<ImageType>& all() const { return types_; }
  // Joins the rules for each class that has been met, and its bases; `name_of` names a class by its address.
  template <typename NameOf>
  void apply(std::span<const TypeRule> rules, NameOf name_of) {
    for (ImageType& type : types_) {
      names_.clear();
      each_base(type.address, [&](Address base) { names_.push_back(name_of(base)); });
      type.facets = facets_of(names_, rules);
    }
  }
  // The first class that is laid out otherwise than it should be, in words; empty if there is none.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] Address type_type() const { return type_type_; }

 private:
  // Whether this can be ob_refcnt of an object that lives.
  [[nodiscard]] bool is_count(std::uint64_t count) const;
  // The same in free-threaded builds, where the count is divided: one part is its thread's, the other one everybody's.
  const ImageType* of_divided(Address object);
  [[nodiscard]] bool is_count(std::uint64_t word, std::uint64_t shared) const;
  [[nodiscard]] bool is_immortal(std::uint32_t count) const;
  [[nodiscard]] bool is_low_address(std::uint32_t count) const;
  [[nodiscard]] bool is_likely(Address object, const ImageType& type) const;
  const ImageType* add(Address type);
  // Bytes of PyObject_HEAD.
  [[nodiscard]] std::uint64_t head() const { return 16 + view_.head_shift(); }
  // Whether it was made by a class statement, so that all it adds are slots.
  [[nodiscard]] bool is_of_python(Address type) const;
  // Calls take(class) for the class and for all that it is derived from, in the order in which attributes are looked
  // up.
  template <typename Take>
  void each_base(Address type, Take take) const {
    constexpr std::uint64_t kMostBases = 1024;
    const Address order = view_.pointer_in(type, cpython::type_field::kMro);
    const std::uint64_t count = is_null(order) ? 0 : std::min(view_.item_count(order), kMostBases);
    if (count == 0) take(type);
    view_.each_row<1>(view_.place_in(order, view_.fields().tuple_items), count,
                      [&](const auto& row) { take(Address{row[0]}); });
  }
  // The class in C on which it is built.
  [[nodiscard]] Address solid_base(Address type) const;
  void set_shape(ImageType& type, Address solid) const;
  void set_members(ImageType& type) const;
  [[nodiscard]] std::uint64_t end_of_words(const ImageType& type, Address solid) const;
  void set_words(ImageType& type, Address solid, std::uint64_t from, std::uint64_t end) const;
  void check_size(const ImageType& type);

  const ImageView& view_;
  Address type_type_;
  std::deque<ImageType> types_;
  boost::unordered_flat_map<std::uint64_t, const ImageType*> by_address_;  // null: it is none
  std::size_t rejected_ = 0;
  const ImageType* last_ = nullptr;
  std::string problem_;
  std::vector<std::string> names_;  // of the class at hand and its bases
};

// The namespace of a class. From 3.12 on that of a built-in class is kept by the interpreter: `kept` has those.
using KeptDicts = boost::unordered_flat_map<std::uint64_t, Address>;  // by class
Address type_dict(const ImageView& view, const KeptDicts& kept, Address type);
// Looks for them in a part of an interpreter's state where a class, some flags and its dict stand side by side.
KeptDicts find_kept_dicts(const ImageView& view, ImageTypes& types, Address interpreter);

// Bytes of memory that the object takes, as python/type_plan.h's size_of counts them.
ObjectSize size_of(const ImageView& view, Address object, const ImageType& type);

}  // namespace plimsoll::heap
