#include "heap/allocation_stacks.h"

#include "base/varint.h"

namespace plimsoll::heap {

std::string describe_site(const AllocationStacks& stacks, std::uint32_t stack) {
  const AllocationStacks::Frame& frame = stacks.frames[stack];
  const AllocationStacks::Code& code = stacks.codes[frame.code];
  if (code.file.empty()) return code.function;
  return code.function + " (" + code.file + ":" + std::to_string(frame.line) + ")";
}

std::string describe_stack(const AllocationStacks& stacks, std::uint32_t stack, std::size_t most) {
  std::string words = describe_site(stacks, stack);
  std::size_t shown = 1;
  for (std::uint32_t at = stacks.frames[stack].caller; at != AllocationStacks::kNone; at = stacks.frames[at].caller) {
    if (shown++ == most) return words + " < ...";
    words += " < " + describe_site(stacks, at);
  }
  return words;
}

std::uint32_t StackBuilder::call(std::uint32_t caller, std::string_view function, std::string_view file,
                                 std::uint32_t line) {
  std::string name(file);
  name += '\0';
  name += function;
  const auto [code, is_new_code] = codes_.try_emplace(name, static_cast<std::uint32_t>(stacks_.codes.size()));
  if (is_new_code) stacks_.codes.push_back({std::string(function), std::string(file)});
  const auto number = static_cast<std::uint32_t>(stacks_.frames.size());
  const auto [frame, is_new] = frames_.try_emplace(Key{caller, code->second, line}, number);
  if (is_new) stacks_.frames.push_back({caller, code->second, line});
  return frame->second;
}

void put_stacks(std::string& out, const AllocationStacks& stacks, const std::vector<std::uint32_t>& stack_of) {
  std::string column;
  for (const AllocationStacks::Code& code : stacks.codes) {
    put_bytes(column, code.function);
    put_bytes(column, code.file);
  }
  put_bytes(out, column);
  column.clear();
  for (std::uint32_t i = 0; i < stacks.frames.size(); ++i) {
    const AllocationStacks::Frame& frame = stacks.frames[i];
    put_varint(column, frame.caller == AllocationStacks::kNone ? 0 : i - frame.caller);
    put_varint(column, frame.code);
    put_varint(column, frame.line);
  }
  put_bytes(out, column);
  column.clear();
  for (const std::uint32_t stack : stack_of)
    put_varint(column, stack == AllocationStacks::kNone ? 0 : std::uint64_t{stack} + 1);
  put_bytes(out, column);
}

bool read_stacks(std::string_view bytes, AllocationStacks& stacks, std::vector<std::uint32_t>& stack_of) {
  VarintCursor cursor(bytes);
  VarintCursor codes(cursor.bytes());
  VarintCursor frames(cursor.bytes());
  VarintCursor numbers(cursor.bytes());
  if (cursor.failed() || !stacks.frames.empty()) return false;
  while (!codes.at_end()) {
    const std::string_view function = codes.bytes();
    const std::string_view file = codes.bytes();
    if (codes.failed()) return false;
    stacks.codes.push_back({std::string(function), std::string(file)});
  }
  while (!frames.at_end()) {
    const std::uint64_t number = stacks.frames.size();
    const std::uint64_t step = frames.varint();
    const std::uint64_t code = frames.varint();
    const auto line = static_cast<std::uint32_t>(frames.bounded(UINT32_MAX));
    if (frames.failed() || step > number || code >= stacks.codes.size()) return false;
    const auto caller = step == 0 ? AllocationStacks::kNone : static_cast<std::uint32_t>(number - step);
    stacks.frames.push_back({caller, static_cast<std::uint32_t>(code), line});
  }
  while (!numbers.at_end()) {
    const std::uint64_t stack = numbers.varint();
    if (numbers.failed() || stack > stacks.frames.size()) return false;
    stack_of.push_back(stack == 0 ? AllocationStacks::kNone : static_cast<std::uint32_t>(stack - 1));
  }
  return true;
}

}  // namespace plimsoll::heap
