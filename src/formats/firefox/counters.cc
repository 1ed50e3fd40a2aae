// formats/firefox/counters.cc: absolute values -> differences.
//
// The viewer adds the differences up and draws the sum. It sets the first one to zero, so what it shows is the change
// since the first sample, above the lowest value in view; the texts of the tooltip say so. The first difference in the
// file is the first absolute value, for readers that want it.
#include "formats/firefox/counters.h"

namespace plimsoll::formats::firefox {
namespace {

void write_tooltip_row(JsonWriter& json, std::string_view source, std::string_view unit, std::string_view label) {
  json.begin_object();
  json.member("type", "value");
  json.member("source", source);
  json.key("format");
  json.begin_object();
  json.member("unit", unit);
  json.end_object();
  json.member("label", label);
  json.end_object();
}

void write_display(JsonWriter& json, const profile::Counter& counter) {
  const bool is_rss = counter.name == "rss";
  const std::string_view unit = counter.unit == "bytes" ? "bytes" : "number";
  const std::string label = is_rss ? "Memory (RSS)" : counter.name;
  json.key("display");
  json.begin_object();
  json.member("graphType", "line-accumulated");
  json.member("unit", counter.unit);
  json.member("color", is_rss ? "orange" : "teal");
  json.key("markerSchemaLocation");
  is_rss ? json.text("timeline-memory") : json.null();
  json.member("sortWeight", is_rss ? 10 : 20);
  json.member("label", label);
  json.key("tooltipRows");
  json.begin_array();
  write_tooltip_row(json, "accumulated", unit, label + " above the lowest value in view");
  write_tooltip_row(json, "count-range", unit, label + " between the lowest and the highest value in view");
  json.end_array();
  json.end_object();
}

void write_samples(JsonWriter& json, Slabs* slabs, const profile::Counter& counter) {
  json.key("samples");
  json.begin_object();
  Columns(json, slabs).milliseconds("time", counter.time_ns, [](std::int64_t time) { return time; });
  std::int64_t before = 0;
  json.column("count", counter.value, [&](std::int64_t value) {
    json.integer(value - before);
    before = value;
  });
  json.member("length", static_cast<std::int64_t>(counter.time_ns.size()));
  json.end_object();
}

}  // namespace

void write_counters(JsonWriter& json, const FileLayout& layout) {
  json.column("counters", layout.profile.counters, [&](const profile::Counter& counter) {
    json.begin_object();
    json.member("name", counter.name);
    json.member("category", counter.unit == "bytes" ? "Memory" : "Other");
    json.member("description", counter.name == "rss" ? "Resident set size of the process" : counter.name);
    json.member("pid", std::to_string(layout.profile.processes[counter.process.index()].pid));
    json.member("mainThreadIndex", static_cast<std::int64_t>(layout.main_thread_of(counter.process)));
    write_samples(json, layout.slabs, counter);
    write_display(json, counter);
    json.end_object();
  });
}

}  // namespace plimsoll::formats::firefox
