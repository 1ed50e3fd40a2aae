#include "cli/process_sources.h"

namespace plimsoll::cli {

const SourceText& ProcessSources::of(std::string_view file) {
  if (const auto known = known_.find(file); known != known_.end()) return known->second;
  SourceText& text = known_[std::string(file)];
  if (file.empty() || file[0] == '<') return text;
  if (process_.empty())
    text = source_of(profile::Profile{}, file);
  else
    text = source_of(profile::Profile{}, process_ + (file[0] == '/' ? "/root" : "/cwd/") + std::string(file));
  return text;
}

}  // namespace plimsoll::cli
