// formats/vmprof/names.cc: cuts names and maps into their parts.
#include "formats/vmprof/names.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace plimsoll::formats::vmprof {
namespace {

template <typename Number>
std::optional<Number> number(std::string_view digits, int base) {
  Number value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::string_view take_word(std::string_view& line) {
  const std::size_t end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(line.size(), word.size()));
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
  return word;
}

std::optional<Mapping> parse_mapping(std::string_view line) {
  const std::string_view range = take_word(line);
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto start = number<std::uint64_t>(range.substr(0, dash), 16);
  const auto end = number<std::uint64_t>(range.substr(dash + 1), 16);
  if (!start || !end || *start >= *end) return std::nullopt;
  for (int column = 0; column < 4; ++column) take_word(line);  // permissions, offset, device, inode
  return Mapping{*start, *end, line};
}

}  // namespace

CodeName parse_name(std::string_view text) {
  const std::size_t first = text.find(':');
  if (first == std::string_view::npos) return {{}, text, 0, {}};
  // From the right: the line is the last number between two colons, for symbols of C++ and files of Windows have
  // colons.
  for (std::size_t end = text.rfind(':'); end > first && end != std::string_view::npos;
       end = text.rfind(':', end - 1)) {
    const std::size_t start = text.rfind(':', end - 1);
    if (start == std::string_view::npos || start < first) break;
    const auto line = number<std::uint32_t>(text.substr(start + 1, end - start - 1), 10);
    if (!line || start == first) continue;
    const std::string_view file = text.substr(end + 1);
    return {text.substr(0, first), text.substr(first + 1, start - first - 1), std::min(*line, std::uint32_t{INT32_MAX}),
            file == "-" ? std::string_view{} : file};
  }
  return {{}, text, 0, {}};
}

std::vector<Mapping> parse_maps(std::string_view text) {
  std::vector<Mapping> maps;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (const std::optional<Mapping> mapping = parse_mapping(line)) maps.push_back(*mapping);
  }
  std::sort(maps.begin(), maps.end(), [](const Mapping& a, const Mapping& b) { return a.start < b.start; });
  return maps;
}

const Mapping* mapping_at(const std::vector<Mapping>& maps, std::uint64_t address) {
  auto after = std::upper_bound(maps.begin(), maps.end(), address,
                                [](std::uint64_t value, const Mapping& mapping) { return value < mapping.start; });
  if (after == maps.begin()) return nullptr;
  --after;
  return address < after->end ? &*after : nullptr;
}

}  // namespace plimsoll::formats::vmprof
