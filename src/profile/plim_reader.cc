#include "profile/plim_reader.h"

#include <algorithm>
#include <utility>

#include "base/chunk.h"
#include "base/file_bytes.h"
#include "base/varint.h"
#include "profile/plim_allocations.h"
#include "profile/plim_columns.h"
#include "profile/plim_format.h"
#include "profile/plim_samples.h"
#include "profile/plim_tables.h"

namespace plimsoll::profile {
namespace {

using plim::Section;

// Reads sections into a Profile. Every index is checked against the table it points into.
class Decoder {
 public:
  explicit Decoder(Profile& profile)
      : profile_(profile), tables_(profile), samples_(profile, tables_), allocations_(profile, tables_) {}

  // After the last chunk.
  void finish() {
    allocations_.finish();
    samples_.finish();
  }

  // False if a section makes no sense; the profile then holds what came before it. `begin`, `end`: of this chunk, as
  // parts of the file.
  bool chunk(std::string_view raw, double begin, double end) {
    profile_.complete = false;  // unless this chunk ends the recording, too: an exec that failed is followed by more
    VarintCursor cursor(raw);
    while (!cursor.at_end()) {
      const std::uint64_t kind = cursor.varint();
      const std::string_view payload = cursor.bytes();
      const double part =
          end - (end - begin) * static_cast<double>(cursor.remaining()) / static_cast<double>(raw.size());
      if (cursor.failed() || !section(kind, payload, part)) return false;
    }
    return true;
  }

 private:
  // `part`: of the file that has been read.
  bool section(std::uint64_t kind, std::string_view payload, double part) {
    VarintCursor cursor(payload);
    switch (static_cast<Section>(kind)) {
      case Section::kSession: return session(cursor);
      case Section::kMeta: return meta(cursor);
      case Section::kStrings: return tables_.strings(cursor);
      case Section::kFunctions: return tables_.functions(cursor);
      case Section::kFrames: return tables_.frames(cursor);
      case Section::kStacks: return tables_.stacks(cursor);
      case Section::kProcesses: return tables_.processes(cursor);
      case Section::kThreads: return tables_.threads(cursor);
      case Section::kSamples: return samples_.read(cursor, unit_ns_, part);
      case Section::kAllocations: return allocations_.samples(cursor);
      case Section::kReleases: return allocations_.releases(cursor);
      case Section::kExactAllocations: return allocations_.exact(cursor);
      case Section::kAllocationSites: return allocations_.sites(cursor);
      case Section::kAllocationEvents: return allocations_.events(cursor);
      case Section::kAllocationTypes: return allocations_.types(cursor);
      case Section::kCounter: return counter(cursor);
      case Section::kMarkers: return markers(cursor);
      case Section::kDrops: return drops(cursor);
      case Section::kSource: return source(cursor);
      case Section::kAttachment: return attachment(cursor);
      case Section::kProgress: return progress(cursor);
      case Section::kTraces: return tables_.traces(cursor);
      case Section::kAddresses: return tables_.addresses(cursor);
      case Section::kModules: return modules(cursor);
      case Section::kTagSets: return tables_.tag_sets(cursor);
      case Section::kEnd: profile_.complete = true; return true;
    }
    return true;  // a section of a newer minor version
  }

  bool session(VarintCursor& cursor) {
    constexpr std::int64_t kLargestUnit = 1'000'000'000;
    profile_.start_monotonic_ns = cursor.signed_varint();
    profile_.start_realtime_ns = cursor.signed_varint();
    unit_ns_ = cursor.signed_varint();
    allocations_.set_unit(unit_ns_);
    return !cursor.failed() && unit_ns_ > 0 && unit_ns_ <= kLargestUnit;
  }

  bool meta(VarintCursor& cursor) {
    while (!cursor.at_end()) {
      const std::string_view name = cursor.bytes();
      const std::string_view value = cursor.bytes();
      if (cursor.failed()) return false;
      profile_.set_meta(name, value);
    }
    return true;
  }

  bool modules(VarintCursor& cursor) {
    while (!cursor.at_end()) {
      Module module;
      module.file = cursor.bytes();
      module.build_id = cursor.bytes();
      if (cursor.failed()) return false;
      profile_.modules.push_back(std::move(module));
    }
    return true;
  }

