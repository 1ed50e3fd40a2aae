// cli/run_output.h: the files of a run: where the program records, and what its user gets.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/console.h"
#include "cli/run_report.h"
#include "cli/run_settings.h"
#include "formats/registry.h"

namespace plimsoll::cli {

// A file, or none, as it was: to tell later whether somebody has written it since.
class FileBefore {
 public:
  explicit FileBefore(std::string path);
  // Whether there is a file now that is another one, or has other bytes. A pipe or a device does not show it, and
  // counts.
  [[nodiscard]] bool was_written() const;

 private:
  // What is another value where the file has been written: device, inode, size, time of the last change.
  using Facts = std::array<std::uint64_t, 4>;
  static std::optional<Facts> facts_of(const std::string& path);

  std::string path_;
  std::optional<Facts> facts_;
};

// Where the program records, and what becomes of it. A profile in another format is made of a recording that lies
// beside it meanwhile, under a name that nobody else has.
class RunOutput {
 public:
  // By -o and -f, or the name's ending; without a name, after the program. Errors, before the program has started: a
  // name that fits no format, a file that is the program, a directory that takes no files.
  static Result<RunOutput> choose(const RunSettings& settings, const std::vector<std::string>& program);

  RunOutput(RunOutput&& other) noexcept;
  RunOutput& operator=(RunOutput&&) = delete;
  RunOutput(const RunOutput&) = delete;
  RunOutput& operator=(const RunOutput&) = delete;
  // Removes a recording between that has come to nothing, and a name that was taken for one.
  ~RunOutput();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& plim() const { return plim_; }
  // For the program, which may go to another directory. An error if it is relative and ours has been removed.
  [[nodiscard]] Result<std::string> absolute_plim() const;
  [[nodiscard]] bool is_plim() const { return !writer_.has_value(); }
  // Of the other format; only if it is one.
  [[nodiscard]] const formats::Writer& writer() const { return *writer_; }
  // Writes the recording in the other format, with those of child processes since then in it, and removes what it was
  // made of. Notices say what has become of it; quiet: only what went wrong.
  enum class Words : std::uint8_t { kAll, kQuiet };
  void convert(Children children, std::int64_t began_realtime_ns, Words words, Console& console) const;
  // Whether the program has recorded something.
  [[nodiscard]] bool was_recorded() const { return before_.was_written(); }
  // The words for when it has not.
  [[nodiscard]] std::string nothing_recorded() const;

 private:
  static Result<RunOutput> make(const std::string& path, std::optional<formats::Writer> writer, std::string taken);
  RunOutput(std::string path, std::string plim, std::optional<formats::Writer> writer, std::string taken);

  std::string path_, plim_;
  std::string taken_;  // a file that was made to have its name
  std::optional<formats::Writer> writer_;
  FileBefore before_;
};

}  // namespace plimsoll::cli
