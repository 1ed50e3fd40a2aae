#include "profile/plim_writer.h"

#include <algorithm>
#include <iterator>

#include "base/chunk.h"
#include "base/varint.h"
#include "base/write_file.h"
#include "profile/plim_columns.h"
#include "profile/plim_exact.h"
#include "profile/plim_format.h"

namespace plimsoll::profile {

using plim::Section;

// Collects sections into chunks.
class ChunkWriter {
 public:
  // `room` is for what has not been compressed yet.
  ChunkWriter(ChunkStreamWriter& stream, std::string& room) : stream_(stream), raw_(room) { raw_.clear(); }

  void add(Section kind, const std::string& payload) {
    put_varint(raw_, static_cast<std::uint64_t>(kind));
    put_bytes(raw_, payload);
    if (raw_.size() >= kFullChunk) close_chunk();
  }
  void add_unless_empty(Section kind, const std::string& payload) {
    if (!payload.empty()) add(kind, payload);
  }
  // Sections of one kind, as long as `next` has payload for them.
  template <typename Next>
  void add_all(Section kind, Next next) {
    for (std::string payload = next(); !payload.empty(); payload = next()) add(kind, payload);
  }
  // Likewise, where `next` is told from which row on, and moves that.
  template <typename Next>
  void add_rows(Section kind, Next next) {
    std::size_t row = 0;
    add_all(kind, [&] { return next(row); });
  }
  // Rows that are packed already: of one section in a chunk.
  void add_packed(std::string packed) {
    if (!packed_.empty()) close_chunk();
    packed_ = std::move(packed);
    add(Section::kRows, {});
  }
  std::string take() {
    if (!raw_.empty()) close_chunk();
    return std::move(out_);
  }

