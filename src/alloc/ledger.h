// alloc/ledger.h: how much each stack has allocated, what of it is alive, and what was when most was.
//
// Every block has a token: the site that it came from (a stack, an allocator, and for small blocks a size), and the
// epoch that it was allocated in. So a free needs no more than the token to be booked, and the state is as large as
// there are sites, however many blocks there were. An epoch is the stretch of time between two looks at the books; what
// it has changed is told in rows, each of a number of blocks.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "alloc/books.h"
#include "alloc/site_numbers.h"
#include "base/exact_row.h"
#include "base/growing_array.h"

namespace plimsoll::alloc {

// The books as sums. As for their threads and errors, see BlockBooks.
class Ledger final : public BlockBooks {
 public:
  static constexpr std::uint8_t kLastEpoch = 255;
  static constexpr std::int64_t kNow = std::numeric_limits<std::int64_t>::max();

  // `clock` tells roughly when peaks were. Moments are numbered from `first_stamp` on.
  explicit Ledger(const std::atomic<std::int64_t>& clock, std::uint32_t first_stamp = 1);

  Token allocated(std::uint32_t stack, Domain domain, const void* at, std::size_t size) override {
    return allocated({}, stack, domain, at, size);
  }
  // Likewise, where the stack has a key that it may be met by again.
  Token allocated(StackKey key, std::uint32_t stack, Domain domain, const void* at, std::size_t size);
  // Where it is met again; false if the key is not known with such blocks, and then nothing has changed.
  // (This and the next are called with every block. What is not as usual is left to others as a whole, so that nothing
  // need be kept for after a call: that is a third of their instructions.)
  bool allocated_again(StackKey key, Domain domain, const void* at, std::size_t size, Token& token) {
    const auto* const noted = numbers_.find_noted(key, SiteNumbers::kind_of(domain, size));
    if (noted == nullptr) [[unlikely]]
      return false;
    Site& site = sites_[noted->site];
    token = noted->site | epoch_bits_;
    if (site.stamp != stamp_) [[unlikely]] {
      allocated_at(noted->site, at, size);
      return true;
    }
    site.born += kOne;
    site.last = mark_of(at);
    below_peak_ -= static_cast<std::int64_t>(size);
    return true;
  }
  // Whether the next event is not as usual.
  static constexpr bool is_due() { return false; }
  // The end of a block that is freed, if it is small and nothing is unusual; else false, and nothing has changed.
  bool ended_quickly(Token token, const void* at) {
    const std::uint32_t number = token - epoch_bits_;  // if it is of this epoch; else more than there may be
    if (number >= kMostSites || below_peak_ < 0) [[unlikely]]
      return false;
    Site& site = sites_[number];
    if (site.stamp != stamp_) [[unlikely]]
      return false;
    site.freed += kOne;
    site.at_once += site.last == mark_of(at) ? kOne : 0;
    below_peak_ += site.size();
    return true;
  }
  // Likewise, if it is of an earlier epoch, and of a site of which such have ended: programs free in long rows what
  // they have kept.
  bool earlier_ended_quickly(Token token, const void* at) {
    Site& site = sites_[number_of(token)];
    if (site.stamp != stamp_ || below_peak_ < 0 || epoch_of(token) == epoch()) [[unlikely]]
      return false;
    const std::uint64_t key = key_of(token, site.last == mark_of(at));
    const std::uint32_t last = last_freed_later_[place_of(key)];
    if (last >= freed_later_.size() || freed_later_[last].key != key) [[unlikely]]
      return false;
    Sum& sum = freed_later_[last].sum;
    ++sum.blocks;
    sum.bytes += site.size();
    --rest_of(site).before;
    below_peak_ += site.size();
    return true;
  }
  void ended(Token token, const void* at, Fate fate) override;
  std::size_t lift(Token token, const void* at) noexcept override;
  void moved(Token token, std::size_t size) override;
  void put_back(Token token, const void* at, std::size_t size) override;
  [[nodiscard]] Facts facts_of(Token token, const void* at) const override;
  [[nodiscard]] std::uint32_t stack_of(Token token) const override;

