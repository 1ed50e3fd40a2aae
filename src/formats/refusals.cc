// formats/refusals.cc: signatures, and what to say.
#include "formats/refusals.h"

#include <algorithm>
#include <string>

#include "formats/pprof/reader.h"
#include "heap/snapshot_format.h"

namespace plimsoll::formats {
namespace {

constexpr std::string_view kPerfData = "PERFILE2";
constexpr std::string_view kElf =
    "\x7f"
    "ELF";

// What profiling.sampling leaves of a file that it did not finish: room for the header, then compressed samples.
bool is_unfinished_tachyon(std::string_view bytes) {
  constexpr std::size_t kHeaderBytes = 64;
  constexpr std::string_view kZstd("\x28\xB5\x2F\xFD", 4);
  const std::string_view header = bytes.substr(0, kHeaderBytes);
  return header.size() == kHeaderBytes && std::all_of(header.begin(), header.end(), [](char c) { return c == 0; }) &&
         bytes.substr(kHeaderBytes).starts_with(kZstd);
}

Error because(std::string_view what, std::string_view why) {
  return {ErrorKind::kUnsupported, std::string(what) + std::string(why)};
}

}  // namespace

std::optional<Error> refusal(std::string_view bytes) {
  if (bytes.starts_with(kPerfData))
    return because("a perf.data file", ": give the text that perf script -i FILE prints of it");
  if (bytes.starts_with(kElf)) return because("a program, a library or a core file", ", and no profile");
  if (bytes.starts_with(heap::file::kMagic))
    return because("a snapshot of a heap", ": plimsoll heap show FILE reads it");
  if (is_unfinished_tachyon(bytes))
    return because("a binary profile of profiling.sampling that was never finished",
                   ": the names of its functions were to be written at its end");
  if (pprof::ends_early(bytes)) return Error{ErrorKind::kBadInput, std::string(pprof::kEndsEarly)};
  return std::nullopt;
}

}  // namespace plimsoll::formats
