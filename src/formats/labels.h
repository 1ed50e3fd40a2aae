// formats/labels.h: the words that the writers share: names of threads and processes, texts made fit for a format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.h"

namespace plimsoll::formats {

// What stands for the frames of an empty stack. Without it a viewer would drop the sample, and its time with it.
inline constexpr std::string_view kNoStack = "[no stack]";

// "Plimsoll 0.1.0" and "plimsoll@0.1.0".
inline constexpr std::string_view kProductAndVersion = "Plimsoll " PLIMSOLL_VERSION;
inline constexpr std::string_view kProductAtVersion = "plimsoll@" PLIMSOLL_VERSION;

// The text with every byte that is not part of valid UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

// The first `limit` characters of a valid text, "..." after them if that is not all of it.
std::string shortened(std::string_view text, std::size_t limit);

// A command line as a title: without the directories of the program, at most 100 characters.
std::string command_title(std::string_view command_line);

// What a profile is called: the command line of its program.
std::string profile_title(const profile::Profile& profile);

// A name for each thread, by ThreadId: its own; with its kernel id where it has none, or shares it with another thread
// of its process.
std::vector<std::string> thread_titles(const profile::Profile& profile);

// A name for a process: "process 1234".
std::string process_title(const profile::Process& process);

// Whether any sample has the empty stack.
bool has_empty_stack(const profile::Profile& profile);

}  // namespace plimsoll::formats
