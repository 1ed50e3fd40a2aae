// formats/pprof/reader.cc: messages into tables, then samples into rows.
#include "formats/pprof/reader.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <exception>
#include <optional>
#include <protozero/pbf_message.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/hexadecimal.h"
#include "formats/foreign.h"
#include "formats/pprof/fields.h"

namespace plimsoll::formats::pprof {
namespace {

using protozero::data_view;
using protozero::pbf_message;

// A kind of value.
struct ValueType {
  std::int64_t type = 0;
  std::int64_t unit = 0;
};

// A function at a line, of a location: the innermost first where calls are inlined.
struct Line {
  std::uint64_t function = 0;
  std::int64_t line = 0;
  std::int64_t column = 0;
};

// A place in code: without lines where nobody knew its functions.
struct Location {
  std::vector<Line> lines;
  std::uint64_t mapping = 0;
  std::uint64_t address = 0;
};

// A file that was loaded.
struct Mapping {
  std::uint64_t start = 0;
  std::uint64_t offset = 0;  // of the start, in the file
  std::int64_t file = 0;     // in the string table
};

// A function by texts of the string table.
struct FunctionRow {
  std::int64_t name = 0;
  std::int64_t file = 0;
  std::int64_t first_line = 0;
};

std::string_view view(data_view data) { return {data.data(), data.size()}; }

// A field as what it should be. protozero asserts that its wire type fits, which is for the caller to see to.
template <typename Message>
void expect(const Message& message, protozero::pbf_wire_type type) {
  if (message.wire_type() != type) throw protozero::unknown_pbf_wire_type_exception();
}
template <typename Message>
std::int64_t signed_field(Message& message) {
  expect(message, protozero::pbf_wire_type::varint);
  return message.get_int64();
}
template <typename Message>
std::uint64_t unsigned_field(Message& message) {
  expect(message, protozero::pbf_wire_type::varint);
  return message.get_uint64();
}
template <typename Message>
data_view bytes_field(Message& message) {
  expect(message, protozero::pbf_wire_type::length_delimited);
  return message.get_view();
}

double unit_ns(std::string_view unit) {
  if (unit == "nanoseconds") return 1;
  if (unit == "microseconds") return 1e3;
  if (unit == "milliseconds") return 1e6;
  if (unit == "seconds") return 1e9;
  return 0;
}

// Fills a Profile from a file. protozero throws where the bytes break the wire format.
class Reader {
 public:
  Result<profile::Profile> read(std::string_view bytes) {
    read_file(bytes);
    choose_value();
    if (unit_ns_ == 0 && lacks_texts_) return Error{ErrorKind::kBadInput, std::string(kEndsEarly)};
    if (unit_ns_ == 0)
      return Error{ErrorKind::kUnsupported, "a pprof file without a value of time: only profiles of time can be read"};
    // Each frame of a sample takes a byte or more; inlined calls are told once for many samples.
    constexpr std::size_t kAlways = std::size_t{1} << 20U, kMostOfAByte = 16;
    frames_left_ = kAlways + kMostOfAByte * bytes.size();
    for (const data_view sample : samples_) read_sample(sample);
    if (has_too_many_frames_)
      return Error{ErrorKind::kBadInput, "a pprof file whose stacks have more frames than it can have samples of"};
    tell_samples_apart();
    out_.profile.set_meta("times", "assumed: one stack after the other");
    set_period(out_.profile, static_cast<double>(period_) * unit_ns(text(period_type_.unit)));
    Result<profile::Profile> read = out_.take();
    if (read.ok() && lacks_texts_) read.value().complete = false;
    return read;
  }

