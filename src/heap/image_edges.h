// heap/image_edges.h: all that an object holds, read from a copy of a process's memory. The edges, and their names, are
// those of python/object_edges.h, as far as they can be known without asking the object.
//
// A Sink takes the edges: edge(kind, object), guess(object) for a field that may be no reference, borrow(object) for
// one that is not counted, named(object, name) with the address of a str or a word, type(class), weak(object);
// name_space(dict) says that a dict's keys are names; has_names(dict) tells it again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "heap/image_types.h"
#include "heap/snapshot.h"

namespace plimsoll::heap {

// How many places of a frame are in use, its variables and then its stack, if that is written down: of one that does
// not run, or waits for another one of Python's.
inline std::uint64_t places_in_use(const ImageView& view, Address frame) {
  const auto& fields = view.fields().frame;
  constexpr std::uint64_t kMost = 1U << 20U;
  std::uint64_t count = 0;
  if (view.fields().has_tagged_frames) {
    const std::uint64_t top = view.word(frame, fields.stack), first = raw(frame) + fields.variables;
    count = top > first ? (top - first) / 8 : 0;
  } else {
    const auto top = view.number<std::int32_t>(frame, fields.stack);
    count = top > 0 ? static_cast<std::uint64_t>(top) : 0;
  }
  return count <= kMost ? count : 0;
}

// Shows a Sink what objects hold.
template <typename Sink>
class ImageEdges {
 public:
  ImageEdges(const ImageView& view, const KeptDicts& kept, Sink& sink) : view_(view), kept_(kept), sink_(sink) {}

  void visit(Address object, const ImageType& type) {
    namespace field = cpython::container_field;
    switch (type.shape) {
      case ImageShape::kLeaf: return;
      case ImageShape::kTuple:
        return elements(view_.place_in(object, view_.fields().tuple_items), view_.item_count(object),
                        EdgeKind::kElement);
      case ImageShape::kList:
        return elements(view_.pointer_in(object, field::kListItems), view_.item_count(object), EdgeKind::kElement);
      case ImageShape::kDict: return items(object);
      case ImageShape::kCode: return code(object);
      case ImageShape::kClass: return class_object(object, type);
      case ImageShape::kTupleLike:
        elements(view_.place_in(object, view_.fields().tuple_items), view_.item_count(object), EdgeKind::kReference);
        break;
      case ImageShape::kListLike:
        elements(view_.pointer_in(object, field::kListItems), view_.item_count(object), EdgeKind::kReference);
        break;
      case ImageShape::kOrderedDict:
        ordered_keys(object);
        items(object);
        break;
      case ImageShape::kDictLike: items(object); break;
      case ImageShape::kSet: set_items(object); break;
      case ImageShape::kDeque: deque_items(object); break;
      case ImageShape::kSimpleQueue: queue_items(object); break;
      case ImageShape::kModule: module(object); break;
      case ImageShape::kWeakref: referent(object, type); break;
      case ImageShape::kGenerator: generator(object, type); break;
      case ImageShape::kFrame: frame_object(object); break;
      case ImageShape::kWords: words_behind(object, type); break;
    }
    tell(object, type);
  }

  // What a frame of the interpreter's holds.
  void frame(Address frame) {
    const auto& fields = view_.fields().frame;
    edge(Address{view_.word(frame, fields.function) & ~kTag});
    edge(Address{view_.word(frame, view_.layout().frame.executable) & ~kTag});
    edge(view_.pointer(frame, fields.locals));
    edge(view_.pointer(frame, fields.object));
    view_.each_row<1>(offset_by(frame, fields.variables), places_in_use(view_, frame), [&](const auto& row) {
      const std::uint64_t tag = view_.fields().has_tagged_frames ? row[0] & kTag : 0;
      const Address held{row[0] & ~kTag};
      if (tag == kTag || is_null(held)) return;  // a number
      if (tag == 0)
        edge(held);
      else
        sink_.borrow(held);
    });
  }

