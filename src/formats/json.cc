// formats/json.cc: the texts and decimals of JsonWriter. This is also the one place where Boost.JSON, a header-only
// library unless told otherwise, is compiled.
#include "formats/json.h"

#include <boost/json/src.hpp>
#include <cmath>

#include "formats/labels.h"

namespace plimsoll::formats {

void JsonWriter::text(std::string_view value) {
  separate();
  out_ += boost::json::serialize(boost::json::string_view(valid_utf8(value)));
}

void JsonWriter::number(double value) {
  if (!std::isfinite(value)) return null();
  separate();
  char digits[32];
  const auto result = std::to_chars(digits, digits + sizeof digits, value);
  out_.append(digits, result.ptr);
}

void JsonWriter::milliseconds(std::int64_t ns) {
  constexpr std::uint64_t kPerMillisecond = 1'000'000;
  separate();
  auto magnitude = static_cast<std::uint64_t>(ns);
  if (ns < 0) {
    out_ += '-';
    magnitude = 0 - magnitude;
  }
  append_number(static_cast<std::int64_t>(magnitude / kPerMillisecond));
  std::uint64_t fraction = magnitude % kPerMillisecond;
  if (fraction == 0) return;
  char digits[] = ".000000";
  std::size_t last = 0;
  for (std::size_t place = 6; place > 0; --place, fraction /= 10) {
    digits[place] = static_cast<char>('0' + fraction % 10);
    if (last == 0 && digits[place] != '0') last = place;
  }
  out_.append(digits, last + 1);
}

}  // namespace plimsoll::formats
