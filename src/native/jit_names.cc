#include "native/jit_names.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace plimsoll::native {
namespace {

constexpr std::int64_t kBetweenLooks = 10'000'000, kBetweenSearches = 100'000'000;
// More than this of a file is not read, and no line or record is longer than a piece.
constexpr std::uint64_t kLargest = std::uint64_t{1} << 30U;
constexpr std::size_t kPiece = std::size_t{4} << 20U;
// By so many bytes it is known whether a map is still the same.
constexpr std::size_t kHead = 256;

// "jit-1234.dump", by whose being mapped perf finds it.
bool is_jitdump(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("jit-") && name.ends_with(".dump");
}

// 0 of a file that is not open.
std::uint64_t inode_of(const UniqueFd& fd) {
  struct stat file {};
  return fd.is_open() && ::fstat(fd.get(), &file) == 0 ? file.st_ino : 0;
}

}  // namespace

bool JitNames::is_begun_anew(const Source& map) {
  struct stat file {};
  if (::fstat(map.fd.get(), &file) != 0) return false;
  if (static_cast<std::uint64_t>(file.st_size) < map.read) return true;
  std::array<char, kHead> now;
  const ssize_t count = ::pread(map.fd.get(), now.data(), map.head.size(), 0);
  return count < 0 || std::string_view(now.data(), static_cast<std::size_t>(count)) != map.head;
}

void JitNames::open_map(std::int64_t now_ns) {
  const auto known = std::find_if(sources_.begin(), sources_.end(), [](const Source& at) { return !at.is_dump; });
  const bool is_known = known != sources_.end();
  const bool is_anew = is_known && is_begun_anew(*known);
  if (is_known && !is_anew && now_ns < next_comparison_ns_) return;
  next_comparison_ns_ = now_ns + kBetweenSearches;
  UniqueFd map = os::open_perf_map(process_);
  const std::uint64_t inode = inode_of(map);
  if (!is_known) {
    if (map.is_open()) sources_.push_back({std::move(map), false, false, inode, 0});
    return;
  }
  const bool is_other = map.is_open() && inode != known->inode;
  if (!is_anew && !is_other) return;
  // Which names were the old one's is not known: all are read again.
  names_ = {};
  if (is_other) {
    known->fd = std::move(map);
    known->inode = inode;
  }
  for (Source& source : sources_) {
    source.read = 0;
    source.is_begun = false;
    source.head.clear();
  }
}

void JitNames::open_dumps() {
  const Result<std::vector<os::Mapping>> mappings = os::mappings_of(process_);
  if (!mappings.ok()) return;
  for (const os::Mapping& mapping : mappings.value()) {
    if (!mapping.is_executable || !is_jitdump(mapping.path)) continue;
    const bool is_known = std::any_of(sources_.begin(), sources_.end(), [&](const Source& source) {
      return source.is_dump && source.inode == mapping.inode;
    });
    if (is_known) continue;
    if (UniqueFd dump = os::open_mapped_file(process_, mapping); dump.is_open())
      sources_.push_back({std::move(dump), true, false, mapping.inode, 0});
  }
}

void JitNames::read_on(std::int64_t now_ns) {
  read_ns_ = now_ns;
  for (Source& source : sources_) read_on(source);
}

void JitNames::read_on(Source& source) {
  bytes_.resize(kPiece);
  while (source.read < kLargest) {
    const ssize_t count = ::pread(source.fd.get(), bytes_.data(), bytes_.size(), static_cast<off_t>(source.read));
    if (count <= 0) return;
    const std::string_view bytes = std::string_view(bytes_).substr(0, static_cast<std::size_t>(count));
    if (source.read == 0 && !source.is_dump) source.head = bytes.substr(0, kHead);
    const std::size_t done =
        source.is_dump ? read_jitdump(bytes, source.is_begun, names_) : read_perf_map(bytes, names_);
    // (What fills a piece and is still no line or record is passed over.)
    source.read += done == 0 && bytes.size() == kPiece ? kPiece : done;
    if (done == 0 && bytes.size() < kPiece) return;
  }
}

const std::pair<const std::uint64_t, CodeNames::Function>* JitNames::find(os::Pid process, Address address,
                                                                          std::int64_t time_ns, std::int64_t now_ns) {
  // After a fork it is another process, with other files.
  if (process != process_) *this = JitNames();
  process_ = process;
  if (now_ns >= next_look_ns_) {
    next_look_ns_ = now_ns + kBetweenLooks;
    open_map(now_ns);
    read_on(now_ns);
  }
  const auto* found = names_.find(raw(address));
  if (found == nullptr && read_ns_ <= time_ns) {
    read_on(now_ns);  // whoever makes code writes its name down before it runs
    found = names_.find(raw(address));
  }
  if (found != nullptr || now_ns < next_search_ns_) return found;
  next_search_ns_ = now_ns + kBetweenSearches;
  open_dumps();
  read_on(now_ns);
  return names_.find(raw(address));
}

}  // namespace plimsoll::native
