// formats/registry.cc: the list of formats, and the rules of file names.
#include "formats/registry.h"

#include <algorithm>
#include <array>
#include <optional>

#include "formats/collapsed/writer.h"
#include "formats/firefox/writer.h"
#include "formats/flamegraph/writer.h"
#include "formats/gzip.h"
#include "formats/pprof/writer.h"
#include "formats/speedscope/writer.h"
#include "formats/vmprof/writer.h"

namespace plimsoll::formats {
namespace {

constexpr std::string_view kGzipEnding = ".gz";
constexpr std::string_view kGzipMagic = "\x1f\x8b";

// A file name ending and the format that it stands for.
struct Ending {
  std::string_view text;
  std::string_view writer;
};

// What users of these formats, and their viewers, expect. No ending is the end of another one, so their order is free.
constexpr std::array<Ending, 16> kEndings = {{{".html", "flamegraph"},
                                              {".speedscope.json", "speedscope"},
                                              {".speedscope", "speedscope"},
                                              {".firefox.json", "firefox"},
                                              {".firefox", "firefox"},
                                              {".jslb", "jslb"},
                                              {".pb", "pprof"},
                                              {".pprof", "pprof"},
                                              {".heap", "pprof-heap"},
                                              {".collapsed", "collapsed"},
                                              {".folded", "collapsed"},
                                              {".collapsed.txt", "collapsed"},
                                              {".folded.txt", "collapsed"},
                                              {".collapsedstack.txt", "collapsed"},
                                              {".vmprof", "vmprof"},
                                              {"/profile.json", "firefox"}}};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

std::optional<Writer> writer_called(std::string_view name) {
  const std::vector<Writer>& all = writers();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Writer& writer) { return writer.name == name; });
  return found == all.end() ? std::nullopt : std::optional(*found);
}

// "speedscope, firefox, pprof, collapsed", or what `text_of` makes of each writer.
template <typename TextOf>
std::string list_of_writers(TextOf text_of) {
  std::string list;
  for (const Writer& writer : writers()) {
    if (!list.empty()) list += ", ";
    list += text_of(writer);
  }
  return list;
}

Error unknown_name(std::string_view name) {
  return {ErrorKind::kUsage, "there is no format \"" + std::string(name) + "\"; the formats are " +
                                 list_of_writers([](const Writer& writer) { return std::string(writer.name); })};
}

Error unknown_ending(std::string_view path, std::string_view lower_path, const std::string& asked_by) {
  std::string message = "the name \"" + std::string(path) + "\" does not say which format to write";
  if (lower_path.ends_with(".json"))
    message += ": speedscope and firefox are both JSON; give " + asked_by + "speedscope or " + asked_by +
               "firefox, or end the name with .speedscope.json or .firefox.json";
  else
    message += "; give one with " + asked_by.substr(0, asked_by.find(' ')) + ", or end the name with " +
               list_of_writers([](const Writer& writer) {
                 return std::string(writer.extension) + " (" + std::string(writer.name) + ")";
               });
  return {ErrorKind::kUsage, message};
}

}  // namespace

namespace {

template <std::string (*kWrite)(const profile::Profile&)>
Result<std::string> always(const profile::Profile& profile) {
  return kWrite(profile);
}

}  // namespace

const std::vector<Writer>& writers() {
  static const std::vector<Writer> all = {
      {"flamegraph", ".html", "a page with a flame graph, for any browser: one file, no network",
       always<flamegraph::write>, true},
      {"speedscope", ".speedscope.json", "speedscope.app: time order, left heavy and sandwich views",
       always<speedscope::write>},
      {"firefox", ".firefox.json.gz", "profiler.firefox.com: timeline, memory, GC and source lines",
       always<firefox::write>, true},
      {"jslb", ".jslb.gz", "the same in columns, which the page loads faster; at most 4 GiB", firefox::write_jslb,
       true},
      {"pprof", ".pb.gz", "go tool pprof, Pyroscope, Parca and others", always<pprof::write>},
      {"pprof-heap", ".heap.gz", "go tool pprof: sampled allocations, all of them and what is alive",
       always<pprof::write_heap>, true, false},
      {"collapsed", ".collapsed", "one line per stack, for flamegraph.pl, inferno and grep; in microseconds",
       always<collapsed::write>},
      {"vmprof", ".vmprof", "vmprof 0.4 and later, PyCharm; samples without weights, of a period each",
       always<vmprof::write>},
  };
  return all;
}

Result<Writer> find_writer(std::string_view name, std::string_view path, std::string_view asked_by) {
  if (!name.empty()) {
    const std::optional<Writer> writer = writer_called(name);
    return writer ? Result<Writer>(*writer) : Result<Writer>(unknown_name(name));
  }
  std::string lower = "/" + lower_case(path);  // so that a whole name can be told from an ending
  if (lower.ends_with(kGzipEnding)) lower.resize(lower.size() - kGzipEnding.size());
  for (const Ending& ending : kEndings)
    if (lower.ends_with(ending.text)) return *writer_called(ending.writer);
  return unknown_ending(path, lower, std::string(asked_by));
}

std::string_view nothing_to_write(const Writer& writer, const profile::Profile& profile) {
  if (!writer.has_time && profile.allocations.empty()) return "holds no allocations";
  if (profile.samples.size() > 0 || (writer.has_allocations && !profile.allocations.empty())) return "";
  return "holds no samples";
}

Result<std::string> write_as(const Writer& writer, profile::Profile& profile, std::string_view path) {
  profile.put_waits_on_stacks();
  if (writer.name == "firefox" || writer.name == "jslb") profile.put_tags_into_markers();
  Result<std::string> bytes = writer.write(profile);
  if (!bytes.ok() || !lower_case(path).ends_with(kGzipEnding) || bytes.value().starts_with(kGzipMagic)) return bytes;
  return gzip(bytes.value());
}

}  // namespace plimsoll::formats
