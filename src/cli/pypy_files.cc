#include "cli/pypy_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/file_bytes.h"
#include "cli/children.h"
#include "cli/source_text.h"
#include "formats/input.h"
#include "formats/pypylog/reader.h"
#include "formats/vmprof/reader.h"
#include "profile/plim_writer.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSamples = ".vmprof";
constexpr std::string_view kLog = ".jit";
constexpr std::string_view kSections = ".pypylog";
constexpr std::string_view kFact = "vmprof.plimsoll.";  // as the reader names what _pypy.py has put into the file

// The facts of the session, under the names that other recordings have them by; and which process it was.
void move_facts(profile::Profile& profile) {
  std::vector<std::pair<std::string, std::string>> facts;
  std::erase_if(profile.meta, [&](auto& entry) {
    if (!entry.first.starts_with(kFact)) return false;
    facts.emplace_back(entry.first.substr(kFact.size()), std::move(entry.second));
    return true;
  });
  for (const auto& [name, value] : facts) {
    if (profile.processes.empty() || (name != "pid" && name != "parent_pid")) {
      profile.set_meta(name, value);
      continue;
    }
    profile::Process& process = profile.processes[0];
    std::from_chars(value.data(), value.data() + value.size(), name == "pid" ? process.pid : process.parent_pid);
  }
  profile.set_meta("plimsoll", PLIMSOLL_VERSION);
  if (!profile.processes.empty() && profile.processes[0].name.empty())
    profile.processes[0].name = profile.meta_value("argv");
}

bool exists(const std::string& plim, std::string_view ending) {
  std::error_code none;
  return fs::exists(plim + std::string(ending), none);
}

os::Pid pid_in(const std::string& child) { return os::Pid{static_cast<std::int32_t>(pid_of_child(child))}; }

// How the CPU time of a profile, the time of its samples, becomes time since its start.
class TimeOfDay {
 public:
  TimeOfDay(const CpuClock& clock, const profile::Profile& profile)
      : clock_(clock),
        start_ns_(profile.start_realtime_ns),
        zero_ns_(clock.cpu_at(start_ns_)),
        used_ns_((profile.complete ? clock.cpu_at(start_ns_ + profile.end_ns) : clock.last_cpu_ns()) - zero_ns_) {
    const std::string_view shown = profile.meta_value(formats::vmprof::kClockFact);
    has_times_ = !shown.empty();
    if (has_times_)
      std::from_chars(shown.data(), shown.data() + shown.size(), zero_ns_);
    else if (profile.end_ns > 0)
      pace_ = static_cast<double>(used_ns_) / static_cast<double>(profile.end_ns);
  }
  // Whether samples tell what the clock showed. Else (PyPy 7.3) they are spread evenly over the profile, and the CPU
  // time is, too, as it made the ticks.
  [[nodiscard]] bool has_times() const { return has_times_; }
  [[nodiscard]] std::int64_t used_ns() const { return used_ns_; }
  // A shell between us and PyPy has used next to nothing.
  [[nodiscard]] bool can_be_of(const profile::Profile& profile) const {
    constexpr double kSlack = 1.05, kSlackNs = 50e6;
    return static_cast<double>(profile.sampled_ns()) <= static_cast<double>(used_ns_) * kSlack + kSlackNs;
  }
  [[nodiscard]] std::int64_t operator()(std::int64_t time_ns) const {
    const auto used_ns = static_cast<std::int64_t>(pace_ * static_cast<double>(time_ns));
    return std::max<std::int64_t>(clock_.time_of(zero_ns_ + used_ns) - start_ns_, 0);
  }

 private:
  const CpuClock& clock_;
  std::int64_t start_ns_, zero_ns_, used_ns_;
  double pace_ = 1;
  bool has_times_ = false;
};

