#include "native/eh_frame.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "native/byte_cursor.h"
#include "native/call_frame_program.h"
#include "native/dwarf.h"

namespace plimsoll::native {
namespace {

constexpr std::size_t kFunctionsAtOnce = 1000;     // before there is a look at what else there is to do
constexpr std::size_t kMostTableRows = 8'000'000;  // of one module; the largest known has less than a million

// A function's stretch of code, and its rows in Compiler::rows_.
struct Function {
  std::uint32_t start = 0;
  std::uint32_t size = 0;
  std::size_t first_row = 0, end_row = 0;
};
struct Row {
  std::uint32_t start = 0;
  RuleIndex rule = RulePool::kNoRule;
};

// An entry of the section: a common one (CIE) or a function's (FDE).
struct Entry {
  std::span<const std::byte> body;  // after the word that tells one from the other
  std::size_t body_offset = 0;      // in the section
  std::uint32_t back = 0;           // that word: 0 for a common entry, else the way back to it
  std::size_t back_offset = 0;      // where the word is
};

class Compiler {
 public:
  Compiler(const EhFrame& section, RulePool& pool, const Meanwhile& meanwhile)
      : section_(section),
        pool_(pool),
        meanwhile_(meanwhile),
        code_size_(std::min<std::uint64_t>(section.code_end - section.code_start,
                                           std::numeric_limits<std::uint32_t>::max())) {}

  UnwindTable all() {
    if (section_.code_end <= section_.code_start) return {};
    ByteCursor cursor(section_.bytes);
    for (std::size_t seen = 1; std::optional<Entry> entry = next_entry(cursor); ++seen) {
      if (entry->back != 0) function(*entry);
      if (seen % kFunctionsAtOnce == 0 && meanwhile_ != nullptr) meanwhile_();
    }
    return assemble();
  }

 private:
  // None at the end of the section, or where it cannot be gone through any further.
  std::optional<Entry> next_entry(ByteCursor& cursor) const {
    std::uint64_t length = cursor.fixed<std::uint32_t>();
    if (length == 0 || !cursor.is_good()) return std::nullopt;
    if (length == 0xffffffffU) length = cursor.fixed<std::uint64_t>();
    Entry entry;
    entry.back_offset = cursor.position();
    const std::span<const std::byte> whole = cursor.take(length);
    if (!cursor.is_good() || whole.size() < sizeof entry.back) return std::nullopt;
    std::memcpy(&entry.back, whole.data(), sizeof entry.back);
    entry.body = whole.subspan(sizeof entry.back);
    entry.body_offset = entry.back_offset + sizeof entry.back;
    return entry;
  }

  // A pointer in one of the encodings of .eh_frame, at `base` + the cursor's position. None if it is in another.
  std::optional<std::uint64_t> pointer(ByteCursor& cursor, std::uint8_t encoding, std::size_t base) const {
    const std::uint64_t at = section_.address + base + cursor.position();
    std::uint64_t value = 0;
    switch (encoding & 0x0fU) {
      case DW_EH_PE_absptr:
      case DW_EH_PE_udata8:
      case DW_EH_PE_sdata8: value = cursor.fixed<std::uint64_t>(); break;
      case DW_EH_PE_uleb128: value = cursor.uleb(); break;
      case DW_EH_PE_sleb128: value = static_cast<std::uint64_t>(cursor.sleb()); break;
      case DW_EH_PE_udata2: value = cursor.fixed<std::uint16_t>(); break;
      case DW_EH_PE_udata4: value = cursor.fixed<std::uint32_t>(); break;
      case DW_EH_PE_sdata2: value = static_cast<std::uint64_t>(std::int64_t{cursor.fixed<std::int16_t>()}); break;
      case DW_EH_PE_sdata4: value = static_cast<std::uint64_t>(std::int64_t{cursor.fixed<std::int32_t>()}); break;
      default: return std::nullopt;
    }
    const std::uint8_t relative = encoding & 0x70U;
    if (relative != DW_EH_PE_absptr && relative != DW_EH_PE_pcrel) return std::nullopt;
    return relative == DW_EH_PE_pcrel ? value + at : value;
  }

  // The common entry at an offset of the section; null if it cannot be understood.
  const CommonEntry* common_at(std::size_t offset) {
    if (const auto known = commons_.find(offset); known != commons_.end())
      return known->second ? &*known->second : nullptr;
    std::optional<CommonEntry> common;
    ByteCursor cursor(section_.bytes, offset);
    if (const std::optional<Entry> entry = next_entry(cursor); entry && entry->back == 0) common = read_common(*entry);
    const std::optional<CommonEntry>& kept = commons_.emplace(offset, common).first->second;
    return kept ? &*kept : nullptr;
  }

