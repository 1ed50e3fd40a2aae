// profile/memory.h: allocations -> bytes; of sampled ones with the uncertainty that sampling leaves.
//
// A sampled block stands for 1 / chance blocks like it. Sums of that are unbiased; their variance is estimated from the
// same samples (Horvitz-Thompson). Intervals are those of a Poisson count of as many samples as the sum is worth, so
// that they hold for few samples, too.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::profile {

// What an allocator is called, by AllocationRow::domain: object, memory, raw, malloc or mmap.
const char* domain_name(std::uint8_t domain);
// The allocator of that name; none if there is none.
std::optional<std::uint8_t> domain_named(std::string_view name);
// Whether it is Python's; if not, somebody's who turns to the C library or the kernel.
bool is_pythons(std::uint8_t domain);

// Which allocations are looked at.
enum class MemoryView : std::uint8_t {
  kAllocated,  // all of them, freed since or not
  kLive,       // those that were alive at a time: the end, if no other is given
  kPeak,       // those that were alive when most was
  kLeaks,      // those of a stretch of time that were alive at its end
  kTemporary,  // those that were freed soon; exact: before their stack had another such block
};

// A view, with the times that it depends on.
struct MemoryQuestion {
  // NOLINTNEXTLINE(google-explicit-constructor): a view alone is a question.
  MemoryQuestion(MemoryView of) : view(of) {}
  static constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();

  MemoryView view;
  std::int64_t from_ns = 0;            // kLeaks: from here
  std::int64_t at_ns = kEnd;           // kLive: then; kLeaks: up to here
  std::int64_t within_ns = 1'000'000;  // kTemporary: freed no later than this after
};

// From where to where the true value lies with 95 % confidence.
struct Interval {
  double low = 0;
  double high = 0;
};

// A sum over sampled blocks, as an estimate for all blocks.
struct MemoryEstimate {
  double bytes = 0;
  double blocks = 0;
  double variance = 0;  // of bytes
  double skew = 0;      // the third central moment of bytes
  std::uint64_t samples = 0;
  std::uint64_t distance = 0;  // mean bytes between sample points; 0: nothing is estimated
  std::uint64_t looks = 1;     // of so many estimates this is the highest: rather too high, which interval() allows for

  void add(const AllocationRow& row, std::uint64_t mean_distance);
  void add(const MemoryEstimate& other);
  [[nodiscard]] Interval interval() const;

 private:
  // Above the estimate, to 97.5 %.
  [[nodiscard]] double missed_at_most() const;
};

// One function, or with a line, one line of one; a sample counts once for each function on its stack.
struct MemoryRow {
  FunctionId function;
  MemoryEstimate self;   // allocated there
  MemoryEstimate total;  // and by what it called
};

// What a view of a profile comes to.
struct MemoryReport {
  MemoryEstimate all;
  std::int64_t at_ns = 0;             // the time that it is of: of the peak, else the end
  std::vector<MemoryRow> flat;        // by own bytes, most first
  std::vector<MemoryEstimate> stack;  // by StackId, of that very stack
  MemoryEstimate no_stack;
};

// The allocations of a view, oldest first: rows of the profile's tables.
std::vector<const AllocationRow*> allocations_of(const Profile& profile, const MemoryQuestion& question);
// How many allocations, or samples of them, were lost: all sums are without them.
std::uint64_t lost_allocations(const Profile& profile);
// When most was alive.
struct Peak {
  std::int64_t at_ns = 0;
  std::uint64_t looks = 1;  // of samples: at so many times it may have been, of which the estimate was highest at this
};
// Of samples it is when the estimate was highest; 0 without allocations. Of a part of a profile (profile/filter.h) it
// is that of all that was allocated in its time.
Peak peak_of(const Profile& profile);
// It is so from now on, in files and copies, too.
void set_peak(Profile& profile, std::optional<Peak> peak);
// After reading: what set_peak() has put into the file.
void restore_peak(Profile& profile);
// Whether the profile can tell; if not, why.
Status check_question(const Profile& profile, const MemoryQuestion& question);
MemoryReport memory_report(const Profile& profile, const MemoryQuestion& question);
// Whether times are those at which sums were taken, as in exact recordings without events; and the last such time that
// is not after `time_ns`: what is told of then is of there. 0 if there is none.
bool is_in_sums(const Profile& profile);
std::int64_t sums_taken_ns(const Profile& profile, std::int64_t time_ns);

// What the blocks of one type come to.
struct TypeRow {
  StringId type;            // none: not known
  bool is_object = true;    // false: memory that objects own, such as a list's items, or other libraries do
  std::uint8_t domain = 0;  // AllocationRow::domain
  MemoryEstimate all;
  FunctionId mostly;  // who allocated most of it; none without stacks
  double mostly_bytes = 0;
};
// The types of a view, by bytes, most first.
std::vector<TypeRow> memory_by_type(const Profile& profile, const MemoryQuestion& question);

// What one allocator gave out.
struct DomainRow {
  std::uint8_t domain = 0;  // AllocationRow::domain
  MemoryEstimate all;
};
// The allocators of a view, those that gave out anything.
std::vector<DomainRow> memory_by_domain(const Profile& profile, const MemoryQuestion& question);

// What was allocated and freed no later than this after, and later than the row before says.
struct LifetimeRow {
  std::int64_t up_to_ns = 0;  // MemoryQuestion::kEnd: freed later than all others; AllocationRow::kAlive: never
  MemoryEstimate all;
  bool is_moved = false;  // what realloc has moved, whenever: it lives on elsewhere. Sums do not know that
};
// All that was allocated, by how long it lived: powers of ten from 100 us to 10 s, then the rest.
std::vector<LifetimeRow> lifetimes(const Profile& profile);

// A moment of a recording.
struct MemoryMoment {
  std::int64_t at_ns = 0;
  MemoryEstimate alive;
  MemoryEstimate alive_native;  // of it, what is not Python's allocators'
  MemoryEstimate allocated;     // since the moment before
  std::int64_t rss_bytes = 0;   // of all processes; 0 = not known
  FunctionId mostly;            // who allocated most of what is alive; none without stacks
  double mostly_bytes = 0;
};
// A stretch of a recording, up to its end at the latest.
struct MemoryWindow {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = MemoryQuestion::kEnd;
};
// Moments at equal distances, the last one at the end of the window; what was allocated before the window is alive in
// it.
std::vector<MemoryMoment> memory_over_time(const Profile& profile, std::size_t moments, MemoryWindow window = {});
// Bytes alive at such moments, by the function (FunctionId) that allocated them.
std::vector<std::vector<double>> alive_over_time(const Profile& profile, std::size_t moments);

// What a sample stands for, in the place of nanoseconds: bytes, or how sure they are (see margin_of), or their variance
// times the bytes: of sums of these the quotient is how much one block makes, and so by which steps chance changes
// them.
enum class MemoryWeight : std::uint8_t { kBytes, kVariance, kVarianceOfBlocks };

// Puts the allocations of a view in the place of the samples, so that what works on samples (trees, formats) works on
// them.
void put_memory_in_place_of_samples(Profile& profile, const MemoryQuestion& question, MemoryWeight weight);
// What kVariance counts in: square bytes; and kVarianceOfBlocks: their third power.
double unit_of_variances(const Profile& profile);
double unit_of_variances_of_blocks(const Profile& profile);
// Half the width of the interval of a sum of such samples, in parts of the sum, from its bytes and its kVariance, and
// MemoryEstimate::looks.
double margin_of(const Profile& profile, std::int64_t bytes, std::int64_t variance, std::uint64_t looks);

}  // namespace plimsoll::profile
