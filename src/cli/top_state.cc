#include "cli/top_state.h"

#include <algorithm>

#include "base/utf8.h"
#include "cli/suggest.h"

namespace plimsoll::cli {
namespace {

using Kind = Key::Kind;

constexpr std::size_t kLongestFilter = 200;

void remove_last_character(std::string& text) {
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0U) == 0x80U) text.pop_back();
  if (!text.empty()) text.pop_back();
}

void press_while_typing(TopState& state, const Key& key) {
  if (key.kind == Kind::kText && state.filter.size() < kLongestFilter) state.filter += key.text;
  if (key.kind == Kind::kBackspace) remove_last_character(state.filter);
  if (key.kind == Kind::kEscape) state.filter = state.filter_before;
  if (key.kind == Kind::kEnter || key.kind == Kind::kEscape) state.is_typing = false;
  state.first_row = 0;
}

void scroll(TopState& state, Kind key, std::size_t page) {
  const auto up = [&](std::size_t rows) { state.first_row -= std::min(state.first_row, rows); };
  if (key == Kind::kUp) up(1);
  if (key == Kind::kPageUp) up(page);
  if (key == Kind::kDown) state.first_row += 1;
  if (key == Kind::kPageDown) state.first_row += page;
  if (key == Kind::kHome) state.first_row = 0;
  if (key == Kind::kEnd) state.first_row = std::size_t{1} << 30U;  // drawing finds out where that is
}

void show(TopState& state, TopSubject subject) {
  state.subject = subject;
  state.first_row = 0;
}

void change_window(TopState& state, char sign) {
  const auto at = std::lower_bound(kTopWindows.begin(), kTopWindows.end(), state.window_ns);
  if (sign == '-' && at != kTopWindows.begin()) state.window_ns = *std::prev(at);
  if (sign == '+')
    if (const auto next = std::upper_bound(kTopWindows.begin(), kTopWindows.end(), state.window_ns);
        next != kTopWindows.end())
      state.window_ns = *next;
}

void begin_to_type(TopState& state) {
  state.filter_before = std::exchange(state.filter, {});
  state.is_typing = true;
}

TopWish press_letter(TopState& state, char letter) {
  switch (letter) {
    case 'q': return TopWish::kQuit;
    case 'p':
    case ' ': state.is_paused = !state.is_paused; break;
    case 's': state.sort = SortBy::kSelf; break;
    case 't': state.sort = SortBy::kTotal; break;
    case 'l': show(state, state.subject == TopSubject::kLines ? TopSubject::kFunctions : TopSubject::kLines); break;
    case 'f': show(state, state.subject == TopSubject::kFlame ? TopSubject::kFunctions : TopSubject::kFlame); break;
    case 'T': show(state, state.subject == TopSubject::kThreads ? TopSubject::kFunctions : TopSubject::kThreads); break;
    case 'w': state.time = state.time == TopTime::kCpu ? TopTime::kWall : TopTime::kCpu; break;
    case '+':
    case '=': change_window(state, '+'); break;
    case '-': change_window(state, '-'); break;
    case '/': begin_to_type(state); break;
    case '?':
    case 'h': state.is_help = true; break;
    default: break;
  }
  return TopWish::kGoOn;
}

}  // namespace

Result<TopSubject> parse_top_subject(std::string_view word) {
  if (word == "functions") return TopSubject::kFunctions;
  if (word == "lines") return TopSubject::kLines;
  if (word == "flame") return TopSubject::kFlame;
  if (word == "threads") return TopSubject::kThreads;
  return Error{ErrorKind::kUsage, no_such("view", word, {"functions", "lines", "flame", "threads"})};
}

Result<TopTime> parse_top_time(std::string_view word) {
  if (word == "cpu") return TopTime::kCpu;
  if (word == "wall") return TopTime::kWall;
  return Error{ErrorKind::kUsage, no_such("mode", word, {"cpu", "wall"})};
}

Result<SortBy> parse_top_sort(std::string_view word) {
  if (word == "self") return SortBy::kSelf;
  if (word == "total") return SortBy::kTotal;
  return Error{ErrorKind::kUsage, no_such("order", word, {"self", "total"})};
}

TopWish press(TopState& state, const Key& key, std::size_t page) {
  const bool is_letter = key.kind == Kind::kText && key.text.size() == 1;
  if (state.is_help) {
    state.is_help = false;
    return is_letter && key.text == "q" ? TopWish::kQuit : TopWish::kGoOn;
  }
  if (state.is_typing) {
    press_while_typing(state, key);
    return TopWish::kGoOn;
  }
  if (is_letter) return press_letter(state, key.text[0]);
  if (key.kind == Kind::kEscape) state.filter.clear();
  scroll(state, key.kind, page);
  return TopWish::kGoOn;
}

}  // namespace plimsoll::cli
