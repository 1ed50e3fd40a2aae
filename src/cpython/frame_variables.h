// cpython/frame_variables.h: the local variables of a frame, with their values in words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cpython/value_reader.h"
#include "cpython/walk.h"

namespace plimsoll::cpython {

// A variable that is bound.
struct Variable {
  std::string name;
  Value value;
  bool is_argument = false;
};

// Those of a frame, arguments first. `left_out`: how many more there are.
struct FrameVariables {
  std::vector<Variable> variables;
  std::uint64_t left_out = 0;
};

namespace internal {

// The frames where a walk of a thread state may have begun: see walk_thread.
template <memory::Reader M>
std::vector<Address> first_frames(const M& memory, const Layout& layout, Address tstate) {
  std::vector<Address> found;
  Address frame{}, entry{};
  if (!current_frame(memory, layout, tstate, frame)) return found;
  found.push_back(frame);
  if (layout.frame_style == FrameStyle::kCFrame &&
      memory::load_address(memory, offset_by(tstate, layout.tstate.current_frame), entry) &&
      memory::load_address(memory, offset_by(entry, layout.cframe.previous), entry) &&
      memory::load_address(memory, offset_by(entry, layout.cframe.current_frame), frame))
    found.push_back(frame);
  return found;
}

// Follows a chain of frames as long as they run the code that a walk has found. Whether they all do.
template <memory::Reader M>
bool follow_frames(const M& memory, const Layout& layout, Address code_type, Address frame,
                   std::span<const PyFrame> frames, std::vector<Address>& out) {
  out.assign(frames.size(), Address{});
  std::size_t next = 0;
  const auto skip_marks = [&] {
    while (next < frames.size() && frames[next].position == kEntryMark) ++next;
  };
  skip_marks();
  // (Between frames with code there are entries from C, one at most for each.)
  for (std::size_t steps = 2 * frames.size() + 2; next < frames.size() && !is_null(frame) && steps > 0; --steps) {
    PyFrame found;
    const FrameLook look = look_at_frame(memory, layout, code_type, frame, found);
    const bool is_being_pushed = look.stop == WalkStop::kNotCode && next == 0;
    if (look.stop != WalkStop::kComplete && !is_being_pushed) return false;
    if (look.found) {
      if (found.code != frames[next].code) return false;
      out[next++] = frame;
      skip_marks();
    }
    frame = look.previous;
  }
  return next == frames.size();
}

}  // namespace internal

// Where the frames are that walk_thread has found in the same memory, in their order; null for marks of entries. Empty
// if they are not found again.
template <memory::Reader M>
std::vector<Address> frame_addresses(const M& memory, const Layout& layout, Address code_type, Address tstate,
                                     std::span<const PyFrame> frames) {
  std::vector<Address> found;
  for (const Address first : internal::first_frames(memory, layout, tstate))
    if (internal::follow_frames(memory, layout, code_type, first, frames, found)) return found;
  return {};
}

// Reads them. Used by one thread at a time.
template <memory::Reader M>
class VariablesReader {
 public:
  // `view` must outlive it. `code_type` is the address of PyCode_Type.
  VariablesReader(const ObjectView<M>& view, Address code_type, const ValueLimits& limits)
      : view_(view), values_(view, view.type_of(code_type), limits) {}

  // Of a frame that runs `code`.
  FrameVariables read(Address frame, Address code) {
    found_ = {};
    const auto& fields = view_.fields();
    const bool is_object = view_.layout().frame_style == FrameStyle::kFrameObject;
    if (is_object)
      read_old(offset_by(frame, fields.frame_object.data), code);
    else
      read_new(offset_by(frame, fields.frame.variables), code);
    constexpr std::uint32_t kOptimized = 1;  // code of functions, which keeps its variables in the frame
    if ((code_int(code, fields.code.flags) & kOptimized) == 0) read_names(view_.pointer(frame, fields.frame.locals));
    return std::move(found_);
  }

 private:
  static constexpr std::size_t kMostVariables = 100;       // of a frame
  static constexpr std::uint64_t kMostPlaces = 1U << 10U;  // that are looked at

