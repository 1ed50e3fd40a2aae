// profile/frame_table.h: functions, and the places inside functions that were seen on a stack.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace plimsoll::profile {

// What sort of code a function is. The numbers are part of the file format.
enum class FunctionKind : std::uint8_t {
  kPython = 0,     // has a source file and lines
  kNative = 1,     // machine code: C, C++, Rust, ...
  kSynthetic = 2,  // made by the profiler, named in brackets: [truncated stack], [no Python frame]
};

// "python", "native" or "synthetic".
constexpr std::string_view function_kind_name(FunctionKind kind) {
  switch (kind) {
    case FunctionKind::kPython: return "python";
    case FunctionKind::kNative: return "native";
    case FunctionKind::kSynthetic: break;
  }
  return "synthetic";
}

// A function. Two code objects with equal fields are one Function.
struct Function {
  StringId name;                 // the qualified name where the interpreter knows it (3.11+), else the plain name
  StringId file;                 // as the interpreter knows it; none if unknown
  std::uint32_t first_line = 0;  // of the definition; 0 = unknown
  FunctionKind kind = FunctionKind::kPython;
  StringId source{};  // kNative: the source file, whose lines its frames have; none if unknown
  bool operator==(const Function&) const = default;
};

// A function at a position of its source. Lines and columns count from 1; 0 = unknown. Columns count UTF-8 bytes.
// `trace` is set where the code ran as machine code that a JIT made: the address of that code ("0x7ff3319a2cf0"), which
// PyPy's logs know it by, or "jit" if it is unknown. Machine code of a file has its `address` in that file, 0 if it is
// not known; and a function that was inlined into the one of the frame before has a depth.
struct Frame {
  FunctionId function;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  StringId trace{};
  std::uint64_t address = 0;
  std::uint8_t inline_depth = 0;
  bool operator==(const Frame&) const = default;
};

inline std::size_t hash_value(const Function& function) {
  std::size_t seed = function.name.index();
  for (const std::size_t part : {std::size_t{function.file.index()}, std::size_t{function.first_line},
                                 static_cast<std::size_t>(function.kind), std::size_t{function.source.index()}})
    seed = seed * 0x9e3779b97f4a7c15U + part;
  return seed;
}
inline std::size_t hash_value(const Frame& frame) {
  std::size_t seed = frame.function.index();
  for (const std::size_t part : {std::size_t{frame.line}, std::size_t{frame.column}, std::size_t{frame.trace.index()},
                                 std::size_t{frame.address}, std::size_t{frame.inline_depth}})
    seed = seed * 0x9e3779b97f4a7c15U + part;
  return seed;
}

// Rows of one kind, each stored once and named by an Id in order of first appearance. Row needs == and hash_value.
template <typename Row, typename RowId>
class InternTable {
 public:
  RowId intern(const Row& row) {
    const auto [position, inserted] = index_.try_emplace(row, RowId{rows_.size()});
    if (inserted) rows_.push_back(row);
    return position->second;
  }
  [[nodiscard]] const Row& operator[](RowId id) const { return rows_[id.index()]; }
  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  // Bytes of memory in use, nearly.
  [[nodiscard]] std::size_t memory() const {
    return rows_.capacity() * sizeof(Row) + index_.bucket_count() * (sizeof(std::pair<Row, RowId>) + 1);
  }

 private:
  std::vector<Row> rows_;
  boost::unordered_flat_map<Row, RowId> index_;
};

using FunctionTable = InternTable<Function, FunctionId>;
using FrameTable = InternTable<Frame, FrameId>;

}  // namespace plimsoll::profile
