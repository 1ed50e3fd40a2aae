// python/native_binding.cc: whether native frames can be recorded here, and those of the calling thread now.
#include <Python.h>
#include <nanobind/stl/string.h>
#include <ucontext.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/clock.h"
#include "capture/session.h"
#include "memory/local.h"
#include "native/modules.h"
#include "native/symbols.h"
#include "native/unwind.h"
#include "python/bindings.h"
#include "python/interpreter.h"

namespace plimsoll::python {
namespace {

namespace nb = nanobind;

constexpr std::size_t kMostFrames = 4096;

// Why not; empty if they can.
std::string native_unsupported() {
  const Result<capture::Interpreter> interpreter = find_interpreter();
  if (!interpreter.ok()) return interpreter.error().message;
  const Status status = capture::Session::check_native();
  return status.ok() ? "" : status.error().message;
}

// The functions of files, each read when it is asked for first.
class Symbols {
 public:
  explicit Symbols(const native::Modules& modules) : modules_(modules) {}

  // (name, file, bytes from its beginning); the name is empty if there is none.
  nb::tuple describe(const native::CodeRange* range, std::uint64_t instruction) {
    if (range == nullptr || range->module == nullptr) return nb::make_tuple("", "", 0);
    const native::Module& module = *range->module;
    auto [table, is_new] = tables_.try_emplace(&module);
    if (is_new) table->second = modules_.symbols_of(module);
    std::uint64_t start = module.first.start - module.slide;
    const std::string_view name = table->second.find(instruction - module.slide, start);
    return nb::make_tuple(native::demangled(name), module.first.path, instruction - module.slide - start);
  }

 private:
  const native::Modules& modules_;
  std::map<const native::Module*, native::SymbolTable> tables_;
};

// (address, name, file, offset) of each frame of the calling thread, innermost first, without this module's own.
nb::list native_stack() {
  if (!native::kCanUnwind)
    raise(Error{ErrorKind::kUnsupported, "native frames can be told on x86-64 and aarch64 only, so far"});
  check(memory::FaultGuard::ensure_installed());
  native::Modules modules;
  check(modules.refresh(monotonic_ns()));
  ucontext_t context{};
  ::getcontext(&context);
  std::vector<native::NativeFrame> frames(kMostFrames);
  const native::ModuleMap& map = *modules.current();
  frames.resize(native::unwind(memory::LocalReader{}, map, native::registers_of(context), frames).count);

  const auto module_of = [&](const native::NativeFrame& frame) {
    const native::CodeRange* range = map.find(raw(frame.instruction));
    return range == nullptr ? nullptr : range->module;
  };
  const auto caller = std::find_if(frames.begin(), frames.end(), [&, own = module_of(frames.front())](const auto& one) {
    return module_of(one) != own;
  });
  Symbols symbols(modules);
  nb::list result;
  for (auto at = caller; at != frames.end(); ++at) {
    const std::uint64_t instruction = raw(at->instruction);
    result.append(nb::make_tuple(instruction) + symbols.describe(map.find(instruction), instruction));
  }
  return result;
}

}  // namespace

void bind_native(nb::module_& module) {
  module.def("native_unsupported", &native_unsupported);
  module.def("native_stack", &native_stack);
}

}  // namespace plimsoll::python