 private:
  void read_file(std::string_view bytes) {
    pbf_message<ProfileField> file(bytes.data(), bytes.size());
    while (file.next()) {
      switch (file.tag()) {
        case ProfileField::kSampleType: types_.push_back(value_type(bytes_field(file))); break;
        case ProfileField::kSample: samples_.push_back(bytes_field(file)); break;
        case ProfileField::kMapping: read_mapping(bytes_field(file)); break;
        case ProfileField::kLocation: read_location(bytes_field(file)); break;
        case ProfileField::kFunction: read_function(bytes_field(file)); break;
        case ProfileField::kStringTable: strings_.push_back(view(bytes_field(file))); break;
        case ProfileField::kPeriodType: period_type_ = value_type(bytes_field(file)); break;
        case ProfileField::kPeriod: period_ = signed_field(file); break;
        case ProfileField::kTimeNanos: out_.profile.start_realtime_ns = time(signed_field(file)); break;
        case ProfileField::kDurationNanos: out_.profile.end_ns = time(signed_field(file)); break;
        default: file.skip();
      }
    }
  }
  static std::int64_t time(std::int64_t ns) {
    constexpr std::int64_t kLatest = 4'000'000'000'000'000'000;  // the year 2096
    return std::clamp<std::int64_t>(ns, 0, kLatest);
  }
  static ValueType value_type(data_view bytes) {
    ValueType type;
    pbf_message<ValueTypeField> message(bytes);
    while (message.next()) {
      if (message.tag() == ValueTypeField::kType)
        type.type = signed_field(message);
      else if (message.tag() == ValueTypeField::kUnit)
        type.unit = signed_field(message);
      else
        message.skip();
    }
    return type;
  }
  void read_mapping(data_view bytes) {
    std::uint64_t id = 0;
    Mapping mapping;
    pbf_message<MappingField> message(bytes);
    while (message.next()) {
      switch (message.tag()) {
        case MappingField::kId: id = unsigned_field(message); break;
        case MappingField::kStart: mapping.start = unsigned_field(message); break;
        case MappingField::kOffset: mapping.offset = unsigned_field(message); break;
        case MappingField::kFilename: mapping.file = signed_field(message); break;
        default: message.skip();
      }
    }
    mappings_[id] = mapping;
  }
  void read_location(data_view bytes) {
    std::uint64_t id = 0;
    Location location;
    pbf_message<LocationField> message(bytes);
    while (message.next()) {
      switch (message.tag()) {
        case LocationField::kId: id = unsigned_field(message); break;
        case LocationField::kMappingId: location.mapping = unsigned_field(message); break;
        case LocationField::kAddress: location.address = unsigned_field(message); break;
        case LocationField::kLine: location.lines.push_back(line(bytes_field(message))); break;
        default: message.skip();
      }
    }
    locations_[id] = std::move(location);
  }
  static Line line(data_view bytes) {
    Line line;
    pbf_message<LineField> message(bytes);
    while (message.next()) {
      switch (message.tag()) {
        case LineField::kFunctionId: line.function = unsigned_field(message); break;
        case LineField::kLine: line.line = signed_field(message); break;
        case LineField::kColumn: line.column = signed_field(message); break;
        default: message.skip();
      }
    }
    return line;
  }
  void read_function(data_view bytes) {
    std::uint64_t id = 0;
    FunctionRow row;
    pbf_message<FunctionField> message(bytes);
    while (message.next()) {
      switch (message.tag()) {
        case FunctionField::kId: id = unsigned_field(message); break;
        case FunctionField::kName: row.name = signed_field(message); break;
        case FunctionField::kFilename: row.file = signed_field(message); break;
        case FunctionField::kStartLine: row.first_line = signed_field(message); break;
        default: message.skip();
      }
    }
    functions_[id] = row;
  }

  [[nodiscard]] std::string_view text(std::int64_t index) const {
    const bool is_there = index >= 0 && static_cast<std::uint64_t>(index) < strings_.size();
    lacks_texts_ = lacks_texts_ || !is_there;
    return is_there ? strings_[static_cast<std::size_t>(index)] : std::string_view{};
  }

  void choose_value() {
    int best = 0;
    for (std::size_t i = 0; i < types_.size(); ++i) {
      const double ns = unit_ns(text(types_[i].unit));
      const std::string_view type = text(types_[i].type);
      if (type == "samples" && text(types_[i].unit) == "count") count_ = i;
      const int rank = ns == 0 ? 0 : type == "wall" ? 3 : type == "cpu" ? 2 : 1;
      if (rank <= best) continue;
      best = rank;
      if (rank > 1) out_.profile.set_meta("mode", type);
      value_ = i;
      unit_ns_ = ns;
    }
  }

