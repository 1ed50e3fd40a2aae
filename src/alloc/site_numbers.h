// alloc/site_numbers.h: a number for each site that blocks come from: a stack, an allocator, and for small blocks a
// size. Found by two loads where a stack has one site, as most have; that one is in no table of keys.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>

#include "alloc/books.h"
#include "base/growing_array.h"

namespace plimsoll::alloc {

// Numbers from 1 on. Not thread-safe.
class SiteNumbers {
 public:
  // `most`: no site has this number, or a higher one.
  explicit SiteNumbers(std::uint32_t most) : most_(most) {}

  // What a site of a stack is told from the others of that by.
  static std::uint16_t kind_of(Domain domain, std::size_t size) {
    return static_cast<std::uint16_t>((static_cast<std::uint32_t>(domain) + 1) << 12U |
                                      (size > BlockBooks::kLargestSmall ? 0xfffU : size));
  }
  // The number of a site, if it is the one that the stack was at last, or was looked up lately; else 0.
  [[nodiscard]] std::uint32_t find_last(std::uint32_t stack, std::uint16_t kind) const {
    if (stack >= last_sites_.size()) [[unlikely]]
      return 0;
    const LastSite& last = last_sites_[stack];
    if (last.kind == kind) return last.site;
    const std::uint64_t key = key_of(stack, kind);
    const CachedSite& cached = cache_[cache_row(key)];
    return cached.key == key ? cached.site : 0;
  }
  // The number of a site; 0 if there is none left. `add(number)` is called with that of a new one, and may throw: then
  // there is no such site.
  template <typename Add>
  std::uint32_t find(std::uint32_t stack, std::uint16_t kind, Add add) {
    if (stack >= last_sites_.size()) last_sites_.extend(std::size_t{stack} + 1);
    LastSite& last = last_sites_[stack];
    if (last.kind == 0) {
      const std::uint32_t made = add_next(add);
      last = {kind, false, made};
      return made;
    }
    if (!last.has_others) {
      site_of_key_.emplace(key_of(stack, last.kind), last.site);
      last.has_others = true;
    }
    const std::uint64_t key = key_of(stack, kind);
    CachedSite& cached = cache_[cache_row(key)];
    if (cached.key != key) cached = {key, look_up(key, add)};
    last.kind = kind;
    last.site = cached.site;
    return cached.site;
  }

 private:
  // By stack, the site that it was at last: most stacks have one, and then there is no other place to look at.
  struct LastSite {
    std::uint16_t kind = 0;   // the low part of the key; 0: the stack has no site
    bool has_others = false;  // and then all of them are in site_of_key_
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
  static std::uint64_t key_of(std::uint32_t stack, std::uint16_t kind) { return std::uint64_t{stack} << 16U | kind; }

  template <typename Add>
  std::uint32_t add_next(Add add) {
    if (next_ == most_) return 0;
    add(next_);
    return next_++;
  }
  template <typename Add>
  [[gnu::noinline]] std::uint32_t look_up(std::uint64_t key, Add add) {
    const auto [found, is_new] = site_of_key_.try_emplace(key, 0);
    if (!is_new) return found->second;
    try {
      const std::uint32_t made = add_next(add);
      if (made != 0)
        found->second = made;
      else
        site_of_key_.erase(found);
      return made;
    } catch (...) {
      site_of_key_.erase(key);
      throw;
    }
  }

  const std::uint32_t most_;
  std::uint32_t next_ = 1;
  std::array<CachedSite, std::size_t{1} << kCacheBits> cache_{};
  GrowingArray<LastSite> last_sites_;
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> site_of_key_;  // of stacks with more than one
};

}  // namespace plimsoll::alloc
