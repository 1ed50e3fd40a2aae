// remote/code_copies.h: copies of the code objects of another process, or of a core file, as long as there is room.
//
// Any number of code objects may say that one long text is their line table, and each copy has it whole: beyond a limit
// copies have none, and their frames no lines.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <memory>
#include <utility>

#include "cpython/code_object.h"

namespace plimsoll::remote {

// What copies may take together.
class CodeRoom {
 public:
  explicit CodeRoom(std::size_t most_bytes) : most_(most_bytes) {}

  // Without its line table if that cannot be read, or there is no room left. Null if there is none for names either, or
  // it is no code object.
  template <memory::Reader M>
  std::shared_ptr<const cpython::CodeInfo> copy(const M& memory, const cpython::Layout& layout, Address code) {
    auto info = std::make_shared<cpython::CodeInfo>();
    const bool has_lines = !is_full() && cpython::read_code(memory, layout, code, *info);
    if (!has_lines) *info = {};
    const bool has_room = used_ < 2 * most_;
    if (!has_lines && !(has_room && cpython::read_code(memory, layout, code, *info, cpython::Lines::kNo)))
      return nullptr;
    used_ += bytes_of(*info);
    return info;
  }
  // A copy is not kept.
  void give_back(const cpython::CodeInfo& info) { used_ -= bytes_of(info); }
  void give_all_back() { used_ = 0; }
  [[nodiscard]] bool is_full() const { return used_ >= most_; }

 private:
  static std::size_t bytes_of(const cpython::CodeInfo& info) {
    return sizeof info + info.name.size() + info.file.size() + info.line_table.size();
  }

  const std::size_t most_;
  std::size_t used_ = 0;
};

// Copies that are kept, by their addresses. Only as true as nothing took the place of a code object.
class CodeCopies {
 public:
  // Null as above.
  template <memory::Reader M>
  const std::shared_ptr<const cpython::CodeInfo>& find(const M& memory, const cpython::Layout& layout, Address code) {
    std::shared_ptr<const cpython::CodeInfo>& known = known_[raw(code)];
    if (known == nullptr) known = room_.copy(memory, layout, code);
    return known;
  }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20U;
  CodeRoom room_{kMostBytes};
  boost::unordered_flat_map<std::uint64_t, std::shared_ptr<const cpython::CodeInfo>> known_;
};

}  // namespace plimsoll::remote
