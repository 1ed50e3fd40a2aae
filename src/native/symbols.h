// native/symbols.h: the names of a module's functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plimsoll::native {

// The functions that an ELF file has names for: .symtab where it was not stripped, and .dynsym.
class SymbolTable {
 public:
  // Of an open file, which may be damaged, or of its image in memory. Empty if nothing can be read.
  static SymbolTable of_file(int descriptor);
  static SymbolTable of_image(std::string_view image);

  // The name of the function at an address of the file's own, as in the file; empty if it has none. `start` is set to
  // where the function begins.
  [[nodiscard]] std::string_view find(std::uint64_t address, std::uint64_t& start) const;
  // Where the function of this name is, as a pair of its start and its end, and the parts that a compiler or a linker
  // has moved elsewhere (NAME.cold), as far as the file still names them.
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::uint64_t>> parts_of(std::string_view name) const;
  // The file's build-id, as bytes; empty if it has none.
  [[nodiscard]] const std::string& build_id() const { return build_id_; }
  [[nodiscard]] std::size_t size() const { return functions_.size(); }

 private:
  friend class SymbolReader;
  // A function; its name is in names_, up to a byte of zero.
  struct Function {
    std::uint64_t start = 0;
    std::uint32_t size = 0;
    std::uint32_t name = 0;
    bool is_local = false;
  };

  std::vector<Function> functions_;  // in the order of their addresses
  std::string names_;
  std::string build_id_;
};

// The address of a variable, as in an open ELF file, which may be damaged; none if it has none of this name.
std::optional<std::uint64_t> variable_in(int descriptor, std::string_view name);

// The name as its programmer wrote it, if it is one of C++ or Rust; one that could become very long stays as it is.
std::string demangled(std::string_view name);

}  // namespace plimsoll::native
