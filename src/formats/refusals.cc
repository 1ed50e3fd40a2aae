// formats/refusals.cc: signatures, and what to say.
#include "formats/refusals.h"

#include <algorithm>
#include <cctype>
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

// A dict whose first key is a tuple of three (file, line, function), as marshal writes it: with and without the mark
// that something refers to it.
bool is_cprofile(std::string_view bytes) {
  constexpr unsigned char kMark = 0x7f;
  const auto type = [&](std::size_t at) { return static_cast<char>(static_cast<unsigned char>(bytes[at]) & kMark); };
  return bytes.size() > 3 && type(0) == '{' && type(1) == ')' && bytes[2] == 3;
}

bool is_page(std::string_view bytes) {
  constexpr std::string_view kBeginning = "<!doctype html";
  const std::string_view text = bytes.substr(std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size()));
  return text.size() >= kBeginning.size() &&
         std::equal(kBeginning.begin(), kBeginning.end(), text.begin(),
                    [](char wanted, unsigned char c) { return wanted == static_cast<char>(std::tolower(c)); });
}

bool is_json_lines_of_tachyon(std::string_view bytes) {
  return bytes.starts_with(R"({"type":"meta")") &&
         bytes.substr(0, bytes.find('\n')).find(R"("sample_interval_usec")") != std::string_view::npos;
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
  if (is_json_lines_of_tachyon(bytes))
    return because("JSON lines of profiling.sampling",
                   ": they tell how often each line ran, and no stacks; --binary does");
  if (is_cprofile(bytes))
    return because("statistics of cProfile",
                   ": they have calls and times, and no stacks; python -m pstats FILE shows them");
  if (is_page(bytes)) return because("a page for a browser", ": give the recording that it was made of");
  if (pprof::ends_early(bytes)) return Error{ErrorKind::kBadInput, std::string(pprof::kEndsEarly)};
  return std::nullopt;
}

}  // namespace plimsoll::formats
