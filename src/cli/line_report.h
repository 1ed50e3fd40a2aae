// cli/line_report.h: CPU time by source line, file by file.
//
// profile::lines counts per (function, line). A line may hold several functions (a comprehension and the function
// around it), so the sum over functions would count one sample twice. Here a sample counts once for each (file, line)
// on its stack.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/filter.h"
#include "profile/profile.h"

namespace plimsoll::cli {

// What a line (or a file) has to answer for.
struct LineWeight {
  std::uint32_t line = 0;
  FunctionId function;                  // the one with most self time here, else the one with most total
  std::vector<FunctionId> others = {};  // that have time here, too: the function around a comprehension
  std::int64_t self_ns = 0;
  std::int64_t total_ns = 0;
  std::uint64_t self_samples = 0;
  std::uint64_t total_samples = 0;
  bool is_asked_for = true;  // else it has its numbers, but is shown only where it stands near a line that is
};

// A file's lines that have time or were asked for, with the file's sums.
struct FileReport {
  StringId file;
  std::int64_t self_ns = 0;
  std::int64_t total_ns = 0;
  std::vector<LineWeight> lines;  // in order of the line number
};

// The whole report; what it cannot attribute to a line is counted.
struct LineReport {
  std::vector<FileReport> files;     // those with the most self time first
  std::int64_t without_line_ns = 0;  // self time of native code and of frames without a file or a line
};

LineReport line_report(const profile::Profile& profile);

// Keeps the files, and asks for the lines, that the conditions on file and function name: a line by any function that
// has time on it. (A filter keeps whole stacks,
// so the callers of a function are still in the profile.)
void keep_asked_for(LineReport& report, const profile::Profile& profile, const profile::Filter& conditions);

// Keeps the files, at most so many unless that is 0, that have a line of which this percentage of the time is in total;
// and asks for no other line.
void keep_heavy(LineReport& report, const profile::Profile& profile, double least_percent, std::size_t most_files);

}  // namespace plimsoll::cli
