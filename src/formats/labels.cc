// formats/labels.cc: names of threads and processes, and clean UTF-8.
#include "formats/labels.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>

namespace plimsoll::formats {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

// The size of the character that `text`, which is not empty, starts with; 0 if that is not valid UTF-8.
std::size_t character_size(std::string_view text) {
  const unsigned char first = byte_at(text, 0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte_at(text, i) & 0xc0U) != 0x80U) return 0;
  const unsigned char second = byte_at(text, 1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second >= 0xa0;
  const bool too_large = first == 0xf4 && second >= 0x90;
  return overlong || surrogate || too_large ? 0 : size;
}

std::string with_tid(std::string_view name, const profile::Thread& thread) {
  return std::string(name) + " (tid " + std::to_string(thread.os_tid) + ")";
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    out += size == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(0, size);
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t limit) {
  std::size_t bytes = 0;
  for (std::size_t characters = 0; bytes < text.size(); ++characters) {
    if (characters == limit) return std::string(text.substr(0, bytes)) + "...";
    bytes += std::max<std::size_t>(character_size(text.substr(bytes)), 1);
  }
  return std::string(text);
}

std::string command_title(std::string_view command_line) {
  constexpr std::size_t kLimit = 100;
  const std::string_view program = command_line.substr(0, command_line.find(' '));
  return shortened(command_line.substr(program.find_last_of('/') + 1), kLimit);
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
