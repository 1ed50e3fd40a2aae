// A process's memory in which anything may stand: bytes of the fuzzer's where the interpreter, classes and objects
// would be; of free-threaded builds also where the allocator has a segment.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "cpython/debug_offsets_testing.h"
#include "cpython/page_layout.h"
#include "heap/image_capture.h"
#include "memory/hostile.h"

namespace {

using plimsoll::Address;
namespace cpython = plimsoll::cpython;
namespace heap = plimsoll::heap;
namespace memory = plimsoll::memory;

// Addresses in the image are small, so that words of the input are likely to be some.
constexpr std::uint64_t kStart = 0x10000, kRuntime = kStart, kInterpreter = kStart + 0x100, kTypeType = kStart + 0x400;
constexpr std::uint64_t kSegment = cpython::page_size::kSegment, kSlice = cpython::page_size::kSlice;

// Bytes at an address.
struct Piece {
  std::uint64_t start = 0;
  std::vector<std::byte> bytes;

  template <typename Word>
  void put(std::uint64_t at, Word value) {
    if (at - start + sizeof value <= bytes.size()) std::memcpy(bytes.data() + (at - start), &value, sizeof value);
  }
};

// A version, and how its allocator keeps pages.
struct Drawn {
  cpython::Layout layout;
  const cpython::PageLayout* pages = nullptr;
};

std::vector<Drawn> all_drawn() {
  std::vector<Drawn> all;
  for (const unsigned minor : {9U, 10U, 11U, 12U}) all.push_back({cpython::layout_from_table({3, minor, 0}).take()});
  all.push_back({cpython::testing::offsets_3_13t().layout().take(), &cpython::kPageLayouts[0]});
  all.push_back({cpython::testing::offsets_3_14t().layout().take(), &cpython::kPageLayouts[1]});
  return all;
}

// The least that lets a walk begin: an interpreter, a class of classes, and a class of code.
void prepare(Piece& memory, const cpython::Layout& layout, const cpython::ObjectFields& fields) {
  namespace type = cpython::type_field;
  const std::uint32_t shift = layout.object.type - 8;
  memory.put(kRuntime + layout.runtime.interpreters, kInterpreter);
  memory.put(kInterpreter + layout.runtime.next_interpreter, std::uint64_t{0});
  memory.put(kTypeType, std::uint64_t{1});
  if (shift != 0) memory.put(kTypeType + 8, std::uint64_t{1} << 32U);  // its thread's count
  memory.put(kTypeType + layout.object.type, kTypeType);
  memory.put(kTypeType + shift + type::kBasicSize, std::uint64_t{fields.size.type} + shift);
  memory.put(kTypeType + shift + type::kItemSize, std::uint64_t{40});
  memory.put(kTypeType + shift + type::kFlags, cpython::type_flag::kReady | cpython::type_flag::kType);
}

// A segment with a page in whose first block the modules' dict is. What its lists have, which other pages there are,
// and what is in blocks is the fuzzer's.
Piece segment_of(const cpython::PageLayout& layout, std::span<const std::uint8_t> input) {
  constexpr std::uint64_t kBlock = 128, kLists = 0x100;
  Piece segment{kSegment, std::vector<std::byte>(4 * kSlice)};
  const std::uint64_t entry = kSegment + layout.segment.table + layout.page.size, blocks = kSegment + kSlice + kBlock;
  const std::span<std::byte> all(segment.bytes);
  const std::size_t of_entries = std::min<std::size_t>(input.size(), kLists);
  std::memcpy(all.data() + (entry - kSegment), input.data(), of_entries);
  const std::span<const std::uint8_t> of_blocks = input.subspan(of_entries);
  // The next slice has the same, for a page that the fuzzer makes of it.
  for (const std::uint64_t to : {blocks, blocks + kSlice})
    std::memcpy(all.data() + (to - kSegment), of_blocks.data(),
                std::min<std::size_t>(of_blocks.size(), kSlice - kBlock));
  constexpr std::uint64_t kToBlock = 0x5050, kToMemory = 0x5151;
  const auto link = [&](std::uint64_t mark, std::uint64_t word) {
    return mark == kToBlock ? blocks + (word & 0x7fU) * kBlock : kStart + (word & 0xfffU) * 8;
  };
  memory::link_words(all.subspan(entry - kSegment, of_entries), std::array{kToBlock, kToMemory}, link);
  memory::link_words(all.subspan(blocks - kSegment), std::array{kToBlock, kToMemory}, link);
  segment.put(kSegment + layout.segment.cookie, std::uint64_t{0x1234567});
  segment.put(kSegment + layout.segment.head_slices, std::uint64_t{1});
  segment.put(kSegment + layout.segment.slice_count, segment.bytes.size() / kSlice);
  segment.put(entry + cpython::page_field::kSlices, std::uint32_t{1});
  segment.put(entry + cpython::page_field::kBack, std::uint32_t{0});
  segment.put(entry + cpython::page_field::kCapacity, std::uint16_t{100});
  segment.put(entry + layout.page.heap,
              static_cast<std::uint8_t>(cpython::collector_heap::kPlain << layout.page.heap_shift));
  if (layout.page.block_size_bytes == 4)
    segment.put(entry + layout.page.block_size, static_cast<std::uint32_t>(kBlock));
  else
    segment.put(entry + layout.page.block_size, kBlock);
  if (layout.page.start != cpython::kNoField) segment.put(entry + layout.page.start, blocks);
  return segment;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<Drawn> drawn = all_drawn();
  if (size < 2) return 0;
  const auto& [layout, pages] = drawn[data[0] % drawn.size()];
  cpython::ObjectFields small = cpython::object_fields(layout.version).take();
  // An interpreter's state is larger than any input.
  small.interpreter.size = 4096;
  small.interpreter.modules = 856;
  if (small.interpreter.built_in != cpython::kNoField) small.interpreter.built_in = 1024;
  std::span<const std::uint8_t> input(data + 2, size - 2);
  plimsoll::memory::Image image;
  Piece segment;
  if (pages != nullptr) {
    segment = segment_of(*pages, input.first(input.size() / 2));
    input = input.subspan(input.size() / 2);
    image.add(Address{segment.start}, segment.bytes);
  }
  Piece memory{kStart, std::vector<std::byte>(0x1000 + input.size())};
  std::memcpy(memory.bytes.data() + (data[1] % 2 == 0 ? 0x800 : 0), input.data(), input.size());
  prepare(memory, layout, small);
  if (pages != nullptr) memory.put(kInterpreter + small.interpreter.modules, kSegment + kSlice + 128);
  image.add(Address{kStart}, memory.bytes);
  image.add_zeros(Address{kStart + (1U << 24U)}, std::uint64_t{1} << 40U);
  image.seal();
  const heap::ImageView view(image, layout, small);
  heap::SnapshotWriter writer;
  const auto values = data[1] % 4 < 2 ? heap::ImageValues::kShown : heap::ImageValues::kRedacted;
  // The class of code objects is wherever its class is that of classes: here, at the class of classes itself.
  static const std::vector<heap::TypeRule> rules = heap::parse_rules("*: label name, native 0 8").take();
  const heap::ImageFacts facts{{{kStart, 1U << 20U, 1U << 20U, true, false, ""}}, rules};
  (void)heap::capture_image(view, {Address{kRuntime}, Address{kTypeType}}, values, facts, writer);
  return 0;
}
