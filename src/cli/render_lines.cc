// cli/render_lines.cc: line reports -> sections of annotated source.
#include "cli/render_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/place.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/utf8.h"

namespace plimsoll::cli {
namespace {

// Consecutive lines that are shown, first to last.
struct Hunk {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  FunctionId function;  // of its first line with time
};

std::string_view origin_note(SourceOrigin origin) {
  switch (origin) {
    case SourceOrigin::kNone: return "source not available";
    case SourceOrigin::kProfile: return "";
    case SourceOrigin::kDisk: return "source from disk";
    case SourceOrigin::kDiskChanged: return "source from disk, CHANGED since the profile was made: lines may be off";
  }
  return "";
}

class LinesRenderer {
 public:
  LinesRenderer(const profile::Profile& profile, const LineReport& report, const LinesOptions& options,
                const Page& page)
      : profile_(profile), options_(options), page_(page), all_ns_(profile.sampled_ns()), scale_(all_ns_) {
    for (const FileReport& file : report.files)
      for (const LineWeight& line : file.lines) hottest_ns_ = std::max(hottest_ns_, line.self_ns);
  }

  [[nodiscard]] bool is_heavy(const LineWeight& line) const {
    return line.is_asked_for && percent_of(line.total_ns, all_ns_) >= options_.min_percent;
  }
  [[nodiscard]] bool has_heavy_line(const FileReport& report) const {
    return std::any_of(report.lines.begin(), report.lines.end(),
                       [&](const LineWeight& line) { return is_heavy(line); });
  }

  [[nodiscard]] std::string section(const FileReport& report, const SourceText& source) const {
    Table table({{"self %", Fit::kRight},
                 {"", Fit::kLeft},
                 {fmt::format("self {}", scale_.unit()), Fit::kRight},
                 {fmt::format("total {}", scale_.unit()), Fit::kRight},
                 {"line", Fit::kRight},
                 {source.origin == SourceOrigin::kNone ? "function" : "source", Fit::kCutRight}});
    bool is_first = true;
    for (const Hunk& hunk : hunks(report, source)) {
      add_hunk_title(table, hunk, is_first ? "" : "⋯", source);
      for (std::uint64_t line = hunk.first; line <= hunk.last; ++line)
        add_line(table, report, static_cast<std::uint32_t>(line), source);
      is_first = false;
    }
    return file_title(report, source.origin) + table.render(page_);
  }

 private:
  [[nodiscard]] std::string file_title(const FileReport& report, SourceOrigin origin) const {
    const std::string path = cut_left(shown_path(profile_.strings[report.file], page_.directory).text, page_.width);
    std::string facts = fmt::format("  self {} ({} %), total {} ({} %)", format_time(report.self_ns),
                                    format_percent(percent_of(report.self_ns, all_ns_)), format_time(report.total_ns),
                                    format_percent(percent_of(report.total_ns, all_ns_)));
    const std::string_view note = origin_note(origin);
    if (!note.empty()) facts += fmt::format("  {}", note);
    const std::size_t left = page_.width - display_width(path);
    const Style style = origin == SourceOrigin::kDiskChanged ? Style::kWarning : Style::kDim;
    return page_.paint(Style::kStrong, path) + page_.paint(style, cut_right(facts, left)) + "\n";
  }

  // Bars compare lines with each other; the percentages beside them are of the total.
  [[nodiscard]] double share_of_hottest(std::int64_t ns) const { return percent_of(ns, hottest_ns_) / 100; }

