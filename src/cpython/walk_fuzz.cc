// A walk over arbitrary memory ends, within the bounds of its output, whatever pointers it meets; a lookup in a
// context, too.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cpython/code_object.h"
#include "cpython/context.h"
#include "cpython/walk.h"

namespace {

// Memory that holds the fuzzer's bytes at small addresses, and nothing else.
class InputMemory {
 public:
  InputMemory(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  template <typename T>
  bool load(plimsoll::Address at, T& out) const {
    return read(at, &out, sizeof out);
  }
  bool read(plimsoll::Address at, void* out, std::size_t size) const {
    const std::uint64_t offset = plimsoll::raw(at) & 0xffffU;  // so that most pointers point somewhere
    if (offset > size_ || size > size_ - offset) return false;
    std::memcpy(out, data_ + offset, size);
    return true;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll;
  using namespace plimsoll::cpython;
  if (size == 0) return 0;
  const auto layout = layout_from_table({3, 9U + data[0] % 4, 0, Version::Threading::kGil});
  const InputMemory memory(data + 1, size - 1);
  Address code_type{};
  (void)memory::load_address(memory, Address{8}, code_type);
  PyFrame frames[64];
  const Walk walk = walk_thread(memory, layout.value(), code_type, Address{0}, frames);
  if (walk.count > 64) __builtin_trap();
  CodeInfo info;
  (void)read_code(memory, layout.value(), Address{16}, info);
  Address value{};
  Address node_type{};
  (void)memory::load_address(memory, Address{24}, node_type);
  (void)find_in_context(memory, layout.value(), {Address{32}, data[0] * 0x01234567U, node_type, code_type}, Address{0},
                        value);
  return 0;
}