  // Whether anything has, in this epoch.
  [[nodiscard]] bool has_changed() const override { return changed_count_ != 0; }
  // Ends the epoch: what it has changed. The last one does not end. Nothing has happened after `at_ns`.
  ExactRows close_epoch(std::int64_t at_ns = kNow);
  [[nodiscard]] std::uint8_t epoch() const { return epoch_of(epoch_bits_); }
  [[nodiscard]] std::uint64_t live_bytes() const { return static_cast<std::uint64_t>(peak_bytes_ - below_peak_); }
  [[nodiscard]] std::uint64_t peak_bytes() const { return static_cast<std::uint64_t>(peak_bytes_); }
  [[nodiscard]] std::int64_t peak_ns() const { return peak_ns_; }

 private:
  static constexpr unsigned kSiteBits = 24;
  static constexpr std::uint32_t kMostSites = std::uint32_t{1} << kSiteBits;

  static constexpr std::uint32_t kManySizes = 0x3ff;
  static_assert(kManySizes > kLargestSmall);
  static constexpr std::size_t kUnknown = ~std::size_t{0};

  static constexpr unsigned kCountShift = 16;
  static constexpr std::uint64_t kOne = std::uint64_t{1} << kCountShift;
  static constexpr std::uint64_t kLowMask = kOne - 1;
  static constexpr unsigned kSizeBits = 10;
  // A site. A program may have a new one for every few blocks, and all memory that is touched for the first time costs
  // it more than its counts do: so counts are of 48 bits, with what never changes below them, and two sites are in one
  // cache line. What most sites never need is a row of its own.
  struct Site {
    std::uint64_t born = 0;     // in this epoch; and the lower half of the stack
    std::uint64_t freed = 0;    // of those; and its upper half
    std::uint64_t at_once = 0;  // of those freed; size, or kManySizes, and allocator
    std::uint32_t stamp = 0;    // of the last change; if its blocks have no one size, that is elsewhere: never now
    std::uint32_t last = 0;     // of the address of the block given out last
    Site() = default;
    Site(std::uint32_t stack, Domain domain, std::uint32_t size)
        : born(stack & kLowMask),
          freed(stack >> kCountShift),
          at_once(std::uint64_t{size} | std::uint64_t{static_cast<std::uint8_t>(domain)} << kSizeBits) {}
    [[nodiscard]] std::uint32_t stack() const {
      return static_cast<std::uint32_t>((born & kLowMask) | (freed & kLowMask) << kCountShift);
    }
    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(at_once) & kManySizes; }
    [[nodiscard]] bool has_many_sizes() const { return size() == kManySizes; }
    [[nodiscard]] Domain domain() const { return static_cast<Domain>((at_once & kLowMask) >> kSizeBits); }
    [[nodiscard]] std::int64_t born_count() const { return static_cast<std::int64_t>(born >> kCountShift); }
    [[nodiscard]] std::int64_t freed_count() const { return static_cast<std::int64_t>(freed >> kCountShift); }
    [[nodiscard]] std::int64_t at_once_count() const { return static_cast<std::int64_t>(at_once >> kCountShift); }
    // Of the next epoch there are none.
    void reset_counts() {
      born &= kLowMask;
      freed &= kLowMask;
      at_once &= kLowMask;
    }
  };
  static_assert(sizeof(Site) == 32, "two to a cache line");
  // What else there is of it.
  struct Rest {
    std::int64_t before = 0;   // how many were alive when the epoch began, but for those that were freed since
    std::int64_t at_peak = 0;  // if its stamp is not from before the peak; else what is alive
    std::uint32_t large = 0;   // where its bytes are counted, if its blocks have no one size
  };
  // The same in bytes, of a site whose blocks are large.
  struct LargeBytes {
    std::int64_t live = 0, born = 0, freed = 0, at_once = 0, at_peak = 0;
    std::uint32_t stamp = 0;
  };
  // Blocks and bytes.
  struct Sum {
    std::int64_t blocks = 0, bytes = 0;
    bool operator==(const Sum&) const = default;
  };
  static std::uint32_t mark_of(const void* at) {
    return static_cast<std::uint32_t>(std::rotr(reinterpret_cast<std::uintptr_t>(at), 4));  // as a BlockMap does
  }
  static std::uint32_t number_of(Token token) { return token & (kMostSites - 1); }
  static std::uint8_t epoch_of(Token token) { return static_cast<std::uint8_t>(token >> kSiteBits); }
  // Of the site with this number.
  Token allocated_at(std::uint32_t number, const void* at, std::size_t size);
  // The number of the site, which may be new, or 0.
  std::uint32_t find_site(std::uint32_t stack, Domain domain, std::size_t size);
  void add_site(std::uint32_t stack, Domain domain, std::size_t size);
  [[nodiscard]] std::uint32_t index_of(const Site& site) const {
    return static_cast<std::uint32_t>(&site - sites_.data());
  }
  [[nodiscard]] Rest& rest_of(const Site& site) { return rests_[index_of(site)]; }
  [[nodiscard]] const Rest& rest_of(const Site& site) const { return rests_[index_of(site)]; }
  [[nodiscard]] LargeBytes& large_of(const Site& site) { return large_bytes_[rest_of(site).large]; }
  [[nodiscard]] std::int64_t live_of(const Site& site) const {
    return rest_of(site).before + site.born_count() - site.freed_count();
  }
  // Before a site changes that has not since the last peak, or in this epoch: keeps what it was at the peak.
  void touch(Site& site);
  void note_peak(std::int64_t at_ns = kNow) {
    peak_bytes_ -= std::exchange(below_peak_, 0);
    peak_ns_ = std::min(at_ns, clock_.load(std::memory_order_relaxed));
    peak_stamp_ = next_stamp();
  }
  std::uint32_t next_stamp() {
    if (stamp_ == kLastStamp) [[unlikely]]
      number_stamps_anew();
    return ++stamp_;
  }
  // By small numbers, which compare with one another as those before did.
  void number_stamps_anew();
  // The site of a block that is about to come to its end.
  Site& about_to_end(Token token);
  void add_large(Site& site, const void* at, std::size_t size);
  // The size of a large block, which is forgotten; kUnknown if there was no memory to note it.
  std::size_t take_large(const void* at) noexcept;
  void ended_large(Site& site, Token token, std::size_t size, bool at_once);
  // A block of the site is no more.
  void count_end(Site& site, Token token, bool at_once, std::uint64_t bytes);
  Sum& freed_later(Token token, bool at_once);
  static std::uint64_t key_of(Token token, bool at_once) { return std::uint64_t{token} << 1U | (at_once ? 1U : 0U); }
  static std::size_t place_of(std::uint64_t key) { return key * 0x9e3779b97f4a7c15U >> 56U; }  // in last_freed_later_
  [[nodiscard]] Sum peak_of(const Site& site) const;
  void put_site(ExactRows& rows, Site& site);
  void put_peak(ExactRows& rows, std::int64_t at_ns);

