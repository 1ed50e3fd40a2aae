#include "profile/plim_exact.h"

#include "capture/raw_allocation.h"
#include "profile/plim_format.h"

namespace plimsoll::profile {
namespace {

using capture::ExactChange;

constexpr std::int64_t kMostBlocks = std::int64_t{1} << 56U;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 60U;

bool is_freed(std::uint64_t change) {
  return change == static_cast<std::uint64_t>(ExactChange::kFreed) ||
         change == static_cast<std::uint64_t>(ExactChange::kFreedAtOnce);
}

AllocationChange change_of(const AllocationRow& row, ExactChange change) {
  return {static_cast<std::uint8_t>(change),
          row.domain,
          row.thread,
          row.stack,
          row.time_ns,
          row.freed_ns == AllocationRow::kAlive ? row.time_ns : row.freed_ns,
          row.type,
          static_cast<std::int64_t>(row.blocks),
          static_cast<std::int64_t>(row.size)};
}

}  // namespace

const GrowingArray<AllocationChange>& changes_of(const Profile& profile, GrowingArray<AllocationChange>& made) {
  if (profile.allocations.empty() && profile.peak_allocations.empty()) return profile.allocation_changes;
  for (const AllocationChange& change : profile.allocation_changes) made.push_back(change);
  for (const AllocationRow& row : profile.allocations) {
    made.push_back(change_of(row, ExactChange::kBorn));
    if (row.freed_ns != AllocationRow::kAlive)
      made.push_back(change_of(row, row.is_temporary ? ExactChange::kFreedAtOnce : ExactChange::kFreed));
    else if (!row.type.is_none())
      made.push_back(change_of(row, ExactChange::kType));
  }
  for (const AllocationRow& row : profile.peak_allocations) made.push_back(change_of(row, ExactChange::kPeak));
  return made;
}

void ExactEncoder::put(std::string& out, const AllocationChange& change, std::int64_t stack, std::int64_t type) {
  const std::int64_t born = change.born_ns / unit_ns_;
  put_varint(out, change.change);
  put_varint(out, change.domain);
  put_varint(out, change.thread.index());
  put_signed(out, stack - std::exchange(stack_, stack));
  put_signed(out, born - std::exchange(born_, born));
  if (is_freed(change.change)) put_signed(out, change.at_ns / unit_ns_ - born);
  if (change.change == static_cast<std::uint8_t>(ExactChange::kType)) put_varint(out, static_cast<std::uint64_t>(type));
  put_signed(out, change.blocks);
  put_signed(out, change.bytes);
}

ExactDecoder::Numbers ExactDecoder::next(VarintCursor& cursor, const Numbers& before) {
  Numbers row;
  row.change = cursor.bounded(static_cast<std::uint64_t>(ExactChange::kPeak));
  row.domain = cursor.bounded(static_cast<std::uint64_t>(capture::AllocationDomain::kMmap));
  row.thread = cursor.varint();
  // A sum that does not fit is no stack, and no time.
  if (__builtin_add_overflow(before.stack, cursor.signed_varint(), &row.stack)) row.stack = -1;
  if (__builtin_add_overflow(before.born, cursor.signed_varint(), &row.born)) row.born = -1;
  if (is_freed(row.change)) row.lived = cursor.signed_varint();
  if (row.change == static_cast<std::uint64_t>(ExactChange::kType)) row.type = cursor.varint();
  row.blocks = cursor.signed_varint();
  row.bytes = cursor.signed_varint();
  return row;
}

bool ExactDecoder::add_to(AllocationTable& table, Rows& rows, const Group& group, const AllocationChange& change) {
  const auto [found, is_new] = rows.try_emplace(group, table.size());
  if (is_new) {
    AllocationRow& row = table.emplace_back();
    row.thread = group.thread;
    row.stack = group.stack;
    row.time_ns = group.born_ns;
    row.domain = group.domain;
    row.blocks = 0;
  }
  AllocationRow& row = table[found->second];
  const std::int64_t blocks = static_cast<std::int64_t>(row.blocks) + change.blocks;
  const std::int64_t bytes = static_cast<std::int64_t>(row.size) + change.bytes;
  if (blocks < 0 || bytes < 0 || blocks > kMostBlocks || bytes > kMostBytes) return false;
  row.blocks = static_cast<std::uint64_t>(blocks);
  row.size = static_cast<std::uint64_t>(bytes);
  return true;
}

bool ExactDecoder::add(Profile& profile, const AllocationChange& change) {
  if (change.blocks < -kMostBlocks || change.blocks > kMostBlocks || change.bytes < -kMostBytes ||
      change.bytes > kMostBytes)
    return false;
  const auto kind = static_cast<ExactChange>(change.change);
  Group group{change.thread, change.stack, change.born_ns, change.domain};
  if (kind == ExactChange::kPeak) {
    group.born_ns = 0;  // when the peak was does not make it another stack
    if (!add_to(profile.peak_allocations, at_peak_, group, change)) return false;
    profile.peak_ns = change.born_ns;
    return true;
  }
  if (change.blocks < 0 || change.bytes < 0) return false;
  if (kind == ExactChange::kBorn) return add_to(profile.allocations, living_, group, change);
  AllocationChange taken = change;
  taken.blocks = -change.blocks;
  taken.bytes = -change.bytes;
  if (!add_to(profile.allocations, living_, group, taken)) return false;
  AllocationRow& row = profile.allocations.emplace_back();
  row.thread = change.thread;
  row.stack = change.stack;
  row.time_ns = change.born_ns;
  row.domain = change.domain;
  row.blocks = static_cast<std::uint64_t>(change.blocks);
  row.size = static_cast<std::uint64_t>(change.bytes);
  row.type = change.type;
  row.is_temporary = kind == ExactChange::kFreedAtOnce;
  if (kind != ExactChange::kType) row.freed_ns = change.at_ns;
  return true;
}

void ExactDecoder::finish(Profile& profile) {
  if (!profile.is_exact) return;
  const auto is_empty = [](const AllocationRow& row) { return row.blocks == 0 && row.size == 0; };
  std::erase_if(profile.allocations, is_empty);
  std::erase_if(profile.peak_allocations, is_empty);
  profile.peak_ns = profile.peak_ns.value_or(0);
  for (AllocationRow& row : profile.peak_allocations) row.time_ns = *profile.peak_ns;
}

}  // namespace plimsoll::profile
