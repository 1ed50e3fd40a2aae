// formats/json_values.h: looking into JSON that may have any shape.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace plimsoll::formats {

// The value of a JSON text, in memory of `storage`'s. Errors (kBadInput) tell where it is no JSON.
Result<boost::json::value> parse_json(std::string_view text, boost::json::storage_ptr storage);

// A profile from a JSON text, by a Reader with read(const boost::json::value&).
template <typename Reader>
auto read_json_with(std::string_view text) -> decltype(Reader().read(boost::json::value())) {
  boost::json::monotonic_resource memory;
  const Result<boost::json::value> file = parse_json(text, &memory);
  if (!file.ok()) return file.error();
  return Reader().read(file.value());
}

// Each gives nothing if there is no such member, or one of another type.
const boost::json::value* member(const boost::json::value* object, std::string_view name);
const boost::json::array* array_member(const boost::json::value* object, std::string_view name);
std::string_view text_member(const boost::json::value* object, std::string_view name);
std::optional<double> number_member(const boost::json::value* object, std::string_view name);

std::optional<double> number_of(const boost::json::value* value);
std::optional<std::int64_t> integer_of(const boost::json::value* value);
std::string_view text_of(const boost::json::value* value);
// The element of a column, of the row of a table; null if there is none.
const boost::json::value* element(const boost::json::array* column, std::size_t row);
// An index into a table of `size` rows; none if it is no such index.
std::optional<std::size_t> index_of(const boost::json::value* value, std::size_t size);

// Whether a text is a JSON object in whose first or last 64 KiB a word stands.
bool is_json_with(std::string_view text, std::string_view word);

}  // namespace plimsoll::formats
