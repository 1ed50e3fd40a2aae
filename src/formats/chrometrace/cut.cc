// formats/chrometrace/cut.cc: one pass over the brackets.
#include "formats/chrometrace/cut.h"

namespace plimsoll::formats::chrometrace {
namespace {

// Behind the last character of a text in quotes that begins at `at`.
std::size_t end_of_quotes(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return at + 1;
}

// Where the last whole object ends that is an element of an array which the outermost value is or has.
struct LastEvent {
  std::size_t end = 0;  // 0 = there is none
  std::string closers;
};
LastEvent last_event(std::string_view text) {
  LastEvent last;
  std::string open;  // brackets, the outermost first
  for (std::size_t at = text.find_first_of("[{"); at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      at = end_of_quotes(text, at) - 1;
    } else if (c == '[' || c == '{') {
      open.push_back(c);
    } else if (c == ']' || c == '}') {
      if (open.empty() || open.back() != (c == ']' ? '[' : '{')) return last;
      open.pop_back();
      if (c == '}' && (open == "[" || open == "{[")) last = {at + 1, open == "[" ? "]" : "]}"};
    }
  }
  return last;
}

}  // namespace

std::optional<WholeEvents> whole_events(std::string_view text) {
  const LastEvent last = last_event(text);
  if (last.end == 0) return std::nullopt;
  const std::string_view rest = text.substr(last.end);
  const bool is_array = last.closers.size() == 1;
  // An object must have its end: what describes the events may stand behind them.
  const bool has_end = is_array || rest.find('}') != std::string_view::npos;
  return WholeEvents{std::string(text.substr(0, last.end)) + last.closers,
                     has_end && rest.find_first_not_of(" \t\r\n,]}") == std::string_view::npos};
}

}  // namespace plimsoll::formats::chrometrace
