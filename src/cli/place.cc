// cli/place.cc: names and shortened paths.
#include "cli/place.h"

#include <fmt/format.h>

#include "cli/utf8.h"
#include "formats/labels.h"

namespace plimsoll::cli {
namespace {

constexpr std::string_view kImports = "the import system";
constexpr std::string_view kRunpy = "runpy";

// What follows the last occurrence of `part`; empty if it does not occur.
std::string_view after_last(std::string_view text, std::string_view part) {
  const std::size_t at = text.rfind(part);
  return at == std::string_view::npos ? std::string_view{} : text.substr(at + part.size());
}

// "…/lib/python3.12/json/decoder.py" -> "json/decoder.py"; empty for what is not below such a directory.
std::string_view below_standard_library(std::string_view file) {
  for (const std::string_view directory : {"/lib/python3.", "/lib64/python3.", "/lib/pypy3."}) {
    const std::string_view rest = after_last(file, directory);
    const std::size_t digits = rest.find_first_not_of("0123456789t");
    if (digits != std::string_view::npos && digits > 0 && rest[digits] == '/') return rest.substr(digits + 1);
  }
  return {};
}

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

ShownPath shown_path(std::string_view file, std::string_view directory) {
  if (file.starts_with("<frozen ")) return {printable(file), true};
  for (const std::string_view packages : {"/site-packages/", "/dist-packages/"})
    if (const std::string_view rest = after_last(file, packages); !rest.empty()) return {printable(rest), true};
  if (const std::string_view rest = below_standard_library(file); !rest.empty()) return {printable(rest), true};
  const bool below =
      directory.size() > 1 && file.starts_with(directory) && file.substr(directory.size()).starts_with('/');
  return {printable(below ? file.substr(directory.size() + 1) : file), false};
}

std::string function_name(const profile::Profile& profile, FunctionId function) {
  if (function.is_none()) return std::string(formats::kNoStack);
  const std::string_view name = profile.strings[profile.functions[function].name];
  return name.empty() ? "[no name]" : printable(name);
}

ShownPath place_of(const profile::Profile& profile, FunctionId function, std::uint32_t line,
                   std::string_view directory) {
  if (function.is_none()) return {};
  const profile::Function& row = profile.functions[function];
  const std::string_view file = profile.strings[row.file];
  if (row.kind == profile::FunctionKind::kNative) {
    if (row.source.is_none()) return {printable(base_name(file)), true};
    const std::string source = printable(base_name(profile.strings[row.source]));
    return {line == 0 ? source : fmt::format("{}:{}", source, line), true};
  }
  if (file.empty()) return {"", row.kind == profile::FunctionKind::kSynthetic};
  ShownPath path = shown_path(file, directory);
  const std::uint32_t shown_line = line != 0 ? line : row.first_line;
  if (shown_line != 0) path.text += fmt::format(":{}", shown_line);
  return path;
}

std::string library_of(const profile::Profile& profile, FunctionId function) {
  if (function.is_none()) return {};
  const profile::Function& row = profile.functions[function];
  const std::string_view file = profile.strings[row.file];
  if (file.starts_with("<frozen importlib.") || file.starts_with("<frozen zipimport")) return std::string(kImports);
  if (file == "<frozen runpy>" || file.ends_with("/runpy.py")) return std::string(kRunpy);
  if (row.kind == profile::FunctionKind::kNative) return printable(base_name(file));
  const ShownPath path = shown_path(file, "");
  if (!path.is_library) return {};
  const std::string_view top = std::string_view(path.text).substr(0, path.text.find('/'));
  return std::string(top.ends_with(".py") ? top.substr(0, top.size() - 3) : top);
}

bool is_machinery(std::string_view library) { return library == kImports || library == kRunpy; }

}  // namespace plimsoll::cli
