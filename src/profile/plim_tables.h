// profile/plim_tables.h: the tables of a .plim file, read: strings, functions, frames, stacks, tag sets, processes,
// threads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/varint.h"
#include "profile/profile.h"

namespace plimsoll::profile {

// Threads by their ThreadId.
using ThreadRows = std::map<std::uint32_t, Thread>;

// Writes the rows of tables that are not in the file yet, and tells by which numbers the file knows them.
class TableEncoder {
 public:
  // Each returns the payload of a section with the next rows; empty when there are none left.
  std::string strings(const Profile& profile);
  std::string functions(const Profile& profile);
  std::string frames(const Profile& profile);
  std::string traces(const Profile& profile);
  std::string addresses(const Profile& profile);
  std::string stacks(const Profile& profile);
  std::string tag_sets(const Profile& profile);
  std::string processes(const Profile& profile);
  static std::string threads(const ThreadRows& rows, ThreadRows::const_iterator& next);

  // Optional ids as they are written; of rows that are in the file.
  [[nodiscard]] std::int64_t string(StringId id) const { return strings_.plus_one(id); }
  [[nodiscard]] std::int64_t stack(StackId id) const { return stacks_.plus_one(id); }
  [[nodiscard]] std::int64_t tag_set(TagSetId id) const { return tag_sets_.plus_one(id); }

  // The tables but those of processes and threads begin anew: what follows is numbered on.
  void forget();

 private:
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
  bool stacks(VarintCursor& cursor);
  bool tag_sets(VarintCursor& cursor);
  bool processes(VarintCursor& cursor);
  bool threads(VarintCursor& cursor);

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

 private:
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
  std::vector<TagSetId> tag_set_ids_;
};

}  // namespace plimsoll::profile
