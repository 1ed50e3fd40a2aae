// cli/console.h: what the commands use of the outside world. Tests put a fake in its place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/terminal.h"
#include "profile/profile.h"

namespace plimsoll::cli {

// A profile that was read, and how many bytes it took.
struct Input {
  profile::Profile profile;
  std::uint64_t file_bytes = 0;
};

// The outside world as a command sees it.
class Console {
 public:
  virtual ~Console() = default;
  // Data, to standard output. A reader that has seen enough (| head) is no error; the rest is dropped.
  virtual Status print(std::string_view data) = 0;
  // A line for the person, to standard error; "plimsoll: " is put before it.
  virtual void notice(std::string_view line) = 0;
  // The profile in a file, or in standard input for "-". A file that is missing is bad input.
  virtual Result<Input> read_profile(const std::string& path) = 0;
  // The bytes of a file that is no profile, or of standard input, unpacked if they are gzipped.
  virtual Result<std::string> read_file(const std::string& path) = 0;
  [[nodiscard]] virtual Environment environment() const = 0;
};

// The console of this process.
class ProcessConsole final : public Console {
 public:
  Status print(std::string_view data) override;
  void notice(std::string_view line) override;
  Result<Input> read_profile(const std::string& path) override;
  Result<std::string> read_file(const std::string& path) override;
  [[nodiscard]] Environment environment() const override { return process_environment(); }
};

}  // namespace plimsoll::cli
