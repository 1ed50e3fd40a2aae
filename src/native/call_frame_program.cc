#include "native/call_frame_program.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "native/byte_cursor.h"
#include "native/dwarf.h"

namespace plimsoll::native {
namespace {

constexpr std::size_t kMostRemembered = 32;  // states on the stack of DW_CFA_remember_state

// One run of one program.
class Run {
 public:
  Run(std::span<const std::byte> program, const CommonEntry& common, std::uint64_t size, const FrameState& state,
      std::vector<StateRow>& rows)
      : cursor_(program), common_(common), size_(size), state_(state), rows_(rows), first_row_(rows.size()) {}

  bool all() {
    while (!cursor_.at_end() && at_ < size_ && is_good_ && cursor_.is_good()) {
      const std::uint8_t opcode = cursor_.byte();
      if (!has_operand_inside(opcode) && !moves(opcode) && !sets_cfa(opcode) && !sets_register(opcode)) others(opcode);
    }
    is_good_ = is_good_ && cursor_.is_good();
    if (is_good_) end_row(size_);
    return is_good_;
  }

 private:
  void end_row(std::uint64_t next) {
    if (next <= at_ || !is_good_) return;
    if (rows_.size() - first_row_ >= kMostRows) {
      is_good_ = false;
      return;
    }
    rows_.push_back({at_, state_});
    at_ = next;
  }
  void advance(std::uint64_t units) {
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(units, common_.code_alignment, &bytes) || bytes > size_ - at_) bytes = size_ - at_;
    end_row(at_ + bytes);
  }
  std::int64_t factored(std::int64_t count) {
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(count, common_.data_alignment, &bytes)) is_good_ = false;
    return bytes;
  }
  std::int64_t unsigned_operand() {
    const std::uint64_t value = cursor_.uleb();
    if (value > std::numeric_limits<std::int32_t>::max()) is_good_ = false;
    return static_cast<std::int64_t>(value);
  }
  // Where the caller's value of a register is kept. All but two do not matter.
  void save(std::uint64_t number, const SavedPlace& place) {
    if (number == kFramePointer) state_.frame_pointer = place;
    if (number == common_.return_register) state_.return_address = place;
  }
  void restore(std::uint64_t number) {
    if (number == kFramePointer) state_.frame_pointer = common_.initial.frame_pointer;
    if (number == common_.return_register) state_.return_address = common_.initial.return_address;
  }

  bool has_operand_inside(std::uint8_t opcode) {
    const std::uint8_t operand = opcode & 0x3fU;
    switch (opcode & 0xc0U) {
      case DW_CFA_advance_loc: advance(operand); return true;
      case DW_CFA_offset: save(operand, {SavedPlace::Kind::kOffset, factored(unsigned_operand()), {}}); return true;
      case DW_CFA_restore: restore(operand); return true;
      default: return false;
    }
  }

  bool moves(std::uint8_t opcode) {
    switch (opcode) {
      case DW_CFA_nop: return true;
      case DW_CFA_advance_loc1: advance(cursor_.byte()); return true;
      case DW_CFA_advance_loc2: advance(cursor_.fixed<std::uint16_t>()); return true;
      case DW_CFA_advance_loc4: advance(cursor_.fixed<std::uint32_t>()); return true;
      case DW_CFA_remember_state:
        if (remembered_.size() == kMostRemembered) is_good_ = false;
        if (is_good_) remembered_.push_back(state_);
        return true;
      case DW_CFA_restore_state:
        if (remembered_.empty()) return is_good_ = false, true;
        state_ = remembered_.back();
        remembered_.pop_back();
        return true;
      default: return false;
    }
  }

  void set_cfa(std::uint64_t base, std::int64_t offset) {
    state_.cfa = FrameState::Cfa::kRegister;
    state_.base = base;
    state_.offset = offset;
  }

  bool sets_cfa(std::uint8_t opcode) {
    const std::uint64_t base = state_.base;
    switch (opcode) {
      case DW_CFA_def_cfa: {
        const std::uint64_t number = cursor_.uleb();
        set_cfa(number, unsigned_operand());
        return true;
      }
      case DW_CFA_def_cfa_sf: {
        const std::uint64_t number = cursor_.uleb();
        set_cfa(number, factored(cursor_.sleb()));
        return true;
      }
      case DW_CFA_def_cfa_register: set_cfa(cursor_.uleb(), state_.offset); return true;
      case DW_CFA_def_cfa_offset: set_cfa(base, unsigned_operand()); return true;
      case DW_CFA_def_cfa_offset_sf: set_cfa(base, factored(cursor_.sleb())); return true;
      case DW_CFA_def_cfa_expression:
        state_.cfa = FrameState::Cfa::kExpression;
        state_.expression = cursor_.take(cursor_.uleb());
        return true;
      default: return false;
    }
  }

