// formats/firefox/file_layout.h: what the parts of the file must agree on, decided before any of them is written.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/firefox/columns.h"
#include "formats/firefox/jit_symbols.h"
#include "formats/labels.h"
#include "profile/profile.h"

namespace plimsoll::formats::firefox {

// Groups of frames and markers, shown as colours. The values are the indices in the file.
enum class Category : std::uint8_t { kOther, kPython, kNative, kGarbageCollection, kJit };

// A category as the viewer wants it. Exactly the first grey one is the viewer's default.
struct CategoryLook {
  std::string_view name;
  std::string_view color;
};
inline constexpr std::array<CategoryLook, 5> kCategories = {
    {{"Other", "grey"}, {"Python", "yellow"}, {"Native", "blue"}, {"Garbage collection", "orange"}, {"JIT", "purple"}}};

// The texts of the file, each once.
class Texts {
 public:
  // The index of a text; made valid UTF-8 on the way.
  std::int64_t index(std::string_view text) { return table_.intern(valid_utf8(text)).index(); }
  [[nodiscard]] const profile::StringTable& table() const { return table_; }

 private:
  profile::StringTable table_;
};

// Threads in the order of the file, and the rows of their samples. Lives while one file is written.
struct FileLayout {
  // `slabs_of` takes the columns of a JSLB file; null for one of JSON alone.
  explicit FileLayout(const profile::Profile& of, Slabs* slabs_of = nullptr);

  const profile::Profile& profile;
  Slabs* slabs;
  std::vector<ThreadId> threads;                 // by index in the file: grouped by process, main thread first
  std::vector<std::size_t> index_of_thread;      // the inverse, by ThreadId
  std::vector<std::vector<std::uint32_t>> rows;  // of the sample table, by ThreadId, in order of time
  std::vector<std::int64_t> thread_cpu_ns;       // sampled CPU time, by ThreadId
  JitSymbols jit;                                // what the page's assembly view can ask for
  bool has_empty_stack = false;                  // the tables then have one row more, for kNoStack

  // The index in the file of the first thread of a process; 0 if it has none.
  [[nodiscard]] std::size_t main_thread_of(ProcessId process) const;
};

}  // namespace plimsoll::formats::firefox
