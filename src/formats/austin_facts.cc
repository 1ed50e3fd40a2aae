// formats/austin_facts.cc: names of Austin's -> names of ours.
#include "formats/austin_facts.h"

#include <algorithm>
#include <optional>
#include <string>

#include "formats/foreign.h"
#include "formats/text_lines.h"

namespace plimsoll::formats {

ForeignFrame austin_frame(ForeignFrame frame) {
  if (!frame.file.starts_with("native@")) return frame;
  frame.file = {};
  frame.line = frame.column = 0;
  frame.kind = profile::FunctionKind::kNative;
  return frame;
}

void AustinFacts::take(std::string_view name, std::string_view value, profile::Profile& profile) {
  constexpr std::int64_t kSecondUs = 1'000'000;
  const std::int64_t number = integer(value).value_or(0);
  if (name == "austin") {
    profile.set_meta("engine", "austin " + std::string(value));
  } else if (name == "python") {
    profile.set_meta("python", value);
  } else if (name == "mode") {
    is_full_ = value == "full";
    has_time_ = value != "memory";
    profile.set_meta("mode", is_full_ ? "wall" : value);
  } else if (name == "interval") {
    if (number > 0 && number <= kSecondUs) profile.set_meta("rate_hz", std::to_string(kSecondUs / number));
  } else if (name == "duration") {
    duration_us_ = number;
  } else if (name == "errors" || name == "saturation" || name == "sampling" || name == "gc") {
    profile.set_meta("austin." + std::string(name), value);
  }
}

void AustinFacts::finish(profile::Profile& profile) const {
  profile.end_ns = std::max(profile.end_ns, nanoseconds_of(static_cast<double>(duration_us_), kMicrosecond));
  profile.set_meta("weights", "measured: the time since the sample before");
}

}  // namespace plimsoll::formats
