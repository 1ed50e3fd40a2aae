// cli/render_top.cc: head, body and foot of the screen.
#include "cli/render_top.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/units.h"

namespace plimsoll::cli {
namespace {

constexpr std::size_t kHeadRows = 3, kTitleRows = 1, kFootRows = 1;
constexpr std::size_t kTopTextWidth = 120;

constexpr std::array<std::string_view, 15> kHelp = {
    "q, Ctrl-C     quit",
    "p, space      pause: the picture stands still, looking goes on",
    "s   t         functions and lines by self time, by total time",
    "l             lines of source",
    "f             flame graph: calls below their callers, as wide as their time",
    "T             threads",
    "w             CPU time, or all time with waits",
    "/             filter by name or place: type, Enter; Esc takes it back",
    "+   -         the last 1, 2, 5, 10, 30 or 60 seconds",
    "arrows, PgUp, PgDn, Home, End   scroll",
    "Ctrl-Z        suspend",
    "",
    "Self: time in the function's own code; total: in what it calls, too.",
    "CPU is of one CPU. GIL: looks at which a thread had the lock of the interpreter.",
    "Any key goes back."};

std::string seconds(std::int64_t ns) {
  const std::int64_t tenths = (ns + 50'000'000) / 100'000'000;
  return tenths % 10 == 0 ? fmt::format("{} s", tenths / 10) : fmt::format("{}.{} s", tenths / 10, tenths % 10);
}

std::string percent_or_unknown(const std::optional<double>& percent) {
  return percent ? format_percent(*percent) + " %" : "-";
}

// "4 threads: 1 running, 3 lock": those of Python, the most common state first.
std::string threads_in_words(const TopPicture& picture) {
  std::vector<std::pair<std::size_t, std::string_view>> states;
  std::size_t there = 0;
  for (const profile::LiveThread& thread : picture.live.threads) {
    if (!thread.is_there) continue;
    ++there;
    const std::string_view state = state_of(picture, thread);
    const auto known =
        std::find_if(states.begin(), states.end(), [&](const auto& entry) { return entry.second == state; });
    if (known == states.end())
      states.emplace_back(1, state);
    else
      ++known->first;
  }
  std::stable_sort(states.begin(), states.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string words = fmt::format("{} thread{}", there, there == 1 ? "" : "s");
  for (std::size_t i = 0; i < states.size(); ++i)
    words += fmt::format("{} {} {}", i == 0 ? ":" : ",", states[i].first, states[i].second);
  return words;
}

Cell program_line(const TopPicture& picture, const TopState& state, std::size_t width) {
  ScreenLine line(width);
  if (!picture.usage)
    line.add("ENDED  ", Style::kHot);
  else if (picture.usage->state == 'T' || picture.usage->state == 't')
    line.add("STOPPED  ", Style::kHot);
  if (state.is_paused) line.add("PAUSED  ", Style::kWarning);
  line.add(fmt::format("process {}", picture.pid), Style::kStrong).add("  Python ").add(picture.python).add("  ");
  return line.add(picture.command).take();
}

Cell usage_line(const TopPicture& picture, std::size_t width) {
  ScreenLine line(width);
  line.add("CPU ", Style::kDim).add(percent_or_unknown(picture.cpu_percent), Style::kStrong);
  if (const auto gil = gil_percent(picture)) line.add("  GIL ", Style::kDim).add(percent_or_unknown(gil));
  if (picture.usage) line.add("  RSS ", Style::kDim).add(format_bytes(picture.usage->resident_bytes));
  return line.add("  ").add(threads_in_words(picture)).take();
}

std::string subject_in_words(const TopState& state) {
  const std::string_view order = state.sort == SortBy::kSelf ? "self" : "total";
  const std::string_view time = state.time == TopTime::kCpu ? "CPU time" : "time with waits";
  switch (state.subject) {
    case TopSubject::kFunctions: return fmt::format("functions by {} {}", order, time);
    case TopSubject::kLines: return fmt::format("lines by {} {}", order, time);
    case TopSubject::kFlame: return fmt::format("flame graph of {}", time);
    case TopSubject::kThreads: break;
  }
  return "threads";
}

Cell subject_line(const TopPicture& picture, const TopState& state, std::size_t width) {
  ScreenLine line(width);
  line.add(subject_in_words(state)).add(", last ").add(seconds(picture.live.profile.end_ns), Style::kStrong);
  if (!state.filter.empty() && !state.is_typing) line.add("  filter: ", Style::kDim).add(state.filter, Style::kWarning);
  line.add(fmt::format("  {}", format_rate(picture.rate_hz)), Style::kDim);
  // Looks that came to nothing: their time went to other samples.
  const std::uint64_t lost = picture.live.lost;
  const double percent =
      percent_of(static_cast<std::int64_t>(lost), static_cast<std::int64_t>(picture.live.samples + lost));
  if (lost > 0)
    line.add(fmt::format(", {} % failed", format_percent(percent)), percent < 2 ? Style::kDim : Style::kHot);
  return line.take();
}

Cell foot_line(const TopState& state, std::size_t width) {
  ScreenLine line(width);
  if (state.is_typing) return line.add("filter: ", Style::kStrong).add(state.filter).add("_").take();
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kKeys = {{{"q", "quit"},
                                                                                   {"?", "help"},
                                                                                   {"p", "pause"},
                                                                                   {"s/t", "sort"},
                                                                                   {"l", "lines"},
                                                                                   {"f", "flame"},
                                                                                   {"T", "threads"},
                                                                                   {"w", "wall"},
                                                                                   {"/", "filter"}}};
  for (const auto& [key, word] : kKeys) line.add(key, Style::kStrong).add(" ").add(word, Style::kDim).add("  ");
  return line.take();
}

TopBody body_of(const TopPicture& picture, const TopState& state, const TopSources& sources, std::size_t width) {
  switch (state.subject) {
    case TopSubject::kFunctions: return functions_body(picture, state, width);
    case TopSubject::kLines: return lines_body(picture, state, sources, width);
    case TopSubject::kFlame: return flame_body(picture, width);
    case TopSubject::kThreads: break;
  }
  return threads_body(picture, state, width);
}

TopBody help_body(std::size_t width) {
  return {{}, kHelp.size(), [width](std::size_t row) { return ScreenLine(width).add(kHelp[row]).take(); }};
}

// Why there are no rows.
std::string_view nothing_in_words(const TopPicture& picture, const TopState& state) {
  if (!state.filter.empty() && !picture.all_samples.time_ns.empty()) return "nothing here matches the filter";
  if (state.time == TopTime::kCpu && !picture.all_samples.time_ns.empty())
    return "no CPU time was used: w shows where it waits";
  return "no samples yet";
}

std::vector<Cell> head(const TopPicture& picture, const TopState& state, std::size_t width) {
  return {program_line(picture, state, width), usage_line(picture, width), subject_line(picture, state, width)};
}

}  // namespace

std::size_t top_page(ScreenSize size) {
  constexpr std::size_t kAround = kHeadRows + kTitleRows + kFootRows;
  return size.rows > kAround ? size.rows - kAround : 1;
}

TopScreen render_top(const TopPicture& picture, const TopState& state, const TopSources& sources, ScreenSize size) {
  const TopBody body = state.is_help ? help_body(size.columns) : body_of(picture, state, sources, size.columns);
  const std::size_t page = top_page(size);
  TopScreen screen{head(picture, state, size.columns), 0};
  const std::size_t last_page = body.rows - std::min(body.rows, page);
  screen.first_row = state.is_help ? 0 : std::min(state.first_row, last_page);
  screen.lines.push_back(body.title);
  for (std::size_t row = screen.first_row; row < std::min(body.rows, screen.first_row + page); ++row)
    screen.lines.push_back(body.draw(row));
  if (body.rows == 0)
    screen.lines.push_back(ScreenLine(size.columns).add(nothing_in_words(picture, state), Style::kDim).take());
  screen.lines.resize(std::max<std::size_t>(size.rows, 1));
  // On the smallest screens the keys give way.
  if (size.rows > kHeadRows + kTitleRows) screen.lines.back() = foot_line(state, size.columns);
  return screen;
}

std::string top_text(const TopPicture& picture, const TopState& state, const TopSources& sources, const Page& page,
                     std::size_t limit) {
  const std::size_t width = std::min(page.width, kTopTextWidth);
  const TopBody body = body_of(picture, state, sources, width);
  std::vector<Cell> lines = head(picture, state, width);
  if (!body.title.empty()) lines.push_back(body.title);
  for (std::size_t row = 0; row < body.rows && (limit == 0 || row < limit); ++row) lines.push_back(body.draw(row));
  if (body.rows == 0) lines.push_back({{std::string(nothing_in_words(picture, state))}});
  std::string out;
  for (const Cell& line : lines) {
    std::string text;
    for (const Span& span : line) text += page.paint(span.style, span.text);
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  }
  return out;
}

}  // namespace plimsoll::cli
