#include "cli/pypy_files.h"

#include <fmt/format.h>
#include <glob.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "base/mapped_file.h"
#include "formats/input.h"
#include "formats/pypylog/reader.h"
#include "profile/plim_writer.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSamples = ".vmprof";
constexpr std::string_view kLog = ".jit";
constexpr std::string_view kSections = ".pypylog";
constexpr std::string_view kFact = "vmprof.plimsoll.";  // as the reader names what _pypy.py has put into the file

// The facts of the session, under the names that other recordings have them by.
void move_facts(profile::Profile& profile) {
  std::vector<std::pair<std::string, std::string>> facts;
  std::erase_if(profile.meta, [&](auto& entry) {
    if (!entry.first.starts_with(kFact)) return false;
    facts.emplace_back(entry.first.substr(kFact.size()), std::move(entry.second));
    return true;
  });
  for (const auto& [name, value] : facts) profile.set_meta(name, value);
  profile.set_meta("plimsoll", PLIMSOLL_VERSION);
  if (!profile.processes.empty() && profile.processes[0].name.empty())
    profile.processes[0].name = profile.meta_value("argv");
}

Status adopt(const std::string& plim) {
  const std::string samples = plim + std::string(kSamples);
  const std::string log = plim + std::string(kLog);
  Result<profile::Profile> profile = formats::read_profile_file(samples);
  if (!profile.ok()) return profile.error();
  move_facts(profile.value());
  std::error_code error;
  if (fs::exists(log, error)) {
    Result<formats::Gunzipped> bytes = formats::read_unpacked_file(log);
    if (!bytes.ok()) return bytes.error();
    profile.value().attachments.push_back({"jitlog", std::move(bytes.value().bytes)});
  }
  const std::string sections = pypy_log_path(plim);
  if (const Result<MappedFile> file = MappedFile::open(sections);
      file.ok() && !formats::pypylog::add_sections(profile.value(), file.value().view()))
    profile.value().set_meta("pypylog", "left out: it does not tell the time");
  PLIMSOLL_TRY(profile::write_plim_file(profile.value(), plim));
  for (const std::string& adopted : {samples, log, sections}) ::unlink(adopted.c_str());
  return Ok{};
}

}  // namespace

std::string pypy_log_path(const std::string& plim) { return plim + std::string(kSections); }

void adopt_pypy_files(const std::string& plim, Console& console) {
  const fs::path path(plim);
  const std::string children = (path.parent_path() / path.stem()).string() + ".[0-9]*" + path.extension().string();
  for (const std::string& pattern : {plim, children}) {
    glob_t found{};
    if (::glob((pattern + std::string(kSamples)).c_str(), 0, nullptr, &found) == 0) {
      for (std::size_t i = 0; i < found.gl_pathc; ++i) {
        const std::string_view samples(found.gl_pathv[i]);
        const Status adopted = adopt(std::string(samples.substr(0, samples.size() - kSamples.size())));
        if (!adopted.ok()) console.notice(adopted.error().message);
      }
    }
    ::globfree(&found);
  }
}

}  // namespace plimsoll::cli
