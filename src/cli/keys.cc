#include "cli/keys.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/utf8.h"

namespace plimsoll::cli {
namespace {

using Kind = Key::Kind;

constexpr char kEscapeByte = '\x1b';
// Longer sequences than any that a key sends are given up.
constexpr std::size_t kLongest = 32;

// What follows "ESC [" or "ESC O": of all terminals that matter.
constexpr std::array<std::pair<std::string_view, Kind>, 10> kSequences = {{{"A", Kind::kUp},
                                                                           {"B", Kind::kDown},
                                                                           {"H", Kind::kHome},
                                                                           {"F", Kind::kEnd},
                                                                           {"5~", Kind::kPageUp},
                                                                           {"6~", Kind::kPageDown},
                                                                           {"1~", Kind::kHome},
                                                                           {"4~", Kind::kEnd},
                                                                           {"7~", Kind::kHome},
                                                                           {"8~", Kind::kEnd}}};

bool ends_sequence(char byte) { return byte >= 0x40 && byte <= 0x7e; }

// The key of an escape sequence at the front of `bytes`, which loses it; none if more must come.
std::optional<Key> take_sequence(std::string_view& bytes) {
  if (bytes.size() < 2) return std::nullopt;
  if (bytes[1] != '[' && bytes[1] != 'O') {  // Alt with a key, or Escape and a key
    bytes.remove_prefix(1);
    return Key{Kind::kEscape};
  }
  std::size_t end = 2;
  while (end < bytes.size() && !ends_sequence(bytes[end])) ++end;
  if (end == bytes.size() && end < kLongest) return std::nullopt;
  const std::string_view rest = bytes.substr(2, end - 1);
  bytes.remove_prefix(std::min(end + 1, bytes.size()));
  for (const auto& [sequence, kind] : kSequences)
    if (rest == sequence) return Key{kind};
  return Key{};
}

std::optional<Key> take_character(std::string_view& bytes) {
  const unsigned char first = static_cast<unsigned char>(bytes[0]);
  const std::size_t size = first < 0xc2 || first > 0xf4 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  const auto continues = [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; };
  // What has begun well may go on with the next bytes.
  if (bytes.size() < size && std::all_of(bytes.begin() + 1, bytes.end(), continues)) return std::nullopt;
  const Utf8Character character = first_character(bytes);
  const std::string_view text = bytes.substr(0, character.size);
  bytes.remove_prefix(character.size);
  if (!character.is_valid()) return Key{};
  if (text == "\r" || text == "\n") return Key{Kind::kEnter};
  if (text == "\x7f" || text == "\b") return Key{Kind::kBackspace};
  if (first < 0x20) return Key{};
  return Key{Kind::kText, std::string(text)};
}

}  // namespace

std::vector<Key> KeyDecoder::feed(std::string_view bytes) {
  pending_ += bytes;
  std::string_view rest = pending_;
  std::vector<Key> keys;
  while (!rest.empty()) {
    const std::optional<Key> key = rest[0] == kEscapeByte ? take_sequence(rest) : take_character(rest);
    if (!key) break;
    keys.push_back(*key);
  }
  pending_.erase(0, pending_.size() - rest.size());
  return keys;
}

std::vector<Key> KeyDecoder::finish() {
  const std::string begun = std::exchange(pending_, {});
  if (begun.empty()) return {};
  return {begun == std::string(1, kEscapeByte) ? Key{Kind::kEscape} : Key{}};
}

}  // namespace plimsoll::cli
