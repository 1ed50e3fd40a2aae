// cli/run_settings.h: the settings of `plimsoll run` and the files they may come from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace plimsoll::cli {

// Each setting as far as somebody has said something about it. Names are those of the command line's options, with
// _ or - between words.
struct RunSettings {
  std::optional<std::string> output;
  std::optional<double> rate;      // Hz
  std::optional<double> duration;  // seconds
  std::optional<std::string> mode;
  std::optional<std::string> engine;
  std::optional<bool> mem;
  std::optional<std::string> alloc;  // bytes, with a unit
  std::optional<bool> native_memory;
  std::optional<bool> native;
  std::optional<bool> children;
  std::optional<std::string> format;
  std::optional<bool> safe_mode;
  std::optional<bool> sources;
  std::optional<bool> tasks;
  std::optional<double> max_overhead;  // percent
  std::optional<int> memory_limit;     // MiB
  std::optional<int> max_depth;        // frames
};

// What the recording is told of a value of --alloc: "exact", "events", or the mean distance of sampled allocations
// ("64K").
Result<std::pair<std::string, std::string>> allocation_setting(const std::string& text);

// An error if a number of frames, or of MiB, is not from 1 to 65536.
Status check_range(std::string_view option, int value);

// What `other` says where `settings` says nothing.
void fill_in(RunSettings& settings, const RunSettings& other);

// Settings from a file: the table [tool.plimsoll] of a .toml file, or the section [plimsoll] of an ini file. An unknown
// name or a value of the wrong kind is an error that names the file.
Result<RunSettings> read_settings(const std::string& path);

// The settings file that applies in a directory: plimsoll.ini in it, else the first pyproject.toml with a table
// [tool.plimsoll] in it or above it. Without one, empty settings.
Result<RunSettings> find_settings(const std::string& directory);

}  // namespace plimsoll::cli
