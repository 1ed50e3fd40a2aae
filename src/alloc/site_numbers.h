// alloc/site_numbers.h: a number for each site that blocks come from: a stack, an allocator, and for small blocks a
// size. Found by the key of the stack where it was noted; and by two loads where the stack is known by its number and
// has one site, as most have: that one is in no table of numbers.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>

#include "alloc/books.h"
#include "base/growing_array.h"
#include "base/stack_key.h"

namespace plimsoll::alloc {

// Numbers from 1 on. Not thread-safe.
class SiteNumbers {
 public:
  // `most`: no site has this number, or a higher one.
  explicit SiteNumbers(std::uint32_t most) : most_(most) {}

  // What a site of a stack is told from the others of that by.
  using Kind = std::uint32_t;  // of 16 bits
  static Kind kind_of(Domain domain, std::size_t size) {
    const Kind part = size > BlockBooks::kLargestSmall ? 0xfffU : static_cast<Kind>(size);
    return (static_cast<Kind>(domain) + 1) << 12U | part;
  }
  // A site, by what it was noted with.
  struct alignas(32) NotedSite {
    StackKey key;
    Kind kind = 0;
    std::uint32_t site = 0;
  };
  // The site that was noted with the key of its stack, if not too many others were since; else null.
  [[nodiscard]] const NotedSite* find_noted(StackKey key, Kind kind) const {
    const NotedSite& noted = noted_[row_of(key, kind)];
    return noted.key == key && noted.kind == kind ? &noted : nullptr;
  }
  void note(StackKey key, Kind kind, std::uint32_t site) {
    if (!key.is_none() && site != 0) noted_[row_of(key, kind)] = {key, kind, site};
  }
  // The number of a site; 0 if there is none left. `add(number)` is called with that of a new one, and may throw: then
  // there is no such site.
  template <typename Add>
  std::uint32_t find(std::uint32_t stack, Kind kind, Add add) {
    if (stack >= last_sites_.size()) last_sites_.extend(std::size_t{stack} + 1);
    LastSite& last = last_sites_[stack];
    if (last.kind == 0) {
      const std::uint32_t made = add_next(add);
      last = {static_cast<std::uint16_t>(kind), false, made};
      return made;
    }
    if (last.kind == kind) return last.site;
    if (!last.has_others) {
      site_of_key_.emplace(key_of(stack, last.kind), last.site);
      last.has_others = true;
    }
    const std::uint32_t found = look_up(key_of(stack, kind), add);
    last.kind = static_cast<std::uint16_t>(kind);
    last.site = found;
    return found;
  }

 private:
  // By stack, the site that it was at last: most stacks have one, and then there is no other place to look at.
  struct LastSite {
    std::uint16_t kind = 0;   // the low part of the key; 0: the stack has no site
    bool has_others = false;  // and then all of them are in site_of_key_
    std::uint32_t site = 0;
  };
  static constexpr unsigned kRowBits = 11;
  static std::size_t row_of(StackKey key, Kind kind) {
    const std::uint64_t sum = key.at + key.below + std::uint64_t{8} * kind;
    return static_cast<std::size_t>(sum * 0x9e3779b97f4a7c15U >> (64U - kRowBits));
  }
  static std::uint64_t key_of(std::uint32_t stack, Kind kind) { return std::uint64_t{stack} << 16U | kind; }

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
  std::array<NotedSite, std::size_t{1} << kRowBits> noted_{};
  GrowingArray<LastSite> last_sites_;
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> site_of_key_;  // of stacks with more than one
};

}  // namespace plimsoll::alloc
