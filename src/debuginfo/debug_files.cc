#include "debuginfo/debug_files.h"

#include <fcntl.h>

#include <cstdlib>
#include <string>

#include "base/unique_fd.h"

namespace plimsoll::debuginfo {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Where debuginfod's client keeps what it has fetched.
std::string cache_directory() {
  if (std::string own = environment("DEBUGINFOD_CACHE_PATH"); !own.empty()) return own;
  const std::string caches = environment("XDG_CACHE_HOME");
  return (caches.empty() ? environment("HOME") + "/.cache" : caches) + "/debuginfod_client";
}

std::string digits_of(const unsigned char* bytes, int size) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int i = 0; i < size; ++i) {
    text += kDigits[bytes[i] >> 4U];
    text += kDigits[bytes[i] & 15U];
  }
  return text;
}

int find_debug_file(Dwfl_Module* module, void** data, const char* name, Dwarf_Addr base, const char* file,
                    const char* link, GElf_Word crc, char** found) {
  const int usual = ::dwfl_standard_find_debuginfo(module, data, name, base, file, link, crc, found);
  const unsigned char* id = nullptr;
  GElf_Addr address = 0;
  const int size = usual < 0 ? ::dwfl_module_build_id(module, &id, &address) : 0;
  if (size <= 0) return usual;
  const std::string path = cache_directory() + "/" + digits_of(id, size) + "/debuginfo";
  UniqueFd cached(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return cached.is_open() ? cached.release() : usual;  // libdw looks whether its build-id is the same
}

}  // namespace

const Dwfl_Callbacks* callbacks() {
  // (libdw wants a pointer to a pointer to the path, or null for its own: ":.debug:/usr/lib/debug".)
  static const Dwfl_Callbacks all = [] {
    Dwfl_Callbacks callbacks{};
    callbacks.find_elf = ::dwfl_build_id_find_elf;
    callbacks.find_debuginfo = find_debug_file;
    callbacks.section_address = ::dwfl_offline_section_address;
    return callbacks;
  }();
  return &all;
}

}  // namespace plimsoll::debuginfo
