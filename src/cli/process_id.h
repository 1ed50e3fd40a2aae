// cli/process_id.h: the number of a process, as it is typed.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>

namespace plimsoll::cli {

// What CLI11 is to check a PID by; empty if it is one, else the words that say that it is not.
inline std::string problem_of_process_id(const std::string& word) {
  std::int32_t pid = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, pid);
  if (error == std::errc{} && stop == end && pid > 0) return {};
  return fmt::format("\"{}\" is no process id: a number, as ps shows it", word);
}

inline CLI::Validator process_id() { return CLI::Validator(problem_of_process_id, "PID"); }

}  // namespace plimsoll::cli
