// A process's memory in which anything may stand: bytes of the fuzzer's where the interpreter, classes and objects
// would be.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "heap/image_capture.h"

namespace {

using plimsoll::Address;
namespace cpython = plimsoll::cpython;
namespace heap = plimsoll::heap;

// Addresses in the image are small, so that words of the input are likely to be some.
constexpr std::uint64_t kStart = 0x10000, kRuntime = kStart, kInterpreter = kStart + 0x100, kTypeType = kStart + 0x400;

// The least that lets a walk begin: an interpreter, a class of classes, and a class of code.
void prepare(std::vector<std::byte>& memory, const cpython::Layout& layout, const cpython::ObjectFields& fields) {
  const auto put = [&](std::uint64_t at, std::uint64_t value) {
    if (at - kStart + sizeof value <= memory.size()) std::memcpy(memory.data() + (at - kStart), &value, sizeof value);
  };
  namespace type = cpython::type_field;
  put(kRuntime + layout.runtime.interpreters, kInterpreter);
  put(kInterpreter + layout.runtime.next_interpreter, 0);
  put(kTypeType, 1);
  put(kTypeType + layout.object.type, kTypeType);
  put(kTypeType + type::kBasicSize, fields.size.type);
  put(kTypeType + type::kItemSize, 40);
  put(kTypeType + type::kFlags, cpython::type_flag::kReady | cpython::type_flag::kType);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const unsigned minor = 9 + data[0] % 4;  // whose layouts are tables
  const auto layout = cpython::layout_from_table({3, minor, 0});
  const auto fields = cpython::object_fields({3, minor, 0});
  if (!layout.ok() || !fields.ok()) return 0;
  cpython::ObjectFields small = fields.value();
  // An interpreter's state is larger than any input.
  small.interpreter.size = 4096;
  if (small.interpreter.built_in != cpython::kNoField) small.interpreter.built_in = 1024;
  std::vector<std::byte> memory(0x1000 + size);
  std::memcpy(memory.data() + (data[1] % 2 == 0 ? 0x800 : 0), data + 2, size - 2);
  prepare(memory, layout.value(), small);
  plimsoll::memory::Image image;
  image.add(Address{kStart}, memory);
  image.add_zeros(Address{kStart + (1U << 24U)}, std::uint64_t{1} << 40U);
  image.seal();
  const heap::ImageView view(image, layout.value(), small);
  heap::SnapshotWriter writer;
  const auto values = data[1] % 4 < 2 ? heap::ImageValues::kShown : heap::ImageValues::kRedacted;
  // The class of code objects is wherever its class is that of classes: here, at the class of classes itself.
  static const std::vector<heap::TypeRule> rules = heap::parse_rules("*: label name, native 0 8").take();
  const heap::ImageFacts facts{{{kStart, 1U << 20U, 1U << 20U, true, false, ""}}, rules};
  (void)heap::capture_image(view, {Address{kRuntime}, Address{kTypeType}}, values, facts, writer);
  return 0;
}
