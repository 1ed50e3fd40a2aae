// capture/frame_nodes.h: the frames that were met on top of each stack of a thread, found by what makes them frames.
//
// A tree of rows. A program that comes by the same stacks again does so in much the same order, and rows lie in the
// order in which they were made: so the rows of one walk are near those of the walk before. The first few on top of a
// stack are a list, the rest is in a hash table. There may be very many rows, but of few frames: what a frame is told
// from others by is noted once, and has a number. Instructions of one line are one frame.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <new>

#include "base/growing_array.h"

namespace plimsoll::capture {

// What a frame's memory says, which holds for one instruction of one code object.
struct FrameWords {
  std::uint64_t position = 0;
  std::uint64_t executable = 0;
  std::uint32_t deaths = 0;  // of code objects at that address, before this one
  bool operator==(const FrameWords&) const = default;
  friend std::size_t hash_value(const FrameWords& words) {
    const std::uint64_t hash = (words.position ^ words.executable << 1U ^ words.deaths) * 0x9e3779b97f4a7c15U;
    return static_cast<std::size_t>(hash ^ (hash >> 29U));
  }
};

// What frames that are not told apart have in common.
struct FrameLine {
  std::uint64_t executable = 0;
  std::int32_t line = 0;
  std::uint32_t deaths = 0;
  bool operator==(const FrameLine&) const = default;
  friend std::size_t hash_value(const FrameLine& at) {
    const std::uint64_t place = std::uint64_t{at.deaths} << 32U | static_cast<std::uint32_t>(at.line);
    const std::uint64_t hash = (at.executable ^ place * 0xc2b2ae3d27d4eb4fU) * 0x9e3779b97f4a7c15U;
    return static_cast<std::size_t>(hash ^ (hash >> 29U));
  }
};

// The tree. Not thread-safe. May throw std::bad_alloc; then nothing has changed.
class FrameNodes {
 public:
  using Place = std::uint32_t;  // of a row; 0 = below all frames

  FrameNodes() { rows_.push_back({}); }

  // The frame with these words on top of the stack at `below`; 0 if it was not met there.
  [[nodiscard]] Place find(Place below, const FrameWords& words) {
    const std::uint32_t frame = frame_of(words);
    if (frame == 0) return 0;
    const Row* const rows = rows_.data();
    const Row& under = rows[below];
    Place at = under.first;
    while (at != 0 && rows[at].frame != frame) at = rows[at].next;
    if (at == 0 && under.count > kListed) at = find_unlisted(below, frame);
    return at;
  }
  [[nodiscard]] bool is_noted(const FrameWords& words) { return frame_of(words) != 0; }
  // These words, which are not noted, are of an instruction of this line of their code object.
  void note(const FrameWords& words, std::int32_t line) {
    const FrameLine at{words.executable, line, words.deaths};
    const auto known = frame_of_line_.find(at);
    if (known != frame_of_line_.end())
      frame_of_words_.emplace(words, known->second);
    else
      frame_of_line_.emplace(at, note_alone(words));
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
  // Adds it; `number` is what is known of it from now on. Words that are not noted are a frame of their own.
  Place add(Place below, const FrameWords& words, std::uint32_t number) {
    const std::uint32_t known = frame_of(words), frame = known != 0 ? known : note_alone(words);
    const auto made = static_cast<Place>(rows_.size());
    rows_.push_back({frame & kFrameMask, 0, number, 0, 0});
    Row& under = rows_[below];
    if (under.count < kListed) {
      rows_.back().next = under.first;
      under.first = made;
      ++under.count;
      return made;
    }
    try {
      unlisted_.emplace(std::uint64_t{below} << 32U | frame, made);
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
  static constexpr std::uint32_t kListed = 8;
  static constexpr unsigned kFrameBits = 28;
  static constexpr std::uint32_t kFrameMask = (std::uint32_t{1} << kFrameBits) - 1;
  // A frame on top of a stack, which is another stack.
  struct Row {
    std::uint32_t frame : kFrameBits = 0;       // its number
    std::uint32_t count : 32 - kFrameBits = 0;  // of those on top of it: in the list, one more if there are others
    std::uint32_t number = 0;
    Place first = 0;  // on top of it
    Place next = 0;   // on top of what this is on top of
  };
  static_assert(sizeof(Row) == 16, "four to a cache line");
  static constexpr unsigned kGuessBits = 8;
  // The number of a frame, from 1 on; 0: nothing.
  struct Noted {
    FrameWords words;
    std::uint32_t frame = 0;
  };
  static constexpr unsigned kNotedBits = 7;
  static std::size_t row_of(const FrameWords& words) {
    return static_cast<std::size_t>((words.position + words.executable) * 0x9e3779b97f4a7c15U >> (64U - kNotedBits));
  }
  // Of a frame that others have taken the place of, or that was not met.
  [[gnu::noinline]] std::uint32_t look_up(const FrameWords& words) {
    const auto found = frame_of_words_.find(words);
    if (found == frame_of_words_.end()) return 0;
    noted_[row_of(words)] = {words, found->second};
    return found->second;
  }
  // 0: its words are not noted.
  [[nodiscard]] std::uint32_t frame_of(const FrameWords& words) {
    const Noted& noted = noted_[row_of(words)];
    return noted.words == words ? noted.frame : look_up(words);
  }
  std::uint32_t note_alone(const FrameWords& words) {
    const std::size_t most = frame_of_words_.size() + 1;  // there are no more frames than words
    if (most >> kFrameBits != 0) throw std::bad_alloc();
    const auto frame = static_cast<std::uint32_t>(most);
    frame_of_words_.emplace(words, frame);
    noted_[row_of(words)] = {words, frame};
    return frame;
  }
  [[gnu::noinline]] Place find_unlisted(Place below, std::uint32_t frame) const {
    const auto found = unlisted_.find(std::uint64_t{below} << 32U | frame);
    return found != unlisted_.end() ? found->second : 0;
  }

  GrowingArray<Row> rows_;
  std::array<Guess, std::size_t{1} << kGuessBits> guesses_{};
  std::array<Noted, std::size_t{1} << kNotedBits> noted_{};
  boost::unordered_flat_map<FrameWords, std::uint32_t, boost::hash<FrameWords>> frame_of_words_;
  boost::unordered_flat_map<FrameLine, std::uint32_t, boost::hash<FrameLine>> frame_of_line_;
  boost::unordered_flat_map<std::uint64_t, Place> unlisted_;  // by the stack below and the number of the frame
};

}  // namespace plimsoll::capture
