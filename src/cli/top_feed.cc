#include "cli/top_feed.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "cli/units.h"
#include "os/os.h"

namespace plimsoll::cli {
namespace {

void raise_event(const UniqueFd& event) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event.get(), &one, sizeof one);
}

// False if the event came first.
bool wait_until(std::int64_t time_ns, int event) {
  while (true) {
    const std::int64_t left_ns = std::max<std::int64_t>(time_ns - monotonic_ns(), 0);
    const timespec left = timespec_of(left_ns);
    pollfd wait{event, POLLIN, 0};
    const int ready = ::ppoll(&wait, 1, &left, nullptr);
    if (ready > 0) return false;
    if (ready == 0) return true;
  }
}

profile::LiveWindowSettings window_settings(const remote::Target& target) {
  const auto pid = static_cast<std::int32_t>(target.pid);
  profile::LiveWindowSettings settings;
  settings.longest_ns = kTopWindows.back();
  settings.process = {pid, 0, os::command_line(target.pid)};
  settings.main_thread = Tid{pid};
  return settings;
}

}  // namespace

TopFeed::TopFeed(remote::Target target, const remote::SessionSettings& settings)
    : target_(std::move(target)),
      settings_(settings),
      window_(window_settings(target_)),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      ended_(::eventfd(0, EFD_CLOEXEC)),
      result_(remote::SessionResult{}) {
  facts_.pid = static_cast<std::int32_t>(target_.pid);
  facts_.command = os::command_line(target_.pid);
  facts_.python = target_.layout.version.text();
  facts_.directory = os::working_directory(target_.pid);
  facts_.rate_hz = settings_.rate_hz;
  if (const std::optional<os::Usage> usage = os::usage_of(target_.pid))
    cpu_ns_.emplace_back(monotonic_ns(), usage->cpu_ns);
  thread_ = std::thread([this] { look(); });
}

void TopFeed::look() {
  (void)window_.flush({monotonic_ns(), 0, {}}, capture::SampleSink::Ending::kOpen);
  result_ = remote::record(target_, settings_, window_, [this](std::int64_t time_ns) {
    note_cpu();
    return wait_until(time_ns, stop_.get());
  });
  raise_event(ended_);
}

void TopFeed::note_cpu() {
  constexpr std::int64_t kSoon = 100'000'000;  // the shortest window
  const std::int64_t now_ns = monotonic_ns();
  const std::lock_guard lock(cpu_mutex_);
  if (!cpu_ns_.empty() && now_ns - cpu_ns_.back().first < kSoon) return;
  if (const std::optional<os::Usage> usage = os::usage_of(target_.pid)) cpu_ns_.emplace_back(now_ns, usage->cpu_ns);
  while (!cpu_ns_.empty() && cpu_ns_.front().first < now_ns - kTopWindows.back()) cpu_ns_.pop_front();
}

Result<remote::SessionResult> TopFeed::stop() {
  raise_event(stop_);
  if (thread_.joinable()) thread_.join();
  return result_;
}

void TopFeed::begin_anew() {
  window_.begin_anew(monotonic_ns());
  const std::lock_guard lock(cpu_mutex_);
  cpu_ns_.clear();
}

std::optional<double> TopFeed::cpu_percent(const TopPicture& picture, std::int64_t now_ns) {
  // Of a process that has ended nothing but its samples is left.
  const std::int64_t length_ns = picture.live.profile.end_ns;
  if (!picture.usage) return percent_of(picture.live.profile.sampled_cpu_ns(), length_ns);
  const std::lock_guard lock(cpu_mutex_);
  cpu_ns_.emplace_back(now_ns, picture.usage->cpu_ns);
  const auto from = std::find_if(cpu_ns_.begin(), cpu_ns_.end(),
                                 [&](const auto& point) { return point.first >= now_ns - length_ns; });
  // (A picture is seldom made just where a window begins.)
  const auto& [from_ns, from_cpu_ns] = from == cpu_ns_.begin() || from->first < now_ns ? *from : *std::prev(from);
  if (from_ns >= now_ns) return std::nullopt;
  return percent_of(picture.usage->cpu_ns - from_cpu_ns, now_ns - from_ns);
}

TopPicture TopFeed::picture(std::int64_t window_ns) {
  TopPicture picture;
  picture.pid = facts_.pid;
  picture.command = facts_.command;
  picture.python = facts_.python;
  picture.directory = facts_.directory;
  picture.rate_hz = facts_.rate_hz;
  const std::int64_t now_ns = monotonic_ns();
  picture.live = window_.view(now_ns, window_ns);
  picture.usage = os::usage_of(target_.pid);
  picture.cpu_percent = cpu_percent(picture, now_ns);
  complete(picture);
  return picture;
}

}  // namespace plimsoll::cli
