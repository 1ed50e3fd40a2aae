// capture/native_resolver.h: addresses of machine code -> functions with names.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/code_registry.h"
#include "native/jit_names.h"
#include "native/modules.h"
#include "native/symbols.h"

namespace plimsoll::capture {

// Whether code is one of CPython's trampolines, by its name in a perf map: "py::FUNCTION:FILE", as other JITs'
// "py::work()" is not.
bool is_trampoline(std::string_view name);

// For the drain thread only: it reads files.
class NativeResolver {
 public:
  // New functions get their ids from `registry`.
  NativeResolver(const native::Modules& modules, CodeRegistry& registry) : modules_(modules), registry_(registry) {}

  // The function that an instruction is in, and how far, at the time of a sample. A function without a name is called
  // after its file and its place in it. None for what only calls the loop that runs a Python function, which is a frame
  // of its own: CPython's trampolines for perf.
  std::optional<SampleFrame> frame_at(Address instruction, std::int64_t time_ns);
  // What is loaded now; null if that is not known.
  [[nodiscard]] const native::ModuleMap* code() const { return modules_.current(); }
  // Of an id that frame_at gave.
  [[nodiscard]] const NativeFunction& function(CodeId id) const { return functions_.at(id.index()); }

 private:
  // A file, wherever and however often it is loaded.
  struct File {
    std::string path;
    std::uint64_t device = 0, inode = 0;
    std::size_t mark = 0;  // of its content: it may be written anew
    friend bool operator==(const File&, const File&) = default;
    friend std::size_t hash_value(const File& file) { return file.inode ^ file.mark; }
  };
  // A file's names, read when they are asked for first. Places are the file's own.
  struct Names {
    native::SymbolTable symbols;
    boost::unordered_flat_map<std::uint64_t, CodeId> by_start;
  };

  // Of code that is of no file, or in `memory` that has only the name of one.
  std::optional<SampleFrame> frame_made(Address instruction, std::int64_t time_ns, const native::Module* memory);
  SampleFrame frame_in(const native::Module& module, std::uint64_t address);
  CodeId add(NativeFunction function);

  const native::Modules& modules_;
  CodeRegistry& registry_;
  boost::unordered_flat_map<File, std::unique_ptr<Names>> names_;
  boost::unordered_flat_map<std::uint32_t, NativeFunction> functions_;  // by CodeId
  CodeId unknown_;
  native::JitNames made_;
  boost::unordered_flat_map<std::uint64_t, CodeId> made_by_start_;
  // What instructions mean since no file came or went.
  boost::unordered_flat_map<std::uint64_t, SampleFrame> known_;
  std::int64_t known_since_ns_ = 0;
};

}  // namespace plimsoll::capture
