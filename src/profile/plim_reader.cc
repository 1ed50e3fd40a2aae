#include "profile/plim_reader.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <utility>

#include "base/chunk.h"
#include "base/chunk_stream.h"
#include "base/file_bytes.h"
#include "base/symbols.h"
#include "base/varint.h"
#include "profile/plim_allocations.h"
#include "profile/plim_format.h"
#include "profile/plim_markers.h"
#include "profile/plim_samples.h"
#include "profile/plim_tables.h"
#include "profile/plim_threads.h"

namespace plimsoll::profile {
namespace {

using plim::Section;

// Reads sections into a Profile. Every index is checked against the table it points into.
class Decoder {
 public:
  // All of it may take so many bytes.
  Decoder(Profile& profile, std::uint64_t most_bytes)
      : profile_(profile),
        most_bytes_(most_bytes),
        tables_(profile),
        threads_(profile),
        samples_(profile, tables_),
        markers_(profile, tables_, most_bytes),
        allocations_(profile, tables_) {}

  // After the last chunk.
  void finish() {
    allocations_.finish();
    samples_.finish();
    complete_processes();
  }

  // False if a section makes no sense, or is too much; the profile then holds what came before it. `packed`: the rows
  // that are behind the sections. `begin`, `end`: of this chunk, as parts of the file.
  bool chunk(std::string_view raw, std::string_view packed, double begin, double end) {
    raw_bytes_ += raw.size();
    has_rows_ = has_end_ = false;
    const bool makes_sense = sections(raw, packed, begin, end);
    profile_.complete = makes_sense && has_end_;  // an exec that failed is followed by more
    return makes_sense;
  }

  // Whether what has been read takes too much memory: files may say very much in a few bytes.
  [[nodiscard]] bool is_too_large() const {
    constexpr std::uint64_t kIndex = 24;  // bytes of a row's place in indices
    const auto of = [](const auto& rows) { return rows.size() * (sizeof rows[0] + kIndex); };
    const std::uint64_t bytes = profile_.samples.size() * SampleTable::kRowBytes + of(profile_.stacks.rows()) +
                                of(profile_.frames.rows()) + of(profile_.functions.rows()) + of(profile_.threads) +
                                of(profile_.processes) + of(profile_.modules) + of(profile_.sources) +
                                of(profile_.allocations) + of(profile_.peak_allocations) + profile_.strings.memory() +
                                profile_.tag_sets.memory() + markers_.bytes() + allocations_.bytes();
    return raw_bytes_ + bytes > most_bytes_;
  }

 private:
  bool sections(std::string_view raw, std::string_view packed, double begin, double end) {
    VarintCursor cursor(raw);
    SymbolReader rows(packed);
    while (!cursor.at_end()) {
      const std::uint64_t kind = cursor.varint();
      const std::string_view payload = cursor.bytes();
      const double part =
          end - (end - begin) * static_cast<double>(cursor.remaining()) / static_cast<double>(raw.size());
      if (cursor.failed()) return false;
      const bool makes_sense =
          kind == static_cast<std::uint64_t>(Section::kRows) ? read_rows(rows, part) : section(kind, payload, part);
      if (!makes_sense || is_too_large()) return false;
    }
    return packed.empty() || rows.is_over();
  }

  // A chunk has them once.
  bool read_rows(SymbolReader& rows, double part) {
    return !std::exchange(has_rows_, true) && tables_.stacks(rows) && threads_.read(rows) &&
           samples_.read(rows, part) && markers_.read(rows) && markers_.read_counters(rows) &&
           markers_.read_progress(rows) && !rows.failed();
  }

  // `part`: of the file that has been read.
  bool section(std::uint64_t kind, std::string_view payload, double part) {
    VarintCursor cursor(payload);
    switch (static_cast<Section>(kind)) {
      case Section::kSession: return session(cursor);
      case Section::kMeta: return meta(cursor);
      case Section::kStrings: return tables_.strings(cursor);
      case Section::kFunctions: return tables_.functions(cursor);
      case Section::kFrames: return tables_.frames(cursor);
      case Section::kOldStacks: return tables_.old_stacks(cursor);
      case Section::kProcesses: return tables_.processes(cursor);
      case Section::kOldThreads: return tables_.old_threads(cursor);
      case Section::kThreadNames: return threads_.patterns(cursor);
      case Section::kOldSamples: return samples_.read_columns(cursor, part);
      case Section::kAllocations: return allocations_.samples(cursor);
      case Section::kReleases: return allocations_.releases(cursor);
      case Section::kMoves: return allocations_.moves(cursor);
      case Section::kExactAllocations: return allocations_.exact(cursor);
      case Section::kAllocationSites: return allocations_.sites(cursor);
      case Section::kAllocationEvents: return allocations_.events(cursor);
      case Section::kAllocationTypes: return allocations_.types(cursor);
      case Section::kOldCounter: return markers_.old_counter(cursor);
      case Section::kOldMarkers: return markers_.old_markers(cursor);
      case Section::kOldProgress: return markers_.old_progress(cursor);
      case Section::kMarkerShapes: return markers_.shapes(cursor);
      case Section::kMarkerTexts: return markers_.texts(cursor);
      case Section::kCounterNames: return markers_.counter_names(cursor);
      case Section::kDrops: return drops(cursor);
      case Section::kSource: return source(cursor);
      case Section::kAttachment: return attachment(cursor);
      case Section::kTraces: return tables_.traces(cursor);
      case Section::kAddresses: return tables_.addresses(cursor);
      case Section::kModules: return modules(cursor);
      case Section::kTagSets: return tables_.tag_sets(cursor);
      case Section::kEnd: has_end_ = true; return true;
      case Section::kRows: break;  // not here
    }
    return true;  // a section of a newer minor version
  }

