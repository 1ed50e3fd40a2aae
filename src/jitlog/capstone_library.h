// jitlog/capstone_library.h: the functions of capstone that we call, from its library, which is loaded when somebody
// first asks for them.
#pragma once

#include <capstone/capstone.h>

#include "base/result.h"

namespace plimsoll::jitlog {

// They have the names that they have in capstone, without "cs_".
struct CapstoneLibrary {
  decltype(&cs_open) open;
  decltype(&cs_close) close;
  decltype(&cs_option) option;
  decltype(&cs_malloc) malloc;
  decltype(&cs_free) free;
  decltype(&cs_disasm_iter) disasm_iter;
  decltype(&cs_strerror) strerror;
};

// The same at each call, for any thread; good for ever. An error says that the library is not there, or is another
// version than the one that we were compiled with.
Result<const CapstoneLibrary*> capstone_library();

}  // namespace plimsoll::jitlog
