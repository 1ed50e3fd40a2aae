// cpython/testing.h: interpreters drawn into a FakeMemory, for tests only. No product code may include it.
//
// A stack is drawn as it is walked, innermost frame first:
//
//   GIVEN: DrawnInterpreter python(layout);
//          python.draw_stack("inner@6 worker@4~ | main@2")
//
//   name@offset   a frame of the code object `name` at a byte offset into its bytecode
//   ~             behind it: a generator's frame, embedded in the generator instead of a chunk of frames
//   |             an entry from C into Python: a shim frame where the version has them, nothing where it has not
//
// Code objects are made at first mention.
#pragma once

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <ostream>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cpython/debug_offsets_testing.h"
#include "cpython/walk.h"
#include "memory/fake.h"

namespace plimsoll::cpython {
// GoogleTest prints the parameters of failing tests by this. NOLINTNEXTLINE(readability-identifier-naming)
inline void PrintTo(const Layout& layout, std::ostream* out) { *out << "CPython " << layout.version.text(); }
}  // namespace plimsoll::cpython

namespace plimsoll::cpython::testing {

inline Version version_of(unsigned minor, Version::Threading threading = Version::Threading::kGil) {
  return {3, minor, 0, threading};
}

// One Layout for each version that Plimsoll knows, oldest first.
inline std::vector<Layout> all_layouts() {
  std::vector<Layout> layouts;
  for (const unsigned minor : {9U, 10U, 11U, 12U}) layouts.push_back(layout_from_table(version_of(minor)).value());
  for (const DrawnOffsets& offsets :
       {offsets_3_13(), offsets_3_13t(), offsets_3_14(), offsets_3_14t(), offsets_3_15(), offsets_3_15t()})
    layouts.push_back(offsets.layout().value());
  return layouts;
}

// For the names of parameterised tests: "3_14_10t".
inline std::string test_name(const Layout& layout) {
  std::string name = layout.version.text();
  for (char& letter : name)
    if (letter == '.') letter = '_';
  return name;
}

// Memory with the data of an interpreter in it.
class DrawnInterpreter {
 public:
  static constexpr std::uint64_t kUnits = 32;  // of bytecode, in every code object
  static constexpr Address kCodeType{0x7000};
  static constexpr Address kNone{0x7100};

  explicit DrawnInterpreter(const Layout& drawn_layout) : layout(drawn_layout) {}

  memory::FakeMemory memory;
  Layout layout;

  // Fresh addresses, at a multiple of 512 and not next to anything.
  Address allocate(std::uint64_t size = 512) {
    const Address at{next_};
    next_ += (size + 1023) / 512 * 512;
    return at;
  }

  // A code object without names; see code_object_test.cc for those.
  Address code(const std::string& name) {
    auto& [address, bytecode] = codes_[name];
    if (!is_null(address)) return address;
    address = allocate();
    memory.put(offset_by(address, layout.object.type), kCodeType);
    memory.put(offset_by(address, layout.object.var_size), kUnits);
    bytecode = offset_by(address, layout.code.bytecode);
    if (layout.code.tlbc != kNoField) {
      // Copy 1 is the one that frames run; copy 0 is the code object's own.
      const Address copies = allocate();
      memory.put(offset_by(address, layout.code.tlbc), copies);
      memory.put(copies, std::uint64_t{2});
      memory.put(offset_by(copies, 8), bytecode);
      bytecode = allocate();
      memory.put(offset_by(copies, 16), bytecode);
    }
    return address;
  }

  // A str object of the narrowest kind that holds its characters.
  Address str(std::u32string_view text) {
    const char32_t widest = text.empty() ? U'\0' : *std::max_element(text.begin(), text.end());
    const bool is_ascii = widest < 0x80;
    const std::uint32_t width = widest < 0x100 ? 1 : widest < 0x10000 ? 2 : 4;
    const std::uint32_t header = is_ascii ? layout.unicode.ascii_size : layout.unicode.compact_size;
    const Address at = allocate(header + text.size() * width);
    memory.put(offset_by(at, layout.unicode.length), std::uint64_t{text.size()});
    put_str_state(at, width, kCompact | (is_ascii ? kAscii : 0));
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char32_t character = text[i];
      memory.put_bytes(offset_by(at, header + i * width), {reinterpret_cast<const char*>(&character), width});
    }
    return at;
  }
  static constexpr std::uint32_t kCompact = 8, kAscii = 16;
  void put_str_state(Address str, std::uint32_t width, std::uint32_t flags) {
    constexpr std::uint32_t kInterned = 3;
    memory.put(offset_by(str, layout.unicode.state), ((width | flags) << layout.unicode.kind_shift) | kInterned);
  }

