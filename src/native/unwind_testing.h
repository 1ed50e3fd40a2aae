// native/unwind_testing.h: a drawn program and a drawn stack to unwind, for tests only. No product code may include it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "memory/fake.h"
#include "native/testing.h"
#include "native/unwind.h"

namespace plimsoll::native::testing {

using Frames = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

inline constexpr std::uint64_t kStack = 0x7000;

// A program of one drawn module, and a stack.
class Drawing {
 public:
  explicit Drawing(const Section& section) {
    auto module = std::make_shared<Module>();
    module->first.start = Section::kCode;
    module->end = Section::kCode + Section::kCodeSize;
    module->table = section.compile(pool_);
    modules_ = std::make_unique<ModuleMap>(
        std::vector<CodeRange>{{module->first.start, module->end, module}, {0x900000, 0x901000, nullptr}}, pool_);
  }
  // A word at an offset of the stack.
  Drawing& word(std::uint64_t offset, std::uint64_t value) {
    memory_.put(Address{kStack + offset}, value);
    return *this;
  }
  Drawing& at(std::uint64_t address, std::uint64_t value) {
    memory_.put(Address{address}, value);
    return *this;
  }
  Drawing& code(std::uint64_t offset, std::uint64_t value) { return word(offset, Section::kCode + value); }

  // Unwinds from an offset of the code, with the stack pointer at the stack's beginning.
  Unwind from(std::uint64_t offset, std::uint64_t frame_pointer = 0) {
    Registers registers = others;
    registers.pc = Section::kCode + offset;
    registers.value[kStackPointer] = kStack;
    registers.value[kFramePointer] = frame_pointer;
    const Unwind result = unwind(memory_, *modules_, registers, std::span(out_).first(limit), known);
    frames.clear();
    for (const NativeFrame& frame : std::span(out_).first(result.count))
      frames.emplace_back(raw(frame.instruction) - Section::kCode, is_null(frame.cfa) ? 0 : raw(frame.cfa) - kStack);
    return result;
  }

  Registers others;  // what they hold that `from` does not say
  std::size_t limit = 8;
  Known known = Known::kAll;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> frames;  // offsets of code, of the stack

 private:
  RulePool pool_;
  std::unique_ptr<ModuleMap> modules_;
  memory::FakeMemory memory_;
  std::array<NativeFrame, 8> out_;
};

}  // namespace plimsoll::native::testing