  std::optional<CommonEntry> read_common(const Entry& entry) const {
    CommonEntry common;
    ByteCursor cursor(entry.body);
    const std::uint8_t version = cursor.byte();
    if (version != 1 && version != 3) return std::nullopt;
    std::string augmentation;
    for (char letter = 0; (letter = static_cast<char>(cursor.byte())) != 0;) augmentation += letter;
    common.code_alignment = cursor.uleb();
    common.data_alignment = cursor.sleb();
    common.return_register = version == 1 ? cursor.byte() : cursor.uleb();
    if (!read_augmentation(augmentation, cursor, entry.body_offset, common)) return std::nullopt;
    if (!cursor.is_good() || common.code_alignment == 0) return std::nullopt;
    std::vector<StateRow> rows;
    // The one row that it makes is the state in which functions begin.
    if (!run_call_frame_program(entry.body.subspan(cursor.position()), common, 1, {}, rows) || rows.size() != 1)
      return std::nullopt;
    common.initial = rows[0].state;
    return common;
  }

  bool read_augmentation(std::string_view letters, ByteCursor& cursor, std::size_t base, CommonEntry& common) const {
    if (letters.empty()) return true;
    if (letters.front() != 'z') return false;
    common.is_sized = true;
    const std::uint64_t size = cursor.uleb();
    const std::size_t start = cursor.position();
    for (const char letter : letters.substr(1)) {
      if (letter == 'R') {
        common.pointer_encoding = cursor.byte();
      } else if (letter == 'S') {
        common.is_signal_frame = true;
      } else if (letter == 'L') {
        cursor.byte();
      } else if (letter == 'P') {
        const std::uint8_t encoding = cursor.byte();
        if (!pointer(cursor, encoding & 0x7fU, base)) return false;
      } else {
        break;  // an extension of which only the size is known
      }
    }
    const std::size_t used = cursor.position() - start;
    if (!cursor.is_good() || used > size) return false;
    cursor.take(size - used);
    return cursor.is_good();
  }

  void function(const Entry& entry) {
    if (entry.back > entry.back_offset) return;
    const CommonEntry* common = common_at(entry.back_offset - entry.back);
    if (common == nullptr) return;
    ByteCursor cursor(entry.body);
    const std::optional<std::uint64_t> start = pointer(cursor, common->pointer_encoding, entry.body_offset);
    const std::optional<std::uint64_t> size = pointer(cursor, common->pointer_encoding & 0x0fU, entry.body_offset);
    if (common->is_sized) cursor.take(cursor.uleb());
    if (!start || !size || !cursor.is_good()) return;
    const std::uint64_t offset = *start - section_.code_start;
    if (*start < section_.code_start || offset >= code_size_ || *size == 0 || *size > code_size_ - offset) return;
    if (rows_.size() >= kMostTableRows) return;

    Function found{static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(*size), rows_.size(), 0};
    states_.clear();
    const bool is_whole =
        run_call_frame_program(entry.body.subspan(cursor.position()), *common, *size, common->initial, states_);
    for (const StateRow& row : states_)
      rows_.push_back({static_cast<std::uint32_t>(offset + row.start), pool_.intern(rule_of(row.state, *common))});
    // The last state of a damaged program may not have been reached whole.
    if (!is_whole && rows_.size() > found.first_row) rows_.back().rule = RulePool::kNoRule;
    found.end_row = rows_.size();
    functions_.push_back(found);
  }

  UnwindTable assemble() {
    std::stable_sort(functions_.begin(), functions_.end(),
                     [](const Function& a, const Function& b) { return a.start < b.start; });
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      const Function& at = functions_[i];
      const bool is_last = i + 1 == functions_.size();
      const std::uint32_t end = at.start + at.size;
      const std::uint32_t next = is_last ? std::numeric_limits<std::uint32_t>::max() : functions_[i + 1].start;
      if (next == at.start) continue;  // two entries for one function: the last is believed
      for (std::size_t row = at.first_row; row < at.end_row && rows_[row].start < next; ++row)
        put(rows_[row].start, rows_[row].rule);
      if (end < next) put(end, RulePool::kNoRule);
      starts_of_functions_.push_back(at.start);
    }
    starts_.shrink_to_fit();
    rules_.shrink_to_fit();
    return {std::move(starts_), std::move(rules_), std::move(starts_of_functions_)};
  }

  void put(std::uint32_t start, RuleIndex rule) {
    if (!rules_.empty() && rules_.back() == rule) return;
    starts_.push_back(start);
    rules_.push_back(rule);
  }

  const EhFrame& section_;
  RulePool& pool_;
  const Meanwhile& meanwhile_;
  const std::uint64_t code_size_;
  boost::unordered_flat_map<std::size_t, std::optional<CommonEntry>> commons_;
  std::vector<StateRow> states_;  // of the function at hand
  std::vector<Function> functions_;
  std::vector<Row> rows_;
  std::vector<std::uint32_t> starts_, starts_of_functions_;
  std::vector<RuleIndex> rules_;
};

}  // namespace

UnwindTable compile_eh_frame(const EhFrame& section, RulePool& pool, const Meanwhile& meanwhile) {
  return Compiler(section, pool, meanwhile).all();
}

}  // namespace plimsoll::native
