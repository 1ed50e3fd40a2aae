// Whatever a JIT has written, and wherever it was cut: reading goes on to the end, within bounds.
#include <cstddef>
#include <cstdint>

#include "native/code_names.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll::native;
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t cut = data[1] * bytes.size() / 256;
  CodeNames names;
  bool is_begun = false;
  const auto read = [&](std::string_view part) {
    return data[0] % 2 == 0 ? read_perf_map(part, names) : read_jitdump(part, is_begun, names);
  };
  const std::size_t done = read(bytes.substr(0, cut));
  if (done > cut || read(bytes.substr(done)) > bytes.size() - done) __builtin_trap();
  for (std::uint64_t address = 0; address < 1024; ++address)
    if (const auto* found = names.find(address); found != nullptr)
      if (found->first > address || found->second.end <= address) __builtin_trap();
  return 0;
}
