// jitlog/listing.cc: two stages side by side, then line by line.
#include "jitlog/listing.h"

#include <algorithm>

namespace plimsoll::jitlog {
namespace {

constexpr std::string_view kOperationIndent = "  ";
constexpr std::string_view kInstructionIndent = "    ";

// What the rewriting for the machine keeps of an operation's name: loads and stores get other ones.
std::string_view sort_of(std::string_view name) {
  for (const std::string_view load : {"getfield", "getarrayitem", "getinteriorfield", "gc_load", "raw_load"})
    if (name.starts_with(load)) return "load";
  for (const std::string_view store : {"setfield", "setarrayitem", "setinteriorfield", "gc_store", "raw_store"})
    if (name.starts_with(store)) return "store";
  return name;
}

// Where the operations of one stage are in another one.
class Alignment {
 public:
  Alignment(const Forest& forest, const Stage& from, const Stage& to) : forest_(forest), from_(from), to_(to) {}

  // For each operation of `to`, the last one of `from` that is known to be done by then, plus one.
  std::vector<std::size_t> done() {
    std::vector<std::size_t> done;
    done.reserve(to_.operations.size());
    for (const Operation& operation : to_.operations) {
      if (const std::size_t found = anchor(operation); found < from_.operations.size())
        next_ = found + 1;
      else if (const std::size_t like = same_sort(operation); like < from_.operations.size())
        next_ = like + 1;
      done.push_back(next_);
    }
    return done;
  }

 private:
  static bool is_anchor(std::string_view name) {
    return name.starts_with("guard") || name == "label" || name == "jump";
  }

  // The guard, label or jump with the same descriptor, from where we are.
  [[nodiscard]] std::size_t anchor(const Operation& operation) {
    const std::vector<Operation>& all = from_.operations;
    if (operation.descriptor_id == 0 || !is_anchor(forest_.name_of(operation))) return all.size();
    for (std::size_t i = next_; i < all.size() && i < next_ + kFarthest; ++i)
      if (all[i].descriptor_id == operation.descriptor_id && all[i].number == operation.number) return i;
    return all.size();
  }
  // The next operation of the same sort before the next anchor.
  [[nodiscard]] std::size_t same_sort(const Operation& operation) const {
    const std::vector<Operation>& all = from_.operations;
    const std::string_view sort = sort_of(forest_.name_of(operation));
    for (std::size_t i = next_; i < all.size() && i < next_ + kFarthest; ++i) {
      const std::string_view name = forest_.name_of(all[i]);
      if (is_anchor(name)) break;
      if (sort_of(name) == sort) return i;
    }
    return all.size();
  }

  static constexpr std::size_t kFarthest = 1000;  // so that hostile stages do not take the square of their size
  const Forest& forest_;
  const Stage& from_;
  const Stage& to_;
  std::size_t next_ = 0;
};

// Writes the lines of a listing, in order of their offsets.
class Lister {
 public:
  Lister(const Forest& forest, const Trace& trace, const Disassembler* disassembler)
      : forest_(forest), trace_(trace), disassembler_(disassembler) {}

  std::vector<ListingLine> assembled() {
    code(trace_.entry_offset, trace_.entry_code);
    const std::vector<Operation>& operations = trace_.stage(StageKind::kAssembled).operations;
    const std::vector<PlacedPoint> places = assembled_places(forest_, trace_);
    auto place = places.begin();
    for (std::size_t i = 0; i < operations.size(); ++i) {
      if (!operations[i].code.empty()) at_ = std::max<std::uint64_t>(at_, operations[i].code_offset);
      for (; place != places.end() && place->before <= i; ++place) add(place_text(forest_, *place->place));
      add(std::string(kOperationIndent) + operation_text(forest_, operations[i]));
      code(operations[i].code_offset, operations[i].code);
    }
    return std::move(lines_);
  }

  std::vector<ListingLine> operations_of(const Stage& stage) {
    auto place = stage.merge_points.begin();
    for (std::size_t i = 0; i < stage.operations.size(); ++i) {
      for (; place != stage.merge_points.end() && place->before <= i; ++place) add(place_text(forest_, *place));
      add(std::string(kOperationIndent) + operation_text(forest_, stage.operations[i]));
    }
    return std::move(lines_);
  }

 private:
  void add(std::string text) { lines_.push_back({at_, std::move(text)}); }
  void code(std::uint64_t offset, std::string_view bytes) {
    if (bytes.empty() || disassembler_ == nullptr) return;
    at_ = std::max(at_, offset);
    const std::uint64_t start = at_;
    for (const Instruction& one : disassembler_->instructions(bytes, trace_.code_start + start)) {
      at_ = start + one.offset;
      add(std::string(kInstructionIndent) + one.text);
    }
    at_ = start + bytes.size();
  }

  const Forest& forest_;
  const Trace& trace_;
  const Disassembler* disassembler_;
  std::vector<ListingLine> lines_;
  std::uint64_t at_ = 0;
};

}  // namespace

std::vector<PlacedPoint> assembled_places(const Forest& forest, const Trace& trace) {
  const Stage& assembled = trace.stage(StageKind::kAssembled);
  const Stage& optimised = trace.stage(StageKind::kOptimised);
  const Stage& source = assembled.merge_points.empty() ? optimised : assembled;
  const std::vector<std::size_t> done = Alignment(forest, source, assembled).done();
  std::vector<PlacedPoint> places;
  std::size_t at = 0;
  for (const MergePoint& place : source.merge_points) {
    while (at < done.size() && done[at] <= place.before) ++at;
    places.push_back({at, &place});
  }
  return places;
}

std::string place_text(const Forest& forest, const MergePoint& place) {
  std::string text = place.file;
  if (place.line != 0) text += ":" + std::to_string(place.line);
  text += "  " + place.function;
  if (!place.opcode.empty()) text += "  " + place.opcode;
  if (const auto found = forest.sources.find({std::string_view(place.file), place.line}); found != forest.sources.end())
    (text += "  ").append(found->second);
  return text;
}

std::string operation_text(const Forest& forest, const Operation& operation) {
  std::string text;
  if (operation.result != "?" && !operation.result.empty()) text.append(operation.result).append(" = ");
  text.append(forest.name_of(operation)).append("(").append(operation.arguments).append(")");
  if (!operation.descriptor.empty()) text.append("  ").append(operation.descriptor);
  if (operation.descriptor_id == 0) return text;
  if (const auto bridge = forest.bridge_of(operation.descriptor_id))
    text += "  -> bridge " + std::to_string(forest.traces[*bridge].id);
  return text;
}

std::vector<ListingLine> listing(const Forest& forest, const Trace& trace, const Disassembler* disassembler) {
  Lister lister(forest, trace, disassembler);
  if (!trace.stage(StageKind::kAssembled).operations.empty()) return lister.assembled();
  const Stage& optimised = trace.stage(StageKind::kOptimised);
  return lister.operations_of(optimised.operations.empty() ? trace.stage(StageKind::kRecorded) : optimised);
}

}  // namespace plimsoll::jitlog
