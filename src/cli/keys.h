// cli/keys.h: what a terminal sends when keys are pressed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::cli {

// A key. Only kText has a text: one character.
struct Key {
  // Those that mean something here.
  enum class Kind : std::uint8_t {
    kText,
    kEnter,
    kEscape,
    kBackspace,
    kUp,
    kDown,
    kPageUp,
    kPageDown,
    kHome,
    kEnd,
    kUnknown,
  } kind = Kind::kUnknown;
  std::string text{};
  bool operator==(const Key&) const = default;
};

// Puts keys together from bytes that arrive in any pieces.
class KeyDecoder {
 public:
  // The keys that are complete with these bytes.
  std::vector<Key> feed(std::string_view bytes);
  // Whether a key has begun: nothing more may come, for the key Escape is the beginning of most others.
  [[nodiscard]] bool is_waiting() const { return !pending_.empty(); }
  // Nothing came for a while: what has begun was all.
  std::vector<Key> finish();

 private:
  std::string pending_;
};

}  // namespace plimsoll::cli
