// cli/suggest.cc: nearest word by edit distance, where swapping two neighbours is one edit.
#include "cli/suggest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace plimsoll::cli {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table: the row before last is what a swap refers to.
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3 + 1);
  for (const std::string_view candidate : candidates) {
    // What begins like the word is what tab completion would have given.
    const bool begins = word.size() >= 2 && candidate.starts_with(word);
    const std::size_t distance = begins ? 0 : edit_distance(word, candidate);
    // Of several, the shortest: --native, not --native-memory.
    const bool is_shorter = begins && best_distance == 0 && candidate.size() < best.size();
    if (distance < best_distance || is_shorter) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates) {
  const std::string_view found = nearest(word, candidates);
  return found.empty() ? std::string{} : fmt::format("; did you mean \"{}\"?", found);
}

std::string no_such(std::string_view kind, std::string_view word, const std::vector<std::string_view>& candidates) {
  const std::string_view found = nearest(word, candidates);
  const std::string hint = found.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", found);
  return fmt::format("there is no {} \"{}\"{}; there are {}", kind, word, hint, comma_list(candidates));
}

std::string comma_list(const std::vector<std::string_view>& words) { return fmt::format("{}", fmt::join(words, ", ")); }

}  // namespace plimsoll::cli