  // Heavy lines with their context, joined where they touch. Without source there is no context to show.
  [[nodiscard]] std::vector<Hunk> hunks(const FileReport& report, const SourceText& source) const {
    const bool has_source = source.origin != SourceOrigin::kNone;
    std::vector<Hunk> hunks;
    for (const LineWeight& line : report.lines) {
      if (!is_heavy(line)) continue;
      // A line past the end of the text still is a fact; it has no context.
      const bool has_context = line.line <= source.lines.size();
      const std::uint32_t context = has_context ? options_.context : 0;
      std::uint32_t first = line.line > context ? line.line - context : 1;
      std::uint32_t last = line.line;
      if (has_context)
        last = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(source.lines.size(), std::uint64_t{line.line} + context));
      while (first < line.line && source.line(first).empty()) ++first;
      while (last > line.line && source.line(last).empty()) --last;
      // A gap of one line is no gap: the mark for it would take the line's place.
      const bool touches = has_source && !hunks.empty() && first <= std::uint64_t{hunks.back().last} + 2;
      if (touches)
        hunks.back().last = std::max(hunks.back().last, last);
      else
        hunks.push_back({first, last, line.function});
    }
    return hunks;
  }

  // Says which function a hunk is in, unless its definition is among the lines or every line says so.
  void add_hunk_title(Table& table, const Hunk& hunk, std::string_view gap, const SourceText& source) const {
    if (source.origin == SourceOrigin::kNone) return;
    const std::uint32_t definition = profile_.functions[hunk.function].first_line;
    const bool is_shown = definition >= hunk.first && definition <= hunk.last;
    if (is_shown && gap.empty()) return;
    const std::string name = is_shown ? "" : "in " + function_name(profile_, hunk.function);
    table.add_row({{}, {}, {}, {}, {{std::string(gap), Style::kDim}}, {{name, Style::kDim}}});
  }

  void add_line(Table& table, const FileReport& report, std::uint32_t number, const SourceText& source) const {
    const auto found = std::lower_bound(report.lines.begin(), report.lines.end(), number,
                                        [](const LineWeight& line, std::uint32_t value) { return line.line < value; });
    const bool has_time = found != report.lines.end() && found->line == number;
    const std::string text(source.line(number));
    if (!has_time) {
      table.add_row({{}, {}, {}, {}, {{std::to_string(number), Style::kDim}}, {{text, Style::kDim}}});
      return;
    }
    const double self_percent = percent_of(found->self_ns, all_ns_);
    const Style style = heat(self_percent);
    const bool has_source = source.origin != SourceOrigin::kNone;
    table.add_row({{{found->self_ns == 0 ? "·" : format_percent(self_percent), style}},
                   {{bar(share_of_hottest(found->self_ns), page_.width >= 100 ? 8 : 4), style}},
                   {{scale_.format(found->self_ns), style}},
                   {{scale_.format(found->total_ns)}},
                   {{std::to_string(number)}},
                   {{has_source ? text : function_name(profile_, found->function)}}});
  }

  const profile::Profile& profile_;
  const LinesOptions& options_;
  const Page& page_;
  const std::int64_t all_ns_;
  const TimeScale scale_;
  std::int64_t hottest_ns_ = 0;
};

}  // namespace

std::string render_lines(const profile::Profile& profile, const LineReport& report, const SourceFinder& find_source,
                         const LinesOptions& options, const Page& page) {
  const LinesRenderer renderer(profile, report, options, page);
  std::string out;
  std::size_t shown = 0, unseen = 0;
  std::int64_t unseen_ns = 0;
  for (const FileReport& file : report.files) {
    const bool within_limit = options.limit == 0 || shown < options.limit;
    if (within_limit && renderer.has_heavy_line(file)) {
      if (shown++ > 0) out += "\n";
      out += renderer.section(file, find_source(profile.strings[file.file]));
    } else {
      ++unseen;
      unseen_ns += file.self_ns;
    }
  }
  const auto add_note = [&](const std::string& line) {
    out += page.paint(Style::kDim, cut_right(line, page.width)) + "\n";
  };
  if (unseen > 0 || report.without_line_ns > 0) out += "\n";
  if (unseen > 0)
    add_note(fmt::format("not shown: {} file{} with {} self time together (--limit 0 --min-percent 0 shows all)",
                         format_count(unseen), unseen == 1 ? "" : "s", format_time(unseen_ns)));
  if (report.without_line_ns > 0)
    add_note(fmt::format("not shown: {} self time in code without source lines (see the view flat)",
                         format_time(report.without_line_ns)));
  return out;
}

}  // namespace plimsoll::cli