// Puts samples where they were by the time of day, where the collector's and the JIT's sections are; and lets those
// that do not tell what they stand for stand for an equal share of the time used.
void place_by(const CpuClock& clock, profile::Profile& profile) {
  const TimeOfDay time_of(clock, profile);
  if (!time_of.can_be_of(profile)) return;
  profile::SampleTable& samples = profile.samples;
  const auto place = [&](std::int64_t& time_ns) {
    time_ns = time_of(time_ns);
    profile.end_ns = std::max(profile.end_ns, time_ns);
  };
  for (std::int64_t& time_ns : samples.time_ns) place(time_ns);
  for (profile::Counter& counter : profile.counters)
    for (std::int64_t& time_ns : counter.time_ns) place(time_ns);
  for (profile::Thread& thread : profile.threads) place(thread.end_ns);
  profile.process_cpu_ns = std::max<std::int64_t>(time_of.used_ns(), 0);
  profile.set_meta("times", time_of.has_times() ? "by the CPU clock, which was compared with the time of day"
                                                : "assumed: samples are spread evenly over the CPU time");
  if (time_of.has_times() || samples.size() == 0) return;
  const std::int64_t share_ns = profile.process_cpu_ns / static_cast<std::int64_t>(samples.size());
  for (profile::Thread& thread : profile.threads) thread.cpu_ns = 0;
  for (std::size_t row = 0; row < samples.size(); ++row) {
    samples.weight_ns[row] = share_ns;
    profile.threads[samples.thread[row].index()].cpu_ns += share_ns;
  }
  profile.set_meta("weights", "measured: an equal share of the CPU time");
}

Status adopt(const std::string& plim, const CpuClock* clock, PyPyRun::Sources sources) {
  const std::string samples = plim + std::string(kSamples);
  const std::string log = plim + std::string(kLog);
  Result<profile::Profile> profile = formats::read_profile_file(samples);
  if (!profile.ok()) return profile.error();
  move_facts(profile.value());
  if (clock != nullptr && profile.value().meta_value("mode") == "cpu") place_by(*clock, profile.value());
  std::erase_if(profile.value().meta, [](const auto& entry) { return entry.first == formats::vmprof::kClockFact; });
  if (exists(plim, kLog)) {
    Result<formats::Gunzipped> bytes = formats::read_unpacked_file(log);
    if (!bytes.ok()) return bytes.error();
    profile.value().attachments.push_back({"jitlog", std::move(bytes.value().bytes)});
  }
  const std::string sections = pypy_log_path(plim);
  if (const Result<FileBytes> file = FileBytes::read(sections);
      file.ok() && !formats::pypylog::add_sections(profile.value(), file.value().view()))
    profile.value().set_meta("pypylog", "left out: it does not tell the time");
  std::error_code none;
  if (sources == PyPyRun::Sources::kEmbed) embed_sources(profile.value(), fs::current_path(none).string());
  PLIMSOLL_TRY(profile::write_plim_file(profile.value(), plim));
  for (const std::string& adopted : {samples, log, sections}) ::unlink(adopted.c_str());
  return Ok{};
}

}  // namespace

std::string pypy_log_path(const std::string& plim) { return plim + std::string(kSections); }

void adopt_pypy_files(const std::string& plim, const PyPyRun& run, Console& console) {
  const auto adopt_with = [&](const std::string& path, os::Pid pid) {
    const auto clock = run.clocks.of.find(pid);
    const Status adopted = adopt(path, clock == run.clocks.of.end() ? nullptr : &clock->second, run.sources);
    if (!adopted.ok()) console.notice(adopted.error().message);
  };
  if (exists(plim, kSamples)) adopt_with(plim, run.clocks.program);
  for (const std::string& child : profiles_of_children(plim, kSamples)) adopt_with(child, pid_in(child));
  // Of processes that recorded nothing: their logs began before that was known.
  if (!exists(plim, kSamples)) ::unlink(pypy_log_path(plim).c_str());
  for (const std::string& child : profiles_of_children(plim, kSections))
    if (!exists(child, kSamples)) ::unlink((child + std::string(kSections)).c_str());
}

}  // namespace plimsoll::cli
