#include "profile/plim_allocations.h"

#include <algorithm>
#include <utility>

#include "capture/raw_allocation.h"
#include "profile/memory.h"
#include "profile/plim_columns.h"
#include "profile/plim_format.h"

namespace plimsoll::profile {
namespace {

// That of the file's times, unless it is too coarse for allocations.
std::int64_t allocation_unit(std::int64_t unit_ns) { return std::min(unit_ns, plim::kAllocationUnit); }

}  // namespace

// ---- written ----

AllocationEncoder::AllocationEncoder(std::int64_t unit_ns, const TableEncoder& tables)
    : unit_ns_(allocation_unit(unit_ns)), tables_(tables) {}

std::string AllocationEncoder::samples(const Profile& profile, std::size_t& next) {
  if (next == profile.allocations.size() && has_distance_) return {};
  has_distance_ = true;
  const std::size_t first = next;
  const std::size_t end = next = std::min(first + kRowsInSection, profile.allocations.size());
  std::string numbers, threads, stacks, times, sizes, chances, domains;
  RunEncoder tags;
  bool any_tags = false;
  for (std::size_t i = first; i < end; ++i) {
    const AllocationRow& row = profile.allocations[i];
    LastAllocation& last = last_allocation_;
    const auto number = static_cast<std::int64_t>(row.number);
    put_signed(numbers, number - std::exchange(last.number, number) - 1);  // mostly the next
    put_varint(threads, row.thread.index());
    const std::int64_t stack = tables_.stack(row.stack);
    put_signed(stacks, stack - std::exchange(last.stack, stack));
    const std::int64_t time = units(row.time_ns);
    put_signed(times, time - std::exchange(last.time, time));
    put_varint(sizes, row.size);
    put_signed(chances, static_cast<std::int64_t>(row.chance_bytes - row.size));
    domains.push_back(static_cast<char>(row.domain));
    tags.add(static_cast<std::uint64_t>(tables_.tag_set(row.tags)));
    any_tags = any_tags || !row.tags.is_none();
  }
  std::string out;
  put_varint(out, profile.allocation_distance);
  put_varint(out, end - first);
  for (const std::string* column : {&numbers, &threads, &stacks, &times, &sizes, &chances, &domains})
    put_bytes(out, *column);
  if (any_tags) put_bytes(out, tags.take());
  return out;
}

void AllocationEncoder::put_release(std::string& out, const Release& release) {
  const auto number = static_cast<std::int64_t>(release.number);
  put_signed(out, number - std::exchange(last_release_.number, number));
  put_varint(out, static_cast<std::uint64_t>(tables_.string(release.type)));
  const bool is_freed = release.freed_ns != AllocationRow::kAlive;
  put_varint(out, is_freed ? 1 : 0);
  if (!is_freed) return;
  const std::int64_t time = units(release.freed_ns);
  put_signed(out, time - std::exchange(last_release_.time, time));
}

std::string AllocationEncoder::releases(const Profile& profile, std::size_t& next) {
  // Those of the rows that are written here; then, while recording, those of earlier ones.
  std::string out;
  const std::size_t all = profile.allocations.size() + profile.releases.size();
  for (; next < all && out.size() < kFullSection; ++next) {
    if (next >= profile.allocations.size()) {
      put_release(out, profile.releases[next - profile.allocations.size()]);
      continue;
    }
    const AllocationRow& row = profile.allocations[next];
    if (row.freed_ns != AllocationRow::kAlive || !row.type.is_none())
      put_release(out, {row.number, row.freed_ns, row.type});
  }
  return out;
}

std::string AllocationEncoder::moves(const Profile& profile, std::size_t& next) {
  std::string out;
  std::int64_t last = 0;
  const auto put = [&](std::uint64_t number) {
    const auto now = static_cast<std::int64_t>(number);
    put_signed(out, now - std::exchange(last, now));
  };
  const std::size_t all = profile.allocations.size() + profile.releases.size();
  for (; next < all && out.size() < kFullSection; ++next) {
    if (next < profile.allocations.size()) {
      if (profile.allocations[next].is_moved) put(profile.allocations[next].number);
    } else if (const Release& release = profile.releases[next - profile.allocations.size()]; release.is_moved) {
      put(release.number);
    }
  }
  return out;
}

std::string AllocationEncoder::exact(const GrowingArray<AllocationChange>& changes, std::size_t& next) {
  if (next == changes.size() && has_exact_) return {};
  has_exact_ = true;
  const std::size_t end = std::min(next + kRowsInSection, changes.size());
  std::string out;
  put_varint(out, end - next);
  ExactEncoder encoder(unit_ns_);
  for (; next < end; ++next)
    encoder.put(out, changes[next], tables_.stack(changes[next].stack), tables_.string(changes[next].type));
  return out;
}

std::string AllocationEncoder::sites(const AllocationEvents& events, std::size_t& next) const {
  std::string out;
  for (; next < events.sites.size() && out.size() < kFullSection; ++next)
    EventEncoder::put_site(out, events.sites[next], tables_.stack(events.sites[next].stack));
  return out;
}

std::string AllocationEncoder::types(const AllocationEvents& events, std::size_t& next) const {
  std::string out;
  std::int64_t last = 0;
  for (; next < events.types.size() && out.size() < kFullSection; ++next) {
    const auto& [slot, type] = events.types[next];
    put_signed(out, std::int64_t{slot} - std::exchange(last, slot));
    put_varint(out, static_cast<std::uint64_t>(tables_.string(type)));
  }
  return out;
}

// ---- read ----

void AllocationDecoder::set_unit(std::int64_t unit_ns) { unit_ns_ = allocation_unit(unit_ns); }

bool AllocationDecoder::samples(VarintCursor& cursor) {
  profile_.allocation_distance = cursor.bounded(plim::kLargestDistance);
  const std::size_t count = cursor.count();
  Columns columns{VarintCursor({}), VarintCursor({}), VarintCursor({}),
                  VarintCursor({}), VarintCursor({}), VarintCursor({})};
  for (VarintCursor& column : columns) column = VarintCursor(cursor.bytes());
  const std::string_view domains = cursor.bytes();
  // Without this column, no allocation has tags.
  const bool has_tags = !cursor.failed() && !cursor.at_end();
  VarintCursor tag_runs(has_tags ? cursor.bytes() : std::string_view{});
  ColumnRun same_tags{.left = has_tags ? 0 : count};
  if (cursor.failed() || domains.size() != count || profile_.allocation_distance == 0) return false;
  for (std::size_t i = 0; i < count; ++i) {
    AllocationRow row;
    row.domain = static_cast<std::uint8_t>(domains[i]);
    if (!same_tags.next(tag_runs, tables_.tag_set_count()) || !tables_.tag_set(same_tags.value, row.tags) ||
        !sample(columns, row))
      return false;
    row_of_number_[row.number] = profile_.allocations.size();
    profile_.allocations.push_back(row);
  }
  return true;
}

// The next of the columns.
bool AllocationDecoder::sample(Columns& columns, AllocationRow& row) {
  auto& [numbers, threads, stacks, times, sizes, chances] = columns;
  LastAllocation& last = last_allocation_;
  if (__builtin_add_overflow(last.number, numbers.signed_varint(), &last.number) ||
      __builtin_add_overflow(last.number, 1, &last.number) || last.number < 0 ||
      __builtin_add_overflow(last.stack, stacks.signed_varint(), &last.stack) ||
      !tables_.stack(last.stack, row.stack) || __builtin_add_overflow(last.time, times.signed_varint(), &last.time) ||
      !to_nanoseconds(last.time, unit_ns_, row.time_ns))
    return false;
  row.number = static_cast<std::uint64_t>(last.number);
  row.size = sizes.bounded(plim::kLargestBlock);
  const std::int64_t above_size = chances.signed_varint();
  if (!tables_.thread(threads.varint(), row.thread) || above_size < 0 || above_size > plim::kLargestBlock) return false;
  row.chance_bytes = row.size + static_cast<std::uint64_t>(above_size);
  return row.chance_bytes != 0 &&
         std::none_of(columns.begin(), columns.end(), [](const VarintCursor& column) { return column.failed(); });
}

bool AllocationDecoder::releases(VarintCursor& cursor) {
  LastAllocation& last = last_release_;
  while (!cursor.at_end()) {
    Release release;
    if (__builtin_add_overflow(last.number, cursor.signed_varint(), &last.number) ||
        !tables_.string_reference(cursor, release.type))
      return false;
    const bool is_freed = cursor.bounded(1) == 1;
    if (is_freed && (__builtin_add_overflow(last.time, cursor.signed_varint(), &last.time) ||
                     !to_nanoseconds(last.time, unit_ns_, release.freed_ns) || release.freed_ns < 0))
      return false;
    if (cursor.failed()) return false;
    // Its allocation may have been lost on the way.
    const auto found = row_of_number_.find(static_cast<std::uint64_t>(last.number));
    if (found == row_of_number_.end()) continue;
    AllocationRow& row = profile_.allocations[found->second];
    if (is_freed) row.freed_ns = release.freed_ns;
    if (!release.type.is_none()) row.type = release.type;
  }
  return true;
}

bool AllocationDecoder::moves(VarintCursor& cursor) {
  std::int64_t number = 0;
  while (!cursor.at_end()) {
    if (__builtin_add_overflow(number, cursor.signed_varint(), &number) || cursor.failed()) return false;
    const auto found = row_of_number_.find(static_cast<std::uint64_t>(number));
    if (found != row_of_number_.end()) profile_.allocations[found->second].is_moved = true;
  }
  return true;
}

bool AllocationDecoder::exact(VarintCursor& cursor) {
  profile_.is_exact = true;
  const std::size_t count = cursor.count();
  ExactDecoder::Numbers row;
  for (std::size_t i = 0; i < count; ++i) {
    row = ExactDecoder::next(cursor, row);
    AllocationChange change;
    std::int64_t at = 0;
    if (cursor.failed() || !tables_.thread(row.thread, change.thread) || !tables_.string(row.type, change.type) ||
        !tables_.stack(row.stack, change.stack) || __builtin_add_overflow(row.born, row.lived, &at) ||
        !to_nanoseconds(row.born, unit_ns_, change.born_ns) || !to_nanoseconds(at, unit_ns_, change.at_ns) ||
        change.at_ns < 0)
      return false;
    change.change = static_cast<std::uint8_t>(row.change);
    change.domain = static_cast<std::uint8_t>(row.domain);
    change.blocks = row.blocks;
    change.bytes = row.bytes;
    if (!exact_.add(profile_, change)) return false;
  }
  return true;
}

bool AllocationDecoder::sites(VarintCursor& cursor) {
  constexpr auto kLastDomain = static_cast<std::uint64_t>(capture::AllocationDomain::kMmap);
  while (!cursor.at_end()) {
    AllocationEvents::Site site;
    if (!tables_.thread(cursor.varint(), site.thread) ||
        !tables_.stack(static_cast<std::int64_t>(cursor.bounded(INT64_MAX)), site.stack))
      return false;
    site.domain = static_cast<std::uint8_t>(cursor.bounded(kLastDomain));
    site.size = static_cast<std::uint32_t>(cursor.bounded(UINT32_MAX));
    if (cursor.failed() || !events_.add_site(site)) return false;
  }
  return true;
}

bool AllocationDecoder::events(VarintCursor& cursor) {
  profile_.has_events = true;
  return events_.replay(cursor);
}

bool AllocationDecoder::types(VarintCursor& cursor) {
  std::int64_t slot = 0;
  while (!cursor.at_end()) {
    StringId type;
    if (__builtin_add_overflow(slot, cursor.signed_varint(), &slot) || !tables_.string_reference(cursor, type))
      return false;
    if (slot >= 0 && !type.is_none()) events_.set_type(static_cast<std::uint64_t>(slot), type);
  }
  return true;
}

void AllocationDecoder::finish() {
  events_.finish(profile_);
  ExactDecoder::finish(profile_);
  restore_peak(profile_);
}

}  // namespace plimsoll::profile
