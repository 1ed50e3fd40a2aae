// A core file in which anything may stand, and a program that it names. No other file is opened.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "remote/core_dump.h"

namespace {

// Bytes as a file that nobody else sees; not open if there is no room for one.
plimsoll::UniqueFd hidden_file(const std::uint8_t* data, std::size_t size) {
  plimsoll::UniqueFd file(::memfd_create("fuzz", MFD_CLOEXEC));
  if (file.is_open() && ::write(file.get(), data, size) != static_cast<ssize_t>(size)) file.reset();
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll;
  // The first two bytes tell how much of the rest is the program.
  if (size < 2) return 0;
  const std::size_t of_program = std::min<std::size_t>(data[0] + 256U * data[1], size - 2);
  const std::uint8_t* const program = data + size - of_program;
  const UniqueFd core = hidden_file(data + 2, size - 2 - of_program);
  if (!core.is_open()) return 0;
  const auto open = [&](const std::string&) { return hidden_file(program, of_program); };
  const Result<remote::CoreFile> opened =
      remote::open_core_file("/proc/self/fd/" + std::to_string(core.get()), "", open);
  if (opened.ok()) (void)remote::take_core_dump(opened.value(), {remote::NativeFrames::kNo, cpython::ValueLimits()});
  return 0;
}
