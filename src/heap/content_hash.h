// heap/content_hash.h: a keyed hash of what a str or bytes holds: equal contents can be told without being recorded.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace plimsoll::heap {

// SipHash-1-3 (Aumasson and Bernstein, 2012) of 64 bits. Whoever does not have the key cannot try out words, even if he
// knows the contents behind many hashes; so a key is drawn for each snapshot and forgotten with it.
class ContentHash {
 public:
  using Key = std::array<std::uint64_t, 2>;
  explicit ContentHash(const Key& key) : key_(key) {}

  // `tag` sets apart contents of different kinds with the same bytes.
  [[nodiscard]] std::uint64_t of(std::string_view bytes, std::uint64_t tag) const {
    State v{key_[0] ^ 0x736f6d6570736575U, key_[1] ^ 0x646f72616e646f6dU, key_[0] ^ 0x6c7967656e657261U,
            key_[1] ^ 0x7465646279746573U};
    const char* at = bytes.data();
    std::size_t left = bytes.size();
    for (; left >= 8; at += 8, left -= 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, at, 8);
      mix(v, word);
    }
    std::uint64_t last = 0;
    std::memcpy(&last, at, left);
    mix(v, last | std::uint64_t{bytes.size()} << 56U);
    mix(v, tag);
    v.c ^= 0xff;
    for (int i = 0; i < 3; ++i) round(v);
    return v.a ^ v.b ^ v.c ^ v.d;
  }

 private:
  // Four words that are mixed.
  struct State {
    std::uint64_t a, b, c, d;
  };
  static void round(State& v) {
    v.a += v.b;
    v.b = std::rotl(v.b, 13) ^ v.a;
    v.a = std::rotl(v.a, 32);
    v.c += v.d;
    v.d = std::rotl(v.d, 16) ^ v.c;
    v.a += v.d;
    v.d = std::rotl(v.d, 21) ^ v.a;
    v.c += v.b;
    v.b = std::rotl(v.b, 17) ^ v.c;
    v.c = std::rotl(v.c, 32);
  }
  static void mix(State& v, std::uint64_t word) {
    v.d ^= word;
    round(v);
    v.a ^= word;
  }

  Key key_;
};

// A key that nobody knows, from the system. Where it has none to give, one that differs from run to run.
ContentHash::Key random_key();

}  // namespace plimsoll::heap
