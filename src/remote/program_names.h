// remote/program_names.h: what a program that runs calls its threads.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "remote/target.h"

namespace plimsoll::remote {

// The names that Python's module threading has for an interpreter's threads, by pthread_self(): those on which two
// readings agree, as the program goes on meanwhile. None if the interpreter has no symbol for the type of code objects.
std::map<std::uint64_t, std::string> program_names(const Target& target, Address interpreter);

}  // namespace plimsoll::remote