  [[nodiscard]] std::uint64_t at(std::uint32_t field) const { return std::uint64_t{field} + view_.head_shift(); }
  [[nodiscard]] std::uint32_t code_int(Address code, std::uint32_t field) const {
    return view_.template number<std::uint32_t>(code, at(field));
  }
  [[nodiscard]] std::uint64_t arguments(Address code) const {
    constexpr std::uint32_t kStarred = 4, kDoubleStarred = 8;
    const auto& fields = view_.fields().code;
    const std::uint32_t flags = code_int(code, fields.flags);
    return std::uint64_t{code_int(code, fields.arguments)} + code_int(code, fields.keyword_only) +
           ((flags & kStarred) != 0 ? 1 : 0) + ((flags & kDoubleStarred) != 0 ? 1 : 0);
  }
  [[nodiscard]] std::string name_in(Address names, std::uint64_t place) {
    return values_.classes().short_text(view_.pointer(names, at(view_.fields().tuple_items) + place * 8));
  }

  void add(std::string name, Address object, bool is_argument) {
    if (is_null(object)) return;
    if (found_.variables.size() >= kMostVariables)
      ++found_.left_out;
    else
      found_.variables.push_back({std::move(name), values_.read(object), is_argument});
  }

  // From 3.11 on: one row of variables, those of cells among them, arguments first.
  void read_new(Address first, Address code) {
    constexpr std::uint64_t kTag = 3;
    constexpr std::uint8_t kCell = 0x40, kFree = 0x80;
    const auto& fields = view_.fields().code;
    const Address names = view_.pointer(code, at(fields.variable_names));
    const Address kinds = offset_by(view_.pointer(code, at(fields.variable_kinds)), view_.layout().bytes.data);
    const std::uint64_t count = std::min(view_.item_count(names), kMostPlaces);
    const std::uint64_t argument_count = arguments(code);
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t word = view_.word(first, i * 8);
      if (view_.fields().has_tagged_frames) word = (word & kTag) == kTag ? 0 : word & ~kTag;
      const bool is_cell = (view_.template number<std::uint8_t>(kinds, i) & (kCell | kFree)) != 0;
      const Address object = is_cell ? values_.without_cell(Address{word}) : Address{word};
      add(name_in(names, i), object, i < argument_count);
    }
  }

  // Up to 3.10: variables, cells of its own, cells of functions around it. An argument that is in a cell is in its old
  // place no more.
  void read_old(Address first, Address code) {
    const auto& fields = view_.fields().code;
    const Address names = view_.pointer(code, fields.varnames);
    const std::uint64_t all = code_int(code, fields.variables), count = std::min(all, kMostPlaces);
    const Address own = view_.pointer(code, fields.cellvars), outer = view_.pointer(code, fields.freevars);
    const std::uint64_t own_count = std::min(view_.item_count(own), kMostPlaces);
    const std::uint64_t outer_count = std::min(view_.item_count(outer), kMostPlaces);
    const std::uint64_t argument_count = std::min(arguments(code), count);
    const auto in_cell = [&](std::uint64_t i) { return values_.without_cell(view_.pointer(first, (all + i) * 8)); };
    std::vector<std::string> own_names;
    for (std::uint64_t i = 0; i < own_count; ++i) own_names.push_back(name_in(own, i));
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string name = name_in(names, i);
      Address object = view_.pointer(first, i * 8);
      const bool is_argument = i < argument_count;
      const auto cell = std::find(own_names.begin(), own_names.end(), name);
      if (is_null(object) && is_argument && !name.empty() && cell != own_names.end()) {
        object = in_cell(static_cast<std::uint64_t>(cell - own_names.begin()));
        cell->clear();  // it is shown
      }
      add(name, object, is_argument);
    }
    for (std::uint64_t i = 0; i < own_count; ++i)
      if (!own_names[i].empty()) add(own_names[i], in_cell(i), false);
    for (std::uint64_t i = 0; i < outer_count; ++i) add(name_in(outer, i), in_cell(view_.item_count(own) + i), false);
  }

  // Of a module or a class, which keep their names in a dict. What every module has, and what it defines and imports,
  // is not what a reader looks for.
  void read_names(Address names) {
    const ValueClass* type = values_.classes().of_object(names);
    if (type == nullptr || (type->kind != ValueKind::kDict && type->kind != ValueKind::kOrderedDict)) return;
    each_item(
        view_, names,
        [&](Address key, Address value) {
          const std::string name = values_.classes().short_text(key);
          if (!name.empty() && !name.starts_with("__") && !is_definition(value)) add(name, value, false);
        },
        kMostPlaces);
  }
  bool is_definition(Address object) {
    const ValueClass* type = values_.classes().of_object(object);
    return type != nullptr && (type->kind == ValueKind::kModule || type->kind == ValueKind::kClass ||
                               type->kind == ValueKind::kFunction || type->kind == ValueKind::kBuiltIn);
  }

  const ObjectView<M>& view_;
  ValueReader<M> values_;
  FrameVariables found_;
};

}  // namespace plimsoll::cpython
