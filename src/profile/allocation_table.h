// profile/allocation_table.h: the allocations, sampled or all of them, and what became of them.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace plimsoll::profile {

// One sampled block; or, in an exact recording, all blocks of one stack that were allocated at about the same time, and
// met the same fate. Sampled blocks were sampled at random: one had the chance 1 - e^(-chance_bytes / distance), where
// the distance is Profile::allocation_distance, and stands for 1 / chance blocks like it. Without a distance (0) a row
// stands for itself.
struct AllocationRow {
  static constexpr std::int64_t kAlive = -1;  // as freed_ns: it was not freed while recorded

  std::uint64_t number = 0;  // of the sample; unique. Exact: 0
  std::int64_t time_ns = 0;  // monotonic, since the start of the profile
  ThreadId thread;
  StackId stack;           // none = the empty stack
  std::uint64_t size = 0;  // bytes asked for; exact: in all blocks
  std::uint64_t chance_bytes = 0;
  std::uint8_t domain = 0;  // capture::AllocationDomain
  std::int64_t freed_ns = kAlive;
  StringId type;  // of the object; none = not known, or not an object
  TagSetId tags;  // none = no tags
  std::uint64_t blocks = 1;
  // Exact: each was freed before its stack had another such block; with Profile::has_events, it was freed, not moved.
  bool is_temporary = false;
  bool is_moved = false;  // sampled: freed by realloc, what was in it lives on in another block
  bool operator==(const AllocationRow&) const = default;
};

// In the order of recording.
using AllocationTable = std::vector<AllocationRow>;

// What became known of a row after it was written: it was freed, or its type.
struct Release {
  std::uint64_t number = 0;
  std::int64_t freed_ns = AllocationRow::kAlive;
  StringId type;
  bool is_moved = false;
};

// While each event is recorded: what there is to be written.
struct AllocationEvents {
  // Where blocks come from; numbered over the whole recording, from 0 on.
  struct Site {
    ThreadId thread;
    StackId stack;
    std::uint8_t domain = 0;
    std::uint32_t size = 0;  // 0: of many sizes
  };
  std::vector<Site> sites;
  std::vector<std::string> sections;                      // of events: plim_events.h
  std::vector<std::string> rooms;                         // for such
  std::vector<std::pair<std::uint32_t, StringId>> types;  // of living blocks, by slot

  [[nodiscard]] std::size_t memory() const {
    std::size_t bytes = sites.size() * sizeof(Site) + types.size() * sizeof(types[0]);
    for (const std::string& section : sections) bytes += section.size();
    return bytes;
  }
  // Empty, at the end.
  std::string& new_section() {
    if (rooms.empty()) return sections.emplace_back();
    sections.push_back(std::move(rooms.back()));
    rooms.pop_back();
    sections.back().clear();
    return sections.back();
  }
  // The memory of sections is used again: to have the system give it anew takes as long as to fill it.
  void clear() {
    sites.clear();
    types.clear();
    std::move(sections.begin(), sections.end(), std::back_inserter(rooms));
    sections.clear();
  }
};

// While an exact recording is written: what has become of blocks. capture::ExactChange tells the kinds.
struct AllocationChange {
  std::uint8_t change = 0;
  std::uint8_t domain = 0;
  ThreadId thread;
  StackId stack;
  std::int64_t born_ns = 0;
  std::int64_t at_ns = 0;
  StringId type;
  std::int64_t blocks = 0;
  std::int64_t bytes = 0;
};

}  // namespace plimsoll::profile
