// formats/labels.cc: names of threads and processes, and clean UTF-8.
#include "formats/labels.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>

#include "base/utf8.h"

namespace plimsoll::formats {
namespace {

std::string with_tid(std::string_view name, const profile::Thread& thread) {
  return std::string(name) + " (tid " + std::to_string(thread.os_tid) + ")";
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character next = first_character(text);
    out += next.is_valid() ? text.substr(0, next.size) : kUtf8Replacement;
    text.remove_prefix(next.size);
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t limit) {
  std::size_t bytes = 0;
  for (std::size_t characters = 0; bytes < text.size(); ++characters) {
    if (characters == limit) return std::string(text.substr(0, bytes)) + "...";
    bytes += first_character(text.substr(bytes)).size;
  }
  return std::string(text);
}

std::string command_title(std::string_view command_line) {
  constexpr std::size_t kLimit = 100;
  const std::string_view program = command_line.substr(0, command_line.find(' '));
  return shortened(command_line.substr(program.find_last_of('/') + 1), kLimit);
}

std::string profile_title(const profile::Profile& profile) {
  if (const std::string_view argv = profile.meta_value("argv"); !argv.empty()) return command_title(argv);
  if (!profile.processes.empty() && !profile.processes[0].name.empty()) return command_title(profile.processes[0].name);
  return std::string(kProductAndVersion);
}

std::vector<std::string> thread_titles(const profile::Profile& profile) {
  boost::unordered_flat_map<std::string, std::size_t> uses;
  const auto key = [](const profile::Thread& thread) {
    return std::to_string(thread.process.index()) + " " + thread.name;
  };
  for (const profile::Thread& thread : profile.threads) ++uses[key(thread)];

  std::vector<std::string> titles;
  titles.reserve(profile.threads.size());
  for (const profile::Thread& thread : profile.threads) {
    if (thread.name.empty())
      titles.push_back(with_tid("thread", thread));
    else
      titles.push_back(uses[key(thread)] > 1 ? with_tid(thread.name, thread) : thread.name);
  }
  return titles;
}

std::string process_title(const profile::Process& process) { return "process " + std::to_string(process.pid); }

bool has_empty_stack(const profile::Profile& profile) {
  const auto& stacks = profile.samples.stack;
  return std::any_of(stacks.begin(), stacks.end(), [](StackId stack) { return stack.is_none(); });
}

}  // namespace plimsoll::formats
