// formats/pyinstrument/reader.cc: records of a stack and its seconds, one after the other.
#include "formats/pyinstrument/reader.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "formats/foreign.h"
#include "formats/json_values.h"
#include "formats/text_lines.h"

namespace plimsoll::formats::pyinstrument {
namespace {

namespace json = boost::json;
using profile::FunctionKind;

constexpr double kSecond = 1e9;
constexpr char kAttribute = '\x01';
constexpr std::string_view kThreadFile = "<thread>";

// What stands before the mark; `text` is moved behind it.
std::string_view take_until(std::string_view& text, char mark) {
  const std::string_view part = text.substr(0, text.find(mark));
  text.remove_prefix(std::min(text.size(), part.size() + 1));
  return part;
}

// "function\0file\0first line", then attributes: a letter and a value, each behind a \x01.
struct FrameInfo {
  std::string_view function, file, number;
  std::string_view class_name;
  std::int64_t line = 0;
};
FrameInfo parse(std::string_view text) {
  FrameInfo info;
  std::string_view identifier = take_until(text, kAttribute);
  info.function = take_until(identifier, '\0');
  info.file = take_until(identifier, '\0');
  info.number = identifier;
  while (!text.empty()) {
    const std::string_view attribute = take_until(text, kAttribute);
    if (attribute.starts_with('c')) info.class_name = attribute.substr(1);
    if (attribute.starts_with('l')) info.line = integer(attribute.substr(1)).value_or(0);
  }
  return info;
}

// Fills a Profile from a session.
class Reader {
 public:
  Result<profile::Profile> read(const json::value& file) {
    const json::array* records = array_member(&file, "frame_records");
    if (records == nullptr) return Error{ErrorKind::kBadInput, "a pyinstrument session without frame_records"};
    read_facts(file);
    for (const json::value& record : *records) add(record.if_array());
    profile::Profile& profile = out_.profile;
    profile.end_ns = std::max(profile.end_ns, nanoseconds_of(number_member(&file, "duration").value_or(0), kSecond));
    return out_.take();
  }

 private:
  void read_facts(const json::value& file) {
    profile::Profile& profile = out_.profile;
    profile.start_realtime_ns = nanoseconds_of(number_member(&file, "start_time").value_or(0), kSecond);
    profile.set_meta("engine", "pyinstrument");
    profile.set_meta("mode", "wall");
    profile.set_meta("weights", "measured: the time since the sample before");
    std::string_view target = text_member(&file, "target_description");
    if (target.empty()) target = text_member(&file, "program");  // before pyinstrument 4.6
    constexpr std::string_view kProgram = "Program: ";
    if (target.starts_with(kProgram)) target.remove_prefix(kProgram.size());
    if (!target.empty()) profile.set_meta("argv", target);
    const double interval = number_member(&file, "min_interval").value_or(0);
    if (interval > 0 && interval < 1e3) profile.set_meta("rate_hz", std::to_string(std::llround(1 / interval)));
  }

  void add(const json::array* record) {
    const json::value* frames = element(record, 0);
    if (frames == nullptr || !frames->is_array()) return;
    const std::int64_t weight = nanoseconds_of(number_of(element(record, 1)).value_or(0), kSecond);
    std::optional<ThreadId> thread;
    StackId stack;
    for (const json::value& frame : frames->get_array()) {
      const FrameInfo info = parse(text_of(&frame));
      if (info.file == kThreadFile)
        thread = out_.thread(std::string(info.number), info.function);
      else
        stack = out_.push(stack, this->frame(info));
    }
    if (!thread) thread = out_.thread("", "");
    out_.sample(*thread, stack, weight);
  }

  FrameId frame(const FrameInfo& info) {
    const bool is_synthetic = info.file.empty() && info.function.starts_with('[');
    std::string name(info.function);
    if (!info.class_name.empty()) name = std::string(info.class_name) + "." + name;
    return out_.frame({.name = name,
                       .file = info.file,
                       .line = info.line,
                       .first_line = integer(info.number).value_or(0),
                       .kind = is_synthetic ? FunctionKind::kSynthetic : FunctionKind::kPython});
  }

  ForeignProfile out_{"pyinstrument"};
};

}  // namespace

bool is_pyinstrument(std::string_view bytes) { return is_json_with(bytes, "\"start_call_stack\""); }

Result<profile::Profile> read(std::string_view bytes) { return read_json_with<Reader>(bytes); }

}  // namespace plimsoll::formats::pyinstrument
