#include "debuginfo/add_lines.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "profile/replace_stacks.h"

namespace plimsoll::debuginfo {
namespace {

using profile::Frame;
using profile::Function;
using profile::Profile;

class Adder {
 public:
  Adder(Profile& profile, const Limits& limits) : profile_(profile), limits_(limits) {}

  LinesReport run() {
    std::map<StringId, std::vector<FrameId>> by_file;
    frames_.resize(profile_.frames.size());
    for (std::size_t i = 0; i < frames_.size(); ++i) {
      const Frame& frame = profile_.frames[FrameId{i}];
      frames_[i] = {FrameId{i}};
      const Function& function = profile_.functions[frame.function];
      const bool is_open = function.kind == profile::FunctionKind::kNative && frame.address != 0 && frame.line == 0 &&
                           frame.inline_depth == 0 && !function.file.is_none();
      if (is_open) by_file[function.file].push_back(FrameId{i});
    }
    for (const auto& [file, frames] : by_file) resolve(file, frames);
    report_.is_late = monotonic_ns() > limits_.deadline_ns;
    if (report_.resolved != 0) put_into_stacks();
    return std::move(report_);
  }

 private:
  void resolve(StringId file, const std::vector<FrameId>& frames) {
    report_.frames += frames.size();
    const std::string path(profile_.strings[file]);
    if (path.front() != '/') return;  // "[vdso]"
    std::string build_id;
    if (!find_build_id(path, build_id))
      return report_.problems.push_back(path +
                                        ": was several files one after another, which of them a frame is of is "
                                        "not known");
    if (build_id.empty() && was_written_since(path))
      return report_.problems.push_back(
          path + ": has been written since it was recorded, and no build-id tells whether it is the same");
    const Result<std::unique_ptr<LineResolver>> opened = LineResolver::open(path, build_id, limits_);
    if (!opened.ok()) return report_.problems.push_back(opened.error().message);
    for (const FrameId id : frames) {
      const std::vector<Place> places = opened.value()->find(profile_.frames[id].address);
      if (places.empty()) continue;
      ++report_.resolved;
      frames_[id.index()].clear();
      for (std::size_t depth = 0; depth < places.size(); ++depth)
        frames_[id.index()].push_back(frame_of(id, places[depth], depth));
    }
  }

  FrameId frame_of(FrameId id, const Place& place, std::size_t depth) {
    Frame frame = profile_.frames[id];  // copies: interning may move the tables
    Function function = profile_.functions[frame.function];
    if (!place.file.empty()) function.source = profile_.strings.intern(place.file);
    // The recorded name is the symbol's; one that was made up of an address gives way.
    const bool has_name = depth == 0 && profile_.strings[function.name].find("+0x") == std::string_view::npos;
    if (!has_name && !place.function.empty()) function.name = profile_.strings.intern(place.function);
    if (depth > 0 && place.function.empty()) function.name = profile_.strings.intern("[inlined]");
    frame.function = profile_.functions.intern(function);
    frame.line = place.line;
    frame.inline_depth = static_cast<std::uint8_t>(std::min<std::size_t>(depth, UINT8_MAX));
    return profile_.frames.intern(frame);
  }

  // Empty if it is not known. False if there was more than one, as where a library was built anew between two
  // processes.
  bool find_build_id(const std::string& path, std::string& out) const {
    bool is_found = false;
    for (const profile::Module& module : profile_.modules) {
      if (module.file != path) continue;
      if (std::exchange(is_found, true) && module.build_id != out) return false;
      out = module.build_id;
    }
    return true;
  }

  // (By when it was changed here: copies keep the time at which it was made.)
  [[nodiscard]] bool was_written_since(const std::string& path) const {
    constexpr std::int64_t kSecond = 1'000'000'000;
    struct stat facts {};
    if (profile_.start_realtime_ns == 0 || ::stat(path.c_str(), &facts) != 0) return false;
    const std::int64_t changed_ns = facts.st_ctim.tv_sec * kSecond + facts.st_ctim.tv_nsec;
    return changed_ns > profile_.start_realtime_ns + profile_.end_ns;
  }

  void put_into_stacks() {
    profile::replace_frames(profile_, [&](StackId parent, FrameId frame) {
      for (const FrameId each : frames_[frame.index()])
        parent = profile_.stacks.intern(profile::StackNode{parent, each});
      return parent;
    });
  }

  Profile& profile_;
  const Limits limits_;
  std::vector<std::vector<FrameId>> frames_;  // what becomes of each, outermost first
  LinesReport report_;
};

}  // namespace

LinesReport add_lines(Profile& profile, const Limits& limits) { return Adder(profile, limits).run(); }

LinesReport add_lines(Profile& profile) {
  constexpr std::int64_t kMostTime = 10'000'000'000;
  Limits limits;
  limits.deadline_ns = monotonic_ns() + kMostTime;
  return add_lines(profile, limits);
}

}  // namespace plimsoll::debuginfo