 private:
  void close_chunk() {
    out_ += stream_.add(raw_, packed_);
    raw_.clear();
    packed_.clear();
  }
  ChunkStreamWriter& stream_;
  std::string& raw_;
  std::string packed_;
  std::string out_;
};

namespace {

void add_drops(ChunkWriter& out, const std::vector<Drop>& all) {
  std::string drops;
  for (const Drop& drop : all) {
    put_bytes(drops, drop.reason);
    put_varint(drops, drop.count);
    put_signed(drops, drop.cpu_ns);
  }
  if (!drops.empty()) out.add(Section::kDrops, drops);
}

// Sources and attachments.
void add_texts(ChunkWriter& out, const Profile& profile) {
  for (const Source& source : profile.sources) {
    std::string payload;
    put_bytes(payload, source.file);
    put_bytes(payload, source.text);
    out.add(Section::kSource, payload);
  }
  for (const Attachment& attachment : profile.attachments) {
    for (std::size_t at = 0; at < attachment.bytes.size(); at += kFullSection) {
      std::string payload;
      put_bytes(payload, attachment.name);
      put_bytes(payload, std::string_view(attachment.bytes).substr(at, kFullSection));
      out.add(Section::kAttachment, payload);
    }
  }
}

void add_allocations(ChunkWriter& out, const Profile& profile, AllocationEncoder& encoder) {
  if (profile.allocation_distance != 0) {
    out.add_rows(Section::kAllocations, [&](std::size_t& row) { return encoder.samples(profile, row); });
    out.add_rows(Section::kReleases, [&](std::size_t& row) { return encoder.releases(profile, row); });
    out.add_rows(Section::kMoves, [&](std::size_t& row) { return AllocationEncoder::moves(profile, row); });
  }
  if (profile.is_exact) {
    GrowingArray<AllocationChange> made;
    const GrowingArray<AllocationChange>& changes = changes_of(profile, made);
    out.add_rows(Section::kExactAllocations, [&](std::size_t& row) { return encoder.exact(changes, row); });
  }
  if (profile.has_events) {
    const AllocationEvents& log = profile.events;
    out.add_rows(Section::kAllocationSites, [&](std::size_t& row) { return encoder.sites(log, row); });
    encoder.each_of_events(log, [&](const std::string& section) { out.add(Section::kAllocationEvents, section); });
    out.add_rows(Section::kAllocationTypes, [&](std::size_t& row) { return encoder.types(log, row); });
  }
}

}  // namespace

std::int64_t time_unit_for(double rate_hz) {
  constexpr double kUnitsPerPeriod = 50;
  std::int64_t best = 1'000;
  for (std::int64_t decade = best; decade <= 10'000'000; decade *= 10)
    for (const std::int64_t unit : {decade, 2 * decade, 5 * decade})
      if (static_cast<double>(unit) * kUnitsPerPeriod <= 1e9 / rate_hz) best = unit;
  return best;
}

std::string PlimEncoder::file_header() {
  std::string header(plim::kMagic);
  put_u32(header, plim::kMajorVersion | (std::uint32_t{plim::kMinorVersion} << 16U));
  return header;
}

std::string PlimEncoder::encode(const Profile& profile) {
  ThreadRows rows;
  for (std::size_t i = 0; i < profile.threads.size(); ++i)
    rows.emplace_hint(rows.end(), static_cast<std::uint32_t>(i), profile.threads[i]);
  return encode(profile, rows);
}

std::string PlimEncoder::encode(const Profile& profile, const ThreadRows& rows) {
  ChunkWriter out(chunks_, room_);
  out.add_all(Section::kSession, [&] { return session(profile); });
  out.add_all(Section::kMeta, [&] { return meta(profile); });
  out.add_all(Section::kStrings, [&] { return tables_.strings(profile); });
  out.add_all(Section::kFunctions, [&] { return tables_.functions(profile); });
  out.add_all(Section::kFrames, [&] { return tables_.frames(profile); });
  out.add_all(Section::kTraces, [&] { return tables_.traces(profile); });
  out.add_all(Section::kAddresses, [&] { return tables_.addresses(profile); });
  out.add_all(Section::kModules, [&] { return modules(profile); });
  out.add_all(Section::kTagSets, [&] { return tables_.tag_sets(profile); });
  out.add_all(Section::kProcesses, [&] { return tables_.processes(profile); });
  add_rows(out, profile, rows);
  add_allocations(out, profile, allocations_);
  add_drops(out, profile.drops);
  add_texts(out, profile);
  if (profile.complete) out.add(Section::kEnd, {});
  return out.take();
}

// What is left of each kind, so much at a time that a chunk does not become too large.
void PlimEncoder::add_rows(ChunkWriter& out, const Profile& profile, const ThreadRows& threads) {
  Rows next{threads.begin(), 0, 0};
  for (bool is_first = true; is_first || !is_over(profile, threads, next); is_first = false) {
    const auto thread_end =
        std::next(next.thread, std::min<std::ptrdiff_t>(kRowsInSection, std::distance(next.thread, threads.end())));
    std::size_t marker_end = next.marker;
    for (std::size_t bytes = 0; marker_end < profile.markers.size() && bytes < kFullSection; ++marker_end)
      for (const auto& field : profile.markers[marker_end].fields) bytes += sizeof field + field.second.size();
    out.add_unless_empty(Section::kThreadNames, threads_.patterns(next.thread, thread_end));
    out.add_unless_empty(Section::kMarkerShapes, markers_.shapes(profile, next.marker, marker_end));
    out.add_unless_empty(Section::kMarkerTexts, MarkerEncoder::texts(profile, next.marker, marker_end));
    out.add_unless_empty(Section::kCounterNames, markers_.counter_names(profile));
    SymbolWriter rows;
    tables_.stacks(profile, kRowsInSection, rows);
    threads_.put(next.thread, thread_end, rows);
    samples_.put(profile, next.sample, tables_.has_all_stacks(profile) ? kRowsInSection : 0, rows);
    markers_.put(profile, next.marker, marker_end, rows);
    markers_.put_counters(profile, is_first, rows);
    markers_.put_progress(profile, rows);
    next.thread = thread_end;
    next.marker = marker_end;
    out.add_packed(rows.take());
  }
}

bool PlimEncoder::is_over(const Profile& profile, const ThreadRows& threads, const Rows& next) const {
  return tables_.has_all_stacks(profile) && next.thread == threads.end() && next.sample == profile.samples.size() &&
         next.marker == profile.markers.size();
}

std::string PlimEncoder::session(const Profile& profile) {
  if (!std::exchange(is_first_, false)) return {};
  std::string out;
  put_signed(out, profile.start_monotonic_ns);
  put_signed(out, profile.start_realtime_ns);
  put_signed(out, unit_ns_);
  return out;
}

std::string PlimEncoder::meta(const Profile& profile) {
  std::string out;
  for (std::size_t i = 0; i < profile.meta.size(); ++i) {
    if (i < meta_.size() && meta_[i] == profile.meta[i]) continue;
    put_bytes(out, profile.meta[i].first);
    put_bytes(out, profile.meta[i].second);
  }
  meta_ = profile.meta;
  return out;
}

std::string PlimEncoder::modules(const Profile& profile) {
  std::string out;
  for (; modules_ < profile.modules.size() && out.size() < kFullSection; ++modules_) {
    put_bytes(out, profile.modules[modules_].file);
    put_bytes(out, profile.modules[modules_].build_id);
  }
  return out;
}

Status write_plim_file(const Profile& profile, const std::string& path) {
  PlimEncoder encoder(1);  // nothing is lost: a nanosecond is a nanosecond
  return write_file(path, PlimEncoder::file_header() + encoder.encode(profile));
}

}  // namespace plimsoll::profile