  // What every event needs, in one cache line:
  alignas(64) GrowingArray<Site> sites_;
  std::int64_t below_peak_ = 0;  // what is alive, by so many bytes; more than that, until the next free
  // Numbers of moments: one for each peak, and each beginning of an epoch.
  static constexpr std::uint32_t kLastStamp = ~std::uint32_t{0};
  std::uint32_t stamp_;
  Token epoch_bits_ = Token{1} << kSiteBits;  // the epoch, in its place in a token

  SiteNumbers numbers_{kMostSites};
  std::uint32_t peak_stamp_, epoch_stamp_, told_stamp_;  // of the last
  const std::atomic<std::int64_t>& clock_;
  std::int64_t peak_ns_ = 0;
  GrowingArray<Rest> rests_;  // by site; of most nothing was ever written
  std::vector<LargeBytes> large_bytes_;
  boost::unordered_flat_map<std::uintptr_t, std::uint64_t> large_sizes_;  // of living large blocks
  GrowingArray<std::uint32_t> changed_;                                   // sites, in this epoch: room for all
  std::size_t changed_count_ = 0;                                         // and so many of them
  // Freed in this epoch, of earlier ones: by token, and whether at once.
  struct FreedLater {
    std::uint64_t key = 0;
    Sum sum;
  };
  std::vector<FreedLater> freed_later_;
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> freed_later_of_key_;
  std::array<std::uint32_t, 256> last_freed_later_{};  // what was found last of those that share a place
  GrowingArray<Sum> told_peak_;                        // by site
  std::int64_t peak_bytes_ = 0;
};

}  // namespace plimsoll::alloc
