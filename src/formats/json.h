// formats/json.h: JSON text, written front to back.
//
// A profile has millions of numbers and few texts. So there is no document in memory: numbers go straight into the
// output, and only texts pass through Boost.JSON for their escapes.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace plimsoll::formats {

// Appends JSON to a string. Puts the commas; that begin and end match, and that an object has a key before each
// value, is the caller's part.
class JsonWriter {
 public:
  // `out` must outlive the writer.
  explicit JsonWriter(std::string& out) : out_(out) {}

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }

  // The name of the next value. ASCII without quotes or escapes; for any other name use text_key.
  void key(std::string_view name) {
    separate();
    out_ += '"';
    out_ += name;
    out_ += "\":";
    needs_comma_ = false;
  }
  void text_key(std::string_view name) {
    text(name);
    out_ += ':';
    needs_comma_ = false;
  }

  // A text of any bytes; invalid UTF-8 becomes U+FFFD.
  void text(std::string_view value);
  void integer(std::int64_t value) {
    separate();
    append_number(value);
  }
  // The shortest decimal that is read as the same number; null for what is none, or infinite.
  void number(double value);
  // Nanoseconds as a number of milliseconds, exactly: 1500000 is written 1.5.
  void milliseconds(std::int64_t ns);
  void boolean(bool value) { literal(value ? "true" : "false"); }
  void null() { literal("null"); }

  // "name":[...] with write_one(element) called for each element of `range`.
  template <typename Range, typename WriteOne>
  void column(std::string_view name, const Range& range, WriteOne write_one) {
    key(name);
    begin_array();
    for (const auto& element : range) write_one(element);
    end_array();
  }
  void member(std::string_view name, std::string_view value) {
    key(name);
    text(value);
  }
  void member(std::string_view name, std::int64_t value) {
    key(name);
    integer(value);
  }

 private:
  void separate() {
    if (needs_comma_) out_ += ',';
    needs_comma_ = true;
  }
  void open(char bracket) {
    separate();
    out_ += bracket;
    needs_comma_ = false;
  }
  void close(char bracket) {
    out_ += bracket;
    needs_comma_ = true;
  }
  void literal(std::string_view value) {
    separate();
    out_ += value;
  }
  void append_number(std::int64_t value) {
    char digits[20];
    const auto result = std::to_chars(digits, digits + sizeof digits, value);
    out_.append(digits, result.ptr);
  }

  std::string& out_;
  bool needs_comma_ = false;
};

}  // namespace plimsoll::formats
