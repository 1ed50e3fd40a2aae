// debuginfo/inlined_testing.h: a function with two others inlined into it, compiled with debug information.
#pragma once

#include <cstdint>
#include <string>

namespace plimsoll::debuginfo {

int outermost(int number);
// Of an instruction of the innermost function, as the file counts addresses.
std::uint64_t address_of_marked_instruction();
// Likewise, of a lambda that was inlined into its function.
int with_lambda(int number);
std::uint64_t address_in_lambda();
// The file of this program.
std::string this_program();

// Where the innermost function is, and where the others call it and each other.
extern const std::uint32_t kLineInInnermost, kLineInMiddle, kLineInOutermost;

}  // namespace plimsoll::debuginfo
