#include "jitlog/capstone_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <type_traits>

namespace plimsoll::jitlog {
namespace {

// Under the name that it has for programs that are linked with it.
std::string library_name() { return "libcapstone.so." + std::to_string(CS_API_MAJOR); }

Error missing() {
  const char* why = ::dlerror();
  return Error{ErrorKind::kUnsupported,
               "machine code cannot be shown as instructions: " + (why != nullptr ? std::string(why) : library_name()) +
                   "; install capstone (Debian and Ubuntu: libcapstone" + std::to_string(CS_API_MAJOR) + ")"};
}

// A wheel brings one along, beside the program that it installs.
std::string bundled_library() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return program.parent_path().parent_path() / "lib" / "plimsoll" / library_name();
}

Result<CapstoneLibrary> load() {
  void* library = ::dlopen(bundled_library().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = ::dlopen(library_name().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return missing();
  bool has_all = true;
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)> >(::dlsym(library, name));
    has_all = has_all && function != nullptr;
  };
  CapstoneLibrary found{};
  find("cs_open", found.open);
  find("cs_close", found.close);
  find("cs_option", found.option);
  find("cs_malloc", found.malloc);
  find("cs_free", found.free);
  find("cs_disasm_iter", found.disasm_iter);
  find("cs_strerror", found.strerror);
  if (!has_all) return missing();
  return found;
}

}  // namespace

Result<const CapstoneLibrary*> capstone_library() {
  static const Result<CapstoneLibrary> loaded = load();
  if (!loaded.ok()) return loaded.error();
  return &loaded.value();
}

}  // namespace plimsoll::jitlog
