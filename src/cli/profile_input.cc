#include "cli/profile_input.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "cli/children.h"
#include "cli/units.h"
#include "profile/join.h"
#include "profile/tasks.h"

namespace plimsoll::cli {
namespace {

bool has_process(const profile::Profile& profile, std::int64_t pid) {
  return std::any_of(profile.processes.begin(), profile.processes.end(),
                     [&](const profile::Process& process) { return process.pid == pid; });
}

// The monotonic clock starts anew with the machine, and the time of day may be set.
bool is_earlier(const profile::Profile& child, const profile::Profile& parent) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return child.start_monotonic_ns < parent.start_monotonic_ns ||
         child.start_realtime_ns < parent.start_realtime_ns - kSecond;
}

}  // namespace

void ProfileInput::add_arguments(CLI::App& app) {
  app.add_option("FILE", path_, "The profile; - reads standard input")->required()->type_name("");
  app.add_flag("--children", with_children_, "With the profiles of child processes that lie beside FILE, as one");
}

void ProfileInput::add_tasks_flag(CLI::App& app) {
  app.add_flag(
      "--tasks", with_tasks_,
      "Of run --tasks where it is not told who awaits them: the tasks that made what runs, not the event loop");
}

Result<Input> ProfileInput::read(Console& console) const {
  if (with_children_ && path_ == "-")
    return Error{ErrorKind::kUsage, "standard input has no child processes' profiles beside it: give a file's name"};
  Result<Input> input = console.read_profile(path_);
  if (!input.ok()) return input;
  if (with_children_) join_children(input.value(), console);
  if (with_tasks_) profile::put_tasks_on_stacks(input.value().profile);
  return input;
}

void ProfileInput::join_children(Input& input, Console& console) const {
  const std::vector<std::string> children = profiles_of_children(path_);
  if (const std::size_t own = input.profile.processes.size(); children.empty() && own > 1)
    console.notice(fmt::format("{} has {} processes in itself: no more lie beside it", path_, own));
  else if (children.empty())
    console.notice(fmt::format("no child process has a profile beside {}", path_));
  std::size_t earlier = 0, others = 0;
  for (const std::string& child : children) {
    Result<Input> more = console.read_profile(child);
    if (more.ok() && !has_process(more.value().profile, pid_of_child(child))) {
      ++others;
      continue;
    }
    if (more.ok() && is_earlier(more.value().profile, input.profile)) {
      ++earlier;
      continue;
    }
    const Status joined = more.ok() ? join(input.profile, std::move(more.value().profile)) : Status(more.error());
    if (joined.ok())
      input.file_bytes += more.value().file_bytes;
    else
      console.notice(fmt::format("left out {}: {}", child, joined.error().message));
  }
  if (earlier > 0)
    console.notice(fmt::format("left out {} of an earlier recording of that name", plural(earlier, "profile")));
  if (others > 0)
    console.notice(fmt::format("left out {} of another process than the name says: of no child of this program",
                               plural(others, "profile")));
}

}  // namespace plimsoll::cli
