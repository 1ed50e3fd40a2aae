#include "remote/target.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"
#include "os/os.h"
#include "remote/elf_symbols.h"
#include "remote/found_python.h"
#include "remote/permission.h"

namespace plimsoll::remote {
namespace {

// The first mapping of each mapped file that has code, those of the lowest rank first.
template <typename Rank>
std::vector<const os::Mapping*> images(const std::vector<os::Mapping>& mappings, Rank rank) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> with_code;  // device and inode
  for (const os::Mapping& mapping : mappings)
    if (mapping.inode != 0 && mapping.is_executable) with_code.emplace(mapping.device, mapping.inode);
  std::vector<const os::Mapping*> found;
  for (const os::Mapping& mapping : mappings)
    if (mapping.file_offset == 0 && with_code.erase({mapping.device, mapping.inode}) > 0) found.push_back(&mapping);
  std::stable_sort(found.begin(), found.end(), [&](const auto* a, const auto* b) { return rank(*a) < rank(*b); });
  return found;
}

// Where the variables of a loaded file are.
std::vector<MemoryRange> variables_of(const std::vector<os::Mapping>& mappings, const os::Mapping& image) {
  std::vector<MemoryRange> found;
  std::uint64_t image_end = image.end;
  for (const os::Mapping& mapping : mappings) {
    const bool is_of_image = os::are_of_one_file(mapping, image);
    // Variables that begin as zero follow the file's own in a mapping without a name.
    const bool follows = mapping.inode == 0 && mapping.start == image_end && mapping.path.empty();
    if (!is_of_image && !follows) continue;
    image_end = mapping.end;
    if (mapping.is_writable) found.push_back({mapping.start, mapping.end});
  }
  return found;
}

std::string name_of(os::Pid pid) { return "process " + std::to_string(static_cast<int>(pid)); }

Error has_ended(os::Pid pid) { return Error{ErrorKind::kBadInput, name_of(pid) + " has ended"}; }

// There is no memory that is its first thread's.
Error no_memory(os::Pid pid) {
  if (os::is_kernel_thread(pid)) return Error{ErrorKind::kUnsupported, name_of(pid) + " is a thread of the kernel"};
  for (const os::Task& task : os::tasks_of(pid)) {
    // (One that ends gives up its memory before the kernel says so of its threads.)
    const os::Pid thread{static_cast<std::int32_t>(task.tid)};
    const Result<std::vector<os::Mapping>> mappings = os::mappings_of(thread);
    if (thread != pid && mappings.ok() && !mappings.value().empty())
      return Error{ErrorKind::kUnsupported,
                   "the first thread of " + name_of(pid) + " has ended, by which the kernel shows its memory: give " +
                       std::to_string(static_cast<int>(task.tid)) + " instead, a thread that goes on"};
  }
  return has_ended(pid);
}

// The process that a number is of, which may be that of another of its threads than the first: what a process has used
// is known by its own number only. As given if the first thread has ended, by whose number no memory is shown.
os::Pid process_of(os::Pid pid) {
  constexpr std::string_view kField = "\nTgid:\t";
  const std::string status = os::task_status(pid, Tid{static_cast<std::int32_t>(pid)});
  const std::size_t field = status.find(kField);
  std::int32_t number = 0;
  if (field == std::string::npos) return pid;
  std::from_chars(status.data() + field + kField.size(), status.data() + status.size(), number);
  if (number <= 0 || os::Pid{number} == pid) return pid;
  const Result<std::vector<os::Mapping>> mappings = os::mappings_of(os::Pid{number});
  return mappings.ok() && !mappings.value().empty() ? os::Pid{number} : pid;
}

// No interpreter was found. `unopened` could not be looked into, and may be one; null if there is no such file.
Error no_python(os::Pid pid, const std::string& program, const os::Mapping* unopened) {
  if (unopened == nullptr) return Error{ErrorKind::kUnsupported, name_of(pid) + " is not CPython: it runs " + program};
  if (!os::is_alive(pid)) return has_ended(pid);
  if (program.empty()) return refusal(pid);  // nor may it be known what it runs
  constexpr std::string_view kDeleted = " (deleted)";
  const bool is_deleted = unopened->path.ends_with(kDeleted);
  const std::string path = unopened->path.substr(0, unopened->path.size() - (is_deleted ? kDeleted.size() : 0));
  return Error{ErrorKind::kPermission,
               path + (is_deleted ? " was replaced or removed after " : " cannot be opened as ") + name_of(pid) +
                   (is_deleted ? " had loaded it, by an update, say" : " has it") +
                   ": put sudo before the command, or start the process anew"};
}

// Why memory that a process had a moment ago cannot be read.
Error gone_meanwhile(os::Pid pid) {
  if (!os::is_alive(pid)) return has_ended(pid);
  return Error{ErrorKind::kBadInput, name_of(pid) + " has become another program while it was looked at"};
}

Result<Target> open_target(os::Pid pid, const FoundPython& found, const std::vector<os::Mapping>& mappings,
                           const os::Mapping& image) {
  Target target;
  target.pid = pid;
  target.image = image.path;
  target.has_greenlets = std::any_of(mappings.begin(), mappings.end(),
                                     [](const os::Mapping& mapping) { return is_greenlet_module(mapping.path); });
  target.runtime = *found.runtime();
  target.code_type = found.at(FoundPython::kCodeType).value_or(Address{});
  const memory::RemoteReader memory = target.memory();
  std::uint64_t probe = 0;
  errno = 0;
  if (!memory.load(target.runtime, probe)) {
    if (errno == EPERM) return refusal(pid);
    return gone_meanwhile(pid);
  }
  const cpython::Version version = version_of(memory, found, [&] { return variables_of(mappings, image); });
  if (version.major == 3 && version.minor < 9)
    return Error{ErrorKind::kUnsupported,
                 name_of(pid) + " runs a Python before 3.9: Plimsoll knows CPython 3.9 to 3.15"};
  Result<cpython::Layout> layout = cpython::find_layout(memory, version, target.runtime);
  if (!layout.ok()) return memory.load(target.runtime, probe) ? layout.error() : gone_meanwhile(pid);
  target.layout = layout.take();
  return target;
}

}  // namespace

Result<Target> find_target(os::Pid given) {
  const os::Pid pid = process_of(given);
  const Result<std::vector<os::Mapping>> mappings = os::mappings_of(pid);
  if (!mappings.ok()) return mappings.error().kind == ErrorKind::kPermission ? refusal(pid) : mappings.error();
  const std::string program = os::program_file(pid);
  if (mappings.value().empty()) return no_memory(pid);
  const auto rank = [&](const os::Mapping& mapping) {
    if (mapping.path == program) return 0;
    return mapping.path.find("python") != std::string::npos ? 1 : 2;
  };
  const os::Mapping* unopened = nullptr;
  for (const os::Mapping* image : images(mappings.value(), rank)) {
    const UniqueFd file = os::open_mapped_file(pid, *image);
    const bool may_be_python = rank(*image) < 2 || program.empty();
    if (!file.is_open() && unopened == nullptr && may_be_python) unopened = image;
    if (!file.is_open()) continue;
    if (const std::optional<FoundPython> found = look_for_python(file.get(), image->start))
      return open_target(pid, *found, mappings.value(), *image);
  }
  return no_python(pid, program, unopened);
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

Result<Target> find_named_target(os::Pid pid) {
  constexpr std::int64_t kYoung = 2'000'000'000;
  return await_target(pid, [pid] { return os::age_ns(pid) > kYoung || !os::is_alive(pid); });
}

}  // namespace plimsoll::remote
