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

std::string write(const profile::Profile& profile) {
  const FileLayout layout(profile);
  const MarkerTypes marker_types(profile);
  Texts texts;

  std::string out;
  JsonWriter json(out);
  json.begin_object();
  write_meta(json, layout, marker_types);
  json.key("libs");
  json.begin_array();
  json.end_array();
  write_counters(json, layout);
  write_threads(json, layout, marker_types, texts);
  write_shared(json, layout, texts);
  json.end_object();
  return out;
}

}  // namespace plimsoll::formats::firefox
