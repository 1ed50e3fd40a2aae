// formats/speedscope/reader.cc: frames, then sampled and evented profiles.
#include "formats/speedscope/reader.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "formats/foreign.h"
#include "formats/json_values.h"

namespace plimsoll::formats::speedscope {
namespace {

namespace json = boost::json;

// What a unit is in nanoseconds; none for those that are no time.
std::optional<double> unit_ns(std::string_view unit) {
  if (unit == "nanoseconds") return 1;
  if (unit == "microseconds") return 1e3;
  if (unit == "milliseconds" || unit == "none") return 1e6;
  if (unit == "seconds") return 1e9;
  return std::nullopt;
}

// Fills a Profile from a file.
class Reader {
 public:
  Result<profile::Profile> read(const json::value& file) {
    const std::string_view exporter = text_member(&file, "exporter");
    has_first_lines_ = exporter.starts_with("plimsoll@") || exporter == "pyinstrument";
    if (const json::array* frames = array_member(member(&file, "shared"), "frames"))
      for (const json::value& frame : *frames) frames_.push_back(add_frame(frame));
    const json::array* profiles = array_member(&file, "profiles");
    if (profiles == nullptr) return Error{ErrorKind::kBadInput, "a speedscope file without profiles"};
    for (const json::value& profile : *profiles)
      if (array_member(&profile, "events") != nullptr)
        zero_ = std::min(zero_.value_or(start_of(profile)), start_of(profile));
    for (const json::value& profile : *profiles) add_profile(profile);
    if (!zero_) out_.profile.set_meta("times", "assumed: one stack after the other");
    if (profiles_without_time_ > 0 && profiles_without_time_ == profiles->size())
      return Error{ErrorKind::kUnsupported, "a speedscope file of bytes: only profiles of time can be read"};
    if (const std::string_view name = text_member(&file, "name"); !name.empty()) out_.profile.set_meta("argv", name);
    return out_.take();
  }

 private:
  // What a frame's line is, the format leaves open. Tools that have a frame for each line, as py-spy does, mean the one
  // that ran.
  FrameId add_frame(const json::value& frame) {
    const std::int64_t line = integer_of(member(&frame, "line")).value_or(0);
    return out_.frame({.name = text_member(&frame, "name"),
                       .file = text_member(&frame, "file"),
                       .line = has_first_lines_ ? 0 : line,
                       .column = integer_of(member(&frame, "col")).value_or(0),
                       .first_line = has_first_lines_ ? line : 0});
  }

  void add_profile(const json::value& profile) {
    const std::string_view unit = text_member(&profile, "unit");
    const std::optional<double> ns = unit_ns(unit);
    if (!ns) {
      ++profiles_without_time_;
      return;
    }
    if (unit == "none") out_.profile.set_meta("weights", "assumed: a sample is a millisecond");
    unit_ns_ = *ns;
    thread_ = out_.thread(std::to_string(number_++), text_member(&profile, "name"));
    if (const json::array* events = array_member(&profile, "events"))
      add_events(*events);
    else
      add_samples(array_member(&profile, "samples"), array_member(&profile, "weights"));
  }

  // Profiles of one file have one clock.
  static double start_of(const json::value& profile) {
    double start = number_member(&profile, "startValue").value_or(std::numeric_limits<double>::max());
    if (const json::array* events = array_member(&profile, "events"))
      for (const json::value& event : *events) start = std::min(start, number_member(&event, "at").value_or(start));
    return start;
  }

  void add_samples(const json::array* samples, const json::array* weights) {
    if (samples == nullptr) return;
    for (std::size_t row = 0; row < samples->size(); ++row) {
      StackId stack;
      if (const json::array* frames = (*samples)[row].if_array())
        for (const json::value& frame : *frames) stack = push(stack, &frame);
      const double weight = number_of(element(weights, row)).value_or(0);
      out_.sample(thread_, stack, weight_of(weight, unit_ns_));
    }
  }
  StackId push(StackId stack, const json::value* frame) {
    const std::optional<std::size_t> index = index_of(frame, frames_.size());
    if (!index) out_.miss(kMissingFrames);
    return index ? out_.push(stack, frames_[*index]) : stack;
  }

  // Calls and returns: between two of them the stack stays as it is.
  void add_events(const json::array& events) {
    std::vector<StackId> stacks{StackId{}};
    std::optional<double> last;
    for (const json::value& event : events) {
      const std::optional<double> at = number_member(&event, "at");
      if (!at) continue;
      if (last && *at > *last && !stacks.back().is_none())
        out_.sample_at(nanoseconds_of(*at - *zero_, unit_ns_), thread_, stacks.back(), weight_of(*at - *last, unit_ns_),
                       Activity::kRunning);
      last = at;
      if (text_member(&event, "type") == "O")
        stacks.push_back(push(stacks.back(), member(&event, "frame")));
      else if (stacks.size() > 1)
        stacks.pop_back();
    }
  }

  ForeignProfile out_{"speedscope"};
  std::vector<FrameId> frames_;
  bool has_first_lines_ = false;
  std::optional<double> zero_;  // of all evented profiles
  double unit_ns_ = 1;
  ThreadId thread_;
  std::size_t number_ = 0;
  std::size_t profiles_without_time_ = 0;
};

}  // namespace

bool is_speedscope(std::string_view bytes) {
  return is_json_with(bytes, "https://www.speedscope.app/file-format-schema.json");
}

Result<profile::Profile> read(std::string_view bytes) { return read_json_with<Reader>(bytes); }

}  // namespace plimsoll::formats::speedscope
