// Whatever is on a copied stack, and in the registers, unwinding it ends: after as many frames as there is room for,
// with so many loads for each, and no read outside the copy (ASan watches).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "memory/copied.h"
#include "native/testing.h"
#include "native/unwind.h"

namespace {

using namespace plimsoll;
using native::testing::Section;

constexpr std::uint64_t kStack = 0x70000;

// A stack that counts what is read of it.
class CountingStack {
 public:
  explicit CountingStack(std::span<const std::byte> bytes) : memory_(Address{kStack}, bytes) {}
  template <typename Integer>
  [[nodiscard]] bool load(Address at, Integer& out) const {
    ++loads_;
    return memory_.load(at, out);
  }
  [[nodiscard]] bool read(Address at, void* out, std::size_t size) const {
    ++loads_;
    return memory_.read(at, out, size);
  }
  [[nodiscard]] std::uint64_t loads() const { return loads_; }

 private:
  const memory::CopiedMemory memory_;
  mutable std::uint64_t loads_ = 0;
};

// Functions with every kind of frame: none, one of a fixed size, with a frame pointer, with it saved elsewhere, at
// what a register says; where a thread begins, and where a signal's handler returns to.
Section functions() {
  Section section;
  section.common("def_cfa rsp 8; offset rip -8")
      .function(0, 0x10, "")
      .function(0x100, 0x10, "cfa_offset 40")
      .function(0x200, 0x10, "def_cfa rbp 16; offset rbp -16")
      .function(0x300, 0x10, "undefined rip")
      .function(0x500, 0x10, "def_cfa r10 0")
      .function(0x600, 0x10, "expression rbp 7710; cfa_offset 32");
  section.common("def_cfa rsp 8; offset rip -8", "zRS").function(0x700, 0x10, "");
  return section;
}

// Words with these upper halves lead into the stack, or the code: the fuzzer need not know where they are.
void link_words(std::byte* at, std::size_t size) {
  constexpr std::uint64_t kToStack = 0x5050, kToCode = 0x5151;
  for (std::size_t i = 0; i + sizeof(std::uint64_t) <= size; i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, at + i, sizeof word);
    if (word >> 48U == kToStack)
      word = kStack + word % (size + 1);
    else if (word >> 48U == kToCode)
      word = Section::kCode + word % 0x800;
    else
      continue;
    std::memcpy(at + i, &word, sizeof word);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static native::RulePool pool;
  static const native::ModuleMap modules = [] {
    auto module = std::make_shared<native::Module>();
    module->first.start = Section::kCode;
    module->end = Section::kCode + Section::kCodeSize;
    module->table = functions().compile(pool);
    return native::ModuleMap({{module->first.start, module->end, module}, {0x900000, 0x901000, nullptr}}, pool);
  }();
  native::Registers registers;
  const std::size_t head = (native::kRegisters + 1) * sizeof(std::uint64_t);
  if (size < head + 1) return 0;
  std::vector<std::byte> bytes(size - 1);
  std::memcpy(bytes.data(), data + 1, bytes.size());
  link_words(bytes.data(), bytes.size());
  std::memcpy(registers.value.data(), bytes.data(), native::kRegisters * sizeof(std::uint64_t));
  std::memcpy(&registers.pc, bytes.data() + native::kRegisters * sizeof(std::uint64_t), sizeof registers.pc);

  const CountingStack stack(std::span(bytes).subspan(head));
  std::vector<native::NativeFrame> frames(data[0]);
  const auto known = data[0] % 2 == 0 ? native::Known::kAll : native::Known::kPlaceOnly;
  const native::Unwind unwound = native::unwind(stack, modules, registers, frames, known);
  if (unwound.count > frames.size()) __builtin_trap();
  // Of a frame that a signal interrupted all registers are read.
  if (stack.loads() > frames.size() * (native::kRegisters + 1)) __builtin_trap();
  return 0;
}
