// capture/tags.h: tags, the words that a program puts on what it does (plimsoll.tag), from the program to the samples.
//
// A program's tags are the value of a context variable: a TagSet object of python/tag_binding.cc, which holds the
// number of a row in the TagRegistry. A look at a thread takes the number along; the drain thread finds the words.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cpython/context.h"

namespace plimsoll::capture {

// Names and values, ordered by name; a name occurs once.
using Tags = std::vector<std::pair<std::string, std::string>>;
// A TagSet as Plimsoll knows it: never reused while the process lives, unlike an object's address. 0 = no tags.
using TagNumber = std::uint64_t;

// The words of all TagSet objects of the process, and, while it is recorded, of those that have died since their last
// sample may have been taken. Thread-safe; never destroyed, as objects of the program may outlive everything else.
class TagRegistry {
 public:
  TagRegistry();
  TagNumber add(std::shared_ptr<const Tags> tags);
  // The object is gone.
  void died(TagNumber number) noexcept;
  // Null if there is no such row.
  std::shared_ptr<const Tags> find(TagNumber number) const;
  // Whether any object lives. Async-signal-safe.
  [[nodiscard]] bool is_used() const { return living_.load(std::memory_order_relaxed) != 0; }

  // Around fork, so that the child does not find it locked by a thread that it does not have.
  void hold() { mutex_.lock(); }
  void release() { mutex_.unlock(); }

  // Between these, the words of the dead are kept...
  void begin_recording();
  void end_recording();
  // ...until everything sampled before `time_ns` has been resolved.
  void forget_deaths_before(std::int64_t time_ns);

 private:
  // A number's words, while it is in use.
  struct Row {
    std::uint32_t generation = 1;
    std::shared_ptr<const Tags> tags;
  };
  // A row whose object is gone.
  struct Death {
    std::uint32_t row;
    std::int64_t time_ns;
  };
  void free_row(std::uint32_t row);

  mutable std::mutex mutex_;
  std::vector<Row> rows_;
  std::vector<std::uint32_t> free_rows_;
  std::vector<Death> deaths_;  // in order of time
  bool is_recording_ = false;
  std::atomic<std::uint32_t> living_{0};
};

// How to find the tags of a thread.
struct TagSource {
  TagRegistry* registry = nullptr;    // null: tags cannot be read in this build of Python
  cpython::ContextVariable variable;  // whose value is a TagSet
  Address set_type{};                 // the type of TagSets
  std::uint32_t number_in_set = 0;    // offset of the TagNumber
};

// The tags that hold in a thread now; 0 if there are none or they cannot be read. To be called in the thread itself, or
// with proof that it does not run. Async-signal-safe if `memory` is.
template <memory::Reader M>
TagNumber tags_of(const M& memory, const cpython::Layout& layout, const TagSource& source, Address tstate) {
  if (source.registry == nullptr || !source.registry->is_used() || is_null(tstate)) return 0;
  Address set{};
  Address type{};
  TagNumber number = 0;
  const bool is_tagged = cpython::find_in_context(memory, layout, source.variable, tstate, set) && !is_null(set) &&
                         memory::load_address(memory, offset_by(set, layout.object.type), type) &&
                         type == source.set_type && memory.load(offset_by(set, source.number_in_set), number);
  return is_tagged ? number : 0;
}

}  // namespace plimsoll::capture
