// formats/registry.h: the foreign formats that a Profile can be written as, by name and by file name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::formats {

// A format that Plimsoll can write.
struct Writer {
  std::string_view name;       // as given to -f: "flamegraph", "speedscope", "collapsed", "firefox", ...
  std::string_view extension;  // the usual file name ending: ".speedscope.json", ".collapsed", ...
  std::string_view summary;    // one line for --help
  // The file's bytes. Fails only where a format has a limit that the profile is beyond (jslb: 4 GiB).
  Result<std::string> (*write)(const profile::Profile& profile);
  bool has_allocations = false;  // so that a profile without samples of time is something to write, too
  bool has_time = true;          // else of allocations alone
};

// All writers, in the order of --help.
const std::vector<Writer>& writers();

// The writer called `name`; with an empty name, the one that `path` ends for, without regard to ASCII case:
//   flamegraph  .html
//   speedscope  .speedscope.json  .speedscope
//   firefox     .firefox.json  .firefox  profile.json (that whole name)
//   jslb        .jslb
//   pprof       .pb  .pprof
//   vmprof      .vmprof
//   pprof-heap  .heap
//   collapsed   .collapsed  .folded  also with .txt after it, .collapsedstack.txt
// each also with ".gz" after it. Errors (kUsage) say what can be asked for, and how: `asked_by` stands before a format.
Result<Writer> find_writer(std::string_view name, std::string_view path, std::string_view asked_by = "-f ");

// Why a file of that format would be empty: "holds no samples", or "holds no allocations"; empty if it would not be.
std::string_view nothing_to_write(const Writer& writer, const profile::Profile& profile);

// The bytes to put into the file `path`: what `writer` writes, gzipped if the path ends with ".gz" and the format is
// not compressed by itself. Waits of threads are put onto their stacks, and stay there: a "[sleep]" below the line that
// sleeps. Fails as Writer::write, and without memory to compress.
Result<std::string> write_as(const Writer& writer, profile::Profile& profile, std::string_view path);

}  // namespace plimsoll::formats
