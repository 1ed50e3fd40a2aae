// capture/frame_nodes.h: the frames that were met on top of each stack of a thread, found by what makes them frames.
//
// A tree of rows. A program that comes by the same stacks again does so in much the same order, and rows lie in the
// order in which they were made: so the rows of one walk are near those of the walk before. The first few on top of a
// stack are a list, the rest is in a hash table.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>

#include "base/growing_array.h"

namespace plimsoll::capture {

// What a frame's memory says, which holds for one instruction of one code object.
struct FrameWords {
  std::uint64_t position = 0;
  std::uint64_t executable = 0;
  std::uint16_t deaths = 0;  // of code objects at that address, before this one
  bool operator==(const FrameWords&) const = default;
  friend std::size_t hash_value(const FrameWords& words) {
    const std::uint64_t hash = (words.position ^ words.executable << 1U ^ words.deaths) * 0x9e3779b97f4a7c15U;
    return static_cast<std::size_t>(hash ^ (hash >> 29U));
  }
};

// The tree. Not thread-safe. May throw std::bad_alloc; then nothing has changed.
class FrameNodes {
 public:
  using Place = std::uint32_t;  // of a row; 0 = below all frames

  FrameNodes() { rows_.push_back({}); }

  // The frame with these words on top of the stack at `below`; 0 if it was not met there.
  [[nodiscard]] Place find(Place below, const FrameWords& words) const {
    const Row* const rows = rows_.data();
    const Row& under = rows[below];
    Place at = under.first;
    while (at != 0 && !rows[at].is(words)) at = rows[at].next;
    if (at == 0 && under.count > kListed) at = find_unlisted(below, words);
    return at;
  }
  // What was found of a frame, by words that hold as long as no code object has died.
  struct Guess {
    std::uint64_t position = 0, executable = 0;
    Place below = 0;
    std::uint32_t all_deaths = 0;  // of code objects, until then
    Place at = 0;                  // 0: nothing
    std::uint32_t number = 0;
    [[nodiscard]] bool is(Place stack, std::uint32_t deaths, const FrameWords& words) const {
      return position == words.position && executable == words.executable && below == stack && all_deaths == deaths;
    }
  };
  static_assert(sizeof(Guess) == 32, "two to a cache line");
  // What was found last of those that share a place here.
  [[nodiscard]] Guess& guess(Place below, std::uint64_t position) {
    return guesses_[static_cast<std::size_t>((position + below) * 0x9e3779b97f4a7c15U >> (64U - kGuessBits))];
  }
  // Adds it; `number` is what is known of it from now on.
  Place add(Place below, const FrameWords& words, std::uint32_t number) {
    const auto made = static_cast<Place>(rows_.size());
    rows_.push_back({words.position, words.executable, number, 0, 0, words.deaths, 0});
    Row& under = rows_[below];
    if (under.count < kListed) {
      rows_.back().next = under.first;
      under.first = made;
      ++under.count;
      return made;
    }
    try {
      unlisted_.emplace(Key{below, words}, made);
    } catch (...) {
      rows_.pop_back();
      throw;
    }
    under.count = kListed + 1;
    return made;
  }
  [[nodiscard]] std::uint32_t number(Place at) const { return rows_[at].number; }
  void set_number(Place at, std::uint32_t number) { rows_[at].number = number; }

 private:
  static constexpr std::uint16_t kListed = 8;
  // A frame on top of a stack, which is another stack.
  struct Row {
    std::uint64_t position = 0, executable = 0;
    std::uint32_t number = 0;
    Place first = 0;  // on top of it
    Place next = 0;   // on top of what this is on top of
    std::uint16_t deaths = 0;
    std::uint16_t count = 0;  // of those on top of it: in the list, one more if there are others
    [[nodiscard]] bool is(const FrameWords& words) const {
      return position == words.position && executable == words.executable && deaths == words.deaths;
    }
  };
  static_assert(sizeof(Row) == 32, "two to a cache line");
  static constexpr unsigned kGuessBits = 8;
  // What those that are in no list are found by.
  struct Key {
    Place below = 0;
    FrameWords words;
    bool operator==(const Key&) const = default;
    friend std::size_t hash_value(const Key& key) {
      return hash_value(key.words) + key.below * std::size_t{0xc2b2ae3d27d4eb4fU};
    }
  };
  [[gnu::noinline]] Place find_unlisted(Place below, const FrameWords& words) const {
    const auto found = unlisted_.find(Key{below, words});
    return found != unlisted_.end() ? found->second : 0;
  }

  GrowingArray<Row> rows_;
  std::array<Guess, std::size_t{1} << kGuessBits> guesses_{};
  boost::unordered_flat_map<Key, Place, boost::hash<Key>> unlisted_;
};

}  // namespace plimsoll::capture
