#include "debuginfo/debug_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "base/regular_file.h"
#include "base/unique_fd.h"
#include "debuginfo/unpacked.h"

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

// Whether there is something of that name that is no regular file: whoever opens a FIFO waits until somebody writes to
// it, and of a device that may have effects.
bool is_special_file(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode);
}

// Whether libdw would come upon what is no regular file when it looks for what `link` names: a file says so itself, by
// a section that anybody can write.
bool leads_to_special_file(const std::string& file, const char* link) {
  namespace fs = std::filesystem;
  const fs::path name = link != nullptr ? fs::path(link) : fs::path(file).filename() += ".debug";
  std::error_code none;
  for (const fs::path& place : {fs::path(file), fs::canonical(file, none)}) {
    const fs::path folder = place.parent_path();
    if (is_special_file((folder / name).string()) || is_special_file((folder / ".debug" / name).string())) return true;
    // Below it the whole path of the folder, or the end of that.
    const fs::path apart = "/usr/lib/debug";
    const std::string whole = folder.relative_path().string();
    for (std::size_t at = 0; at <= whole.size(); at = std::min(whole.find('/', at), whole.size()) + 1)
      if (is_special_file((apart / whole.substr(at) / name.relative_path()).string())) return true;
    if (is_special_file((apart / name.relative_path()).string())) return true;
  }
  return false;
}

int find_debug_file(Dwfl_Module* module, void** data, const char* name, Dwarf_Addr base, const char* file,
                    const char* link, GElf_Word crc, char** found) {
  const bool is_plain = file == nullptr || !leads_to_special_file(file, link);
  const int usual = is_plain ? ::dwfl_standard_find_debuginfo(module, data, name, base, file, link, crc, found)
                             : ::dwfl_build_id_find_debuginfo(module, data, name, base, file, link, crc, found);
  if (usual >= 0 && unpacked_bytes(usual) > kMostUnpacked) {
    ::close(usual);
    std::free(std::exchange(*found, nullptr));
    return -1;
  }
  const unsigned char* id = nullptr;
  GElf_Addr address = 0;
  const int size = usual < 0 ? ::dwfl_module_build_id(module, &id, &address) : 0;
  if (size <= 0) return usual;
  UniqueFd cached = open_regular_file(cache_directory() + "/" + digits_of(id, size) + "/debuginfo");
  const bool is_fit = cached.is_open() && unpacked_bytes(cached.get()) <= kMostUnpacked;
  return is_fit ? cached.release() : usual;  // libdw looks whether its build-id is the same
}

}  // namespace

bool may_be_opened(const std::string& path) {
  if (is_special_file(path)) return false;
  const UniqueFd file = open_regular_file(path);
  return !file.is_open() || unpacked_bytes(file.get()) <= kMostUnpacked;
}

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
