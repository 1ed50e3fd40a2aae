// jitlog/testing.h: jitlogs put together record by record, for tests only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plimsoll::jitlog::testing {

// Appends records; each function is named as its marker.
class LogWriter {
 public:
  LogWriter(std::uint16_t version, bool is_32bit) : version_(version), address_(is_32bit ? 4 : 8) {
    number(0x1e, 1).number(version, 2).number(is_32bit ? 1 : 0, 1).text("x86_64");
  }

  LogWriter& names(std::vector<std::pair<unsigned, std::string_view>> all) {
    number(0x12, 1).number(all.size(), 2);
    for (const auto& [opnum, name] : all) number(opnum, 2).text(name);
    return *this;
  }
  LogWriter& start(std::uint64_t id, std::string_view kind, std::uint64_t guard, std::string_view driver) {
    number(0x1b, 1).address(id).text(kind).address(guard);
    return version_ >= 2 ? text(driver) : *this;
  }
  LogWriter& stage(unsigned marker, std::uint64_t id) { return number(marker, 1).address(id); }
  LogWriter& arguments(std::string_view names) { return number(0x11, 1).text(names); }
  LogWriter& operation(unsigned opnum, std::string_view items) {
    number(0x13, 1).number(opnum, 2).text(items);
    return version_ >= 2 ? text("i1") : *this;
  }
  LogWriter& operation(unsigned opnum, std::string_view items, std::uint64_t descriptor) {
    number(0x14, 1).number(opnum, 2).text(items).address(descriptor);
    return version_ >= 2 ? text("") : *this;
  }
  LogWriter& code_address(std::uint64_t from, std::uint64_t to) { return number(0x15, 1).address(from).address(to); }
  LogWriter& code(unsigned offset, std::string_view bytes) { return number(0x16, 1).number(offset, 2).text(bytes); }
  // file, line, function
  LogWriter& declare_places() {
    number(0x1d, 1).number(3, 2).number(1, 1).number('s', 1).number(2, 1).number('i', 1);
    return number(8, 1).number('s', 1);
  }
  LogWriter& prefix(unsigned index, std::string_view prefix) { return number(0x20, 1).number(index, 1).text(prefix); }
  // A text as it is ("app.py"), behind the prefix ("+.py"), or the prefix ("=").
  LogWriter& place(std::string_view file, std::uint64_t line, std::string_view function) {
    return number(0x1f, 1).place_text(file).number(0, 1).number(line, 8).place_text(function);
  }
  LogWriter& stitch(std::uint64_t guard, std::uint64_t target) {
    return number(0x1a, 1).address(guard).address(target);
  }
  LogWriter& counter(std::uint64_t key, char type, std::uint64_t count) {
    return number(0x1c, 1).address(key).number(static_cast<unsigned char>(type), 1).number(count, 8);
  }
  LogWriter& abort(std::uint64_t id) { return number(0x21, 1).address(id); }
  LogWriter& number(std::uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; ++i) out_.push_back(static_cast<char>(value >> (8 * i)));
    return *this;
  }
  LogWriter& text(std::string_view text) {
    number(text.size(), 4);
    out_ += text;
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return out_; }

 private:
  LogWriter& address(std::uint64_t value) { return number(value, address_); }
  LogWriter& place_text(std::string_view value) {
    if (value == "=") return number(0xef, 1);
    if (value.starts_with('+')) return number(0, 1).text(value.substr(1));
    return number(0xff, 1).text(value);
  }
  std::uint16_t version_;
  unsigned address_;
  std::string out_;
};

// A loop of two functions with a guard that became a bridge.
inline std::string loop_and_bridge(std::uint16_t version, bool is_32bit) {
  LogWriter log(version, is_32bit);
  log.names({{1, "label"}, {2, "int_add_ovf"}, {3, "guard_no_overflow"}, {4, "jump"}, {5, "int_sub"}});
  log.start(7, "loop", 0, "pypyjit").stage(0x17, 7).arguments("i0,i1").declare_places();
  log.place("lib/app.py", 3, "schedule").operation(2, "i2,i0,i1").prefix(0, "lib/app").prefix(2, "run");
  log.place("+.py", 5, "=").operation(3, "?,i2,<Guard, of 9>", 0x90).operation(4, "?,i2,i1,<Loop7>", 0x70);
  log.stage(0x19, 7).arguments("i0,i1").operation(1, "?,i0,i1,<Loop7>", 0x70).operation(2, "i2,i0,i1");
  log.code(4, "\x48\x01\xd8").operation(3, "?,i2,<Guard, of 9>", 0x90).code_address(0x1000, 0x1100);
  log.start(8, "bridge", 0x90, "pypyjit").stage(0x19, 8).arguments("i2").operation(5, "i3,i2,i2");
  log.code_address(0x2000, 0x2010).stitch(0x90, 0x2000);
  log.counter(7, 'e', 11).counter(0x70, 'l', 5000).counter(0x90, 'b', 42).counter(99, 'e', 1);
  return log.bytes();
}

}  // namespace plimsoll::jitlog::testing
