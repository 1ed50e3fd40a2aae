// formats/perf/lines.cc: words of a line, and what they look like; which of them are there, the user has chosen.
#include "formats/perf/lines.h"

#include <algorithm>
#include <vector>

#include "formats/text_lines.h"

namespace plimsoll::formats::perf {
namespace {

using profile::FunctionKind;

constexpr std::string_view kUnknown = "[unknown]";
constexpr std::size_t kLongestLine = std::size_t{1} << 16U;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t start = line.find_first_not_of(" \t");
    if (start == std::string_view::npos) return words;
    line.remove_prefix(start);
    words.push_back(line.substr(0, line.find_first_of(" \t")));
    line.remove_prefix(words.back().size());
  }
}

// "64951.051010:", in seconds, with six or nine digits behind the point.
std::optional<std::int64_t> parse_time(std::string_view word) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr std::int64_t kLatestSecond = 4'000'000'000;
  const std::size_t point = word.find('.');
  if (point == std::string_view::npos || !word.ends_with(':')) return std::nullopt;
  const std::string_view digits = word.substr(point + 1, word.size() - point - 2);
  const std::optional<std::int64_t> seconds = integer(word.substr(0, point));
  std::optional<std::int64_t> fraction = integer(digits);
  if (!seconds || !fraction || digits.size() > 9 || *seconds < 0 || *seconds > kLatestSecond || *fraction < 0)
    return std::nullopt;
  for (std::size_t place = digits.size(); place < 9; ++place) *fraction *= 10;
  return *seconds * kSecond + *fraction;
}

// "5777" or "5777/5778".
bool parse_ids(std::string_view word, SampleLine& line) {
  const std::size_t slash = word.find('/');
  const std::optional<std::int64_t> last = integer(word.substr(slash == std::string_view::npos ? 0 : slash + 1));
  const std::optional<std::int64_t> first =
      slash == std::string_view::npos ? std::optional<std::int64_t>(0) : integer(word.substr(0, slash));
  if (!first || !last) return false;
  line.pid = *first;
  line.tid = *last;
  return true;
}

// "[001]".
std::int64_t parse_cpu(std::string_view word) {
  if (!word.starts_with('[') || !word.ends_with(']')) return -1;
  return integer(word.substr(1, word.size() - 2)).value_or(-1);
}

// "cycles" of "cycles:ppp:", "cycles:P:" and "cpu_core/cycles/P:".
std::string_view event_name(std::string_view word) {
  word = word.substr(0, word.find(':'));
  if (const std::size_t slash = word.find('/'); slash != std::string_view::npos) {
    word.remove_prefix(slash + 1);
    word = word.substr(0, word.find('/'));
  }
  return word;
}

// The words of a sample's line that are found, by index; none that is the number of words.
struct Places {
  std::size_t ids = 0;
  std::size_t event = 0;
};
// The time is the one word that nothing else looks like; the ids stand before it, with the CPU and flags between. A
// name of a thread may have blanks, and looks like numbers only if somebody wants it to.
std::optional<Places> find_places(const std::vector<std::string_view>& words, SampleLine& line) {
  const auto time = std::find_if(words.begin(), words.end(), [](std::string_view word) { return parse_time(word); });
  if (time == words.end()) {
    for (std::size_t ids = 1; ids + 1 < words.size(); ++ids)
      if (parse_ids(words[ids], line)) return Places{ids, words[ids + 1].starts_with('[') ? ids + 2 : ids + 1};
    return std::nullopt;
  }
  line.time_ns = parse_time(*time);
  const auto index = static_cast<std::size_t>(time - words.begin());
  for (std::size_t ids = index; ids-- > 1;)
    if (parse_ids(words[ids], line)) return Places{ids, index + 1};
  return std::nullopt;
}

// The position behind the last word of a line that is cut into them.
std::string_view rest_behind(std::string_view line, std::string_view word) {
  return line.substr(static_cast<std::size_t>(word.data() - line.data()) + word.size());
}

bool is_hexadecimal(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t");
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(" \t") - start + 1);
}

// "name" of "name+0x1f".
std::string_view without_offset(std::string_view symbol) {
  const std::size_t plus = symbol.rfind("+0x");
  return plus != std::string_view::npos && is_hexadecimal(symbol.substr(plus + 3)) ? symbol.substr(0, plus) : symbol;
}

// What CPython calls its trampolines: "py::function:file".
std::optional<ForeignFrame> parse_python(std::string_view symbol) {
  constexpr std::string_view kPrefix = "py::";
  if (!symbol.starts_with(kPrefix)) return std::nullopt;
  symbol.remove_prefix(kPrefix.size());
  const std::size_t colon = symbol.find(':');
  if (colon == std::string_view::npos) return ForeignFrame{.name = symbol, .file = {}, .kind = FunctionKind::kPython};
  return ForeignFrame{.name = symbol.substr(0, colon), .file = symbol.substr(colon + 1), .kind = FunctionKind::kPython};
}

// The file in brackets at the end of a frame, which is taken away; the name of a file may end in " (deleted)".
std::string_view take_file(std::string_view& text) {
  constexpr std::string_view kDeleted = " (deleted))";
  if (!text.ends_with(')')) return {};
  const std::size_t before = text.ends_with(kDeleted) ? text.size() - kDeleted.size() : text.size();
  const std::size_t open = text.substr(0, before).rfind('(');
  if (open == std::string_view::npos) return {};
  const std::string_view file = text.substr(open + 1, text.size() - open - 2);
  text = without_blanks(text.substr(0, open));
  return file;
}

}  // namespace

std::optional<SampleLine> parse_sample(std::string_view text) {
  if (text.empty() || text.size() > kLongestLine) return std::nullopt;
  const std::vector<std::string_view> words = words_of(text);
  SampleLine line;
  const std::optional<Places> places = find_places(words, line);
  if (!places) return std::nullopt;
  line.comm = without_blanks(text.substr(0, static_cast<std::size_t>(words[places->ids].data() - text.data())));
  if (places->ids + 1 < words.size()) line.cpu = parse_cpu(words[places->ids + 1]);
  std::size_t event = places->event;
  if (event < words.size())
    if (const std::optional<std::int64_t> period = integer(words[event])) {
      line.period = *period;
      ++event;
    }
  // Without an event there is nothing that tells such a line from any other text with a time in it.
  if (event >= words.size() || !words[event].ends_with(':') || words[event].size() < 2) return std::nullopt;
  line.event = event_name(words[event]);
  line.frame = without_blanks(rest_behind(text, words[event]));
  return line;
}

std::optional<ForeignFrame> parse_frame(std::string_view line) {
  if (line.size() > kLongestLine) return std::nullopt;
  std::string_view text = without_blanks(line);
  const std::string_view address = text.substr(0, text.find_first_of(" \t"));  // (a tab: Android's simpleperf)
  if (!is_hexadecimal(address)) return std::nullopt;
  text = without_blanks(text.substr(address.size()));
  std::string_view file = take_file(text);
  const std::string_view symbol = without_offset(text);
  if (const std::optional<ForeignFrame> python = parse_python(symbol)) return python;
  if (file == kUnknown || file == "inlined") file = {};
  const bool is_unknown = symbol.empty() || symbol == kUnknown;
  const bool is_nothing = is_unknown && file.empty();
  return ForeignFrame{.name = is_unknown ? kUnknown : symbol,
                      .file = file,
                      .kind = is_nothing ? FunctionKind::kSynthetic : FunctionKind::kNative};
}

}  // namespace plimsoll::formats::perf
