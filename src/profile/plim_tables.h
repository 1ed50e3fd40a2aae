// profile/plim_tables.h: the tables of a .plim file, written and read: strings, functions, frames, stacks, tag sets,
// processes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/symbols.h"
#include "base/varint.h"
#include "profile/profile.h"
#include "profile/recent_slots.h"

namespace plimsoll::profile {

// How probable the numbers of stacks are, and what a frame is written relative to.
struct StackModels {
  SymbolModel counts{2}, older{8};
  // By whether the row before is on top of the one before that; and by whether this one is.
  std::array<SymbolModel, 2> parents{SymbolModel{32}, SymbolModel{32}};
  std::array<SymbolModel, 2> frames{SymbolModel{RecentSlots::kCount + 4}, SymbolModel{RecentSlots::kCount + 4}};
  std::uint64_t last_up = 0;
  // The two frames that were on top of each frame last; and at 0, of a thread's outermost one.
  struct Followers {
    std::uint32_t last = UINT32_MAX, before = UINT32_MAX;
    void meet(std::uint32_t frame);
  };
  static constexpr std::size_t kFollowers = 8192;  // frames so far apart share what is known of them
  std::vector<Followers> followers{kFollowers};
  Followers& followers_of(std::uint64_t below);
  std::uint64_t next_frame = 0;  // no stack has had that, or one above it
};

// Stacks that came to the table together, each on top of the one before it: a sample that has the last of them is the
// one that brought them there. By optional ids as written. For writer and reader.
class ChainEnds {
 public:
  // The rows that follow are new in this section, after so many.
  void begin(std::uint64_t rows) {
    goes_on_.clear();
    first_ = rows;
    at_ = std::max(at_, rows);
  }
  // A row, which may be on top of the one before it.
  void add(bool goes_on) { goes_on_.push_back(goes_on); }
  // The last one of the next ones that no sample has had; `newest() + 1` if there is none.
  [[nodiscard]] std::uint64_t next() const {
    std::uint64_t row = at_ - first_;
    while (row + 1 < goes_on_.size() && goes_on_[row + 1]) ++row;
    return first_ + row + 1;
  }
  void met(std::uint64_t stack) { at_ = stack; }
  [[nodiscard]] std::uint64_t newest() const { return first_ + goes_on_.size(); }

 private:
  std::uint64_t first_ = 0, at_ = 0;  // rows
  std::vector<bool> goes_on_;
};

// Writes the rows of tables that are not in the file yet, and tells by which numbers the file knows them.
class TableEncoder {
 public:
  // Each returns the payload of a section with the next rows; empty when there are none left.
  std::string strings(const Profile& profile);
  std::string functions(const Profile& profile);
  std::string frames(const Profile& profile);
  std::string traces(const Profile& profile);
  std::string addresses(const Profile& profile);
  std::string tag_sets(const Profile& profile);
  std::string processes(const Profile& profile);
  // So many rows of stacks at most.
  void stacks(const Profile& profile, std::size_t most, SymbolWriter& out);

  // Optional ids as they are written; of rows that are in the file.
  [[nodiscard]] std::int64_t string(StringId id) const { return strings_.plus_one(id); }
  [[nodiscard]] std::int64_t stack(StackId id) const { return stacks_.plus_one(id); }
  [[nodiscard]] std::int64_t tag_set(TagSetId id) const { return tag_sets_.plus_one(id); }

  [[nodiscard]] std::uint64_t tag_set_count() const { return tag_sets_.before + tag_sets_.now; }
  [[nodiscard]] bool has_all_stacks(const Profile& profile) const { return stacks_.now == profile.stacks.size(); }
  // Of the stacks in the section at hand.
  ChainEnds& chains() { return chains_; }

  // The tables but those of processes and threads begin anew: what follows is numbered on.
  void forget();

 private:
  void put_frame(std::uint64_t frame, std::uint64_t below, SymbolModel& model, SymbolWriter& out);

  // Rows of a table that are in the file: those of the tables before, and those of the one at hand.
  struct Written {
    std::size_t before = 0, now = 0;
    void forget() { before += std::exchange(now, 0); }
    template <typename Tag>
    [[nodiscard]] std::int64_t plus_one(Id<Tag> id) const {
      return id.is_none() ? 0 : static_cast<std::int64_t>(before + id.index() + 1);
    }
  };

  std::size_t processes_ = 0;
  Written strings_, functions_, frames_, traces_, addresses_, stacks_, tag_sets_;
  StackModels stack_models_;
  SlotFinder frame_slots_;
  ChainEnds chains_;
};

// Reads sections of tables into a Profile, and tells what the numbers of a file stand for. A hostile file may repeat a
// row, which the Profile's tables store once: so ids as written are not ids in the tables.
class TableDecoder {
 public:
  explicit TableDecoder(Profile& profile) : profile_(profile) {}

  // One section each; false if it makes no sense. What came before it stays.
  bool strings(VarintCursor& cursor);
  bool functions(VarintCursor& cursor);
  bool frames(VarintCursor& cursor);
  bool traces(VarintCursor& cursor);
  bool addresses(VarintCursor& cursor);
  bool stacks(SymbolReader& rows);
  bool tag_sets(VarintCursor& cursor);
  bool processes(VarintCursor& cursor);
  // Of version 2.
  bool old_stacks(VarintCursor& cursor);
  bool old_threads(VarintCursor& cursor);

  // Reads an optional reference, 0 for none, else index + 1; false if there is no such row.
  bool string_reference(VarintCursor& cursor, StringId& id) const;
  bool process_reference(VarintCursor& cursor, ProcessId& id) const;
  bool thread_reference(VarintCursor& cursor, ThreadId& id) const;

  // What optional ids that were read elsewhere stand for; false if there is no such row.
  bool string(std::uint64_t written, StringId& id) const { return look_up(string_ids_, written, id); }
  bool stack(std::int64_t written, StackId& id) const {
    return look_up(stack_ids_, static_cast<std::uint64_t>(written), id);  // below 0 is above all
  }
  bool tag_set(std::uint64_t written, TagSetId& id) const { return look_up(tag_set_ids_, written, id); }
  // Of a number of a thread, which is never none.
  bool thread(std::uint64_t number, ThreadId& id) const;
  [[nodiscard]] std::size_t tag_set_count() const { return tag_set_ids_.size(); }
  // Of the stacks in the section at hand.
  ChainEnds& chains() { return chains_; }

 private:
  bool read_frame(SymbolReader& rows, std::uint64_t below, SymbolModel& model, std::uint64_t& frame);
  template <typename Id>
  static bool look_up(const std::vector<Id>& ids, std::uint64_t written, Id& id) {
    if (written > ids.size()) return false;
    id = written == 0 ? Id{} : ids[static_cast<std::size_t>(written - 1)];
    return true;
  }

  Profile& profile_;
  std::vector<StringId> string_ids_;
  std::vector<FunctionId> function_ids_;
  std::vector<FrameId> frame_ids_;
  std::vector<StackId> stack_ids_;
  std::vector<std::uint32_t> stack_frames_;  // as numbered in the file
  std::vector<TagSetId> tag_set_ids_;
  StackModels stack_models_;
  RecentSlots frame_slots_;
  ChainEnds chains_;
};

}  // namespace plimsoll::profile
