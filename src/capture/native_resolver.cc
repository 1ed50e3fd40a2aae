#include "capture/native_resolver.h"

#include <string_view>

#include "base/clock.h"
#include "base/hexadecimal.h"

namespace plimsoll::capture {
namespace {

constexpr std::size_t kMostKnown = 100'000;

}  // namespace

bool is_trampoline(std::string_view name) {
  constexpr std::string_view kPrefix = "py::";
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  const std::size_t end = name.find(':');
  return end != std::string_view::npos && !name.substr(end).starts_with("::");
}

CodeId NativeResolver::add(NativeFunction function) {
  const CodeId id = registry_.new_id();
  functions_.emplace(id.index(), std::move(function));
  return id;
}

std::optional<SampleFrame> NativeResolver::frame_at(Address instruction, std::int64_t time_ns) {
  if (known_since_ns_ != modules_.known_since_ns() || known_.size() > kMostKnown) known_.clear();
  known_since_ns_ = modules_.known_since_ns();
  // (A sample of before may be of a file that is not there any more.)
  const bool is_current = time_ns >= known_since_ns_;
  const auto known = is_current ? known_.find(raw(instruction)) : known_.end();
  if (known != known_.end()) return known->second;
  const std::shared_ptr<const native::Module> module = modules_.find(instruction, time_ns);
  // (Made code is not remembered: what is there may be known in a moment.)
  if (module == nullptr || !module->is_elf) return frame_made(instruction, time_ns, module.get());
  const SampleFrame frame = frame_in(*module, raw(instruction));
  if (is_current) known_.emplace(raw(instruction), frame);
  return frame;
}

std::optional<SampleFrame> NativeResolver::frame_made(Address instruction, std::int64_t time_ns,
                                                      const native::Module* memory) {
  // (What is in no mapping that is known is of a file that was loaded a moment ago, most likely.)
  const native::CodeRange* range = code() != nullptr ? code()->find(raw(instruction)) : nullptr;
  const std::optional<os::Pid> process = range != nullptr ? modules_.process() : std::nullopt;
  const auto* known = modules_.find_made(instruction);
  if (known == nullptr && process) {
    known = made_.find(*process, instruction, time_ns, monotonic_ns());
    if (known != nullptr && is_trampoline(known->second.name)) return std::nullopt;
  }
  if (known == nullptr) {
    if (memory != nullptr) return frame_in(*memory, raw(instruction));
    if (unknown_.is_none()) unknown_ = add({"machine code of no file", ""});
    return SampleFrame{unknown_, {}};
  }
  const auto& [start, function] = *known;
  CodeId& id = made_by_start_[start];
  if (id.is_none() || functions_.at(id.index()).name != function.name) id = add({function.name, "[jit]", start});
  return SampleFrame{id, {}};
}

SampleFrame NativeResolver::frame_in(const native::Module& module, std::uint64_t address) {
  std::unique_ptr<Names>& names =
      names_[{module.first.path, module.first.device, module.first.inode, module.mark.hash}];
  if (names == nullptr) names = std::make_unique<Names>(Names{modules_.symbols_of(module), {}});
  std::uint64_t start = 0;
  const std::string_view symbol = names->symbols.find(address - module.slide, start);
  // Where there is no name, the unwind table still tells functions apart.
  if (symbol.empty())
    start = module.first.start + module.table.function_of(static_cast<std::uint32_t>(address - module.first.start)) -
            module.slide;
  constexpr std::uint64_t kFarthest = INT32_MAX;
  const std::uint64_t distance = address - module.slide - start;
  const cpython::Location at{distance <= kFarthest ? static_cast<std::uint32_t>(distance) : 0, 0};
  if (const auto known = names->by_start.find(start); known != names->by_start.end()) return {known->second, at};
  const std::string& path = module.first.path;
  const std::string file = path.substr(path.rfind('/') + 1);
  const CodeId id = add({symbol.empty() ? file + "+" + hexadecimal(start) : native::demangled(symbol), path, start,
                         names->symbols.build_id()});
  names->by_start.emplace(start, id);
  return {id, at};
}

}  // namespace plimsoll::capture
