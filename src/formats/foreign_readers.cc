// formats/foreign_readers.cc: the list of readers; a new one is entered here, or in json_readers.cc.
#include "formats/foreign_readers.h"

#include "formats/collapsed/reader.h"
#include "formats/json_readers.h"
#include "formats/memray/reader.h"
#include "formats/mojo/reader.h"
#include "formats/perf/reader.h"
#include "formats/pprof/reader.h"
#include "formats/pypylog/reader.h"
#include "formats/tachyon/reader.h"
#include "formats/vmprof/reader.h"

namespace plimsoll::formats {

std::vector<Reader> foreign_readers() {
  std::vector<Reader> all = json_readers();
  all.insert(all.end(), {
                            {"vmprof", "profiles of vmprof, on CPython and PyPy", vmprof::is_vmprof, vmprof::read,
                             vmprof::read_file},
                            {"pprof", "profile.proto, of pprof and many others", pprof::is_pprof, pprof::read},
                            {"memray", "memray's files", memray::is_memray, memray::read},
                            {"mojo", "Austin's binary files", mojo::is_mojo, mojo::read},
                            {"profiling.sampling", "binary profiles of CPython 3.15's profiling.sampling",
                             tachyon::is_tachyon, tachyon::read},
                            {"pypylog", "PyPy's own log (PYPYLOG)", pypylog::is_pypylog, pypylog::read},
                            {"perf script", "what perf script prints", perf::is_perf_script, perf::read},
                            {"collapsed", "collapsed stacks, also Austin's", collapsed::is_collapsed, collapsed::read},
                        });
  return all;
}

}  // namespace plimsoll::formats