 private:
  static constexpr std::uint64_t kTag = 3;

  void edge(Address held) {
    if (!is_null(held)) sink_.edge(EdgeKind::kReference, held);
  }
  template <typename Name>
  void named(Address held, Name name) {
    if (!is_null(held)) sink_.named(held, name);
  }
  void elements(Address first, std::uint64_t count, EdgeKind kind) {
    view_.each_row<1>(first, count, [&](const auto& row) {
      if (row[0] != 0) sink_.edge(kind, Address{row[0]});
    });
  }
  [[nodiscard]] bool is_text(Address object) const {
    return (view_.word_in(view_.type_of(object), cpython::type_field::kFlags) & cpython::type_flag::kText) != 0;
  }

  void items(Address dict) {
    const bool has_names = sink_.has_names(dict);
    bool is_first = true, is_weak = false;
    each_item(view_, dict, [&](Address key, Address value) {
      if (std::exchange(is_first, false) && key == value) is_weak = is_table_of_interned(view_, dict);
      if (is_weak) return sink_.weak(key);
      sink_.edge(EdgeKind::kKey, key);
      if (has_names && is_text(key))
        sink_.named(value, key);
      else
        sink_.edge(EdgeKind::kValue, value);
    });
  }

  void set_items(Address set) {
    namespace field = cpython::container_field;
    constexpr std::uint64_t kDummy = ~std::uint64_t{0};  // the hash of what was taken out
    view_.each_row<2>(view_.pointer_in(set, field::kSetTable), view_.word_in(set, field::kSetMask) + 1,
                      [&](const auto& row) {
                        if (row[0] != 0 && row[1] != kDummy) edge(Address{row[0]});
                      });
  }

  // Blocks of 64 items, between pointers to the block before and the next.
  void deque_items(Address deque) {
    namespace field = cpython::container_field;
    constexpr std::uint64_t kItems = 64, kNext = 8 * (kItems + 1);
    Address block = view_.pointer_in(deque, field::kDequeLeftBlock);
    std::uint64_t index = view_.word_in(deque, field::kDequeLeftIndex);
    std::uint64_t left = view_.item_count(deque);
    while (left > 0 && index < kItems && view_.spend(1) && !is_null(block)) {
      const std::uint64_t here = std::min(left, kItems - index);
      elements(offset_by(block, 8 + index * 8), here, EdgeKind::kReference);
      left -= here;
      index = 0;
      block = view_.pointer(block, kNext);
    }
  }

  // A ring of references, null where nothing is. Up to 3.12 a list, which is one of its fields.
  void queue_items(Address queue) {
    constexpr std::uint32_t kRing = 40, kCapacity = 48;
    if (view_.layout().version.minor >= 13)
      elements(view_.pointer_in(queue, kRing), view_.word_in(queue, kCapacity), EdgeKind::kReference);
  }

  // The list of keys that an OrderedDict has beside those of a dict.
  void ordered_keys(Address dict) {
    namespace field = cpython::container_field;
    constexpr std::uint64_t kNext = 16;
    Address node = view_.pointer_in(dict, field::kOrderedFirst);
    std::uint64_t left = view_.word_in(dict, field::kDictUsed);
    for (; left > 0 && !is_null(node) && view_.spend(1); --left, node = view_.pointer(node, kNext))
      edge(view_.pointer(node, 0));
  }

  void referent(Address reference, const ImageType& type) {
    namespace field = cpython::container_field;
    const Address held = view_.pointer_in(reference, field::kWeakReferent);
    if (!is_null(held)) sink_.weak(held);
    if (!is_member(type, field::kWeakCallback)) edge(view_.pointer_in(reference, field::kWeakCallback));
  }

