// jitlog/forest.h: the traces of PyPy's JIT, as its log tells of them.
//
// A trace is what the JIT recorded of a loop, or of a bridge: a way out of a trace that was taken often enough. It has
// up to three stages: the operations as recorded, as optimised, and as turned into machine code.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plimsoll::jitlog {

// A trace of a Forest; not the id that PyPy gives it.
using TraceIndex = std::uint32_t;

// One operation. Texts point into the log's bytes.
struct Operation {
  std::uint16_t number = 0;     // of its kind; Forest::name_of
  std::string_view result;      // the variable; "?" = none
  std::string_view arguments;   // joined by commas
  std::string_view descriptor;  // what it works on or leaves to: a field, a guard, a loop
  std::uint64_t descriptor_id = 0;
  std::string_view fail_arguments;  // of guards: what is alive there
  std::uint32_t code_offset = 0;    // of `code`, from the start of the trace's machine code
  std::string_view code;            // machine code, which may belong to the operations before it, too
};

// A place in the interpreted program, which operations from `before` on belong to.
struct MergePoint {
  std::size_t before = 0;  // index of an operation
  std::string file;
  std::string function;
  std::uint64_t line = 0;      // 0 = none
  std::uint64_t position = 0;  // in the byte code
  std::string opcode;
};

// What a stage holds.
struct Stage {
  std::string_view arguments;  // the variables at its start, joined by commas
  std::vector<Operation> operations;
  std::vector<MergePoint> merge_points;
};

// The stages in order.
enum class StageKind : std::uint8_t { kRecorded, kOptimised, kAssembled };
inline constexpr std::size_t kStageCount = 3;
inline constexpr std::array<std::string_view, kStageCount> kStageNames = {"noopt", "opt", "asm"};

// A loop or a bridge.
struct Trace {
  // Which of the two.
  enum class Kind : std::uint8_t { kLoop, kBridge };
  std::uint64_t id = 0;  // PyPy's; of loops that it gave the id of the trace before them, one behind all of its
  Kind kind = Kind::kLoop;
  std::string_view driver;           // the interpreter loop that it is of; empty before version 2
  std::uint64_t guard = 0;           // of bridges: the descriptor of the guard that failed
  std::optional<TraceIndex> parent;  // of bridges: the trace with that guard
  std::uint64_t code_start = 0;      // of the machine code; 0 = it was not assembled
  std::uint64_t code_end = 0;
  std::uint32_t entry_offset = 0;  // of `entry_code`
  std::string_view entry_code;     // before the code of the first operation: sets up the frame
  std::uint64_t entries = 0;       // how often it was entered, if the log counts that
  bool is_aborted = false;
  std::array<Stage, kStageCount> stages;

  [[nodiscard]] const Stage& stage(StageKind kind_of_stage) const {
    return stages[static_cast<std::size_t>(kind_of_stage)];
  }
  // How often it ran: entries, or rounds of its loop if the log counts those and they are more.
  [[nodiscard]] std::uint64_t runs() const { return rounds > entries ? rounds : entries; }
  std::uint64_t rounds = 0;
  // The first place in the program; null if there is none.
  [[nodiscard]] const MergePoint* first_place() const;
};

// A guard that was patched to jump to a bridge.
struct Stitch {
  std::uint64_t guard = 0;
  std::uint64_t target = 0;  // machine code
};

// Calls of one loop that now go to another.
struct Redirect {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t target = 0;
};

// A whole log. The views point into the bytes that it was read from, which must outlive it.
struct Forest {
  std::uint16_t version = 0;
  bool is_32bit = false;
  std::string_view machine;
  std::vector<Trace> traces;                                             // in the order of recording
  boost::unordered_flat_map<std::uint16_t, std::string_view> names;      // of kinds of operations
  boost::unordered_flat_map<std::uint64_t, TraceIndex> by_id;            // the last one of an id
  boost::unordered_flat_map<std::uint64_t, TraceIndex> by_code_address;  // by the start of the machine code
  boost::unordered_flat_map<std::uint64_t, TraceIndex> by_guard;         // traces that have the guard of a descriptor
  boost::unordered_flat_map<std::uint64_t, std::uint64_t> counts;        // of guards and labels, by descriptor
  std::vector<Stitch> stitches;
  boost::unordered_flat_map<std::uint64_t, std::uint64_t> stitch_targets;  // of the last stitch of a guard
  std::vector<Redirect> redirects;
  boost::unordered_flat_map<std::pair<std::string_view, std::uint64_t>, std::string_view> sources;  // by file and line
  std::uint64_t callbacks = 0;
  std::string problem;  // why reading ended early; empty if it did not

  [[nodiscard]] std::string_view name_of(const Operation& operation) const;
  // The bridge that a guard was stitched to; none if it was not.
  [[nodiscard]] std::optional<TraceIndex> bridge_of(std::uint64_t guard) const;
};

}  // namespace plimsoll::jitlog
