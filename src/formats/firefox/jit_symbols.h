// formats/firefox/jit_symbols.h: machine code of PyPy's JIT as symbols of libraries, which is how the Firefox
// Profiler's page asks for assembly: by a library's debugName and an address in it.
//
// The page keeps addresses of frames in 32 bits. So each GiB of addresses that has such code is a library of its own,
// and its name tells where it begins: "jit@0x7ff300000000".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.h"

namespace plimsoll::formats::firefox {

// A trace that the profile has frames of, by its machine code.
struct JitSymbol {
  std::size_t library = 0;
  std::uint64_t offset = 0;  // in the library
  std::string name;          // "loop 46: Proc0 (pystone.py:97)"
  std::uint64_t size = 0;    // bytes of code
};

// The symbols of a profile: of the frames whose trace is in the jitlog that is attached to it.
struct JitSymbols {
  explicit JitSymbols(const profile::Profile& profile);

  std::vector<std::string> libraries;  // names
  std::string machine;                 // "x86_64"
  std::vector<JitSymbol> symbols;
  std::vector<std::optional<std::size_t>> of_frame;  // by FrameId; empty if there are no symbols
};

// The address of code, from the name of its library and the offset in it as the page writes it ("0x1f40"); none if that
// is not one of ours.
std::optional<std::uint64_t> jit_code_address(std::string_view library, std::string_view offset);

}  // namespace plimsoll::formats::firefox
