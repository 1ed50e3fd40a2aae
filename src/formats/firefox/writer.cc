// formats/firefox/writer.cc: the members of the file, in order.
#include "formats/firefox/writer.h"

#include "formats/firefox/counters.h"
#include "formats/firefox/file_layout.h"
#include "formats/firefox/markers.h"
#include "formats/firefox/meta.h"
#include "formats/firefox/shared_tables.h"
#include "formats/firefox/threads.h"
#include "formats/json.h"

namespace plimsoll::formats::firefox {

namespace {

void write_libraries(JsonWriter& json, const JitSymbols& jit) {
  json.column("libs", jit.libraries, [&](const std::string& name) {
    json.begin_object();
    json.member("arch", jit.machine);
    for (const std::string_view key : {"name", "path", "debugName", "debugPath"}) json.member(key, name);
    json.member("breakpadId", "000000000000000000000000000000000");
    json.key("codeId");
    json.null();
    json.end_object();
  });
}

std::string write_file(const FileLayout& layout) {
  const MarkerTypes marker_types(layout.profile);
  Texts texts;

  // What a sample takes, or nearly: a text that grows by doubling is copied again and again.
  constexpr std::size_t kSampleBytes = 32;
  std::string out;
  out.reserve(layout.profile.samples.size() * kSampleBytes);
  JsonWriter json(out);
  json.begin_object();
  write_meta(json, layout, marker_types);
  write_libraries(json, layout.jit);
  write_counters(json, layout);
  write_threads(json, layout, marker_types, texts);
  write_shared(json, layout, texts);
  json.end_object();
  return out;
}

}  // namespace

std::string write(const profile::Profile& profile) { return write_file(FileLayout(profile)); }

Result<std::string> write_jslb(const profile::Profile& profile) {
  Slabs slabs;
  const std::string root = write_file(FileLayout(profile, &slabs));
  return slabs.file(root);
}

}  // namespace plimsoll::formats::firefox
