// capture/resolve.h: RawSample -> Sample: addresses become code objects with names, positions become lines.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/id_table.h"
#include "capture/code_registry.h"
#include "capture/interleave.h"
#include "capture/living_stacks.h"
#include "capture/loop_calls.h"
#include "capture/native_resolver.h"
#include "capture/raw_sample.h"
#include "capture/sink.h"
#include "capture/task_names.h"

namespace plimsoll::capture {

// How sure a code object must be before a stack with it is believed.
enum class Trust : std::uint8_t {
  kValidated,  // it passed every check of the walker and could be read
  kKnown,      // "safe mode": it was also known before this sample was taken
};

// The resolver of one session. For the drain thread only.
class Resolver {
 public:
  // `tags` may be null: then samples have none.
  Resolver(const cpython::Layout& layout, CodeRegistry& registry, SampleSink& sink, Trust trust,
           TagRegistry* tags = nullptr)
      : line_table_style_(layout.line_table_style),
        counts_calls_(capture::counts_calls(layout)),
        registry_(registry),
        sink_(sink),
        trust_(trust),
        tags_(tags),
        task_names_(registry) {}

  // From now on samples may have native frames.
  void use_modules(const native::Modules& modules) { native_.emplace(modules, registry_); }

  // Resolves the frames (innermost first, and then those who await them) of a raw sample and passes the Sample on.
  // False if a code object is not known well enough, or of a wait that goes on if its beginning was not: no part of the
  // stack is passed on then.
  bool resolve(const RawSample& raw, std::span<const cpython::PyFrame> frames);

  // Likewise, with frames of machine code, and only of a record that has its stack; `awaiting` are those who await it.
  // `is_matched` is set to whether they could be put between the others; if not, the Sample is passed on without them.
  bool resolve_native(const RawSample& raw, const NativeStack& native, std::span<const cpython::PyFrame> frames,
                      std::span<const cpython::PyFrame> awaiting, bool& is_matched);

  // Likewise for a sampled allocation, whose stack `living` keeps.
  bool resolve_allocation(const RawSample& raw, const RawAllocation& block, std::span<const cpython::PyFrame> frames,
                          LivingStacks& living);
  bool resolve_native_allocation(const RawSample& raw, const RawAllocation& block, const NativeStack& native,
                                 std::span<const cpython::PyFrame> frames, std::span<const cpython::PyFrame> awaiting,
                                 LivingStacks& living, bool& is_matched);

  // One frame, as it was at a time. False if its code object is not known. `code` is null if it is not to be shown.
  bool resolve_frame(const cpython::PyFrame& frame, std::int64_t time_ns, SampleFrame& out,
                     std::shared_ptr<const cpython::CodeInfo>& code);
  // Describes a code object to the sink, before its next use.
  void announce(CodeId id, const cpython::CodeInfo& info);
  // Likewise of machine code, if there are modules; `code` is none if it is not to be shown.
  SampleFrame resolve_machine_code(Address instruction, std::int64_t time_ns) {
    return native_->frame_at(instruction, time_ns).value_or(SampleFrame{});
  }
  void announce_machine_code(CodeId id);

  // Everything sampled before `time_ns` has been resolved: forgets dead code objects and tags.
  void forget_deaths_before(std::int64_t time_ns);

 private:
  static constexpr std::int64_t kAlways = std::numeric_limits<std::int64_t>::min();

  // The stack that a thread waited on last, for samples that say "the same". It holds on to what is known of its code
  // objects, as they may be gone before the wait has been told to its end.
  struct Wait {
    std::vector<SampleFrame> frames;
    std::vector<std::shared_ptr<const cpython::CodeInfo>> codes;  // null: machine code
    TagNumber tag_number = 0;
    std::shared_ptr<const Tags> tags;
    bool is_truncated = false;
    bool has_python = true;
    std::int64_t known_since_ns = kAlways;
  };

  // What the sink was told of.
  struct KnownCode {
    std::uint32_t epoch = 0;  // the sink's, in which it was described; 0 = never
    // Positions met so far and their lines. A code object has few.
    std::vector<std::pair<std::int32_t, cpython::Location>> locations;
  };

  // Whether codes_ is filled, too.
  enum class Codes : std::uint8_t { kKeep, kForget };
  // Fills frames_. False if a code object cannot be read.
  bool resolve_frames(const RawSample& raw, std::span<const cpython::PyFrame> frames, Codes codes);
  void clear_frames();
  // Adds frames, marks of tasks among them, to frames_; false likewise.
  bool add_frames(const RawSample& raw, std::span<const cpython::PyFrame> frames, Codes codes);
  bool add_task(const RawSample& raw, Address code, std::string_view name, Codes codes);
  // The code object of a frame as it was at a time, described to the sink; null if it is not known. `out` is
  // none if the frame is not to be shown.
  const CodeRegistry::Entry* describe(const cpython::PyFrame& frame, std::int64_t time_ns, SampleFrame& out);
  // Adds a frame to frames_; false likewise.
  bool add_frame(const RawSample& raw, const cpython::PyFrame& frame, Codes codes);
  void add_native_frame(const RawSample& raw, const native::NativeFrame& frame, Codes codes);
  // Fills frames_ with both kinds, or with Python's alone if they do not match; false likewise.
  bool resolve_both(const RawSample& raw, const NativeStack& native, std::span<const cpython::PyFrame> frames,
                    std::span<const cpython::PyFrame> awaiting, Codes codes, bool& is_matched);
  // Passes a Sample with the frames in frames_ on, if they were known before it; of a wait, they are kept.
  bool pass_on(const RawSample& raw);
  void pass_on(const RawSample& raw, const RawAllocation& block, LivingStacks& living);
  bool resolve_same(const RawSample& raw);
  // Whether the sink has not heard of it in this epoch; from now on it has.
  bool is_news(CodeId id);
  [[nodiscard]] std::shared_ptr<const Tags> tags_of_sample(const RawSample& raw) const;
  // A Sample with the frames in frames_.
  [[nodiscard]] Sample sample_of(const RawSample& raw, const Tags* tags) const;
  cpython::Location location_of(const CodeRegistry::Entry& entry, std::int32_t position);

  const cpython::LineTableStyle line_table_style_;
  const bool counts_calls_;  // up to Python 3.10: see loop_calls.h
  CodeRegistry& registry_;
  SampleSink& sink_;
  const Trust trust_;
  TagRegistry* const tags_;
  TaskNames task_names_;
  std::optional<NativeResolver> native_;
  std::vector<StackItem> items_;                                 // of the sample at hand, kept to save allocations
  std::vector<SampleFrame> frames_;                              // likewise
  std::vector<std::shared_ptr<const cpython::CodeInfo>> codes_;  // likewise, of a wait
  boost::unordered_flat_map<std::uint32_t, Wait> waits_;         // by ThreadSerial
  std::int64_t known_since_ns_ = kAlways;                        // of the sample at hand: all of its code, in safe mode
  IdTable<CodeId, KnownCode> known_;
};

}  // namespace plimsoll::capture
