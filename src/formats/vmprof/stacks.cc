// formats/vmprof/stacks.cc: plain, lined, tagged and unversioned stacks.
#include "formats/vmprof/stacks.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/hexadecimal.h"
#include "profile/sample_stacks.h"

namespace plimsoll::formats::vmprof {
namespace {

using profile::FunctionKind;

bool is_odd(std::int64_t id) { return (static_cast<std::uint64_t>(id) & 1U) != 0; }
FunctionKind kind_of_id(std::int64_t id) { return is_odd(id) ? FunctionKind::kNative : FunctionKind::kSynthetic; }

constexpr std::string_view kJitted = "jit";  // in a trace that the file does not tell

// PyPy walks a stack from its leaf until 64 bytes or fewer are left of a buffer of 8 KiB, and does not say that it
// ended there: some 500 frames. What is larger than the buffer is of another writer.
constexpr std::size_t kBuffer = 8192, kRestOfBuffer = 64;
bool has_filled_buffer(std::string_view entries) {
  return entries.size() >= kBuffer - kRestOfBuffer && entries.size() < kBuffer;
}

}  // namespace

StackId StackBuilder::stack_of(std::string_view entries, const Mode& mode) {
  if (entries.empty()) return {};
  if (const auto known = stacks_.find(entries); known != stacks_.end()) return known->second;
  const StackId stack = build(entries, mode);
  stacks_.emplace(near_others(entries), stack);
  return stack;
}

std::string_view StackBuilder::near_others(std::string_view entries) {
  constexpr std::size_t kMost = std::size_t{16} << 20U;
  if (copied_bytes_ + entries.size() > kMost) return entries;
  copied_bytes_ += entries.size();
  void* copy = copies_.allocate(entries.size(), 1);
  std::memcpy(copy, entries.data(), entries.size());
  return {static_cast<const char*>(copy), entries.size()};
}

StackId StackBuilder::build(std::string_view entries, const Mode& mode) {
  frames_.clear();
  if (mode.is_tagged)
    tagged_frames(entries);
  else if (mode.has_lines)
    line_frames(entries);
  else if (mode.version == 0)
    unversioned_frames(entries);
  else
    plain_frames(entries);
  StackId stack;
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame)
    stack = profile_.stacks.intern({stack, profile_.frames.intern(*frame)});
  return stack;
}

void StackBuilder::plain_frames(std::string_view entries) {
  for (std::size_t i = 0; i < count(entries); ++i) {
    const std::int64_t id = entry(entries, i);
    if (id != 0) push(function_of(id, kind_of_id(id)));
  }
}

// Pairs of line and id.
void StackBuilder::line_frames(std::string_view entries) {
  for (std::size_t i = 0; i + 1 < count(entries); i += 2) {
    const std::int64_t line = entry(entries, i);
    const std::int64_t id = entry(entries, i + 1);
    if (id == 0) continue;
    const bool is_line = line > 0 && line <= INT32_MAX;
    push(function_of(id, kind_of_id(id)), is_line ? static_cast<std::uint32_t>(line) : 0);
  }
}

// Pairs of tag and value.
void StackBuilder::tagged_frames(std::string_view entries) {
  jitted_ = 0;
  trace_ = {};
  for (std::size_t i = 0; i + 1 < count(entries); i += 2) tagged_frame(entry(entries, i), entry(entries, i + 1));
  if (!has_filled_buffer(entries)) return;
  const FunctionId missing = synthetic(profile::kTooDeep);
  // (A profile that was converted has it already.)
  if (frames_.empty() || frames_.back().function != missing) push(missing);
}

void StackBuilder::tagged_frame(std::int64_t tag, std::int64_t value) {
  const std::int64_t callee = std::exchange(jitted_, 0);
  const auto state = [&](std::string_view name) {
    push(synthetic(name));
    if (survey_.names.contains(value)) push(function_of(value, FunctionKind::kSynthetic));
  };
  switch (static_cast<Tag>(tag)) {
    case Tag::kAssembler: trace_ = profile_.strings.intern(hexadecimal(static_cast<std::uint64_t>(value))); return;
    case Tag::kJitted:
      if (trace_.is_none()) trace_ = profile_.strings.intern(kJitted);
      push(function_of(value, FunctionKind::kSynthetic), 0, trace_);
      jitted_ = value;
      return;
    case Tag::kCode:
      // The interpreter's frame of a loop stays while its trace runs: they are one call.
      if (callee == 0 || callee != value) push(function_of(value, FunctionKind::kSynthetic));
      break;
    case Tag::kNative: push(function_of(value, FunctionKind::kNative)); break;
    case Tag::kBlackhole: state("[blackhole]"); break;
    case Tag::kTracing: state("[tracing]"); break;
    case Tag::kGc: state("[gc]"); break;
  }
  trace_ = {};
}

