// native/code_names.h: names of code that is made at run time, as JITs tell them: stretches of addresses, of which a
// later one takes the place of those before. And what they write it down in: perf's map, lines of text, and jitdump,
// records.
//
// Formats: tools/perf/Documentation/jit-interface.txt and jitdump-specification.txt of Linux. Whatever stands in the
// files, no more than kMostNames and kMostBytes of them are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace plimsoll::native {

// The names that are known, by where their code is.
class CodeNames {
 public:
  static constexpr std::size_t kMostNames = 1'000'000;
  static constexpr std::size_t kLongestName = 4096;
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20U;

  // A stretch of code.
  struct Function {
    std::uint64_t end = 0;
    std::string name;
  };
  // Where it begins, and what it is; null if nothing is known of the address.
  [[nodiscard]] const std::pair<const std::uint64_t, Function>* find(std::uint64_t address) const {
    auto after = functions_.upper_bound(address);
    if (after == functions_.begin()) return nullptr;
    --after;
    return address < after->second.end ? &*after : nullptr;
  }
  void add(std::uint64_t start, std::uint64_t size, std::string_view name);
  // The code has been moved.
  void move(std::uint64_t from, std::uint64_t to, std::uint64_t size);
  [[nodiscard]] std::size_t size() const { return functions_.size(); }
  // visit(start, Function) for all of them.
  template <typename Visit>
  void each(Visit visit) const {
    for (const auto& [start, function] : functions_) visit(start, function);
  }

 private:
  std::map<std::uint64_t, Function>::iterator erase(std::map<std::uint64_t, Function>::iterator at);

  std::map<std::uint64_t, Function> functions_;
  std::size_t bytes_ = 0;  // of the names
};

// Adds what stands in the next bytes of a file, which may end anywhere. How many of them were dealt with: the others
// are to come again, with what follows them.
std::size_t read_perf_map(std::string_view bytes, CodeNames& names);
// The same of a jitdump, at whose beginning `is_begun` is false. One of another machine's byte order, or that is none,
// is passed over whole.
std::size_t read_jitdump(std::string_view bytes, bool& is_begun, CodeNames& names);

}  // namespace plimsoll::native
