// cpython/code_object.h: what a code object says about itself, copied out of the target's memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "base/utf8.h"
#include "cpython/layout.h"
#include "cpython/line_table.h"
#include "memory/reader.h"

namespace plimsoll::cpython {

// A copy, good for ever, of what we need of a code object.
struct CodeInfo {
  std::string name;  // the qualified name from 3.11, else the plain name; UTF-8
  std::string file;  // co_filename; UTF-8
  std::int32_t first_line = 0;
  std::string line_table;  // raw bytes, for locate()
  bool operator==(const CodeInfo&) const = default;

  // _Py_InitCleanup: from 3.12 on a specialized call of a class puts a frame of this static code object below that of
  // __init__, to check what it returns. CPython hides it from tracebacks, and so must we.
  [[nodiscard]] bool is_init_cleanup() const { return first_line == 0 && name == "__init__" && file == "__init__"; }
};

// No text is longer than this many characters, and no line table than this many bytes: more is damage.
inline constexpr std::uint64_t kLongestText = 1U << 16U;
// But names of code are what programs like: compile(source, source, "exec").
inline constexpr std::uint64_t kLongestName = 1U << 30U;
inline constexpr std::uint64_t kLongestLineTable = 1U << 24U;

// As append_utf8(), but a lone surrogate has the three bytes that its number would have, so that no two texts look the
// same: text_literal (cpython/literals.h) knows them.
void append_with_surrogates(std::string& out, std::uint32_t code_point);

// Where a str object keeps its characters.
struct TextPlace {
  Address data{};
  std::uint64_t length = 0;  // in characters
  std::uint32_t width = 0;   // bytes of each
  bool is_ascii = false;
};

// False if it is not readable, not compact, or longer than `longest`; of more than kLongestText it is the beginning.
template <memory::Reader M>
bool find_text(const M& memory, const Layout& layout, Address object, TextPlace& out,
               std::uint64_t longest = kLongestText) {
  std::uint32_t state = 0;
  if (is_null(object) || !memory.load(offset_by(object, layout.unicode.length), out.length) ||
      !memory.load(offset_by(object, layout.unicode.state), state) || out.length > longest)
    return false;
  out.length = std::min(out.length, kLongestText);
  state >>= layout.unicode.kind_shift;
  const bool is_compact = (state & 8U) != 0;
  out.width = state & 7U;
  out.is_ascii = (state & 16U) != 0;
  out.data = offset_by(object, out.is_ascii ? layout.unicode.ascii_size : layout.unicode.compact_size);
  return is_compact && (out.width == 1 || out.width == 2 || out.width == 4);
}

// Reads the beginning of a str object as UTF-8: whole characters, as many as fit. False likewise. Async-signal-safe if
// `memory` is.
template <memory::Reader M>
bool read_text_start(const M& memory, const Layout& layout, Address object, std::span<char> out, std::size_t& size) {
  TextPlace text;
  size = 0;
  if (!find_text(memory, layout, object, text)) return false;
  for (std::uint64_t i = 0; i < text.length && size < out.size(); ++i) {
    std::uint32_t code_point = 0;
    for (std::uint32_t byte = 0; byte < text.width; ++byte) {
      std::uint8_t value = 0;
      if (!memory.load(offset_by(text.data, i * text.width + byte), value)) return false;
      code_point |= std::uint32_t{value} << (8 * byte);
    }
    char bytes[kMostUtf8];
    const std::size_t width = put_utf8(bytes, code_point);
    if (width > out.size() - size) break;
    for (std::size_t at = 0; at < width; ++at) out[size++] = bytes[at];
  }
  return true;
}

// Reads a str object as UTF-8. False likewise.
template <memory::Reader M>
bool read_text(const M& memory, const Layout& layout, Address object, std::string& out,
               std::uint64_t longest = kLongestText) {
  TextPlace text;
  if (!find_text(memory, layout, object, text, longest)) return false;
  std::string raw_text(text.length * text.width, '\0');
  if (!memory.read(text.data, raw_text.data(), raw_text.size())) return false;
  if (text.is_ascii) {
    out = std::move(raw_text);
    return true;
  }
  out.clear();
  for (std::size_t at = 0; at < raw_text.size(); at += text.width) {
    std::uint32_t code_point = 0;
    for (std::uint32_t i = 0; i < text.width; ++i)
      code_point |= std::uint32_t{static_cast<unsigned char>(raw_text[at + i])} << (8 * i);
    append_utf8(out, code_point);
  }
  return true;
}

// Reads a bytes object. False if it is not readable or too long.
template <memory::Reader M>
bool read_bytes(const M& memory, const Layout& layout, Address object, std::string& out) {
  std::uint64_t size = 0;
  if (is_null(object) || !memory.load(offset_by(object, layout.object.var_size), size) || size > kLongestLineTable)
    return false;
  out.resize(size);
  return memory.read(offset_by(object, layout.bytes.data), out.data(), out.size());
}

// Whether a copy has the line table, which can be long.
enum class Lines : std::uint8_t { kYes, kNo };

// Copies a code object. False if any part of it is not readable; `out` is then unspecified. The caller must know that
// the object was alive during the call, or check afterwards that it was.
template <memory::Reader M>
bool read_code(const M& memory, const Layout& layout, Address code, CodeInfo& out, Lines lines = Lines::kYes) {
  const auto field = [&](std::uint32_t offset, Address& value) {
    return memory::load_address(memory, offset_by(code, offset), value);
  };
  Address name{};
  Address file{};
  Address table{};
  std::uint32_t first_line = 0;
  if (!field(layout.code_name(), name) || !field(layout.code.filename, file) || !field(layout.code.line_table, table) ||
      !memory.load(offset_by(code, layout.code.first_line), first_line))
    return false;
  out.first_line = static_cast<std::int32_t>(first_line);
  return read_text(memory, layout, name, out.name, kLongestName) &&
         read_text(memory, layout, file, out.file, kLongestName) &&
         (lines == Lines::kNo || read_bytes(memory, layout, table, out.line_table));
}

}  // namespace plimsoll::cpython