  bool sets_register(std::uint8_t opcode) {
    using Kind = SavedPlace::Kind;
    if (opcode < DW_CFA_offset_extended || opcode > DW_CFA_val_expression) return false;
    const std::uint64_t number = cursor_.uleb();
    switch (opcode) {
      case DW_CFA_offset_extended: save(number, {Kind::kOffset, factored(unsigned_operand()), {}}); return true;
      case DW_CFA_offset_extended_sf: save(number, {Kind::kOffset, factored(cursor_.sleb()), {}}); return true;
      case DW_CFA_restore_extended: restore(number); return true;
      case DW_CFA_undefined: save(number, {Kind::kUndefined, 0, {}}); return true;
      case DW_CFA_same_value: save(number, {Kind::kSame, 0, {}}); return true;
      case DW_CFA_expression: save(number, {Kind::kExpression, 0, cursor_.take(cursor_.uleb())}); return true;
      case DW_CFA_register:
      case DW_CFA_val_offset:
        cursor_.uleb();
        save(number, {Kind::kOther, 0, {}});
        return true;
      case DW_CFA_val_offset_sf:
        cursor_.sleb();
        save(number, {Kind::kOther, 0, {}});
        return true;
      case DW_CFA_val_expression:
        cursor_.take(cursor_.uleb());
        save(number, {Kind::kOther, 0, {}});
        return true;
      default: is_good_ = false; return true;
    }
  }

  void others(std::uint8_t opcode) {
    switch (opcode) {
      case DW_CFA_GNU_args_size: cursor_.uleb(); return;
      case DW_CFA_AARCH64_negate_ra_state: return;  // signatures are taken off whatever is read
      case DW_CFA_GNU_negative_offset_extended: {
        const std::uint64_t number = cursor_.uleb();
        save(number, {SavedPlace::Kind::kOffset, -factored(unsigned_operand()), {}});
        return;
      }
      default: is_good_ = false;  // DW_CFA_set_loc, too: no compiler for Linux writes it
    }
  }

  ByteCursor cursor_;
  const CommonEntry& common_;
  const std::uint64_t size_;
  FrameState state_;
  std::vector<StateRow>& rows_;
  const std::size_t first_row_;
  std::vector<FrameState> remembered_;
  std::uint64_t at_ = 0;
  bool is_good_ = true;
};

bool fits(std::int64_t value) {
  return value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max();
}

// "base + offset" as the first operation of an expression; none if it begins otherwise.
struct BasedOn {
  std::uint8_t base = 0;
  std::int64_t offset = 0;
};
std::optional<BasedOn> read_base(ByteCursor& cursor) {
  const std::uint8_t operation = cursor.byte();
  if (operation < DW_OP_breg0 || operation >= DW_OP_breg0 + kRegisters) return std::nullopt;
  const BasedOn based{static_cast<std::uint8_t>(operation - DW_OP_breg0), cursor.sleb()};
  return cursor.is_good() && fits(based.offset) ? std::optional(based) : std::nullopt;
}

// The linker's stub for a call into another file:
//   breg7 8; breg16 0; lit15; and; litN; ge; lit3; shl; plus     the stub's second part has pushed a number
bool set_plt(std::span<const std::byte> expression, Rule& rule) {
  ByteCursor cursor(expression);
  const std::optional<BasedOn> base = read_base(cursor);
  if (kReturnsByRegister || !base || base->base != kStackPointer) return false;
  if (cursor.byte() != DW_OP_breg0 + kReturnAddress || cursor.sleb() != 0) return false;
  if (cursor.byte() != DW_OP_lit15 || cursor.byte() != DW_OP_and) return false;
  const std::uint8_t literal = cursor.byte();
  if (literal < DW_OP_lit0 || literal > DW_OP_lit15) return false;
  for (const std::uint8_t expected : {DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus})
    if (cursor.byte() != expected) return false;
  if (!cursor.is_good() || !cursor.at_end()) return false;
  rule.kind = Rule::Kind::kPlt;
  rule.offset = static_cast<std::int32_t>(base->offset);
  rule.extra = literal - DW_OP_lit0;
  return true;
}