  // A bytes object.
  Address bytes(std::string_view text) {
    const Address at = allocate(layout.bytes.data + text.size());
    memory.put(offset_by(at, layout.object.var_size), std::uint64_t{text.size()});
    memory.put_bytes(offset_by(at, layout.bytes.data), text);
    return at;
  }

  // A frame that is `offset` bytes into its code, called by the frame `previous`.
  Address frame(const std::string& name, std::int32_t offset, Address previous, std::uint8_t owner = 0) {
    const Address at = allocate();
    const Address executable = code(name);
    memory.put(offset_by(at, layout.frame.previous), previous);
    memory.put(offset_by(at, layout.frame.executable), executable);
    if (layout.frame.return_offset != kNoField) put_return_offset(at, 0);
    if (layout.frame.entry_mark != kNoField) memory.put(offset_by(at, layout.frame.entry_mark), std::uint8_t{0});
    if (layout.frame.owner != kNoField) memory.put(offset_by(at, layout.frame.owner), owner);
    if (layout.frame.tlbc_index != kNoField) memory.put(offset_by(at, layout.frame.tlbc_index), std::uint32_t{1});
    put_position(at, name, offset);
    return at;
  }
  // How far behind what it has called the frame goes on, in 3.12.
  void put_return_offset(Address frame, std::uint8_t units) {
    memory.put(offset_by(frame, layout.frame.return_offset), std::array<std::uint8_t, 2>{units, 0});
  }
  void put_position(Address frame, const std::string& name, std::int32_t offset) {
    const Address at = offset_by(frame, layout.frame.position);
    if (layout.position_style == PositionStyle::kInstruction)
      memory.put(at, offset_by(codes_[name].bytecode, static_cast<std::uint64_t>(std::int64_t{offset})));
    else if (layout.position_style == PositionStyle::kLastiBytes)
      memory.put(at, offset);
    else
      memory.put(at, offset / 2);
  }
  [[nodiscard]] bool has_shims() const { return layout.first_shim_owner <= 4; }
  // An entry from C: it has no code, and its position means nothing.
  Address shim(Address previous) {
    if (!has_shims()) return previous;
    const Address at = allocate();
    memory.put(offset_by(at, layout.frame.previous), previous);
    memory.put(offset_by(at, layout.frame.executable), raw(kNone) | 1U);
    memory.put(offset_by(at, layout.frame.owner), layout.first_shim_owner);
    return at;
  }

  // Draws a stack; returns its innermost frame.
  Address draw_stack(std::string_view drawing) {
    std::istringstream words{std::string(drawing)};
    std::vector<std::string> frames{std::istream_iterator<std::string>(words), {}};
    Address outer{};
    for (auto word = frames.rbegin(); word != frames.rend(); ++word) {
      const auto mark = word->find('@');
      const std::uint8_t owner = word->ends_with('~') ? 1 : 0;
      outer =
          *word == "|" ? shim(outer) : frame(word->substr(0, mark), std::stoi(word->substr(mark + 1)), outer, owner);
    }
    return outer;
  }

  // A thread state whose innermost frame is `frame`.
  Address thread_state(Address frame) {
    const Address tstate = allocate();
    Address current = frame;
    if (layout.frame_style == FrameStyle::kCFrame) {
      current = root_entry(tstate, frame);
    }
    memory.put(offset_by(tstate, layout.tstate.current_frame), current);
    return tstate;
  }

  // The _PyCFrame that is part of a thread state.
  Address root_entry(Address tstate, Address frame) {
    const Address at = offset_by(tstate, layout.tstate.root_entry);
    memory.put(offset_by(at, layout.cframe.current_frame), frame);
    memory.put(offset_by(at, layout.cframe.previous), Address{});
    return at;
  }
  // The _PyCFrame of an entry from C into Python, made from the entry `previous`.
  Address cframe(Address frame, Address previous) {
    const Address at = allocate();
    memory.put(offset_by(at, layout.cframe.current_frame), frame);
    memory.put(offset_by(at, layout.cframe.previous), previous);
    return at;
  }

  // Frames as they would be drawn, without the marks for generators and entries.
  [[nodiscard]] std::string text(std::span<const PyFrame> frames) const {
    std::string out;
    for (const PyFrame& frame : frames) {
      if (!out.empty()) out += " ";
      out += name_of(frame.code) + "@" + (frame.position == kNoPosition ? "?" : std::to_string(frame.position));
    }
    return out;
  }

 private:
  // Where a code object was drawn.
  struct Code {
    Address address{};
    Address bytecode{};
  };
  [[nodiscard]] std::string name_of(Address code) const {
    for (const auto& [name, known] : codes_)
      if (known.address == code) return name;
    return "?";
  }

  std::uint64_t next_ = 0x10000;
  std::map<std::string, Code> codes_;
};

}  // namespace plimsoll::cpython::testing
