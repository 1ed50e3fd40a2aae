// Whatever is on a copied stack, and in the registers, unwinding it ends: after as many frames as there is room for,
// with so many loads for each, and no read outside the copy (ASan watches).
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "memory/copied.h"
#include "memory/hostile.h"
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

// Functions with every kind of frame, and where a signal's handler returns to.
Section functions_and_signals() {
  Section section = native::testing::functions();
  section.common("def_cfa rsp 8; offset rip -8", "zRS").function(0x700, 0x10, "");
  return section;
}

constexpr std::uint64_t kToStack = 0x5050, kToCode = 0x5151;
constexpr std::array kMarks{kToStack, kToCode};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static native::RulePool pool;
  static const native::ModuleMap modules = [] {
    auto module = std::make_shared<native::Module>();
    module->first.start = Section::kCode;
    module->end = Section::kCode + Section::kCodeSize;
    module->table = functions_and_signals().compile(pool);
    return native::ModuleMap({{module->first.start, module->end, module}, {0x900000, 0x901000, nullptr}}, pool);
  }();
  native::Registers registers;
  const std::size_t head = (native::kRegisters + 1) * sizeof(std::uint64_t);
  if (size < head + 1) return 0;
  std::vector<std::byte> bytes(size - 1);
  std::memcpy(bytes.data(), data + 1, bytes.size());
  memory::link_words(bytes, kMarks, [&](std::uint64_t mark, std::uint64_t word) {
    return mark == kToStack ? kStack + word % (bytes.size() + 1) : Section::kCode + word % 0x800;
  });
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
