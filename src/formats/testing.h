// formats/testing.h: reading back what the writers wrote, for tests only.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <boost/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::formats::testing {

// The contents of gzipped bytes; a failure of the test, and nothing, if they are not that.
inline std::string gunzip(std::string_view bytes) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  std::array<char, 4096> buffer;
  int state = Z_OK;
  while (state == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    state = inflate(&stream, Z_NO_FLUSH);
    out.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  EXPECT_EQ(state, Z_STREAM_END) << "not a whole gzip file";
  return state == Z_STREAM_END ? out : std::string{};
}

// The value of a JSON text; a failure of the test, and null, if it is not JSON.
inline boost::json::value parse_json(std::string_view text) {
  boost::json::error_code error;
  boost::json::value value = boost::json::parse({text.data(), text.size()}, error);
  EXPECT_FALSE(error) << error.message() << " in " << text.substr(0, 200);
  return value;
}

// The value at a JSON pointer; a failure of the test, and null, if there is none.
inline const boost::json::value& at(const boost::json::value& root, std::string_view pointer) {
  static const boost::json::value null;
  boost::json::error_code error;
  const boost::json::value* found = root.find_pointer({pointer.data(), pointer.size()}, error);
  EXPECT_NE(found, nullptr) << "nothing at " << pointer;
  return found == nullptr ? null : *found;
}

inline std::int64_t int_at(const boost::json::value& root, std::string_view pointer) {
  const boost::json::value& value = at(root, pointer);
  EXPECT_TRUE(value.is_int64()) << pointer;
  return value.is_int64() ? value.get_int64() : 0;
}
inline std::string text_at(const boost::json::value& root, std::string_view pointer) {
  const boost::json::value& value = at(root, pointer);
  EXPECT_TRUE(value.is_string()) << pointer;
  return value.is_string() ? std::string(value.get_string()) : std::string{};
}
inline std::size_t size_at(const boost::json::value& root, std::string_view pointer) {
  const boost::json::value& value = at(root, pointer);
  EXPECT_TRUE(value.is_array()) << pointer;
  return value.is_array() ? value.get_array().size() : 0;
}
// The value as JSON again, for comparing small parts as text.
inline std::string json_at(const boost::json::value& root, std::string_view pointer) {
  return boost::json::serialize(at(root, pointer));
}

}  // namespace plimsoll::formats::testing
