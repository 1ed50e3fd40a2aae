// cli/top_tables.cc: functions, lines and threads as rows of a screen.
#include <fmt/format.h>

#include <algorithm>

#include "cli/line_report.h"
#include "cli/place.h"
#include "cli/top_body.h"
#include "cli/units.h"

namespace plimsoll::cli {
namespace {

using profile::FlatRow;
using profile::Profile;

constexpr std::size_t kPercent = 7, kTime = 9, kGap = 2;
// On a narrower screen names are more than numbers.
constexpr std::size_t kWideScreen = 60;

// What the numbers of a function or a line look like, and their titles.
class Numbers {
 public:
  Numbers(const TopState& state, std::int64_t all_ns, std::size_t width)
      : sort_(state.sort), all_ns_(all_ns), has_time_(width >= kWideScreen) {}

  void title(ScreenLine& line) const {
    line.right("self %", kPercent, style_of(SortBy::kSelf));
    line.right("total %", kPercent + 1, style_of(SortBy::kTotal));
    if (has_time_) line.right(sort_ == SortBy::kSelf ? "self" : "total", kTime, Style::kDim);
    line.add("  ");
  }
  void row(ScreenLine& line, std::int64_t self_ns, std::int64_t total_ns) const {
    const double self = percent_of(self_ns, all_ns_);
    const double total = percent_of(total_ns, all_ns_);
    line.right(self_ns == 0 ? "" : format_percent(self), kPercent, heat(self));
    line.right(format_percent(total), kPercent + 1, heat(total));
    if (has_time_) line.right(format_time(sort_ == SortBy::kSelf ? self_ns : total_ns), kTime, Style::kDim);
    line.add("  ");
  }

 private:
  [[nodiscard]] Style style_of(SortBy column) const { return column == sort_ ? Style::kStrong : Style::kDim; }