  bool session(VarintCursor& cursor) {
    constexpr std::int64_t kLargestUnit = 1'000'000'000;
    profile_.start_monotonic_ns = cursor.signed_varint();
    profile_.start_realtime_ns = cursor.signed_varint();
    const std::int64_t unit_ns = cursor.signed_varint();
    if (cursor.failed() || unit_ns <= 0 || unit_ns > kLargestUnit) return false;
    threads_.set_unit(unit_ns);
    samples_.set_unit(unit_ns);
    markers_.set_unit(unit_ns);
    allocations_.set_unit(unit_ns);
    return true;
  }

  // Threads and counters may be of no process in a file. Here they have one, so that nobody needs to ask: the only one
  // that there is, else one that nothing is known of.
  void complete_processes() {
    std::vector<ProcessId*> missing;
    for (Thread& thread : profile_.threads)
      if (thread.process.is_none()) missing.push_back(&thread.process);
    for (Counter& counter : profile_.counters)
      if (counter.process.is_none()) missing.push_back(&counter.process);
    if (missing.empty()) return;
    if (profile_.processes.size() != 1) profile_.processes.emplace_back();
    for (ProcessId* process : missing) *process = ProcessId{profile_.processes.size() - 1};
  }

  bool meta(VarintCursor& cursor) {
    while (!cursor.at_end()) {
      const std::string_view name = cursor.bytes();
      const std::string_view value = cursor.bytes();
      if (cursor.failed()) return false;
      // As Profile::set_meta(), which would look at all of them.
      const auto [row, is_new] = meta_rows_.try_emplace(std::string(name), profile_.meta.size());
      if (is_new) profile_.meta.emplace_back(name, std::string());
      profile_.meta[row->second].second = value;
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
    const auto [row, is_new] = attachment_rows_.try_emplace(std::string(name), profile_.attachments.size());
    if (is_new) profile_.attachments.push_back({std::string(name), {}});
    profile_.attachments[row->second].bytes += part;
    return true;
  }

  using RowOfName = boost::unordered_flat_map<std::string, std::size_t>;

  Profile& profile_;
  const std::uint64_t most_bytes_;
  std::uint64_t raw_bytes_ = 0;              // of all chunks
  bool has_rows_ = false, has_end_ = false;  // the chunk at hand
  RowOfName meta_rows_, attachment_rows_;
  TableDecoder tables_;
  ThreadDecoder threads_;
  SampleDecoder samples_;
  MarkerDecoder markers_;
  AllocationDecoder allocations_;
};

}  // namespace

Result<Profile> read_plim(std::string_view bytes) { return read_plim_within(plim::kLargestProfile, bytes); }

Result<Profile> read_plim_within(std::uint64_t most_bytes, std::string_view bytes) {
  if (bytes.size() < plim::kFileHeaderSize || bytes.substr(0, plim::kMagic.size()) != plim::kMagic)
    return Error{ErrorKind::kBadInput, "not a .plim profile"};
  const std::uint32_t version = u32_at(bytes, plim::kMagic.size());
  const std::uint32_t major = version & 0xffffU;
  if (major != plim::kMajorVersion && major != plim::kOldMajorVersion)
    return Error{ErrorKind::kBadInput, "a .plim profile of version " + std::to_string(major) +
                                           ": this Plimsoll reads versions " + std::to_string(plim::kOldMajorVersion) +
                                           " and " + std::to_string(plim::kMajorVersion)};
  bytes.remove_prefix(plim::kFileHeaderSize);
  Profile profile;
  Decoder decoder(profile, most_bytes);
  ChunkStreamReader chunks;
  std::string raw;
  std::string_view packed;
  const auto next = [&] {
    return major == plim::kMajorVersion ? chunks.next(bytes, plim::kLargestChunk, raw, packed)
                                        : next_chunk(bytes, plim::kLargestChunk, raw);
  };
  const auto all = static_cast<double>(bytes.size());
  double begin = 0;
  while (next()) {
    const double end = 1 - static_cast<double>(bytes.size()) / all;
    if (!decoder.chunk(raw, packed, std::exchange(begin, end), end)) break;
  }
  if (decoder.is_too_large()) {
    constexpr unsigned kGibibyte = 30;
    return Error{ErrorKind::kBadInput,
                 "the profile unpacks to more than " + std::to_string(most_bytes >> kGibibyte) + " GiB"};
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
