// Whatever stands where objects and frames should be, reading them ends, within bounds, and touches nothing else. The
// fuzzer's bytes are the memory, behind classes of every kind that is known.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "cpython/frame_variables.h"
#include "cpython/testing.h"
#include "cpython/thread_names.h"
#include "memory/copied.h"
#include "memory/hostile.h"

namespace {

using namespace plimsoll;
using cpython::Layout;

constexpr std::uint64_t kBase = 0x10000, kClassSize = 512, kNames = kBase + 0x8000, kInput = kBase + 0x9000;
constexpr const char* kClasses[] = {"type",
                                    "NoneType",
                                    "bool",
                                    "int",
                                    "float",
                                    "complex",
                                    "str",
                                    "bytes",
                                    "bytearray",
                                    "tuple",
                                    "list",
                                    "dict",
                                    "set",
                                    "frozenset",
                                    "range",
                                    "slice",
                                    "function",
                                    "builtin_function_or_method",
                                    "method",
                                    "code",
                                    "module",
                                    "cell",
                                    "generator",
                                    "numpy.ndarray",
                                    "collections.deque",
                                    "ValueError",
                                    "app.Plain"};
constexpr std::size_t kClassCount = std::size(kClasses);

// Classes, of which the last two have attributes; all are built in but the last.
void draw_classes(std::vector<std::byte>& memory, const Layout& layout, const cpython::ObjectFields& fields) {
  namespace type = cpython::type_field;
  namespace flag = cpython::type_flag;
  const std::uint32_t shift = layout.object.type - 8;
  const auto put = [&](std::uint64_t at, std::uint64_t value) {
    std::memcpy(memory.data() + (at - kBase), &value, sizeof value);
  };
  for (std::size_t i = 0; i < kClassCount; ++i) {
    const std::uint64_t at = kBase + i * kClassSize, name = kNames + i * 64;
    std::memcpy(memory.data() + (name - kBase), kClasses[i], std::strlen(kClasses[i]) + 1);
    const bool is_own = i + 1 == kClassCount, has_dict = i + 2 >= kClassCount;
    std::uint64_t flags = flag::kReady | (i == 0 ? flag::kType : 0);
    if (std::string_view(kClasses[i]) == "str") flags |= flag::kText;
    if (std::string_view(kClasses[i]) == "ValueError") flags |= flag::kException;
    if (is_own) flags |= flag::kHeapType | fields.managed_dict_flag | fields.inline_values_flag;
    put(at + layout.object.type, kBase);
    put(at + shift + type::kName, name);
    put(at + shift + type::kBasicSize, 64);
    put(at + shift + type::kFlags, flags);
    put(at + shift + type::kDictOffset, has_dict ? 16 : 0);
    if (!is_own) continue;
    put(at + shift + type::kMembers, kInput);
    put(at + shift + type::kDict, kInput + 1024);
    put(at + shift + type::kBase, kInput + 64);  // which the fuzzer may make a class
  }
}

constexpr std::uint64_t kToInput = 0x5050, kToClass = 0x5151;
constexpr std::array kMarks{kToInput, kToClass};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<Layout> layouts = cpython::testing::all_layouts();
  constexpr std::size_t kLargest = std::size_t{1} << 16U, kMostText = 200'000;
  if (size < 1 || size > kLargest) return 0;
  const Layout& layout = layouts[data[0] % layouts.size()];
  const auto fields = cpython::object_fields(layout.version);
  if (!fields.ok()) __builtin_trap();
  std::vector<std::byte> bytes(kInput - kBase + size - 1);
  draw_classes(bytes, layout, fields.value());
  std::memcpy(bytes.data() + (kInput - kBase), data + 1, size - 1);
  const auto input = std::span(bytes).subspan(kInput - kBase);
  memory::link_words(input, kMarks, [&](std::uint64_t mark, std::uint64_t word) {
    if (mark == kToInput) return kInput + (word & 0xffff'ffffU) % input.size();
    return kBase + (word & 0xffU) % kClassCount * kClassSize;
  });

  const memory::CopiedMemory memory(Address{kBase}, bytes);
  const cpython::ObjectView view(memory, layout, fields.value(), std::uint64_t{1} << 14U);
  constexpr Address kCodeType{kBase + 19 * kClassSize};
  cpython::ValueReader<memory::CopiedMemory> values(view, Address{kBase}, {});
  for (std::uint64_t at = 0; at < std::min<std::size_t>(size, 256); at += 64)
    if (values.read(Address{kInput + at}).text.size() > kMostText) __builtin_trap();
  (void)values.attribute(Address{kInput}, "_name");
  (void)cpython::thread_names(view, kCodeType, Address{kInput});
  cpython::VariablesReader<memory::CopiedMemory> variables(view, kCodeType, {});
  if (variables.read(Address{kInput}, Address{kInput + 128}).variables.size() > 100) __builtin_trap();
  std::vector<cpython::PyFrame> frames(64);
  const cpython::Walk walk = cpython::walk_thread(memory, layout, kCodeType, Address{kInput + 256}, frames);
  frames.resize(walk.count);
  const auto found = cpython::frame_addresses(memory, layout, kCodeType, Address{kInput + 256}, frames);
  if (found.size() > frames.size()) __builtin_trap();
  return 0;
}
