#include "native/jit_names.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace plimsoll::native {
namespace {

constexpr std::int64_t kBetweenLooks = 10'000'000, kBetweenSearches = 100'000'000;
// More than this of a file is not read, and no line or record is longer than a piece.
constexpr std::uint64_t kLargest = std::uint64_t{1} << 30U;
constexpr std::size_t kPiece = std::size_t{4} << 20U;

// "jit-1234.dump", by whose being mapped perf finds it.
bool is_jitdump(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("jit-") && name.ends_with(".dump");
}

}  // namespace

void JitNames::open_map() {
  if (has_map_) return;
  if (UniqueFd map = os::open_perf_map(process_); map.is_open()) {
    has_map_ = true;
    sources_.push_back({std::move(map), false, false, 0, 0});
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
    open_map();
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