// Version 0 has every machine frame, and marks those of Python code by addresses that cannot be. Of native frames those
// are kept that later versions have, too: the ones called by the innermost Python function. Neighbours in one library
// are one frame: what the file tells of an address is its library.
void StackBuilder::unversioned_frames(std::string_view entries) {
  constexpr std::int64_t kLargestTerminator = 4095;  // small numbers end the walk of the machine stack
  bool is_leaf = true;
  for (std::size_t i = 0; i < count(entries); ++i) {
    const std::int64_t at = entry(entries, i);
    if (const std::optional<std::int64_t> code = virtual_code(at)) {
      push(function_of(*code, FunctionKind::kSynthetic));
      is_leaf = false;
    } else if (is_leaf && (at < 0 || at > kLargestTerminator)) {
      // All but the first are return addresses: the call is before them.
      const FunctionId function = mapped_function(static_cast<std::uint64_t>(at) - (i == 0 ? 0 : 1));
      if (frames_.empty() || frames_.back().function != function) push(function);
    }
  }
}

// The id of the code object that an address stands for; none if it is a real one. PyPy's are return addresses, too.
std::optional<std::int64_t> StackBuilder::virtual_code(std::int64_t entry) const {
  for (const std::int64_t id : {entry, static_cast<std::int64_t>(static_cast<std::uint64_t>(entry) - 1)})
    if (survey_.names.contains(id)) return id;
  const std::uint64_t prefix = static_cast<std::uint64_t>(entry) >> 48U;
  if (prefix == kVirtualCPython || prefix == kVirtualPyPy) return entry;
  return std::nullopt;
}

FunctionId StackBuilder::function_of(std::int64_t id, FunctionKind kind_if_unknown) {
  const auto [position, is_new] = functions_.try_emplace(id);
  if (!is_new) return position->second;
  const auto name = survey_.names.find(id);
  const FunctionId function =
      name == survey_.names.end() ? unnamed_function(id, kind_if_unknown) : named_function(name->second);
  return functions_[id] = function;
}

FunctionId StackBuilder::named_function(std::string_view name) {
  const CodeName parts = parse_name(name);
  profile::Function function;
  function.name = profile_.strings.intern(parts.symbol);
  if (!parts.file.empty()) function.file = profile_.strings.intern(parts.file);
  function.first_line = parts.line;
  const bool is_bracketed = parts.symbol.starts_with('[') && parts.file.empty();  // as the writer names synthetic ones
  if (parts.language.empty() || (parts.language == "py" && is_bracketed))
    function.kind = FunctionKind::kSynthetic;
  else if (parts.language != "py")
    function.kind = FunctionKind::kNative;
  return profile_.functions.intern(function);
}

FunctionId StackBuilder::unnamed_function(std::int64_t id, FunctionKind kind) {
  const std::uint64_t mask = layout_.address == sizeof id ? ~std::uint64_t{0} : UINT32_MAX;
  const std::string address = hexadecimal(static_cast<std::uint64_t>(id) & mask);
  profile::Function function;
  function.name = profile_.strings.intern(kind == FunctionKind::kNative ? address : "[unknown code " + address + "]");
  function.kind = kind;
  return profile_.functions.intern(function);
}

FunctionId StackBuilder::synthetic(std::string_view name) {
  profile::Function function;
  function.name = profile_.strings.intern(name);
  function.kind = FunctionKind::kSynthetic;
  return profile_.functions.intern(function);
}

FunctionId StackBuilder::mapped_function(std::uint64_t address) {
  const Mapping* mapping = mapping_at(maps_, address);
  if (mapping == nullptr) return synthetic("[unknown native code]");
  if (mapping->path.empty() || mapping->path.front() == '[')
    return synthetic(mapping->path.empty() ? "[native code without a file]" : mapping->path);
  profile::Function function;
  function.name = profile_.strings.intern(mapping->path.substr(mapping->path.rfind('/') + 1));
  function.file = profile_.strings.intern(mapping->path);
  function.kind = FunctionKind::kNative;
  return profile_.functions.intern(function);
}

}  // namespace plimsoll::formats::vmprof
