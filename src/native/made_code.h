// native/made_code.h: code that is made at run time and shown to debuggers by GDB's JIT interface, as LLVM's JITs do
// (Numba, PostgreSQL, Julia): how it is unwound, and its functions' names.
//
// A program that makes code has a variable of this name, a descriptor, from which a list of ELF files in memory hangs.
// Their section headers say where each section was put. (The GDB manual, "JIT Compilation Interface".) What is read may
// be anything: a process may write there what it likes, or be about to change it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "native/code_names.h"
#include "native/module_map.h"
#include "native/process_memory.h"

namespace plimsoll::native {

// What an ELF image says of code that was put elsewhere.
struct MadeObject {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> code;  // starts and ends, ascending, apart from each other
  std::uint64_t frames = 0, frames_size = 0;                  // where its .eh_frame is; 0 if it has none
  CodeNames names;
};
// None if it is no such image, or has no code.
std::optional<MadeObject> read_made_object(std::string_view image);

// What is known of the code that a process has made. For one thread.
class MadeCodes {
 public:
  // Looks for descriptors in the files among `ranges` that were not looked into before. Reads their symbols.
  using OpenFile = std::function<UniqueFd(const Module&)>;
  void find_descriptors(const std::vector<CodeRange>& ranges, const OpenFile& open);
  // Reads what is new on the lists. Whether anything is, or has gone. A read for each descriptor if not.
  bool look(const ProcessMemory& memory, RulePool& pool);
  // With what is known in the place of memory without a file.
  [[nodiscard]] std::vector<CodeRange> put_into(std::vector<CodeRange> ranges) const;

  // Where the function begins that has an address, and what it is; null if nothing is known of it.
  [[nodiscard]] const std::pair<const std::uint64_t, CodeNames::Function>* find(std::uint64_t address) const {
    return names_.find(address);
  }

 private:
  // struct jit_descriptor, and where it is.
  struct Descriptor {
    std::uint64_t address = 0;
    std::uint64_t relevant = 0, first = 0;
    std::uint64_t print = 0;  // of the object that it speaks of
  };
  // An object on a list. The first three tell it from one that was in its place before.
  struct Object {
    std::uint64_t image = 0, size = 0, print = 0;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> code;
    std::shared_ptr<const MadeTable> table;
    bool is_listed = true;
    bool counts = false;  // among bytes_
  };

  bool has_changed(const ProcessMemory& memory);
  [[nodiscard]] std::uint64_t print_of_relevant(const ProcessMemory& memory, const Descriptor& descriptor) const;
  bool add(std::uint64_t entry, std::uint64_t image, std::uint64_t size, const ProcessMemory& memory, RulePool& pool);
  Object read(std::uint64_t image, std::uint64_t size, std::uint64_t print, const ProcessMemory& memory,
              RulePool& pool);

  std::vector<std::weak_ptr<const Module>> looked_into_;
  std::vector<Descriptor> descriptors_;
  std::map<std::uint64_t, Object> objects_;  // by the addresses of their entries
  std::uint64_t bytes_ = 0;                  // of their images
  CodeNames names_;
};

}  // namespace plimsoll::native
