#include "native/rust_name.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <utility>

#include "base/hexadecimal.h"
#include "base/utf8.h"
#include "native/rust_v0_name.h"

namespace plimsoll::native {
namespace {

// What stands between two $; empty if it is nothing known.
std::string unescaped(std::string_view escape) {
  using Escape = std::pair<std::string_view, std::string_view>;
  constexpr std::array<Escape, 8> kEscapes = {
      {{"SP", "@"}, {"BP", "*"}, {"RF", "&"}, {"LT", "<"}, {"GT", ">"}, {"LP", "("}, {"RP", ")"}, {"C", ","}}};
  for (const auto& [name, text] : kEscapes)
    if (name == escape) return std::string(text);
  std::string character;
  if (escape.starts_with('u')) {
    const auto code = from_hexadecimal("0x" + std::string(escape.substr(1)));
    if (code && *code >= ' ' && *code <= 0x10ffff) append_utf8(character, static_cast<std::uint32_t>(*code));
  }
  return character;
}

void append_part(std::string& out, std::string_view part) {
  if (part.starts_with("_$")) part.remove_prefix(1);  // as no name may begin with a $
  while (!part.empty()) {
    if (part.starts_with("..")) {
      out += "::";
      part.remove_prefix(2);
      continue;
    }
    if (part[0] == '$')
      if (const std::size_t end = part.find('$', 1); end != std::string_view::npos)
        if (const std::string text = unescaped(part.substr(1, end - 1)); !text.empty()) {
          out += text;
          part.remove_prefix(end + 1);
          continue;
        }
    out += part[0];
    part.remove_prefix(1);
  }
}

// Of a name that looks like one of C++, what stands behind "_ZN".
std::optional<std::string> legacy_name(std::string_view parts) {
  std::string name;
  std::string_view last;
  while (!parts.starts_with('E')) {
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(parts.data(), parts.data() + parts.size(), size);
    if (error != std::errc{}) return std::nullopt;
    parts.remove_prefix(static_cast<std::size_t>(end - parts.data()));
    if (size == 0 || size > parts.size()) return std::nullopt;
    if (!last.empty()) {
      if (!name.empty()) name += "::";
      append_part(name, last);
    }
    last = parts.substr(0, size);
    parts.remove_prefix(size);
  }
  const bool has_hash = last.size() == 17 && last[0] == 'h' && from_hexadecimal("0x" + std::string(last.substr(1)));
  const bool is_whole = parts == "E" || parts.starts_with("E.");
  if (!has_hash || !is_whole || name.empty() || name.size() > kMostRustName) return std::nullopt;
  return name;
}

}  // namespace

std::optional<std::string> rust_name(std::string_view mangled) {
  if (mangled.starts_with("_R")) return rust_v0_name(mangled.substr(2));
  if (mangled.starts_with("_ZN") && mangled.find("17h") != std::string_view::npos)
    return legacy_name(mangled.substr(3));
  return std::nullopt;
}

}  // namespace plimsoll::native
