// native/call_frame_program.h: runs the programs of .eh_frame, which say how a function's frame changes from
// instruction to instruction.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "native/rule.h"

namespace plimsoll::native {

// Where something of the caller's was saved, as far as a Rule can say it.
struct SavedPlace {
  // kExpression: at the address that it gives; kOther: in another register, or only as a value.
  enum class Kind : std::uint8_t { kSame, kOffset, kExpression, kUndefined, kOther } kind = Kind::kSame;
  std::int64_t offset = 0;  // from CFA
  std::span<const std::byte> expression;
};

// What is known of a frame at one instruction.
struct FrameState {
  // How the CFA is given.
  enum class Cfa : std::uint8_t { kNone, kRegister, kExpression } cfa = Cfa::kNone;
  std::uint64_t base = 0;
  std::int64_t offset = 0;
  std::span<const std::byte> expression;
  SavedPlace frame_pointer, return_address;
};

// A common information entry: what many functions have in common.
struct CommonEntry {
  std::uint64_t code_alignment = 1;
  std::int64_t data_alignment = 1;
  std::uint64_t return_register = kReturnAddress;
  std::uint8_t pointer_encoding = 0;
  bool is_sized = false;  // the augmentation begins with its size: 'z'
  bool is_signal_frame = false;
  FrameState initial;
};

// The state from one instruction on, counted from where the function begins.
struct StateRow {
  std::uint64_t start = 0;
  FrameState state;
};

// Runs `program` from `state`, and adds a row to `rows` for each stretch of code. Nothing beyond `size` bytes of code.
// False if the program is damaged: `rows` hold what came before. At most kMostRows are added.
bool run_call_frame_program(std::span<const std::byte> program, const CommonEntry& common, std::uint64_t size,
                            FrameState state, std::vector<StateRow>& rows);
inline constexpr std::size_t kMostRows = 100'000;  // in one function

// The rule that says the same, or why there is none.
Rule rule_of(const FrameState& state, const CommonEntry& common);

}  // namespace plimsoll::native
