// formats/firefox/bundle.cc: the files of the archive.
#include "formats/firefox/bundle.h"

#include <map>

#include "formats/firefox/writer.h"
#include "formats/labels.h"
#include "formats/zip.h"

namespace plimsoll::formats::firefox {
namespace {

std::string instructions(const profile::Profile& profile, std::string_view name) {
  const bool has_sources = !profile.sources.empty();
  const bool has_attachments = !profile.attachments.empty();
  std::string text =
      "A profile: " + valid_utf8(name) + "\nwritten by " + std::string(kProductAndVersion) +
      "\n\n"
      "To look at it in a browser\n"
      "  Open https://profiler.firefox.com, choose \"Load a profile from file\", and take this archive or\n"
      "  its profile.json. The page works in the browser; the profile stays on your machine.\n"
      "\n"
      "With Plimsoll installed\n"
      "  plimsoll firefox profile.json    the same, and the browser opens by itself\n"
      "  plimsoll show profile.json       in the terminal\n"
      "\n"
      "Files\n"
      "  profile.json   samples, threads, markers, counters";
  text += has_sources ? ", and the profiled files' text\n  sources/       that text once more, to be read\n" : "\n";
  if (has_attachments) text += "  attached/      what other tools have told of the same session\n";
  return text;
}

// Names that are not there yet, whatever a profile calls its files.
class Names {
 public:
  std::string name(const std::string& folder, std::string_view path) {
    const std::string wanted = folder + "/" + safe_zip_name(path);
    std::string name = wanted;
    std::size_t& count = used_[wanted];
    while (count++ > 0 && !used_.try_emplace(name = wanted + "." + std::to_string(count), 1).second) {
    }
    return name;
  }

 private:
  std::map<std::string, std::size_t> used_;  // and how often
};

}  // namespace

Result<std::string> write_bundle(profile::Profile& profile, std::string_view name) {
  profile.put_waits_on_stacks();
  profile.put_tags_into_markers();
  ZipWriter zip(profile.start_realtime_ns);
  PLIMSOLL_TRY(zip.add("README.txt", instructions(profile, name)));
  PLIMSOLL_TRY(zip.add("profile.json", write(profile)));
  Names names;
  for (const profile::Source& source : profile.sources)
    PLIMSOLL_TRY(zip.add(names.name("sources", source.file), source.text));
  for (const profile::Attachment& attachment : profile.attachments)
    PLIMSOLL_TRY(zip.add(names.name("attached", attachment.name), attachment.bytes));
  return zip.finish();
}

}  // namespace plimsoll::formats::firefox