  // A sample as it is in the file.
  struct SampleRow {
    std::vector<std::uint64_t> locations;
    std::vector<std::int64_t> values;
    std::string_view thread_name, thread_id, pid, activity;
  };
  [[nodiscard]] SampleRow sample_row(data_view bytes) const {
    SampleRow row;
    pbf_message<SampleField> message(bytes);
    while (message.next()) {
      // Writers may put repeated numbers into one field, or each into one of its own.
      const bool is_packed = message.wire_type() == protozero::pbf_wire_type::length_delimited;
      if (message.tag() == SampleField::kLocationId && is_packed)
        for (const std::uint64_t id : message.get_packed_uint64()) row.locations.push_back(id);
      else if (message.tag() == SampleField::kLocationId)
        row.locations.push_back(unsigned_field(message));
      else if (message.tag() == SampleField::kValue && is_packed)
        for (const std::int64_t value : message.get_packed_int64()) row.values.push_back(value);
      else if (message.tag() == SampleField::kValue)
        row.values.push_back(signed_field(message));
      else if (message.tag() == SampleField::kLabel)
        take_label(row, bytes_field(message));
      else
        message.skip();
    }
    return row;
  }
  void take_label(SampleRow& row, data_view bytes) const {
    const auto [key, value] = label(bytes);
    if (key == "thread_name") row.thread_name = value;
    if (key == "thread_id") row.thread_id = value;
    if (key == "pid") row.pid = value;
    if (key == "activity") row.activity = value;
  }

  void read_sample(data_view bytes) {
    const SampleRow row = sample_row(bytes);
    if (value_ >= row.values.size()) return;
    const std::string key =
        std::string(row.pid) + " " + std::string(row.thread_id) + " " + std::string(row.thread_name);
    const ThreadId thread = out_.thread(key, row.thread_name, number(row.thread_id), number(row.pid));
    const std::int64_t weight = weight_of(static_cast<double>(row.values[value_]), unit_ns_);
    out_.sample(thread, stack_of(row.locations), weight, activity_named(row.activity).value_or(Activity::kRunning));
    const std::int64_t count = count_ && *count_ < row.values.size() ? row.values[*count_] : 1;
    counts_.push_back(std::clamp<std::int64_t>(count, 1, kMostSamples + 1));
  }

  // A row of the file stands for as many samples as it says, of equal shares. Where these would be more than a profile
  // should have, it is one.
  void tell_samples_apart() {
    std::int64_t total = 0;
    for (const std::int64_t count : counts_) total = std::min(total + count, kMostSamples + 1);
    if (total > kMostSamples || total == static_cast<std::int64_t>(counts_.size())) return;
    const profile::SampleTable rows = std::exchange(out_.profile.samples, {});
    out_.profile.samples.reserve(static_cast<std::size_t>(total));
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const std::int64_t count = counts_[row], weight = rows.weight_ns[row];
      std::int64_t time = rows.time_ns[row] - weight;
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t share = weight / count + (i < weight % count ? 1 : 0);
        time += share;
        out_.profile.samples.push_back(time, rows.thread[row], rows.stack[row], share, rows.activity[row]);
      }
    }
  }
  [[nodiscard]] std::pair<std::string_view, std::string_view> label(data_view bytes) const {
    std::pair<std::string_view, std::string_view> result;
    pbf_message<LabelField> message(bytes);
    while (message.next()) {
      if (message.tag() == LabelField::kKey)
        result.first = text(signed_field(message));
      else if (message.tag() == LabelField::kText)
        result.second = text(signed_field(message));
      else
        message.skip();
    }
    return result;
  }
  static std::int64_t number(std::string_view digits) {
    std::int64_t value = 0;
    for (const char c : digits.substr(0, 18)) {
      if (c < '0' || c > '9') break;
      value = value * 10 + (c - '0');
    }
    return value;
  }

  // Locations are innermost first, and so are the lines of inlined calls in one.
  StackId stack_of(const std::vector<std::uint64_t>& location_ids) {
    StackId stack;
    for (auto id = location_ids.rbegin(); id != location_ids.rend(); ++id) {
      const auto found = locations_.find(*id);
      if (found == locations_.end()) {
        out_.miss(kMissingFrames);
        continue;
      }
      const Location& location = found->second;
      if (location.lines.empty()) stack = push(stack, [&] { return unnamed_frame(*id, location); });
      for (auto line = location.lines.rbegin(); line != location.lines.rend(); ++line)
        stack = push(stack, [&] { return frame_of(*line); });
    }
    return stack;
  }
  template <typename MakeFrame>
  StackId push(StackId stack, MakeFrame make_frame) {
    has_too_many_frames_ = has_too_many_frames_ || frames_left_ == 0;
    if (has_too_many_frames_) return stack;
    --frames_left_;
    return out_.push(stack, make_frame());
  }
  FrameId frame_of(const Line& line) {
    const auto found = functions_.find(line.function);
    if (found == functions_.end()) {
      out_.miss(kMissingFrames);
      return {};
    }
    const FunctionRow& function = found->second;
    return out_.frame({text(function.name), text(function.file), line.line, line.column, function.first_line});
  }
  // Code whose function nobody knew: by its place in its file.
  FrameId unnamed_frame(std::uint64_t id, const Location& location) {
    const auto [known, is_new] = unnamed_.try_emplace(id);
    if (!is_new) return known->second;
    const auto found = mappings_.find(location.mapping);
    const Mapping mapping = found == mappings_.end() ? Mapping{} : found->second;
    const std::string_view file = text(mapping.file);
    const bool is_within = location.address >= mapping.start;
    const std::uint64_t place = is_within ? location.address - mapping.start + mapping.offset : location.address;
    std::string name(file.substr(file.find_last_of('/') + 1));
    name += (name.empty() ? "" : "+") + hexadecimal(place);
    if (location.address == 0) name = "[unknown]";
    using profile::FunctionKind;
    const FunctionKind kind = location.address == 0 && file.empty() ? FunctionKind::kSynthetic : FunctionKind::kNative;
    known->second = out_.frame({.name = name, .file = file, .kind = kind});
    return known->second;
  }

