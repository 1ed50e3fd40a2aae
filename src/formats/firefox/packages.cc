// formats/firefox/packages.cc: rules over the components of a path.
#include "formats/firefox/packages.h"

#include <vector>

namespace plimsoll::formats::firefox {
namespace {

constexpr std::string_view kStandardLibrary = "Python standard library";

std::vector<std::string_view> components(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const auto end = path.find_first_of("/\\");
    if (end != 0) parts.push_back(path.substr(0, end));
    path = end == std::string_view::npos ? std::string_view{} : path.substr(end + 1);
  }
  return parts;
}

bool is_site_directory(std::string_view name) { return name == "site-packages" || name == "dist-packages"; }

// lib/python3.12, lib/pypy3.11, Lib (Windows), lib-python/3 (older PyPy)
bool is_library_directory(std::string_view parent, std::string_view name) {
  const bool versioned = name.starts_with("python3.") || name.starts_with("pypy3.");
  return (versioned && parent.starts_with("lib")) || name == "Lib" || (parent == "lib-python" && name == "3");
}

}  // namespace

std::string package_of(std::string_view file) {
  if (file.starts_with("<frozen ")) return std::string(kStandardLibrary);
  if (file.starts_with('<')) return std::string(file);
  const std::vector<std::string_view> parts = components(file);
  for (std::size_t i = parts.size(); i-- > 1;) {
    if (is_site_directory(parts[i - 1])) {
      const std::string_view name = parts[i];
      return std::string(name.ends_with(".py") ? name.substr(0, name.size() - 3) : name);
    }
  }
  for (std::size_t i = 1; i + 1 < parts.size(); ++i)
    if (is_library_directory(parts[i - 1], parts[i])) return std::string(kStandardLibrary);
  return std::string(parts.size() > 1 ? parts[parts.size() - 2] : file);
}

}  // namespace plimsoll::formats::firefox