// A frame whose CFA was put into memory: breg offset; deref, and perhaps plus_uconst n. Compilers write it where they
// realign the stack, OpenSSL's assembly where it does.
bool set_load(std::span<const std::byte> expression, Rule& rule) {
  ByteCursor cursor(expression);
  const std::optional<BasedOn> base = read_base(cursor);
  if (!base || cursor.byte() != DW_OP_deref) return false;
  std::uint64_t extra = 0;
  if (!cursor.at_end()) {
    if (cursor.byte() != DW_OP_plus_uconst) return false;
    extra = cursor.uleb();
  }
  if (!cursor.is_good() || !cursor.at_end() || extra > std::numeric_limits<std::int32_t>::max()) return false;
  rule.kind = Rule::Kind::kLoad;
  rule.base = base->base;
  rule.offset = static_cast<std::int32_t>(base->offset);
  rule.extra = static_cast<std::int32_t>(extra);
  return true;
}

void set_frame_pointer(const SavedPlace& place, Rule& rule) {
  rule.frame_pointer = Rule::Saved::kLost;
  if (place.kind == SavedPlace::Kind::kSame) rule.frame_pointer = Rule::Saved::kSame;
  std::int64_t offset = place.offset;
  if (place.kind == SavedPlace::Kind::kOffset) rule.frame_pointer = Rule::Saved::kAtCfa;
  if (place.kind == SavedPlace::Kind::kExpression) {
    ByteCursor cursor(place.expression);
    const std::optional<BasedOn> base = read_base(cursor);
    if (!base || !cursor.at_end()) return;
    if (base->base == kFramePointer) rule.frame_pointer = Rule::Saved::kAtFramePointer;
    if (base->base == kStackPointer) rule.frame_pointer = Rule::Saved::kAtStackPointer;
    offset = base->offset;
  }
  if (!fits(offset)) rule.frame_pointer = Rule::Saved::kLost;
  const bool has_offset = rule.frame_pointer != Rule::Saved::kLost && rule.frame_pointer != Rule::Saved::kSame;
  rule.frame_pointer_offset = has_offset ? static_cast<std::int32_t>(offset) : 0;
}

// Where the return address is, as a Rule says it; none if it cannot.
std::optional<std::int32_t> return_offset_of(const SavedPlace& place) {
  if (place.kind == SavedPlace::Kind::kSame && kReturnsByRegister) return 0;
  if (place.kind != SavedPlace::Kind::kOffset || place.offset == 0 || !fits(place.offset)) return std::nullopt;
  if (!kReturnsByRegister && place.offset != kReturnPlace) return std::nullopt;
  return static_cast<std::int32_t>(place.offset);
}

}  // namespace

bool run_call_frame_program(std::span<const std::byte> program, const CommonEntry& common, std::uint64_t size,
                            FrameState state, std::vector<StateRow>& rows) {
  return Run(program, common, size, state, rows).all();
}

Rule rule_of(const FrameState& state, const CommonEntry& common) {
  Rule rule;
  if (common.is_signal_frame) {
    rule.kind = Rule::Kind::kSignal;
    return rule;
  }
  if (state.return_address.kind == SavedPlace::Kind::kUndefined) {
    rule.kind = Rule::Kind::kOutermost;
    return rule;
  }
  const std::optional<std::int32_t> return_offset = return_offset_of(state.return_address);
  if (!return_offset) return Rule::cannot(UnwindStop::kExpression);
  rule.return_offset = *return_offset;
  if (state.cfa == FrameState::Cfa::kRegister) {
    if (state.base >= kRegisters || !fits(state.offset)) return Rule::cannot(UnwindStop::kExpression);
    rule.kind = Rule::Kind::kRegister;
    rule.base = static_cast<std::uint8_t>(state.base);
    rule.offset = static_cast<std::int32_t>(state.offset);
  } else if (state.cfa != FrameState::Cfa::kExpression ||
             (!set_plt(state.expression, rule) && !set_load(state.expression, rule))) {
    return Rule::cannot(UnwindStop::kExpression);
  }
  set_frame_pointer(state.frame_pointer, rule);
  return rule;
}

}  // namespace plimsoll::native
