// cli/top_json.cc: a moment of `plimsoll top` for programs.
#include <cmath>

#include "cli/json_document.h"
#include "cli/line_report.h"
#include "cli/render_top.h"
#include "profile/flat.h"

namespace plimsoll::cli {
namespace {

using profile::Profile;

void put_name(formats::JsonWriter& json, const Profile& profile, FunctionId id) {
  const profile::Function& function = profile.functions[id];
  json.member("function", profile.strings[function.name]);
  json.member("file", profile.strings[function.file]);
}

void put_functions(formats::JsonWriter& json, const TopPicture& picture, const TopState& state) {
  const Profile& profile = picture.live.profile;
  std::vector<profile::FlatRow> rows = flat_rows(profile, state.sort);
  std::erase_if(rows, [&](const auto& row) { return !is_asked_for(picture, row.function, state); });
  json.column("functions", rows, [&](const profile::FlatRow& row) {
    json.begin_object();
    put_name(json, profile, row.function);
    json.member("first_line", std::int64_t{profile.functions[row.function].first_line});
    json.member("self_ns", row.self_ns);
    json.member("total_ns", row.total_ns);
    json.member("self_samples", static_cast<std::int64_t>(row.self_samples));
    json.member("samples", static_cast<std::int64_t>(row.total_samples));
    json.end_object();
  });
}

void put_lines(formats::JsonWriter& json, const TopPicture& picture, const TopState& state) {
  const Profile& profile = picture.live.profile;
  json.key("lines");
  json.begin_array();
  for (const FileReport& file : line_report(profile).files)
    for (const LineWeight& line : file.lines) {
      if (!is_asked_for(picture, file.file, line, state)) continue;
      json.begin_object();
      put_name(json, profile, line.function);
      json.member("line", std::int64_t{line.line});
      json.member("self_ns", line.self_ns);
      json.member("total_ns", line.total_ns);
      json.end_object();
    }
  json.end_array();
}

void put_thread(formats::JsonWriter& json, const TopPicture& picture, const ThreadRow& row) {
  const profile::LiveThread& thread = picture.live.threads[row.thread.index()];
  const profile::Thread& facts = picture.live.profile.threads[row.thread.index()];
  json.begin_object();
  json.member("tid", facts.os_tid);
  json.member("name", facts.name);
  json.member("state", state_of(picture, thread));
  json.member("gil_looks", static_cast<std::int64_t>(thread.gil_looks));
  json.member("sampled_ns", row.sampled_ns);
  json.key("activities");
  json.begin_object();
  for (std::size_t i = 0; i < kActivityCount; ++i)
    if (row.by_activity[i] > 0) json.member(kActivityNames[i], row.by_activity[i]);
  json.end_object();
  json.end_object();
}

void put_process(formats::JsonWriter& json, const TopPicture& picture) {
  json.member("pid", std::int64_t{picture.pid});
  json.member("python", picture.python);
  json.member("command", picture.command);
  json.member("rate_hz", static_cast<std::int64_t>(std::llround(picture.rate_hz)));
  json.member("window_ns", picture.live.profile.end_ns);
  if (picture.cpu_percent) {
    const double share = *picture.cpu_percent / 100;
    json.member("process_cpu_ns",
                static_cast<std::int64_t>(std::llround(share * static_cast<double>(picture.live.profile.end_ns))));
  }
  if (picture.usage) json.member("resident_bytes", picture.usage->resident_bytes);
  json.member("gil_looks", static_cast<std::int64_t>(picture.live.gil_looks));
  json.member("gil_held", static_cast<std::int64_t>(picture.live.gil_held));
  json.member("samples", static_cast<std::int64_t>(picture.live.profile.samples.size()));
  json.member("failed", static_cast<std::int64_t>(picture.live.lost));
  json.member("sampled_ns", picture.live.profile.sampled_ns());
}

}  // namespace

std::string top_json(const TopPicture& picture, const TopState& state) {
  // Of a flame graph the filter is one of stacks.
  TopState rows = state;
  if (state.subject == TopSubject::kFlame) rows.filter.clear();
  std::string out;
  formats::JsonWriter json(out);
  begin_document(json);
  put_process(json, picture);
  json.member("mode", state.time == TopTime::kCpu ? "cpu" : "wall");
  put_functions(json, picture, rows);
  put_lines(json, picture, rows);
  json.column("threads", picture.threads, [&](const ThreadRow& row) { put_thread(json, picture, row); });
  json.end_object();
  return out + "\n";
}

}  // namespace plimsoll::cli
