// cli/source_text.cc: sources from the profile or from disk.
#include "cli/source_text.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/file_text.h"
#include "cli/utf8.h"

namespace plimsoll::cli {
namespace {

constexpr std::size_t kTab = 4;
constexpr std::size_t kMostEmbedded = 32'000'000;  // in all

std::string expand_tabs(std::string_view line) {
  std::string out;
  for (const char c : line) {
    if (c == '\t')
      out.append(kTab - out.size() % kTab, ' ');
    else
      out += c;
  }
  return out;
}

}  // namespace

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    lines.push_back(printable(expand_tabs(text.substr(0, end))));
    const bool pair = text.substr(end).starts_with("\r\n");
    text.remove_prefix(std::min(text.size(), end + (pair ? 2 : 1)));
  }
  return lines;
}

SourceText source_of(const profile::Profile& profile, std::string_view file) {
  const auto held = std::find_if(profile.sources.begin(), profile.sources.end(),
                                 [&](const profile::Source& source) { return source.file == file; });
  if (held != profile.sources.end()) return {SourceOrigin::kProfile, split_lines(held->text)};
  const std::optional<FileText> disk = read_text(std::string(file), kLargestSource);
  if (!disk) return {};
  const bool changed = profile.start_realtime_ns != 0 && disk->modified_ns > profile.start_realtime_ns;
  return {changed ? SourceOrigin::kDiskChanged : SourceOrigin::kDisk, split_lines(disk->text)};
}

void embed_sources(profile::Profile& profile, const std::string& directory) {
  std::set<StringId> files;
  for (std::size_t i = 0; i < profile.functions.size(); ++i) {
    const profile::Function& function = profile.functions[FunctionId{i}];
    if (function.kind == profile::FunctionKind::kPython && !function.file.is_none()) files.insert(function.file);
  }
  std::size_t bytes = 0;
  for (const StringId file : files) {
    const std::string name(profile.strings[file]);
    if (name.empty() || name.front() == '<') continue;
    std::optional<FileText> disk = read_text(name.front() == '/' ? name : directory + "/" + name, kLargestSource);
    if (!disk || disk->modified_ns > profile.start_realtime_ns || bytes + disk->text.size() > kMostEmbedded) continue;
    bytes += disk->text.size();
    profile.sources.push_back({name, std::move(disk->text)});
  }
}

}  // namespace plimsoll::cli
