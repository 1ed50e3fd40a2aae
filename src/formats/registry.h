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
  std::string_view name;       // as given to -f: "speedscope", "collapsed", "firefox", "pprof"
  std::string_view extension;  // the file name ending that selects it: ".speedscope.json", ".collapsed", ...
  std::string_view summary;    // one line for --help
  // The file's bytes. Never fails: a Profile that can be read can be written.
  std::string (*write)(const profile::Profile& profile);
};

// All writers, in the order of --help.
const std::vector<Writer>& writers();

// The writer called `name`; with an empty name, the one whose extension `path` ends with. An error lists the names.
Result<Writer> find_writer(std::string_view name, std::string_view path);

}  // namespace plimsoll::formats