  SortBy sort_;
  std::int64_t all_ns_;
  bool has_time_;
};

// Of what the numbers leave, so much is for the name.
std::size_t name_cells(const ScreenLine& line, std::size_t width) {
  return width < kWideScreen ? line.room() : line.room() * 3 / 5;
}

// One line of one file.
struct SourceLine {
  StringId file;
  LineWeight weight;
};

std::vector<SourceLine> source_lines(const Profile& profile, const TopState& state) {
  std::vector<SourceLine> lines;
  for (const FileReport& file : line_report(profile).files)
    for (const LineWeight& weight : file.lines) lines.push_back({file.file, weight});
  const auto sorted_ns = [&](const SourceLine& line) {
    return state.sort == SortBy::kSelf ? std::pair(line.weight.self_ns, line.weight.total_ns)
                                       : std::pair(line.weight.total_ns, line.weight.self_ns);
  };
  std::stable_sort(lines.begin(), lines.end(),
                   [&](const SourceLine& a, const SourceLine& b) { return sorted_ns(a) > sorted_ns(b); });
  return lines;
}

}  // namespace

TopBody functions_body(const TopPicture& picture, const TopState& state, std::size_t width) {
  const Profile& profile = picture.live.profile;
  std::vector<FlatRow> rows = flat_rows(profile, state.sort);
  std::erase_if(rows, [&](const FlatRow& row) { return !is_asked_for(picture, row.function, state); });
  const Numbers numbers(state, profile.sampled_ns(), width);
  ScreenLine title(width);
  numbers.title(title);
  title.left("function", name_cells(title, width), Style::kDim).add("  ").add("where", Style::kDim);
  const std::size_t count = rows.size();
  return {title.take(), count, [&picture, rows = std::move(rows), numbers, width](std::size_t i) {
            const Profile& of = picture.live.profile;
            const ShownPath place = place_of(of, rows[i].function, 0, picture.directory);
            ScreenLine line(width);
            numbers.row(line, rows[i].self_ns, rows[i].total_ns);
            line.left(function_name(of, rows[i].function), name_cells(line, width),
                      place.is_library ? Style::kPlain : Style::kStrong);
            line.add("  ").path(place.text, line.room(), Style::kDim);
            return line.take();
          }};
}

TopBody lines_body(const TopPicture& picture, const TopState& state, const TopSources& sources, std::size_t width) {
  const Profile& profile = picture.live.profile;
  std::vector<SourceLine> rows = source_lines(profile, state);
  std::erase_if(rows, [&](const SourceLine& row) { return !is_asked_for(picture, row.file, row.weight, state); });
  const Numbers numbers(state, profile.sampled_ns(), width);
  const auto place_cells = [width](const ScreenLine& line) { return line.room() - name_cells(line, width * 2) - kGap; };
  ScreenLine title(width);
  numbers.title(title);
  title.left("line", place_cells(title), Style::kDim).add("  ").add("source", Style::kDim);
  const std::size_t count = rows.size();
  return {title.take(), count,
          [&picture, &sources, rows = std::move(rows), numbers, width, place_cells](std::size_t i) {
            const Profile& of = picture.live.profile;
            const std::string_view text = sources(of.strings[rows[i].file]).line(rows[i].weight.line);
            ScreenLine line(width);
            numbers.row(line, rows[i].weight.self_ns, rows[i].weight.total_ns);
            line.path(place_in(picture, rows[i].file, rows[i].weight.line), place_cells(line), Style::kDim);
            line.add("  ").add(without_indent(text), Style::kStrong);
            return line.take();
          }};
}

namespace {

// What a thread's time may go into, with the words that the titles have room for.
constexpr std::array<std::pair<Activity, std::string_view>, 6> kShares = {{{Activity::kRunning, "run"},
                                                                           {Activity::kReady, "rdy"},
                                                                           {Activity::kGil, "gil"},
                                                                           {Activity::kLock, "lck"},
                                                                           {Activity::kIo, "io"},
                                                                           {Activity::kSleep, "slp"}}};
constexpr std::size_t kTid = 7, kState = 7, kShare = 4, kSharesFit = 66;

std::string thread_name(const profile::Thread& thread) {
  if (!thread.name.empty()) return thread.name;
  return thread.is_main ? "main thread" : "[no name]";
}

std::string innermost(const TopPicture& picture, const profile::LiveThread& thread) {
  return thread.stack.is_none() ? ""
                                : function_name(picture.live.profile, picture.live.profile.leaf_function(thread.stack));
}

Cell thread_line(const TopPicture& picture, const ThreadRow& row, std::size_t width) {
  const profile::LiveView& live = picture.live;
  const profile::LiveThread& thread = live.threads[row.thread.index()];
  const profile::Thread& facts = live.profile.threads[row.thread.index()];
  const double cpu = percent_of(row.by_activity[0], live.profile.end_ns);
  const double gil = percent_of(static_cast<std::int64_t>(thread.gil_looks), static_cast<std::int64_t>(live.gil_looks));
  ScreenLine line(width);
  line.right(fmt::format("{}", facts.os_tid), kTid, Style::kDim);
  line.right(format_percent(cpu), kPercent, heat(cpu));
  line.right(live.gil_looks == 0 ? "" : format_percent(gil), kPercent, heat(gil));
  line.add("  ").left(state_of(picture, thread), kState);
  for (const auto& [activity, title] : kShares) {
    if (width < kSharesFit) break;
    const std::int64_t ns = row.by_activity[static_cast<std::size_t>(activity)];
    line.right(ns == 0 ? "" : fmt::format("{:.0f}", percent_of(ns, row.sampled_ns)), kShare);
  }
  line.add("  ").add(thread_name(facts), facts.is_main ? Style::kStrong : Style::kPlain);
  line.add("  ").add(innermost(picture, thread), Style::kDim);
  return line.take();
}

}  // namespace

TopBody threads_body(const TopPicture& picture, const TopState& state, std::size_t width) {
  const profile::LiveView& live = picture.live;
  std::vector<ThreadRow> rows = picture.threads;
  std::erase_if(rows, [&](const ThreadRow& row) {
    const std::string name = thread_name(live.profile.threads[row.thread.index()]);
    return !is_asked_for(name, state_of(picture, live.threads[row.thread.index()]), state);
  });
  ScreenLine title(width);
  title.right("TID", kTid, Style::kDim).right("CPU %", kPercent, Style::kStrong).right("GIL %", kPercent, Style::kDim);
  title.add("  ").left("does", kState, Style::kDim);
  if (width >= kSharesFit)
    for (const auto& [activity, word] : kShares) title.right(word, kShare, Style::kDim);
  title.add("  ").add("thread, and where", Style::kDim);
  const std::size_t count = rows.size();
  return {title.take(), count,
          [&picture, rows = std::move(rows), width](std::size_t i) { return thread_line(picture, rows[i], width); }};
}

}  // namespace plimsoll::cli