  bool counter(VarintCursor& cursor) {
    ProcessId process;
    if (!tables_.process_reference(cursor, process)) return false;
    const std::string_view name = cursor.bytes();
    const std::string_view unit = cursor.bytes();
    const std::size_t count = cursor.count();
    if (cursor.failed()) return false;
    auto found = std::find_if(profile_.counters.begin(), profile_.counters.end(),
                              [&](const Counter& known) { return known.process == process && known.name == name; });
    if (found == profile_.counters.end())
      found = profile_.counters.insert(found, Counter{process, std::string(name), std::string(unit), {}, {}});
    std::int64_t time = 0;
    std::int64_t value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t time_ns = 0;
      if (__builtin_add_overflow(time, cursor.signed_varint(), &time) ||
          __builtin_add_overflow(value, cursor.signed_varint(), &value) || !to_nanoseconds(time, unit_ns_, time_ns) ||
          cursor.failed())
        return false;
      found->time_ns.push_back(time_ns);
      found->value.push_back(value);
    }
    return true;
  }

  bool markers(VarintCursor& cursor) {
    while (!cursor.at_end()) {
      Marker marker;
      marker.time_ns = cursor.signed_varint();
      marker.duration_ns = cursor.signed_varint();
      if (!tables_.thread_reference(cursor, marker.thread)) return false;
      marker.name = cursor.bytes();
      const std::size_t fields = cursor.count();
      for (std::size_t i = 0; i < fields && !cursor.failed(); ++i) {
        const std::string_view name = cursor.bytes();
        const std::string_view value = cursor.bytes();
        marker.fields.emplace_back(name, value);
      }
      if (cursor.failed()) return false;
      profile_.markers.push_back(std::move(marker));
    }
    return true;
  }

  bool drops(VarintCursor& cursor) {
    std::vector<Drop> drops;
    while (!cursor.at_end()) {
      Drop drop;
      drop.reason = cursor.bytes();
      drop.count = cursor.varint();
      drop.cpu_ns = cursor.signed_varint();
      if (cursor.failed()) return false;
      drops.push_back(std::move(drop));
    }
    profile_.drops = std::move(drops);
    return true;
  }

  bool source(VarintCursor& cursor) {
    Source source;
    source.file = cursor.bytes();
    source.text = cursor.bytes();
    if (cursor.failed()) return false;
    profile_.sources.push_back(std::move(source));
    return true;
  }

  bool attachment(VarintCursor& cursor) {
    const std::string_view name = cursor.bytes();
    const std::string_view part = cursor.bytes();
    if (cursor.failed()) return false;
    auto& all = profile_.attachments;
    const auto known = std::find_if(all.begin(), all.end(), [&](const Attachment& one) { return one.name == name; });
    if (known != all.end())
      known->bytes += part;
    else
      all.push_back({std::string(name), std::string(part)});
    return true;
  }

  bool progress(VarintCursor& cursor) {
    profile_.end_ns = cursor.signed_varint();
    profile_.process_cpu_ns = cursor.signed_varint();
    return !cursor.failed();
  }

  Profile& profile_;
  TableDecoder tables_;
  SampleDecoder samples_;
  AllocationDecoder allocations_;
  std::int64_t unit_ns_ = 1;
};

}  // namespace

Result<Profile> read_plim(std::string_view bytes) {
  if (bytes.size() < plim::kFileHeaderSize || bytes.substr(0, plim::kMagic.size()) != plim::kMagic)
    return Error{ErrorKind::kBadInput, "not a .plim profile"};
  const std::uint32_t version = u32_at(bytes, plim::kMagic.size());
  if ((version & 0xffffU) != plim::kMajorVersion)
    return Error{ErrorKind::kBadInput, "a .plim profile of version " + std::to_string(version & 0xffffU) +
                                           ": this Plimsoll reads version " + std::to_string(plim::kMajorVersion)};
  bytes.remove_prefix(plim::kFileHeaderSize);
  Profile profile;
  Decoder decoder(profile);
  std::string raw;
  std::uint64_t total = 0;
  const auto all = static_cast<double>(bytes.size());
  double begin = 0;
  while (next_chunk(bytes, plim::kLargestChunk, raw)) {
    total += raw.size();
    if (total > plim::kLargestProfile) return Error{ErrorKind::kBadInput, "the profile unpacks to more than 8 GiB"};
    const double end = 1 - static_cast<double>(bytes.size()) / all;
    if (!decoder.chunk(raw, std::exchange(begin, end), end)) break;
  }
  decoder.finish();
  if (!bytes.empty()) profile.complete = false;
  return profile;
}

Result<Profile> read_plim_file(const std::string& path) {
  const Result<FileBytes> file = FileBytes::read(path);
  if (!file.ok()) return file.error();
  Result<Profile> profile = read_plim(file.value().view());
  if (!profile.ok()) return Error{profile.error().kind, path + ": " + profile.error().message};
  return profile;
}

}  // namespace plimsoll::profile
