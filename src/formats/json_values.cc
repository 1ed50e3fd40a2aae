// formats/json_values.cc: members and elements, if they are there.
#include "formats/json_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

namespace plimsoll::formats {

namespace json = boost::json;

namespace {

constexpr std::size_t kEscapeSize = 6;  // "\ud83d"

// The number that an escape at the beginning of a text stands for; none if there is no such escape.
std::optional<std::uint32_t> escaped(std::string_view text) {
  std::uint32_t number = 0;
  if (text.size() < kEscapeSize || !text.starts_with("\\u")) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + kEscapeSize, number, 16);
  return error == std::errc{} && end == text.data() + kEscapeSize ? std::optional(number) : std::nullopt;
}
bool is_first_half(std::optional<std::uint32_t> number) { return number >= 0xd800U && number < 0xdc00U; }
bool is_second_half(std::optional<std::uint32_t> number) { return number >= 0xdc00U && number < 0xe000U; }

// Python writes a name that is no text, as one of a file with any bytes may be, with halves of characters, which
// Boost.JSON takes for no JSON. They become U+FFFD; none if there are none.
std::optional<std::string> without_half_characters(std::string_view text) {
  std::string whole;
  std::size_t copied = 0;
  for (std::size_t at = text.find('\\'); at < text.size(); at = text.find('\\', at)) {
    const std::optional<std::uint32_t> number = escaped(text.substr(at));
    const bool is_pair = is_first_half(number) && is_second_half(escaped(text.substr(at + kEscapeSize)));
    const std::size_t size = is_pair ? 2 * kEscapeSize : number ? kEscapeSize : 2;
    if (!is_pair && (is_first_half(number) || is_second_half(number))) {
      whole.append(text.substr(copied, at - copied)).append("\\ufffd");
      copied = at + size;
    }
    at += size;
  }
  return copied == 0 ? std::nullopt : std::optional(whole.append(text.substr(copied)));
}

Result<json::value> parse_strictly(std::string_view text, json::storage_ptr storage) {
  json::error_code error;
  json::stream_parser parser(std::move(storage));
  const std::size_t read = parser.write(text.data(), text.size(), error);
  if (!error) parser.finish(error);
  if (error)
    return Error{ErrorKind::kBadInput, "not whole JSON: " + error.message() + " after byte " + std::to_string(read)};
  return parser.release();
}

}  // namespace

Result<json::value> parse_json(std::string_view text, json::storage_ptr storage) {
  Result<json::value> value = parse_strictly(text, storage);
  if (value.ok()) return value;
  const std::optional<std::string> whole = without_half_characters(text);
  return whole ? parse_strictly(*whole, std::move(storage)) : std::move(value);
}

const json::value* member(const json::value* object, std::string_view name) {
  if (object == nullptr || !object->is_object()) return nullptr;
  return object->get_object().if_contains({name.data(), name.size()});
}

const json::array* array_member(const json::value* object, std::string_view name) {
  const json::value* found = member(object, name);
  return found == nullptr ? nullptr : found->if_array();
}

std::string_view text_of(const json::value* value) {
  const json::string* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string_view{} : std::string_view{text->data(), text->size()};
}
std::string_view text_member(const json::value* object, std::string_view name) { return text_of(member(object, name)); }

std::optional<double> number_of(const json::value* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_int64()) return static_cast<double>(value->get_int64());
  if (value->is_uint64()) return static_cast<double>(value->get_uint64());
  if (value->is_double() && std::isfinite(value->get_double())) return value->get_double();
  return std::nullopt;
}
std::optional<double> number_member(const json::value* object, std::string_view name) {
  return number_of(member(object, name));
}

std::optional<std::int64_t> integer_of(const json::value* value) {
  constexpr double kLargest = 9e18;
  if (value != nullptr && value->is_int64()) return value->get_int64();
  const std::optional<double> number = number_of(value);
  if (!number || std::abs(*number) > kLargest) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

const json::value* element(const json::array* column, std::size_t row) {
  return column != nullptr && row < column->size() ? &(*column)[row] : nullptr;
}

std::optional<std::size_t> index_of(const json::value* value, std::size_t size) {
  const std::optional<std::int64_t> index = integer_of(value);
  if (!index || *index < 0 || static_cast<std::uint64_t>(*index) >= size) return std::nullopt;
  return static_cast<std::size_t>(*index);
}

bool is_json_with(std::string_view text, std::string_view word) {
  constexpr std::size_t kPart = std::size_t{64} << 10U;
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || text[start] != '{') return false;
  const std::string_view last = text.substr(text.size() - std::min(text.size(), kPart));
  return text.substr(0, kPart).find(word) != std::string_view::npos || last.find(word) != std::string_view::npos;
}

}  // namespace plimsoll::formats