  void module(Address module) {
    namespace field = cpython::container_field;
    const auto& fields = view_.fields().module;
    constexpr std::uint64_t kSizeInDefinition = 56, kLargestState = 1U << 16U;
    sink_.name_space(view_.pointer_in(module, field::kModuleDict));
    std::uint64_t size = 0;
    if (fields.definition == cpython::kNoField)
      size = view_.word_in(module, fields.state_size);
    else if (const Address definition = view_.pointer_in(module, fields.definition); !is_null(definition))
      size = view_.word_in(definition, kSizeInDefinition);
    const Address state = view_.pointer_in(module, fields.state);
    if (!is_null(state) && size <= kLargestState) guess_row(state, size / 8);
  }
  void guess_row(Address at, std::uint64_t count) {
    view_.each_row<1>(at, count, [&](const auto& row) { sink_.guess(Address{row[0]}); });
  }

  void code(Address code) {
    const auto& fields = view_.fields().code;
    const auto& layout = view_.layout().code;
    const auto show = [&](const char* name, std::uint32_t field) {
      if (field != cpython::kNoField) named(view_.pointer_in(code, field), name);
    };
    const auto show_published = [&](const char* name, std::uint32_t offset) {
      if (offset != cpython::kNoField) named(view_.pointer(code, offset), name);
    };
    show("co_consts", fields.consts);
    show("co_names", fields.names);
    show_published("co_filename", layout.filename);
    show_published("co_name", layout.name);
    show_published("co_qualname", layout.qualname);
    show_published(view_.layout().version.minor >= 10 ? "co_linetable" : "co_lnotab", layout.line_table);
    show("co_exceptiontable", fields.exception_table);
    show("co_localsplusnames", fields.variable_names);
    show("co_localspluskinds", fields.variable_kinds);
    show("co_code", fields.bytecode);
    show("co_varnames", fields.varnames);
    show("co_freevars", fields.freevars);
    show("co_cellvars", fields.cellvars);
    if (fields.cached == cpython::kNoField) return;
    const Address cached = view_.pointer_in(code, fields.cached);
    if (is_null(cached)) return;
    named(view_.pointer(cached, 0), "co_code");
    named(view_.pointer(cached, 8), "co_varnames");
    named(view_.pointer(cached, 16), "co_cellvars");
    named(view_.pointer(cached, 24), "co_freevars");
  }

  void class_object(Address object, const ImageType& meta) {
    namespace field = cpython::type_field;
    const auto& heap_type = view_.fields().heap_type;
    const Address dict = type_dict(view_, kept_, object);
    const std::uint64_t flags = view_.word_in(object, field::kFlags);
    if (!is_null(dict)) sink_.name_space(dict);
    if ((flags & cpython::type_flag::kHeapType) == 0) {
      named(dict, "__dict__");
      named(view_.pointer_in(object, field::kMro), "__mro__");
      named(view_.pointer_in(object, field::kBases), "__bases__");
      return named(view_.pointer_in(object, field::kBase), "__base__");
    }
    if (view_.fields().values_style != cpython::ValuesStyle::kNone) {
      const KeyTable keys = key_table(view_, view_.pointer_in(object, heap_type.shared_keys));
      if (keys.is_sound && keys.is_shared)
        view_.each_row<2>(keys.entries, keys.count, [&](const auto& row) { edge(Address{row[0]}); });
    }
    const Address name = view_.pointer_in(object, heap_type.name),
                  qualified = view_.pointer_in(object, heap_type.qualname);
    named(name, "__name__");
    if (qualified != name) named(qualified, "__qualname__");
    named(view_.pointer_in(object, heap_type.slots), "__slots__");
    named(view_.pointer_in(object, field::kSubclasses), "__subclasses__");
    for (const std::uint32_t offset : {field::kCache, field::kMro, field::kBases, field::kBase, heap_type.module})
      if (!is_member(meta, offset)) edge(view_.pointer_in(object, offset));
    tell(object, meta);
  }
  [[nodiscard]] bool is_member(const ImageType& type, std::uint32_t field) const {
    const std::uint32_t offset = field + view_.head_shift();
    return std::any_of(type.members.begin(), type.members.end(), [&](const auto& m) { return m.offset == offset; });
  }