  static constexpr std::int64_t kMostSamples = std::int64_t{1} << 22U;

  ForeignProfile out_{"pprof"};
  std::vector<ValueType> types_;
  std::vector<data_view> samples_;
  std::vector<std::string_view> strings_;
  boost::unordered_flat_map<std::uint64_t, Location> locations_;
  boost::unordered_flat_map<std::uint64_t, Mapping> mappings_;
  boost::unordered_flat_map<std::uint64_t, FrameId> unnamed_;  // by location
  boost::unordered_flat_map<std::uint64_t, FunctionRow> functions_;
  std::size_t value_ = 0;
  std::optional<std::size_t> count_;  // the value that says how many samples a row is
  std::vector<std::int64_t> counts_;  // by row of the profile's samples
  ValueType period_type_;
  std::int64_t period_ = 0;
  double unit_ns_ = 0;
  std::size_t frames_left_ = 0;
  bool has_too_many_frames_ = false;
  mutable bool lacks_texts_ = false;  // that are told of by their number: they come last, and were cut off
};

}  // namespace

namespace {

// Whether a field of a file is of the type that it has in profile.proto; those of later versions may be of any.
bool has_its_type(const pbf_message<ProfileField>& file) {
  constexpr std::string_view kTypes = ".bbbbbbnnnnbnenb";  // by number: bytes, number, either
  const auto number = static_cast<std::size_t>(file.tag());
  const char type = number < kTypes.size() ? kTypes[number] : 'e';
  return type == 'e' || file.wire_type() == (type == 'n' ? protozero::pbf_wire_type::varint
                                                         : protozero::pbf_wire_type::length_delimited);
}

// Whether it is a value type with something in it, which no text is: its numbers have bytes that texts have not.
bool says_a_type(data_view bytes) {
  pbf_message<ValueTypeField> message(bytes);
  bool has_number = false;
  while (message.next()) {
    const bool is_known = message.tag() == ValueTypeField::kType || message.tag() == ValueTypeField::kUnit;
    if (!is_known || message.wire_type() != protozero::pbf_wire_type::varint) return false;
    message.skip();
    has_number = true;
  }
  return has_number;
}

}  // namespace

bool ends_early(std::string_view bytes) {
  bool has_type = false;
  try {
    pbf_message<ProfileField> file(bytes.data(), bytes.size());
    while (file.next()) {
      if (!has_its_type(file)) return false;
      if (file.tag() == ProfileField::kSampleType)
        has_type = says_a_type(file.get_view()) || has_type;
      else
        file.skip();
    }
    return false;
  } catch (const protozero::end_of_buffer_exception&) {
    return has_type;
  } catch (const std::exception&) {
    return false;
  }
}

bool is_pprof(std::string_view bytes) {
  // Fields come in any order (Go's own files begin with the time). A text does not pass the walk over them.
  try {
    pbf_message<ProfileField> file(bytes.data(), bytes.size());
    bool has_type = false;
    while (file.next()) {
      if (!has_its_type(file)) return false;
      if (file.tag() == ProfileField::kSampleType) has_type = true;
      file.skip();
    }
    return has_type;
  } catch (const std::exception&) {
    return false;
  }
}

Result<profile::Profile> read(std::string_view bytes) {
  try {
    return Reader().read(bytes);
  } catch (const protozero::exception& problem) {
    return Error{ErrorKind::kBadInput, std::string("not whole pprof data: ") + problem.what()};
  }
}

}  // namespace plimsoll::formats::pprof
