#include "alloc/patched_malloc.h"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

namespace plimsoll::alloc {
namespace {

// What is replaced. Never destroyed, as threads of ours may look at it to the end of the process.
struct Patched {
  // Guards the imports, and is held around all that visits modules, and around forks: a visitor holds a lock of the
  // linker's, which would stay locked in the child. Nothing is allocated with it held.
  std::mutex mutex;
  std::vector<Import> imports;
  std::atomic<bool> is_on{false};
  std::atomic<std::uint64_t> loads{0};  // modules_loaded() as of the last pass

  [[nodiscard]] std::uint64_t loads_now() {
    const std::lock_guard guard(mutex);
    return modules_loaded();
  }
};
Patched& patched() {
  static Patched* const made = [] {
    static constexpr auto let_go = [] { patched().mutex.unlock(); };
    ::pthread_atfork([] { patched().mutex.lock(); }, let_go, let_go);
    return new Patched;
  }();
  return *made;
}

}  // namespace

Status patch_malloc_with(std::span<const Import> imports) {
  Patched& state = patched();
  std::vector<Import> wanted(imports.begin(), imports.end());
  PatchCounts counts;
  // While others load one module after the other, some are left for later.
  constexpr int kTries = 10;
  for (int i = 0; i < kTries && counts.words == 0; ++i) {
    const std::uint64_t loads = state.loads_now();
    wait_for_loading();
    const std::lock_guard guard(state.mutex);
    if (i == 0) std::swap(state.imports, wanted);
    counts = patch_imports(state.imports, loads);
    state.loads.store(counts.is_whole ? loads : 0);
    if (counts.is_whole) break;
  }
  if (counts.words == 0)
    return Error{ErrorKind::kUnsupported, "no module of this program calls malloc in a way that can be watched"};
  state.is_on.store(true);
  return Ok{};
}

void restore_malloc() {
  Patched& state = patched();
  const std::lock_guard guard(state.mutex);
  state.is_on.store(false);
  restore_imports(state.imports);
}

bool has_new_modules() {
  Patched& state = patched();
  return state.is_on.load(std::memory_order_relaxed) && state.loads.load() != state.loads_now();
}

void patch_new_modules() {
  if (!has_new_modules()) return;
  Patched& state = patched();
  const std::uint64_t loads = state.loads_now();
  wait_for_loading();
  const std::lock_guard guard(state.mutex);
  if (!state.is_on.load() || state.loads.load() == loads) return;
  if (patch_imports(state.imports, loads).is_whole) state.loads.store(loads);
}

void* replacement_of(std::string_view name) {
  Patched& state = patched();
  const std::lock_guard guard(state.mutex);
  for (const Import& import : state.imports)
    if (state.is_on.load() && import.name == name) return import.ours;
  return nullptr;
}

}  // namespace plimsoll::alloc
