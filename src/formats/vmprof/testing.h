// formats/vmprof/testing.h: vmprof profiles drawn in text, for tests and fuzzers only.
//
//   layout unix64 1000              also unix32, win64, win32; the period in microseconds
//   header 6 lm cpython             version, flags (m memory, l lines, n native, t tagged, r real time, - none),
//   interpreter interpreter pypy                in place of the header in version 0 start 100.25 seconds since 1970
//   meta os linux
//   name 16 py:main:1:app.py        "native" likewise
//   stack 18 16 t=7 m=100 at=5.5    entries as they are in the file, leaf first; thread, KiB, time in seconds
//   allocation 18 16 t=7 at=5.5     likewise
//   objects 5 4 at=5.6
//   end 101                         the trailer
//   bytes 00 ff                     anything
//   text 00400000-00401000 r-xp     a line of text
#pragma once

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "formats/vmprof/format.h"
#include "formats/vmprof/records.h"

namespace plimsoll::formats::vmprof::testing {

// Puts the lines of a drawing into bytes. A mistake in it aborts the test.
class Drawing {
 public:
  std::string draw(std::string_view text) {
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string verb;
      if (words >> verb) draw_line(verb, words);
    }
    return std::move(out_);
  }
  [[nodiscard]] Layout layout() const { return layout_; }

  // Version 7 of vmprof 0.6, which has the time behind the stack; else that of the fork.
  bool is_time_after = false;

 private:
  [[noreturn]] static void bad(const std::string& word) {
    std::fprintf(stderr, "bad drawing of a vmprof profile: \"%s\"\n", word.c_str());
    std::abort();
  }
  void draw_line(const std::string& verb, std::istringstream& words) {
    if (verb == "layout") return layout(words);
    if (verb == "header") return header(words);
    if (verb == "interpreter") return marked(Marker::kInterpreter), short_text(rest(words));
    if (verb == "start") return marked(Marker::kStartTime), time(words);
    if (verb == "end") return end(words);
    if (verb == "meta") return meta(words);
    if (verb == "name") return name(Marker::kName, words);
    if (verb == "native") return name(Marker::kNativeName, words);
    if (verb == "stack") return stack(Marker::kStack, words);
    if (verb == "allocation") return stack(Marker::kAllocationStack, words);
    if (verb == "objects") return stack(Marker::kObjects, words);
    if (verb == "text") return static_cast<void>(out_ += rest(words) + "\n");
    if (verb != "bytes") bad(verb);
    for (std::string digits; words >> digits;) byte(static_cast<std::uint64_t>(number(digits, 16)));
  }

  static std::int64_t number(const std::string& digits, int base = 0) {
    char* end = nullptr;
    const bool is_negative = digits.starts_with('-');
    const unsigned long long value = std::strtoull(digits.c_str() + (is_negative ? 1 : 0), &end, base);
    if (end == digits.c_str() || *end != '\0') bad(digits);
    return is_negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
  }
  static std::string rest(std::istringstream& words) {
    std::string text;
    std::getline(words >> std::ws, text);
    return text;
  }

  void byte(std::uint64_t value) { out_.push_back(static_cast<char>(value)); }
  void marked(Marker marker) { byte(static_cast<std::uint64_t>(marker)); }
  void integer(std::int64_t value, unsigned size) {
    for (unsigned i = 0; i < size; ++i) byte(static_cast<std::uint64_t>(value) >> (8 * i));
  }
  void word(std::int64_t value) { integer(value, layout_.word); }
  void address(std::int64_t value) { integer(value, layout_.address); }
  void text(const std::string& value) {
    word(static_cast<std::int64_t>(value.size()));
    out_ += value;
  }
  void short_text(const std::string& value) {
    byte(value.size());
    out_ += value;
  }

  void layout(std::istringstream& words) {
    std::string name;
    std::int64_t period = 0;
    words >> name >> period;
    if (name == "unix64") layout_ = {8, 8};
    if (name == "unix32" || name == "win32") layout_ = {4, 4};
    if (name == "win64") layout_ = {4, 8};
    for (const std::int64_t value :
         {std::int64_t{0}, std::int64_t{3}, std::int64_t{0}, period, std::int64_t{name == "win64" ? 1 : 0}})
      word(value);
  }
  void header(std::istringstream& words) {
    std::string letters;
    std::string interpreter;
    words >> version_ >> letters >> interpreter;
    std::uint64_t flags = 0;
    constexpr std::string_view kLetters = "mlntr";
    for (std::size_t i = 0; i < kLetters.size(); ++i)
      if (letters.find(kLetters[i]) != std::string::npos) flags |= std::uint64_t{1} << i;
    marked(Marker::kHeader);
    byte(static_cast<std::uint64_t>(version_) >> 8U);
    byte(static_cast<std::uint64_t>(version_));
    if (version_ >= kVersionFlags) byte(flags);
    has_memory_ = version_ == kVersionMemory || (version_ >= kVersionFlags && (flags & kFlagMemory) != 0);
    short_text(interpreter);
  }
  void time(std::istringstream& words) {
    double seconds = 0;
    words >> seconds;
    const auto micros = static_cast<std::int64_t>(seconds * 1e6 + 0.5);
    integer(micros / 1'000'000, 8);
    integer(micros % 1'000'000, 8);
    integer(0, 8);
  }
  void end(std::istringstream& words) {
    marked(Marker::kTrailer);
    if (version_ >= kVersionEndTime) time(words);
  }
  void meta(std::istringstream& words) {
    std::string key;
    words >> key;
    marked(Marker::kMeta);
    text(key);
    text(rest(words));
  }
  void name(Marker marker, std::istringstream& words) {
    std::string id;
    words >> id;
    marked(marker);
    address(number(id));
    text(rest(words));
  }
  void stack(Marker marker, std::istringstream& words) {
    std::vector<std::int64_t> entries;
    std::int64_t thread = 0;
    std::int64_t memory = 0;
    double seconds = 0;
    for (std::string item; words >> item;) {
      if (item.starts_with("t="))
        thread = number(item.substr(2));
      else if (item.starts_with("m="))
        memory = number(item.substr(2));
      else if (item.starts_with("at="))
        seconds = std::strtod(item.c_str() + 3, nullptr);
      else
        entries.push_back(number(item));
    }
    marked(marker);
    if (version_ >= kVersionSampleTime && !is_time_after)
      integer(std::bit_cast<std::int64_t>(seconds), 8);
    else
      word(1);
    word(static_cast<std::int64_t>(entries.size()));
    for (const std::int64_t entry : entries) address(entry);
    if (marker == Marker::kObjects) return;
    if (version_ >= kVersionThreads) address(thread);
    if (has_memory_) address(memory);
    if (version_ >= kVersionSampleTime && is_time_after) integer(static_cast<std::int64_t>(seconds * 1e9 + 0.5), 8);
  }

  std::string out_;
  Layout layout_;
  int version_ = 0;
  bool has_memory_ = false;
};

// The bytes of a drawing.
inline std::string draw_file(std::string_view text) { return Drawing().draw(text); }

}  // namespace plimsoll::formats::vmprof::testing
