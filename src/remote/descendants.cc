#include "remote/descendants.h"

#include <algorithm>
#include <utility>

namespace plimsoll::remote {
namespace {

// A program needs some time to become a Python: exec, the loader, the start of the interpreter.
constexpr std::int64_t kPatience = 5'000'000'000;
constexpr std::int64_t kFirstStep = 20'000'000;
// More than any program has.
constexpr std::size_t kMostProcesses = 4096;
constexpr int kDeepest = 64;

}  // namespace

void Descendants::visit(os::Pid parent, std::int64_t now_ns, int depth) {
  if (depth == kDeepest) return;
  for (const os::Pid child : os::children_of(parent)) {
    if (known_.size() == kMostProcesses) return;
    const auto [place, is_new] = known_.try_emplace(child);
    if (is_new) place->second = {now_ns, now_ns, os::start_ticks(child), {}};
    place->second.is_there = true;
    visit(child, now_ns, depth + 1);
  }
}

std::vector<os::Pid> Descendants::candidates(std::int64_t now_ns) {
  for (auto& [pid, known] : known_) known.is_there = false;
  visit(root_, now_ns, 0);
  // Whoever was a descendant is one also when its parent has ended, and so are those that it starts.
  std::vector<os::Pid> orphans;
  for (const auto& [pid, known] : known_)
    if (!known.is_there && os::start_ticks(pid) == known.start_ticks) orphans.push_back(pid);
  for (const os::Pid orphan : orphans) {
    known_[orphan].is_there = true;
    visit(orphan, now_ns, 0);
  }
  std::erase_if(known_, [](const auto& known) { return !known.second.is_there; });
  std::vector<std::pair<std::int64_t, os::Pid>> due;  // since when
  for (auto& [pid, known] : known_) {
    if (known.is_recorded) continue;
    // (A shell may wait for something, and then become a Python by exec.)
    if (std::string program = os::program_file(pid); program != known.program) {
      known.program = std::move(program);
      known.since_ns = known.next_ns = now_ns;
    }
    if (now_ns - known.since_ns < kPatience && known.next_ns <= now_ns) due.emplace_back(known.next_ns, pid);
  }
  std::sort(due.begin(), due.end());
  if (due.size() > kMostAtOnce) due.resize(kMostAtOnce);
  std::vector<os::Pid> found;
  for (const auto& [since_ns, pid] : due) {
    Known& known = known_[pid];
    known.next_ns = now_ns + std::max(kFirstStep, (now_ns - known.since_ns) / 2);
    found.push_back(pid);
  }
  return found;
}

}  // namespace plimsoll::remote
