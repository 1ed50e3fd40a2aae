// debuginfo/line_resolver.h: an address of machine code -> the functions and lines that it comes from, as the compiler
// wrote them down (DWARF).
//
// Debug information is the file's own, or what distributions keep apart: /usr/lib/debug by build-id, what
// .gnu_debuglink names, and what debuginfod has fetched. If DEBUGINFOD_URLS is set, libdw asks those servers, else
// nothing is asked over the network.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace plimsoll::debuginfo {

// A function that an address is in, or the place in it that calls the next one further in.
struct Place {
  std::string function;    // as its programmer wrote it; empty if it has no name
  std::string file;        // where it is defined; empty if unknown
  std::uint32_t line = 0;  // in that file; 0 if unknown
  bool is_inlined = false;
};

// What the work may take. Debug information can be larger than memory, and damaged.
struct Limits {
  std::int64_t deadline_ns = INT64_MAX;  // of monotonic_ns()
  std::uint64_t largest_file = std::uint64_t{4} << 30U;
  std::size_t most_entries = 20'000'000;  // of one compilation unit
  std::size_t most_ranges = 10'000'000;   // of code, that units and functions have; several can have the same list
};

// Of one file. For one thread.
class LineResolver {
 public:
  // Opens the file that was loaded from `path`. `build_id` is what it had then, as bytes, or empty: a file that has
  // another one is an error, as is one without debug information.
  static Result<std::unique_ptr<LineResolver>> open(const std::string& path, const std::string& build_id,
                                                    const Limits& limits);
  LineResolver(const LineResolver&) = delete;
  LineResolver& operator=(const LineResolver&) = delete;
  ~LineResolver();

  // Where an address of the file's own is: the function that has machine code of its own first, then those that were
  // inlined into it and into each other there. Empty if that is not known, or after the deadline.
  std::vector<Place> find(std::uint64_t address);

 private:
  class Impl;
  explicit LineResolver(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace plimsoll::debuginfo
