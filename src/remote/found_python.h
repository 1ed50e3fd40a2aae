// remote/found_python.h: the CPython in a file that a process has loaded, and which one it is: for a process that runs
// and for its core file.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cpython/layout.h"
#include "memory/reader.h"
#include "remote/elf_symbols.h"

namespace plimsoll::remote {

// An interpreter as its file tells of it, and where the file is loaded.
struct FoundPython {
  // What is looked for, in the order of elf.symbols.
  enum Name : std::uint8_t { kRuntime, kCodeType, kVersion, kSince310, kSince39, kNameCount };
  static constexpr std::array<std::string_view, kNameCount> kNames{
      "_PyRuntime", "PyCode_Type",
      "Py_Version",            // a constant since 3.11
      "Py_NewRef",             // a function that 3.10 was the first to have
      "PyObject_CallNoArgs"};  // and 3.9

  std::uint64_t bias = 0;
  ElfSymbols elf;

  [[nodiscard]] std::optional<Address> at(Name name) const {
    const auto& symbol = elf.symbols[name];
    return symbol ? std::optional(Address{bias + *symbol}) : std::nullopt;
  }
  [[nodiscard]] std::optional<Address> runtime() const {
    if (const auto symbol = at(kRuntime)) return symbol;
    return elf.python_runtime ? std::optional(Address{bias + *elf.python_runtime}) : std::nullopt;
  }
};

// Looks for an interpreter in an open file that is loaded at `start`.
inline std::optional<FoundPython> look_for_python(int descriptor, std::uint64_t start) {
  std::optional<ElfSymbols> elf = read_elf_symbols(descriptor, FoundPython::kNames);
  if (!elf) return std::nullopt;
  FoundPython found{start - elf->first_address, std::move(*elf)};
  if (!found.runtime()) return std::nullopt;
  return found;
}

// From 3.13 on the runtime itself says which version it is of.
template <memory::Reader M>
std::optional<cpython::Version> published_version(const M& memory, Address runtime) {
  using cpython::Version;
  constexpr std::string_view kCookie = "xdebugpy";
  struct {
    std::array<char, 8> cookie;
    std::uint64_t hex, is_free;
  } head{};
  if (!memory.read(runtime, &head, sizeof head) || std::string_view(head.cookie.data(), head.cookie.size()) != kCookie)
    return std::nullopt;
  return Version::from_hex(static_cast<std::uint32_t>(head.hex),
                           head.is_free != 0 ? Version::Threading::kFree : Version::Threading::kGil);
}

// A part of a process's memory.
struct MemoryRange {
  std::uint64_t start = 0, end = 0;
};

// Up to 3.10 the version is known by what there is, but for the last number, which stands in the text for sys.version:
// "3.9.18 (main, ...", somewhere in the interpreter's variables.
template <memory::Reader M>
unsigned micro_version(const M& memory, std::span<const MemoryRange> variables, unsigned minor) {
  constexpr std::uint64_t kMost = std::uint64_t{16} << 20U;
  const std::string start = "3." + std::to_string(minor) + ".";
  for (const MemoryRange& range : variables) {
    std::string text(std::min(range.end - range.start, kMost), '\0');
    if (!memory.read(Address{range.start}, text.data(), text.size())) continue;
    for (std::size_t at = text.find(start); at != std::string::npos; at = text.find(start, at + 1)) {
      unsigned micro = 0;
      const char* from = text.data() + at + start.size();
      const char* end = text.data() + text.size();
      const auto number = std::from_chars(from, end, micro);
      if (number.ec == std::errc{} && std::string_view(number.ptr, end).starts_with(" (")) return micro;
    }
  }
  return 0;
}

// Which Python it is. Minor version 8 stands for all that are older than 3.9. `variables`() tells where the
// interpreter's are, as ranges.
template <memory::Reader M, typename Variables>
cpython::Version version_of(const M& memory, const FoundPython& found, Variables variables) {
  using cpython::Version;
  if (const auto published = published_version(memory, *found.runtime())) return *published;
  std::uint32_t hex = 0;
  if (found.at(FoundPython::kVersion) && memory.load(*found.at(FoundPython::kVersion), hex))
    return Version::from_hex(hex, Version::Threading::kGil);
  const unsigned minor = found.at(FoundPython::kSince310) ? 10 : found.at(FoundPython::kSince39) ? 9 : 8;
  return {3, minor, micro_version(memory, variables(), minor)};
}

}  // namespace plimsoll::remote
