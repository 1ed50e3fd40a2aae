#include "debuginfo/inlined_testing.h"

#include <link.h>

#include <filesystem>

namespace plimsoll::debuginfo {

extern "C" const char plimsoll_marked_instruction;  // NOLINT(readability-identifier-naming): a label's name

const std::uint32_t kLineInInnermost = __LINE__ + 3;
[[gnu::always_inline]] static inline int innermost(int number) {
  int result = number;
  asm volatile(".globl plimsoll_marked_instruction\nplimsoll_marked_instruction:\n\tadd $1, %0" : "+r"(result));
  return result;
}

const std::uint32_t kLineInMiddle = __LINE__ + 1;
[[gnu::always_inline]] static inline int middle(int number) { return innermost(number) * 3; }

const std::uint32_t kLineInOutermost = __LINE__ + 1;
[[gnu::noinline]] int outermost(int number) { return middle(number) - 5; }

extern "C" const char plimsoll_marked_in_lambda;  // NOLINT(readability-identifier-naming): likewise

[[gnu::noinline]] int with_lambda(int number) {
  const auto add = [](int to) __attribute__((always_inline)) {
    asm volatile(".globl plimsoll_marked_in_lambda\nplimsoll_marked_in_lambda:\n\tadd $1, %0" : "+r"(to));
    return to;
  };
  return add(number) * 7;
}

static std::uint64_t address_in_file(const char* instruction) {
  // The program comes first.
  std::uint64_t slide = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<std::uint64_t*>(out) = info->dlpi_addr;
        return 1;
      },
      &slide);
  return reinterpret_cast<std::uint64_t>(instruction) - slide;
}

std::uint64_t address_of_marked_instruction() { return address_in_file(&plimsoll_marked_instruction); }
std::uint64_t address_in_lambda() { return address_in_file(&plimsoll_marked_in_lambda); }

std::string this_program() { return std::filesystem::canonical("/proc/self/exe").string(); }

}  // namespace plimsoll::debuginfo
