// Whatever stands where a code object should be, reading it ends, within bounds, and so does looking up lines in what
// was read.
#include <cstddef>
#include <cstdint>

#include "cpython/code_object.h"
#include "cpython/testing.h"
#include "memory/hostile.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll;
  using namespace plimsoll::cpython;
  static const std::vector<Layout> layouts = testing::all_layouts();
  if (size == 0) return 0;
  const Layout& layout = layouts[data[0] % layouts.size()];
  const memory::HostileMemory memory(data + 1, size - 1);
  CodeInfo info;
  const bool is_read = read_code(memory, layout, Address{16}, info);
  constexpr std::uint64_t kTexts = 2, kFields = 20;
  memory.expect_at_most(kTexts * (kLongestText * kMostUtf8 + kFields) + kLongestLineTable / 4096 + kFields);
  if (!is_read) return 0;
  if (info.name.size() > kLongestText * kMostUtf8 || info.line_table.size() > size) __builtin_trap();
  for (std::int32_t position = -2; position < 64; position += 2)
    (void)locate_near(layout.line_table_style, info.line_table, info.first_line, position);
  return 0;
}
