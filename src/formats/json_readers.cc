// formats/json_readers.cc: the list; a new one is entered here.
#include "formats/json_readers.h"

#include "formats/chrometrace/reader.h"
#include "formats/cpuprofile/reader.h"
#include "formats/firefox/reader.h"
#include "formats/pyinstrument/reader.h"
#include "formats/speedscope/reader.h"

namespace plimsoll::formats {

std::vector<Reader> json_readers() {
  return {
      {"speedscope", "speedscope.app's JSON", speedscope::is_speedscope, speedscope::read},
      {"firefox", "the Firefox Profiler's processed JSON and JSLB", firefox::is_firefox, firefox::read},
      {"cpuprofile", "V8's, from Chrome's developer tools and Node", cpuprofile::is_cpuprofile, cpuprofile::read},
      {"chrome trace", "Chrome's Trace Event Format, also viztracer's", chrometrace::is_chrome_trace,
       chrometrace::read},
      {"pyinstrument", "pyinstrument's sessions (.pyisession)", pyinstrument::is_pyinstrument, pyinstrument::read},
  };
}

}  // namespace plimsoll::formats
