#include "remote/target.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>

#include "base/clock.h"
#include "os/os.h"
#include "remote/elf_symbols.h"
#include "remote/permission.h"

namespace plimsoll::remote {
namespace {

using cpython::Version;

// What is looked for, in the order of Found::symbols.
enum Name : std::uint8_t { kRuntime, kCodeType, kVersion, kSince310, kSince39, kNameCount };
constexpr std::array<std::string_view, kNameCount> kNames{"_PyRuntime", "PyCode_Type",
                                                          "Py_Version",  // a constant since 3.11
                                                          "Py_NewRef",   // a function that 3.10 was the first to have
                                                          "PyObject_CallNoArgs"};  // and 3.9

// An interpreter as its file tells of it, and where the file is loaded.
struct Found {
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

// The first mapping of each mapped file that has code, those of the lowest rank first.
template <typename Rank>
std::vector<const os::Mapping*> images(const std::vector<os::Mapping>& mappings, Rank rank) {
  std::set<std::uint64_t> with_code;
  for (const os::Mapping& mapping : mappings)
    if (mapping.inode != 0 && mapping.is_executable) with_code.insert(mapping.inode);
  std::vector<const os::Mapping*> found;
  for (const os::Mapping& mapping : mappings)
    if (mapping.file_offset == 0 && with_code.erase(mapping.inode) > 0) found.push_back(&mapping);
  std::stable_sort(found.begin(), found.end(), [&](const auto* a, const auto* b) { return rank(*a) < rank(*b); });
  return found;
}

std::optional<Found> look_into(os::Pid pid, const os::Mapping& image) {
  const UniqueFd file = os::open_mapped_file(pid, image);
  if (!file.is_open()) return std::nullopt;
  std::optional<ElfSymbols> elf = read_elf_symbols(file.get(), kNames);
  if (!elf) return std::nullopt;
  Found found{image.start - elf->first_address, std::move(*elf)};
  if (!found.runtime()) return std::nullopt;
  return found;
}

// From 3.13 on the runtime itself says which version it is of.
std::optional<Version> published_version(const memory::RemoteReader& memory, Address runtime) {
  constexpr std::string_view kCookie = "xdebugpy";
  std::array<char, 24> head;
  std::uint64_t hex = 0;
  std::uint64_t is_free = 0;
  if (!memory.read(runtime, head.data(), head.size()) || !std::string_view(head.data(), 8).starts_with(kCookie))
    return std::nullopt;
  std::memcpy(&hex, head.data() + 8, sizeof hex);
  std::memcpy(&is_free, head.data() + 16, sizeof is_free);
  return Version::from_hex(static_cast<std::uint32_t>(hex),
                           is_free != 0 ? Version::Threading::kFree : Version::Threading::kGil);
}

// Up to 3.10 the version is known by what there is, but for the last number, which stands in the text for sys.version:
// "3.9.18 (main, ...", somewhere in the interpreter's variables.
unsigned micro_version(const memory::RemoteReader& memory, const std::vector<os::Mapping>& mappings,
                       const os::Mapping& image, unsigned minor) {
  constexpr std::uint64_t kMost = std::uint64_t{16} << 20U;
  const std::string start = "3." + std::to_string(minor) + ".";
  std::uint64_t image_end = image.end;
  for (const os::Mapping& mapping : mappings) {
    const bool is_of_image = mapping.inode == image.inode;
    // Variables that begin as zero follow the file's own in a mapping without a name.
    const bool follows = mapping.inode == 0 && mapping.start == image_end && mapping.path.empty();
    if (!is_of_image && !follows) continue;
    image_end = mapping.end;
    if (!mapping.is_writable) continue;
    std::string text(std::min(mapping.end - mapping.start, kMost), '\0');
    if (!memory.read(Address{mapping.start}, text.data(), text.size())) continue;
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

std::string name_of(os::Pid pid) { return "process " + std::to_string(static_cast<int>(pid)); }

Error has_ended(os::Pid pid) { return Error{ErrorKind::kBadInput, name_of(pid) + " has ended"}; }

// Which Python it is. Minor version 8 stands for all that are older than 3.9.
Version version_of(const memory::RemoteReader& memory, const Found& found, const std::vector<os::Mapping>& mappings,
                   const os::Mapping& image) {
  if (const auto published = published_version(memory, *found.runtime())) return *published;
  std::uint32_t hex = 0;
  if (found.at(kVersion) && memory.load(*found.at(kVersion), hex))
    return Version::from_hex(hex, Version::Threading::kGil);
  const unsigned minor = found.at(kSince310) ? 10 : found.at(kSince39) ? 9 : 8;
  return {3, minor, micro_version(memory, mappings, image, minor)};
}

Result<Target> open_target(os::Pid pid, const Found& found, const std::vector<os::Mapping>& mappings,
                           const os::Mapping& image) {
  Target target;
  target.pid = pid;
  target.image = image.path;
  target.runtime = *found.runtime();
  target.code_type = found.at(kCodeType).value_or(Address{});
  const memory::RemoteReader memory = target.memory();
  std::uint64_t probe = 0;
  if (!memory.load(target.runtime, probe)) return os::is_alive(pid) ? refusal(pid) : has_ended(pid);
  const Version version = version_of(memory, found, mappings, image);
  if (version.major == 3 && version.minor < 9)
    return Error{ErrorKind::kUnsupported,
                 name_of(pid) + " runs a Python before 3.9: Plimsoll knows CPython 3.9 to 3.15"};
  Result<cpython::Layout> layout = cpython::find_layout(memory, version, target.runtime);
  if (!layout.ok()) return layout.error();
  target.layout = layout.take();
  return target;
}

}  // namespace

Result<Target> find_target(os::Pid pid) {
  const Result<std::vector<os::Mapping>> mappings = os::mappings_of(pid);
  if (!mappings.ok()) return mappings.error().kind == ErrorKind::kPermission ? refusal(pid) : mappings.error();
  const std::string program = os::program_file(pid);
  if (mappings.value().empty()) {
    if (!os::is_alive(pid)) return has_ended(pid);
    return Error{ErrorKind::kUnsupported, name_of(pid) + " is a thread of the kernel"};
  }
  const auto rank = [&](const os::Mapping& mapping) {
    if (mapping.path == program) return 0;
    return mapping.path.find("python") != std::string::npos ? 1 : 2;
  };
  for (const os::Mapping* image : images(mappings.value(), rank))
    if (const std::optional<Found> found = look_into(pid, *image))
      return open_target(pid, *found, mappings.value(), *image);
  return Error{ErrorKind::kUnsupported, name_of(pid) + " is not CPython: it runs " + program};
}

std::optional<Address> find_asyncio_debug(os::Pid pid) {
  const Result<std::vector<os::Mapping>> mappings = os::mappings_of(pid);
  if (!mappings.ok()) return std::nullopt;
  // Names prove nothing, but tell where to look first.
  const auto rank = [](const os::Mapping& mapping) {
    if (mapping.path.find("/_asyncio.") != std::string::npos) return 0;
    return mapping.path.find("python") != std::string::npos ? 1 : 2;
  };
  for (const os::Mapping* image : images(mappings.value(), rank)) {
    const UniqueFd file = os::open_mapped_file(pid, *image);
    if (!file.is_open()) continue;
    if (const auto section = find_elf_section(file.get(), ".AsyncioDebug")) return Address{image->start + *section};
  }
  return std::nullopt;
}

Result<Target> await_target(os::Pid pid, const std::function<bool()>& gives_up) {
  constexpr std::int64_t kPatience = 10'000'000'000;
  constexpr std::int64_t kStep = 500'000;
  const std::int64_t end_ns = monotonic_ns() + kPatience;
  while (true) {
    Result<Target> target = find_target(pid);
    const bool is_final = target.ok() || target.error().kind == ErrorKind::kPermission;
    if (is_final || monotonic_ns() >= end_ns || gives_up()) return target;
    os::sleep_until(monotonic_ns() + kStep);
  }
}

}  // namespace plimsoll::remote
