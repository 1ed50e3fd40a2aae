// formats/mojo/testing.h: MOJO files drawn as text, for tests only.
//
// A line is an event: "version 3", "meta NAME VALUE", "stack PID [IID] TID", "string KEY TEXT", "frame KEY FILE
// FUNCTION LINE [...]", "ref KEY", "kernel NAME", "time N", "memory N", "task ID NAME", "waiter ID ID", "event N" for
// the others, and "bytes XX ..." for what is none.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>

#include "formats/mojo/events.h"

namespace plimsoll::formats::mojo::testing {

// A number as the format has it.
inline std::string encoded(std::int64_t value) {
  auto magnitude = static_cast<std::uint64_t>(value < 0 ? -value : value);
  auto byte = static_cast<unsigned>((magnitude & 0x3fU) | (value < 0 ? 0x40U : 0U));
  magnitude >>= 6U;
  std::string out;
  for (; magnitude != 0; magnitude >>= 7U) {
    out.push_back(static_cast<char>(byte | 0x80U));
    byte = static_cast<unsigned>(magnitude & 0x7fU);
  }
  return out + static_cast<char>(byte);
}

inline std::string draw_line(std::string_view line) {
  std::istringstream words{std::string(line)};
  std::string verb, word, out;
  words >> verb;
  const auto event = [&](Event which) { return std::string(1, static_cast<char>(which)); };
  const auto numbers = [&] {
    while (words >> word) out += encoded(std::stoll(word));
    return out;
  };
  const auto text = [&] {
    std::string rest;
    std::getline(words >> std::ws, rest);
    return rest + '\0';
  };
  if (verb == "version") return std::string(kMagic) + numbers();
  if (verb == "meta") return words >> word, event(Event::kMetadata) + word + '\0' + text();
  if (verb == "stack") {
    for (words >> word; words.peek() == ' ';) out += encoded(std::stoll(word)), words >> word;
    return event(Event::kStack) + out + word + '\0';
  }
  if (verb == "string") return words >> word, event(Event::kString) + encoded(std::stoll(word)) + text();
  if (verb == "kernel") return event(Event::kKernelFrame) + text();
  if (verb == "frame") return event(Event::kFrame) + numbers();
  if (verb == "ref") return event(Event::kFrameReference) + numbers();
  if (verb == "time") return event(Event::kTime) + numbers();
  if (verb == "memory") return event(Event::kMemory) + numbers();
  if (verb == "task") return event(Event::kTaskStack) + numbers();
  if (verb == "waiter") return event(Event::kTaskWaiter) + numbers();
  if (verb == "event") return words >> word, std::string(1, static_cast<char>(std::stoi(word)));
  EXPECT_EQ(verb, "bytes") << line;
  while (words >> word) out += static_cast<char>(std::stoi(word, nullptr, 16));
  return out;
}

// The bytes of a drawing.
inline std::string draw_file(std::string_view drawing) {
  std::istringstream lines{std::string(drawing)};
  std::string bytes;
  for (std::string line; std::getline(lines, line);)
    if (line.find_first_not_of(' ') != std::string::npos) bytes += draw_line(line);
  return bytes;
}

}  // namespace plimsoll::formats::mojo::testing
