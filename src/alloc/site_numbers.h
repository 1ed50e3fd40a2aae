// alloc/site_numbers.h: a number for each site that blocks come from: a stack, an allocator, and for small blocks a
// size. Found by two loads where a stack has one site, as most have.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <vector>

#include "alloc/books.h"

namespace plimsoll::alloc {

// Numbers from 1 on. Not thread-safe.
class SiteNumbers {
 public:
  // `most`: no site has this number, or a higher one.
  explicit SiteNumbers(std::uint32_t most) : most_(most) {}

  // The number of a site; 0 if there is none left. `add(number)` is called with that of a new one, and may throw: then
  // there is no such site.
  template <typename Add>
  std::uint32_t find(std::uint32_t stack, Domain domain, std::size_t size, Add add) {
    const auto kind = static_cast<std::uint32_t>((static_cast<std::uint32_t>(domain) + 1) << 12U |
                                                 (size > BlockBooks::kLargestSmall ? 0xfffU : size));
    if (stack >= last_sites_.size()) [[unlikely]]
      last_sites_.resize(std::size_t{stack} * 2 + 64);
    LastSite& last = last_sites_[stack];
    if (last.kind == kind) return last.site;
    const std::uint64_t key = std::uint64_t{stack} << 16U | kind;
    CachedSite& cached = cache_[cache_row(key)];
    if (cached.key != key) cached = {key, look_up(key, add)};
    last = {kind, cached.site};
    return cached.site;
  }

 private:
  // By stack, the site that it was at last: most stacks have one, and then there is no other place to look at.
  struct LastSite {
    std::uint32_t kind = 0;  // the low half of the key, never 0
    std::uint32_t site = 0;
  };
  // A site that was looked up, by what it was looked up with.
  struct CachedSite {
    std::uint64_t key = 0;
    std::uint32_t site = 0;
  };
  static constexpr std::size_t kCacheBits = 11;
  static std::size_t cache_row(std::uint64_t key) {
    return static_cast<std::size_t>(key * 0x9e3779b97f4a7c15U >> (64U - kCacheBits));
  }
  template <typename Add>
  [[gnu::noinline]] std::uint32_t look_up(std::uint64_t key, Add add) {
    const auto [found, is_new] = site_of_key_.try_emplace(key, next_);
    if (!is_new) return found->second;
    if (next_ == most_) {
      site_of_key_.erase(found);
      return 0;
    }
    try {
      add(next_);
    } catch (...) {
      site_of_key_.erase(key);
      throw;
    }
    return next_++;
  }

  const std::uint32_t most_;
  std::uint32_t next_ = 1;
  std::array<CachedSite, std::size_t{1} << kCacheBits> cache_{};
  std::vector<LastSite> last_sites_;
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> site_of_key_;
};

}  // namespace plimsoll::alloc
