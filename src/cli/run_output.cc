#include "cli/run_output.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/temporary_name.h"
#include "base/unique_fd.h"
#include "base/write_file.h"
#include "cli/children.h"
#include "cli/native_frames.h"
#include "cli/output_path.h"
#include "profile/join.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOurs = ".plim";

// "app" for app.py, -m app.main and the like: the name that a profile is called after.
std::string name_of_program(const std::vector<std::string>& program) {
  if (program[0] == "-m" && program.size() > 1) return program[1].substr(program[1].rfind('.') + 1);
  if (program[0] == "-c") return "command";
  if (program[0] == "-") return "stdin";
  const fs::path path(program[0]);
  const std::string stem = path.stem().string();
  return stem == "__main__" ? path.parent_path().filename().string() : stem;
}

// The format to write; none for .plim. A name of any other ending is the user's affair, but not one that says .json.
Result<std::optional<formats::Writer>> writer_for(const RunSettings& settings) {
  using Chosen = std::optional<formats::Writer>;
  const std::string format = settings.format.value_or("");
  const std::string path = settings.output.value_or("");
  if (format == "plim" || (format.empty() && path.ends_with(kOurs))) return Chosen{};
  const Result<formats::Writer> writer = formats::find_writer(format, path);
  if (writer.ok()) return Chosen(writer.value());
  const bool is_foreign = path.ends_with(".json") || path.ends_with(".gz");
  if (!format.empty() || is_foreign) return writer.error();
  return Chosen{};
}

// A new, empty file beside `path`, or where temporary files are if that is no place for one.
Result<std::string> new_file_beside(const std::string& path) {
  std::error_code none;
  const bool is_file = !fs::exists(path, none) || fs::is_regular_file(path, none);
  std::string name = is_file ? path : (fs::temp_directory_path(none) / "plimsoll").string();
  name = temporary_name(name, kOurs);
  const UniqueFd fd(::mkstemps(name.data(), static_cast<int>(kOurs.size())));  // mode 0600
  if (!fd.is_open()) return system_error("cannot write " + path, errno);
  return name;
}

bool add_child(profile::Profile& all, const std::string& child, Console& console) {
  Result<profile::Profile> more = read_with_lines(child, console);
  const Status joined = more.ok() ? profile::join(all, more.take()) : Status(more.error());
  if (!joined.ok()) console.notice(fmt::format("left out {}: {}", child, joined.error().message));
  return joined.ok();
}

}  // namespace

FileBefore::FileBefore(std::string path) : path_(std::move(path)), facts_(facts_of(path_)) {}

std::optional<FileBefore::Facts> FileBefore::facts_of(const std::string& path) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  struct stat now {};
  if (::stat(path.c_str(), &now) != 0) return std::nullopt;
  return Facts{
      now.st_dev, now.st_ino, static_cast<std::uint64_t>(now.st_size),
      static_cast<std::uint64_t>(now.st_mtim.tv_sec) * kSecond + static_cast<std::uint64_t>(now.st_mtim.tv_nsec)};
}

bool FileBefore::was_written() const {
  const std::optional<Facts> now = facts_of(path_);
  std::error_code none;
  if (!now || fs::is_directory(path_, none)) return false;
  return !facts_ || *now != *facts_ || !fs::is_regular_file(path_, none);
}

Result<RunOutput> RunOutput::choose(const RunSettings& settings, const std::vector<std::string>& program) {
  Result<std::optional<formats::Writer>> writer = writer_for(settings);
  if (!writer.ok()) return writer.error();
  if (writer.value() && !writer.value()->has_time && !settings.alloc)
    return Error{ErrorKind::kUsage,
                 fmt::format("{} is of allocations, which are recorded with --alloc: add that", writer.value()->name)};
  std::string path = settings.output.value_or("");
  if (path.empty()) {
    const std::string name = name_of_program(program);
    const std::string_view ending = writer.value() ? writer.value()->extension : kOurs;
    path = take_profile_path(name.empty() ? "program" : name, ending);
    return make(path, writer.value(), path);
  }
  PLIMSOLL_TRY(check_recording_path(path));
  if (!check_not_input(path, program[0]).ok())
    return Error{ErrorKind::kUsage, fmt::format("{} is the program itself; name another file", path)};
  std::error_code none;
  if (writer.value() && fs::is_directory(path, none))
    return Error{ErrorKind::kUsage, fmt::format("{} is a directory; name a file in it", path)};
  return make(path, writer.value(), "");
}

Result<RunOutput> RunOutput::make(const std::string& path, std::optional<formats::Writer> writer, std::string taken) {
  RunOutput output(path, writer ? std::string{} : path, writer, std::move(taken));
  if (!writer) return output;
  Result<std::string> between = new_file_beside(path);
  if (!between.ok()) return between.error();
  output.plim_ = between.take();
  output.before_ = FileBefore(output.plim_);
  return output;
}

RunOutput::RunOutput(std::string path, std::string plim, std::optional<formats::Writer> writer, std::string taken)
    : path_(std::move(path)), plim_(std::move(plim)), taken_(std::move(taken)), writer_(writer), before_(plim_) {}

RunOutput::RunOutput(RunOutput&& other) noexcept
    : path_(std::move(other.path_)),
      plim_(std::exchange(other.plim_, {})),
      taken_(std::exchange(other.taken_, {})),
      writer_(other.writer_),
      before_(std::move(other.before_)) {}

RunOutput::~RunOutput() {
  if (writer_ && !plim_.empty() && !was_recorded()) ::unlink(plim_.c_str());
  std::error_code none;
  if (!taken_.empty() && fs::file_size(taken_, none) == 0) ::unlink(taken_.c_str());
}

Result<std::string> RunOutput::absolute_plim() const { return absolute_path(plim_); }

std::string RunOutput::nothing_recorded() const {
  std::error_code none;
  if (!is_plim() || !taken_.empty() || !fs::exists(plim_, none) || fs::is_directory(plim_, none))
    return "nothing was recorded";
  return fmt::format("nothing was recorded; {} is of an earlier recording", path_);
}

void RunOutput::convert(Children children, std::int64_t began_realtime_ns, Words words, Console& console) const {
  if (words == Words::kAll) report_recording(plim_, "", children, console);
  Result<profile::Profile> profile = read_with_lines(plim_, console);
  if (!profile.ok()) {
    if (words == Words::kQuiet) report_recording(plim_, "", children, console);  // which says why
    return;
  }
  std::vector<std::string> used{plim_};
  if (children == Children::kRecorded)
    for (const std::string& child : profiles_of_children_since(plim_, began_realtime_ns))
      if (add_child(profile.value(), child, console)) used.push_back(child);
  const Result<std::string> bytes = formats::write_as(*writer_, profile.value(), path_);
  const Status written = bytes.ok() ? write_file(path_, bytes.value()) : Status(bytes.error());
  if (!written.ok()) {
    console.notice(written.error().message);
    console.notice(fmt::format("the recording itself is in {}", plim_));
    return;
  }
  for (const std::string& file : used) ::unlink(file.c_str());
  if (words == Words::kAll) console.notice(fmt::format("wrote {} ({})", path_, writer_->name));
}

}  // namespace plimsoll::cli
