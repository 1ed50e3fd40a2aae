// formats/foreign_readers.cc: the list of readers; a new one is entered here.
#include "formats/foreign_readers.h"

#include "formats/chrometrace/reader.h"
#include "formats/collapsed/reader.h"
#include "formats/cpuprofile/reader.h"
#include "formats/firefox/reader.h"
#include "formats/mojo/reader.h"
#include "formats/perf/reader.h"
#include "formats/pprof/reader.h"
#include "formats/pyinstrument/reader.h"
#include "formats/speedscope/reader.h"
#include "formats/tachyon/reader.h"
#include "formats/vmprof/reader.h"

namespace plimsoll::formats {

std::vector<Reader> foreign_readers() {
  return {
      {"vmprof", "profiles of vmprof, on CPython and PyPy", vmprof::is_vmprof, vmprof::read},
      {"speedscope", "speedscope.app's JSON", speedscope::is_speedscope, speedscope::read},
      {"firefox", "the Firefox Profiler's processed JSON and JSLB", firefox::is_firefox, firefox::read},
      {"pprof", "profile.proto, of pprof and many others", pprof::is_pprof, pprof::read},
      {"cpuprofile", "V8's, from Chrome's developer tools and Node", cpuprofile::is_cpuprofile, cpuprofile::read},
      {"chrome trace", "Chrome's Trace Event Format, also viztracer's", chrometrace::is_chrome_trace,
       chrometrace::read},
      {"pyinstrument", "pyinstrument's sessions (.pyisession)", pyinstrument::is_pyinstrument, pyinstrument::read},
      {"mojo", "Austin's binary files", mojo::is_mojo, mojo::read},
      {"profiling.sampling", "binary profiles of CPython 3.15's profiling.sampling", tachyon::is_tachyon,
       tachyon::read},
      {"perf script", "what perf script prints", perf::is_perf_script, perf::read},
      {"collapsed", "collapsed stacks, also Austin's", collapsed::is_collapsed, collapsed::read},
  };
}

}  // namespace plimsoll::formats
