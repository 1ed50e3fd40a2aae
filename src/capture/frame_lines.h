// capture/frame_lines.h: which instructions of a code object exact recordings tell apart: those of different lines.
//
// A recursion of two calls on one line has 2^depth stacks by instructions, and one by lines; each new stack costs a
// program more than all that is booked on it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "cpython/code_object.h"
#include "cpython/walk.h"
#include "memory/local.h"

namespace plimsoll::capture {

// What one thread has asked for. Not thread-safe. Not for signal handlers: it may throw std::bad_alloc.
class FrameLines {
 public:
  // The line of a frame of code that is alive; or a negative number of its own for each instruction, of a code object
  // with very many lines, in which a line takes long to find. `deaths` is of code objects until now.
  std::int32_t of(const cpython::Layout& layout, const cpython::PyFrame& frame, std::uint32_t deaths) {
    const std::uint64_t hash = (raw(frame.code) + static_cast<std::uint32_t>(frame.position)) * 0x9e3779b97f4a7c15U;
    Known& known = known_[hash >> (64U - kKnownBits)];
    if (known.code != frame.code || known.position != frame.position || known.deaths != deaths)
      known = {frame.code, frame.position, deaths, find(layout, frame)};
    return known.line;
  }

 private:
  static constexpr unsigned kKnownBits = 8;
  static constexpr std::uint64_t kLongestTable = 4096;  // bytes
  // What was asked for last of those that share a place.
  struct Known {
    Address code{};
    std::int32_t position = 0;
    std::uint32_t deaths = 0;
    std::int32_t line = 0;
  };

  std::int32_t find(const cpython::Layout& layout, const cpython::PyFrame& frame) {
    std::uint32_t first_line = 0;
    if (!kMemory.load(offset_by(frame.code, layout.code.first_line), first_line) ||
        !(frame.position < 0 || read_table(layout, frame.code)))
      return -1 - std::max(frame.position, 0);
    const cpython::Location at =
        cpython::locate_near(layout.line_table_style, table_, static_cast<std::int32_t>(first_line), frame.position);
    return static_cast<std::int32_t>(at.line);
  }
  bool read_table(const cpython::Layout& layout, Address code) {
    Address table{};
    std::uint64_t size = 0;
    return memory::load_address(kMemory, offset_by(code, layout.code.line_table), table) &&
           kMemory.load(offset_by(table, layout.object.var_size), size) && size <= kLongestTable &&
           cpython::read_bytes(kMemory, layout, table, table_);
  }

  static constexpr memory::LocalReader kMemory{};
  std::array<Known, std::size_t{1} << kKnownBits> known_{};
  std::string table_;  // kept to save allocations
};

}  // namespace plimsoll::capture
