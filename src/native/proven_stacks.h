// native/proven_stacks.h: stacks of machine code that a thread was met on, each with the words of memory that prove it.
//
// Where a thread's calls lead follows from its stack pointer and from some words of its stack: the return addresses,
// and those frame pointers that a frame was found by. As long as these are what they were, and no module has been
// unloaded, unwinding would come to the same stack: to find that out takes one comparison a word, instead of a step a
// frame.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "memory/reader.h"
#include "native/unwind.h"

namespace plimsoll::native {

// A stack, by what proves it.
struct ProvenStack {
  // What was read to find it.
  struct Word {
    Address at{};
    std::uint64_t value = 0;
  };
  std::uint64_t number = 0;  // which one of its ProvenStacks it is; 0: none
  std::uint32_t unloads = 0;
  bool needs_frame_pointer = false;  // which is only then told
  std::uint64_t pc = 0, stack_pointer = 0, frame_pointer = 0;
  std::uint64_t end = 0;  // of its outermost frame, and beyond its own of all
  std::vector<Word> words;

  // Whether an address is in one of its frames.
  [[nodiscard]] bool has(Address at) const { return raw(at) >= stack_pointer && raw(at) < end; }
};

// The stacks of one thread, of which those are kept that were met last. Not thread-safe.
class ProvenStacks {
 public:
  // The stack that registers_here() is on; null if it was not met, or not lately. `unloads` is how many modules have
  // been unloaded. `memory` is that of the thread, which is the caller.
  template <memory::Reader M>
  const ProvenStack* find(const M& memory, const Registers& here, std::uint32_t unloads) {
    Ways& ways = ways_of(here);
    for (std::size_t way = 0; way < ways.size(); ++way) {
      if (!is_same(memory, ways[way], here, unloads)) continue;
      if (way == 0) return &ways.front();
      std::swap(ways[way], ways[way - 1]);
      return &ways[way - 1];
    }
    return nullptr;
  }

  // Unwinds one that was not found; null if it is too deep, or there is a frame whose rule is not a plain one. May
  // throw std::bad_alloc.
  template <memory::Reader M>
  const ProvenStack* add(const M& memory, const ModuleMap& modules, const Registers& here, std::uint32_t unloads) {
    if (failures_ >= kMostFailures && ++failures_ % kTriedAfter != 0) return nullptr;
    // Whichever was met longest ago makes room.
    Ways& ways = ways_of(here);
    std::rotate(ways.begin(), ways.end() - 1, ways.end());
    ProvenStack& stack = ways.front();
    stack.number = 0;  // until all of it is there
    if (!prove(memory, modules, here, stack)) {
      ++failures_;
      return nullptr;
    }
    failures_ = 0;
    stack.unloads = unloads;
    stack.number = ++last_number_;
    return &stack;
  }

 private:
  // Many calls of a program begin at the same depth.
  static constexpr unsigned kBits = 6;
  static constexpr std::size_t kWays = 4;
  // Deeper ones take so many comparisons, and so much room, that they are not kept.
  static constexpr std::size_t kMostWords = 512;
  // After so many failures in a row, it is tried as rarely.
  static constexpr std::uint32_t kMostFailures = 32, kTriedAfter = 64;
  using Ways = std::array<ProvenStack, kWays>;

  Ways& ways_of(const Registers& here) {
    return stacks_[static_cast<std::size_t>(here.value[kStackPointer] * 0x9e3779b97f4a7c15U >> (64U - kBits))];
  }

  template <memory::Reader M>
  static bool is_same(const M& memory, const ProvenStack& stack, const Registers& here, std::uint32_t unloads) {
    if (stack.number == 0 || stack.stack_pointer != here.value[kStackPointer] || stack.pc != here.pc ||
        stack.unloads != unloads || (stack.needs_frame_pointer && stack.frame_pointer != here.value[kFramePointer]))
      return false;
    for (const ProvenStack::Word& word : stack.words) {
      std::uint64_t now = 0;
      if (!memory.load(word.at, now) || now != word.value) return false;
    }
    return true;
  }

  template <memory::Reader M>
  static bool prove(const M& memory, const ModuleMap& modules, const Registers& here, ProvenStack& out) {
    out.pc = here.pc;
    out.stack_pointer = here.value[kStackPointer];
    out.frame_pointer = here.value[kFramePointer];
    out.needs_frame_pointer = false;
    out.words.clear();
    internal::Cursor at{here};
    Address frame_pointer_at{};  // null: in its register
    while (out.words.size() < kMostWords) {
      const std::uint64_t instruction = at.is_interrupted ? at.registers.pc : at.registers.pc - 1;
      const PlainStep step = modules.step_at(instruction);
      const std::uint64_t frame_pointer = at.registers.value[kFramePointer];
      if (!internal::step_out_plainly(memory, step, at)) {
        out.end = at.registers.value[kStackPointer];
        return !step.is_plain() && modules.rule_at(instruction).kind == Rule::Kind::kOutermost;
      }
      if (step.is_by_frame_pointer() && is_null(frame_pointer_at))
        out.needs_frame_pointer = true;
      else if (step.is_by_frame_pointer())
        out.words.push_back({frame_pointer_at, frame_pointer});
      const std::uint64_t cfa = at.registers.value[kStackPointer];
      if (step.saved() != 0) frame_pointer_at = Address{cfa - step.saved()};
      // As it lies there: a return address may be signed.
      ProvenStack::Word& back = out.words.emplace_back(ProvenStack::Word{Address{cfa - step.return_place()}});
      if (!memory.load(back.at, back.value)) return false;
    }
    return false;
  }

  std::array<Ways, std::size_t{1} << kBits> stacks_{};
  std::uint64_t last_number_ = 0;
  std::uint32_t failures_ = 0;
};

}  // namespace plimsoll::native
