#include "profile/plim_threads.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "profile/plim_columns.h"
#include "profile/plim_format.h"

namespace plimsoll::profile {
namespace {

// What is said of a thread: that it has gone on, or all of it.
enum Kind : std::uint64_t { kGoesOn = 0, kWhole = 1, kWholeMain = 2 };
constexpr std::size_t kPatterns = 64;  // that a writer looks through

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

// The pattern of a name, and its number: the longest run of digits, of equal ones the last, that would be written so.
NamePattern pattern_of(std::string_view name) {
  constexpr std::size_t kMostDigits = 15;
  std::size_t best = 0;
  std::size_t best_size = 0;
  for (std::size_t at = 0; at < name.size();) {
    std::size_t end = at;
    while (end < name.size() && is_digit(name[end])) ++end;
    const std::size_t size = end - at;
    const bool is_plain = size == 1 || (size > 1 && size <= kMostDigits && name[at] != '0');
    if (is_plain && size >= best_size) {
      best = at;
      best_size = size;
    }
    at = end + 1;
  }
  NamePattern pattern;
  pattern.head = name.substr(0, best_size == 0 ? name.size() : best);
  if (best_size == 0) return pattern;
  pattern.has_number = true;
  pattern.tail = name.substr(best + best_size);
  (void)std::from_chars(name.data() + best, name.data() + best + best_size, pattern.number);
  return pattern;
}

bool is_same(const NamePattern& a, const NamePattern& b) {
  return a.has_number == b.has_number && a.head == b.head && a.tail == b.tail;
}

}  // namespace

// ---- written ----

bool ThreadEncoder::is_known(std::uint32_t index, const Thread& thread) const {
  const auto found = known_.find(index);
  if (found == known_.end()) return false;
  Thread as_known = found->second.row;
  as_known.end_ns = thread.end_ns;
  as_known.cpu_ns = thread.cpu_ns;
  return as_known == thread;
}

std::string ThreadEncoder::patterns(ThreadRows::const_iterator next, ThreadRows::const_iterator end) {
  std::string out;
  for (; next != end; ++next) {
    if (is_known(next->first, next->second)) continue;
    NamePattern pattern = pattern_of(next->second.name);
    const auto is_it = [&](const NamePattern& one) { return is_same(one, pattern); };
    if (std::any_of(patterns_.begin(), patterns_.end(), is_it)) continue;
    put_varint(out, pattern.has_number ? 1 : 0);
    put_bytes(out, pattern.head);
    if (pattern.has_number) put_bytes(out, pattern.tail);
    pattern.number = 0;
    patterns_.push_back(std::move(pattern));
  }
  return out;
}

void ThreadEncoder::put_facts(const Thread& thread, SymbolWriter& out) {
  out.put(models_.processes, optional_id(thread.process));
  out.put_signed(models_.tids, thread.os_tid - std::exchange(models_.tid, thread.os_tid));
  const NamePattern pattern = pattern_of(thread.name);
  const auto found =
      std::find_if(patterns_.rbegin(), patterns_.rend(), [&](const NamePattern& one) { return is_same(one, pattern); });
  out.put(models_.patterns, static_cast<std::uint64_t>(found - patterns_.rbegin()));
  if (pattern.has_number)
    out.put_signed(models_.numbers, pattern.number - std::exchange(found->number, pattern.number));
}

void ThreadEncoder::put(ThreadRows::const_iterator next, ThreadRows::const_iterator end, SymbolWriter& out) {
  out.put(models_.counts, static_cast<std::uint64_t>(std::distance(next, end)));
  for (; next != end; ++next) {
    const auto& [index, thread] = *next;
    out.put_signed(models_.steps, static_cast<std::int64_t>(index - std::exchange(models_.next, index + 1)));
    const bool goes_on = is_known(index, thread);
    out.put(models_.kinds, goes_on ? kGoesOn : thread.is_main ? kWholeMain : kWhole);
    const std::int64_t ended = to_units(thread.end_ns, unit_ns_);
    const std::int64_t cpu = to_units(thread.cpu_ns, unit_ns_);
    out.put_signed(models_.ends, ended - std::exchange(models_.end, ended));
    Known& known = known_[index];
    if (goes_on) {
      out.put_signed(models_.cpu_steps, cpu - known.cpu);
    } else {
      put_facts(thread, out);
      out.put_signed(models_.lives, ended - to_units(thread.start_ns, unit_ns_));
      out.put_signed(models_.cpus, cpu);
    }
    known = {thread, cpu};
  }
  // A program that gives each thread a name of its own must not fill the memory.
  if (patterns_.size() > kPatterns) patterns_.erase(patterns_.begin(), patterns_.end() - kPatterns);
}

// ---- read ----

bool ThreadDecoder::patterns(VarintCursor& cursor) {
  while (!cursor.at_end()) {
    NamePattern pattern;
    pattern.has_number = cursor.bounded(1) == 1;
    pattern.head = cursor.bytes();
    if (pattern.has_number) pattern.tail = cursor.bytes();
    if (cursor.failed()) return false;
    patterns_.push_back(std::move(pattern));
  }
  return true;
}

bool ThreadDecoder::read_facts(SymbolReader& rows, std::uint64_t kind, Thread& thread) {
  thread.is_main = kind == kWholeMain;
  const std::uint64_t process = rows.get(models_.processes);
  if (process > profile_.processes.size()) return false;
  thread.process = process == 0 ? ProcessId{} : ProcessId{static_cast<std::size_t>(process - 1)};
  if (!add_step(models_.tid, rows.get_signed(models_.tids))) return false;
  thread.os_tid = models_.tid;
  const std::uint64_t back = rows.get(models_.patterns);
  if (back >= patterns_.size()) return false;
  NamePattern& pattern = patterns_[patterns_.size() - 1 - back];
  thread.name = pattern.head;
  if (pattern.has_number) {
    if (!add_step(pattern.number, rows.get_signed(models_.numbers))) return false;
    thread.name += std::to_string(pattern.number) + pattern.tail;
  }
  name_bytes_ += thread.name.size();
  return name_bytes_ <= plim::kMostRepeatedBytes;
}

bool ThreadDecoder::read(SymbolReader& rows) {
  const std::uint64_t count = rows.get(models_.counts);
  if (rows.failed() || count > kRowsInSection) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t index = models_.next + static_cast<std::uint64_t>(rows.get_signed(models_.steps));
    models_.next = index + 1;
    const std::uint64_t kind = rows.get(models_.kinds);
    if (rows.failed() || index > profile_.threads.size() || kind > kWholeMain) return false;
    if (kind == kGoesOn && index == profile_.threads.size()) return false;
    if (index == profile_.threads.size()) profile_.threads.emplace_back();
    cpu_.resize(profile_.threads.size());
    Thread& thread = profile_.threads[index];
    if (!add_step(models_.end, rows.get_signed(models_.ends)) || !to_nanoseconds(models_.end, unit_ns_, thread.end_ns))
      return false;
    std::int64_t cpu = cpu_[index];
    if (kind == kGoesOn) {
      if (!add_step(cpu, rows.get_signed(models_.cpu_steps))) return false;
    } else {
      std::int64_t start = 0;
      if (!read_facts(rows, kind, thread) ||
          __builtin_sub_overflow(models_.end, rows.get_signed(models_.lives), &start) ||
          !to_nanoseconds(start, unit_ns_, thread.start_ns))
        return false;
      cpu = rows.get_signed(models_.cpus);
    }
    cpu_[index] = cpu;
    if (rows.failed() || !to_nanoseconds(cpu, unit_ns_, thread.cpu_ns)) return false;
  }
  return true;
}

}  // namespace plimsoll::profile
