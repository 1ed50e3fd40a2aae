// formats/tachyon/testing.h: binary profiles of profiling.sampling, drawn as text, for tests only.
//
// A line is a part of the samples, numbers in decimal: "thread TID IID ENCODING", then what the encoding asks for:
// "v N ..." are variable numbers, "b N" a byte. Strings and frames are given apart.
#pragma once

#include <array>
#include <bit>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/varint.h"

namespace plimsoll::formats::tachyon::testing {

// What a file is made of.
struct Drawing {
  std::string_view samples;
  std::uint64_t count = 0;
  std::vector<std::string> strings{"tea.py", "main", "pour", "~", "<GC>"};
  // file, function, line, column
  std::vector<std::array<std::int64_t, 4>> frames{{0, 1, 10, -1}, {0, 2, 20, 4}, {3, 4, -1, -1}};
  bool is_big_endian = false, is_alpha = false, has_statistics = false;
  std::uint64_t mode = 1;
};

// Writes the parts of a file.
class Artist {
 public:
  explicit Artist(const Drawing& drawing) : drawing_(drawing) {}

  std::string draw() {
    const std::string samples = draw_samples();
    std::string strings, frames;
    for (const std::string& text : drawing_.strings) put_bytes(strings, text);
    for (const auto& [file, function, line, column] : drawing_.frames) {
      put_varint(frames, static_cast<std::uint64_t>(file));
      put_varint(frames, static_cast<std::uint64_t>(function));
      for (const std::int64_t number : {line, std::int64_t{0}, column, std::int64_t{0}}) put_signed(frames, number);
      frames += '\xff';
    }
    std::string file = header(samples.size(), strings.size()) + samples + strings + frames;
    if (drawing_.has_statistics) file += statistics();
    const std::string counts = number(drawing_.strings.size(), 4) + number(drawing_.frames.size(), 4);
    return file + counts + number(file.size() + 32, 8) + std::string(16, '\0');
  }

 private:
  [[nodiscard]] std::string number(std::uint64_t value, std::size_t size) const {
    std::string out;
    for (std::size_t i = 0; i < size; ++i)
      out.push_back(static_cast<char>(value >> (8 * (drawing_.is_big_endian ? size - 1 - i : i))));
    return out;
  }
  [[nodiscard]] std::string decimal(double value) const { return number(std::bit_cast<std::uint64_t>(value), 8); }

  [[nodiscard]] std::string header(std::size_t samples, std::size_t strings) const {
    const std::uint64_t table = 64 + samples;
    std::string out = number(0x54414348, 4) + number(1, 4) + std::string("\x03\x0f\x02\x00", 4) + number(5'000, 8) +
                      number(1'000, 8) + number(drawing_.count, drawing_.is_alpha ? 4 : 8) + number(1, 4) +
                      number(table, 8) + number(table + strings, 8) + number(0, 4);
    if (drawing_.is_alpha) return out + std::string(64 - out.size(), '\0');
    return out + number(drawing_.mode, 4);
  }
  [[nodiscard]] std::string statistics() const {
    return decimal(2.0) + decimal(500) + decimal(1.0) + decimal(0.5) + number(3, 4) + number(0, 4) + "TACHSTAT" +
           number(1, 4) + number(56, 4);
  }
  [[nodiscard]] std::string draw_samples() const {
    std::istringstream words{std::string(drawing_.samples)};
    std::string out, word;
    bool is_byte = false;
    for (std::uint64_t value = 0; words >> word;) {
      if (word == "thread") {
        std::uint64_t tid = 0, interpreter = 0, encoding = 0;
        words >> tid >> interpreter >> encoding;
        out += number(tid, 8) + number(interpreter, 4) + static_cast<char>(encoding);
      } else if (word == "v" || word == "b") {
        is_byte = word == "b";
      } else {
        value = std::stoull(word);
        if (is_byte)
          out += static_cast<char>(value);
        else
          put_varint(out, value);
      }
    }
    return out;
  }

  const Drawing& drawing_;
};

// The bytes of a drawing.
inline std::string draw_file(const Drawing& drawing) { return Artist(drawing).draw(); }

}  // namespace plimsoll::formats::tachyon::testing