  void generator(Address object, const ImageType& type) {
    const auto& fields = view_.fields().generator;
    if (fields.frame == cpython::kNoField) return;
    if (type.c_name == "async_generator") sink_.guess(view_.pointer_in(object, fields.finalizer));
    if (view_.number_in<std::int8_t>(object, fields.state) < fields.cleared)
      frame(view_.place_in(object, fields.frame));
  }

  void frame_object(Address object) {
    const auto& fields = view_.fields().frame_object;
    if (fields.frame == cpython::kNoField) return old_frame_object(object);
    // It holds what its frame holds if the frame has been moved into it.
    const Address inner = view_.pointer_in(object, fields.frame);
    if (inner == view_.place_in(object, fields.data)) frame(inner);
  }

  // Up to 3.10: variables and cells as its code says, then its stack as far as it is in use.
  void old_frame_object(Address object) {
    const auto& fields = view_.fields().frame_object;
    constexpr std::uint64_t kValueStack = 64;
    const Address variables = offset_by(object, fields.data);
    const Address stack = view_.pointer(object, kValueStack);
    const std::uint64_t places = (raw(stack) - raw(variables)) / 8;
    std::uint64_t depth = 0;
    if (view_.layout().version.minor >= 10) {
      const auto told = view_.number<std::int32_t>(object, fields.stack);
      depth = told > 0 ? static_cast<std::uint64_t>(told) : 0;
    } else if (const Address top = view_.pointer(object, fields.stack); raw(top) > raw(stack)) {
      depth = (raw(top) - raw(stack)) / 8;
    }
    const std::uint64_t room = view_.item_count(object);
    if (places <= room && depth <= room - places) elements(variables, places + depth, EdgeKind::kReference);
  }

  // Items of a class in C that may be references.
  void words_behind(Address object, const ImageType& type) {
    constexpr std::uint64_t kKinds = cpython::type_flag::kInt | cpython::type_flag::kBytes | cpython::type_flag::kText;
    if (type.item_size == 8 && (type.flags & kKinds) == 0)
      guess_row(offset_by(object, type.basic_size), view_.item_count(object));
  }

  // Attributes, fields that are known by name, other fields, the class.
  void tell(Address object, const ImageType& type) {
    if (type.has_attributes) attributes(object, type);
    for (const ImageMember& member : type.members)
      if (member.is_in(object, view_)) named(view_.pointer(object, member.offset), member.name.c_str());
    for (const std::uint32_t offset : type.words) sink_.guess(view_.pointer(object, offset));
    const HiddenElements hidden = hidden_elements(type.own_memory, view_, object, view_.head_shift());
    elements(hidden.first, hidden.count, EdgeKind::kElement);
    if (type.is(cpython::type_flag::kHeapType)) sink_.type(type.address);
  }

  void attributes(Address object, const ImageType& type) {
    const cpython::Attributes found = attributes_of(view_, object, type);
    if (!is_null(found.dict)) {
      sink_.name_space(found.dict);
      named(found.dict, "__dict__");
    }
    // Values that a dict has taken over are the dict's to tell of, also where they lie in the object still.
    if (is_null(found.values) || !is_null(found.dict)) return;
    const KeyTable names = shared_names(view_, type);
    if (!names.is_sound) return;
    Address value = found.values;
    view_.each_row<2>(names.entries, std::min(found.capacity, names.count), [&](const auto& row) {
      const Address held = view_.pointer(value, 0);
      value = offset_by(value, 8);
      if (row[0] != 0) named(held, Address{row[0]});
    });
  }

  const ImageView& view_;
  const KeptDicts& kept_;
  Sink& sink_;
};

}  // namespace plimsoll::heap
