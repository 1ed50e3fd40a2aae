// A walk over arbitrary memory ends, within the bounds of its output, whatever pointers it meets; a lookup in a
// context, too.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "cpython/code_object.h"
#include "cpython/context.h"
#include "cpython/testing.h"
#include "cpython/unlinked.h"
#include "memory/hostile.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll;
  using namespace plimsoll::cpython;
  if (size == 0) return 0;
  static const std::vector<Layout> layouts = testing::all_layouts();
  const Layout& layout = layouts[data[0] % layouts.size()];
  const memory::HostileMemory memory(data + 1, size - 1);
  Address code_type{};
  (void)memory::load_address(memory, Address{8}, code_type);
  PyFrame frames[64];
  const Walk walk = walk_thread(memory, layout, code_type, Address{0}, frames);
  if (walk.count > 64) __builtin_trap();
  // A chain has no more frames than the memory has words, before it is seen to be a ring; and 3.11 and 3.12 try two
  // entries from C, of which each is looked at up to as many frames as there is room for.
  constexpr std::uint64_t kPerFrame = 12, kWords = 65536, kEntries = 2;
  memory.expect_at_most(kEntries * (3 * kWords * kPerFrame + 64 * 2 + 8));
  // Of a frame without caller, registers may lead to frames, of which as many words are looked at as there are.
  std::uint64_t registers[17];
  for (std::uint64_t i = 0; i < std::size(registers); ++i) (void)memory.load(Address{64 + 8 * i}, registers[i] = 0);
  const Walk linked = walk_unlinked(memory, layout, code_type, Address{0}, registers, frames);
  if (linked.count > 64) __builtin_trap();
  constexpr std::uint64_t kWordsOfFrame = 1U << 12U;
  memory.expect_at_most(2 * kEntries * (3 * kWords * kPerFrame + 64 * 2 + 8) +
                        std::size(registers) * (kWordsOfFrame + kPerFrame));
  CodeInfo info;
  (void)read_code(memory, layout, Address{16}, info);
  Address value{};
  Address node_type{};
  (void)memory::load_address(memory, Address{24}, node_type);
  (void)find_in_context(memory, layout, {Address{32}, data[0] * 0x01234567U, node_type, code_type}, Address{0}, value);
  return 0;
}
