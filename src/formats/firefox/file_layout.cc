// formats/firefox/file_layout.cc: the order of threads.
#include "formats/firefox/file_layout.h"

#include <algorithm>
#include <tuple>

#include "formats/thread_rows.h"

namespace plimsoll::formats::firefox {

FileLayout::FileLayout(const profile::Profile& of, Slabs* slabs_of)
    : profile(of),
      slabs(slabs_of),
      index_of_thread(of.threads.size()),
      rows(rows_by_thread(of)),
      jit(of),
      has_empty_stack(formats::has_empty_stack(of)) {
  for (std::size_t i = 0; i < profile.threads.size(); ++i) threads.emplace_back(i);
  const auto order = [&](ThreadId id) {
    const profile::Thread& thread = profile.threads[id.index()];
    return std::tuple(thread.process, !thread.is_main, id);
  };
  std::sort(threads.begin(), threads.end(), [&](ThreadId a, ThreadId b) { return order(a) < order(b); });
  for (std::size_t i = 0; i < threads.size(); ++i) index_of_thread[threads[i].index()] = i;
  for (const std::vector<std::uint32_t>& of_thread : rows) thread_cpu_ns.push_back(cpu_ns_of_rows(profile, of_thread));
}

std::size_t FileLayout::main_thread_of(ProcessId process) const {
  const auto found = std::find_if(threads.begin(), threads.end(),
                                  [&](ThreadId id) { return profile.threads[id.index()].process == process; });
  return found == threads.end() ? 0 : static_cast<std::size_t>(found - threads.begin());
}

}  // namespace plimsoll::formats::firefox
