#include "server/url.h"

namespace plimsoll::server {
namespace {

constexpr std::string_view kDigits = "0123456789ABCDEF";

// The value of a hexadecimal digit; none if it is none.
std::optional<unsigned> digit_of(char character) {
  const char upper = character >= 'a' && character <= 'f' ? static_cast<char>(character - 'a' + 'A') : character;
  const std::size_t at = kDigits.find(upper);
  return at == std::string_view::npos ? std::nullopt : std::optional(static_cast<unsigned>(at));
}

}  // namespace

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    const bool is_plain = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
                          (byte >= 'A' && byte <= 'Z') || character == '-' || character == '.' || character == '_' ||
                          character == '~';
    if (is_plain)
      out += character;
    else
      (out += '%').append({kDigits[byte >> 4U], kDigits[byte & 15U]});
  }
  return out;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (; !text.empty(); text.remove_prefix(1)) {
    if (text.front() != '%') {
      out += text.front();
      continue;
    }
    if (text.size() < 3) return std::nullopt;
    const std::optional<unsigned> high = digit_of(text[1]);
    const std::optional<unsigned> low = digit_of(text[2]);
    if (!high || !low) return std::nullopt;
    out += static_cast<char>(*high << 4U | *low);
    text.remove_prefix(2);
  }
  return out;
}

}  // namespace plimsoll::server
