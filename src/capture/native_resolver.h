// capture/native_resolver.h: addresses of machine code -> functions with names.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/code_registry.h"
#include "native/jit_names.h"
#include "native/modules.h"
#include "native/symbols.h"

namespace plimsoll::capture {

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
  // A module's names, read when they are asked for first.
  struct Names {
    std::shared_ptr<const native::Module> module;  // keeps its address from being used again
    native::SymbolTable symbols;
    boost::unordered_flat_map<std::uint64_t, CodeId> by_start;
  };

  // Of code that is of no file.
  std::optional<SampleFrame> frame_made(Address instruction, std::int64_t time_ns);
  SampleFrame frame_in(const std::shared_ptr<const native::Module>& module, std::uint64_t address);
  CodeId add(NativeFunction function);

  const native::Modules& modules_;
  CodeRegistry& registry_;
  boost::unordered_flat_map<const native::Module*, std::unique_ptr<Names>> names_;
  boost::unordered_flat_map<std::uint32_t, NativeFunction> functions_;  // by CodeId
  CodeId unknown_;
  native::JitNames made_;
  boost::unordered_flat_map<std::uint64_t, CodeId> made_by_start_;
  // What instructions meant lately, while no file came or went.
  boost::unordered_flat_map<std::uint64_t, SampleFrame> known_;
  const native::ModuleMap* known_in_ = nullptr;
};

}  // namespace plimsoll::capture
