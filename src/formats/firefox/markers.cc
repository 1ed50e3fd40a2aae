// formats/firefox/markers.cc: one pass to learn the fields, one to write.
#include "formats/firefox/markers.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace plimsoll::formats::firefox {
namespace {

// Values of the phase column.
constexpr std::int64_t kInstant = 0;
constexpr std::int64_t kInterval = 1;

// The number that `text` is, if it is one that a JSON reader keeps exactly and would print in the same way.
std::optional<std::int64_t> as_integer(std::string_view text) {
  constexpr std::int64_t kLargestExact = std::int64_t{1} << 53U;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  const bool plain = text == "0" || (text[0] == '-' ? text.size() > 1 && text[1] != '0' : text[0] != '0');
  return plain && value <= kLargestExact && value >= -kLargestExact ? std::optional(value) : std::nullopt;
}

// The schema of a marker name. The prefix keeps it apart from names that the viewer treats in ways of its own.
std::string schema_name(std::string_view marker_name) { return "plimsoll:" + std::string(marker_name); }

// The key of a field in the file: three keys mean something else to the viewer.
std::string payload_key(std::string_view key) {
  const bool is_taken = key == "type" || key == "cause" || key == "stack";
  return std::string(key) + (is_taken ? "_" : "");
}

std::string_view format_of(const MarkerField& field) {
  if (!field.is_integer) return "string";
  if (field.key.ends_with("_ns")) return "nanoseconds";
  if (field.key.ends_with("_ms")) return "milliseconds";
  if (field.key.ends_with("_bytes")) return "bytes";
  return "integer";
}

// What the marker table says about a marker: "generation 2, collected 17".
std::string table_label(const MarkerType& type) {
  std::string label;
  for (const MarkerField& field : type.fields) {
    if (field.key.find_first_of(".{}' ") != std::string_view::npos) continue;  // the label language has no quotes
    if (!label.empty()) label += ", ";
    label.append(field.key).append(" {marker.data.").append(payload_key(field.key)).append("}");
  }
  return label.empty() ? "{marker.name}" : label;
}

void write_schema(JsonWriter& json, const MarkerType& type) {
  json.begin_object();
  json.member("name", schema_name(type.name));
  json.member("tooltipLabel", "{marker.name}");
  json.member("tableLabel", table_label(type));
  json.member("chartLabel", "{marker.name}");
  json.key("display");
  json.begin_array();
  json.text("marker-chart");
  json.text("marker-table");
  json.text(type.is_garbage_collection() ? "timeline-memory" : "timeline-overview");
  json.end_array();
  json.column("fields", type.fields, [&](const MarkerField& field) {
    json.begin_object();
    json.member("key", payload_key(field.key));
    json.member("label", field.key);
    json.member("format", format_of(field));
    json.end_object();
  });
  json.end_object();
}

}  // namespace

MarkerTypes::MarkerTypes(const profile::Profile& profile) {
  for (const profile::Marker& marker : profile.markers) {
    const auto [position, inserted] = index_.try_emplace(marker.name, types_.size());
    if (inserted) types_.push_back({marker.name, {}, {}});
    MarkerType& type = types_[position->second];
    for (const auto& [key, value] : marker.fields) {
      const auto [field, is_new] = type.index_of_field.try_emplace(key, type.fields.size());
      if (is_new) type.fields.push_back({key});
      MarkerField& known = type.fields[field->second];
      known.is_integer = known.is_integer && as_integer(value).has_value();
    }
  }
}

void MarkerTypes::write_schemas(JsonWriter& json) const {
  json.column("markerSchema", types_, [&](const MarkerType& type) { write_schema(json, type); });
}

void MarkerTypes::write_payload(JsonWriter& json, const profile::Marker& marker) const {
  json.begin_object();
  json.member("type", schema_name(marker.name));
  const MarkerType& type = type_of(marker);
  // Of two values for one field the first; a type may have far more fields than any of its markers.
  std::map<std::size_t, std::string_view> values;
  for (const auto& [key, value] : marker.fields) values.try_emplace(type.index_of_field.at(key), value);
  for (const auto& [index, value] : values) {
    const MarkerField& field = type.fields[index];
    json.text_key(payload_key(field.key));
    if (field.is_integer)
      json.integer(as_integer(value).value_or(0));
    else
      json.text(value);
  }
  json.end_object();
}

std::vector<std::vector<const profile::Marker*>> markers_by_thread(const FileLayout& layout) {
  std::vector<std::vector<const profile::Marker*>> result(layout.threads.size());
  if (result.empty()) return result;
  for (const profile::Marker& marker : layout.profile.markers) {
    const std::size_t thread = marker.thread.is_none() ? 0 : layout.index_of_thread[marker.thread.index()];
    result[thread].push_back(&marker);
  }
  for (auto& markers : result)
    std::stable_sort(markers.begin(), markers.end(),
                     [](const auto* a, const auto* b) { return a->time_ns < b->time_ns; });
  return result;
}

void write_markers(JsonWriter& json, const MarkerTypes& types, const std::vector<const profile::Marker*>& markers,
                   Texts& texts) {
  using profile::Marker;
  json.key("markers");
  json.begin_object();
  json.column("data", markers, [&](const Marker* marker) { types.write_payload(json, *marker); });
  json.column("name", markers, [&](const Marker* marker) { json.integer(texts.index(marker->name)); });
  json.column("startTime", markers, [&](const Marker* marker) { json.milliseconds(marker->time_ns); });
  json.column("endTime", markers, [&](const Marker* marker) {
    marker->duration_ns > 0 ? json.milliseconds(marker->time_ns + marker->duration_ns) : json.null();
  });
  json.column("phase", markers,
              [&](const Marker* marker) { json.integer(marker->duration_ns > 0 ? kInterval : kInstant); });
  json.column("category", markers, [&](const Marker* marker) {
    const MarkerType& type = types.type_of(*marker);
    const Category other = type.is_jit() ? Category::kJit : Category::kOther;
    json.integer(static_cast<std::int64_t>(type.is_garbage_collection() ? Category::kGarbageCollection : other));
  });
  json.member("length", static_cast<std::int64_t>(markers.size()));
  json.end_object();
}

}  // namespace plimsoll::formats::firefox
