#include "python/allocation_hook.h"

#include <Python.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "alloc/sampling_hooks.h"
#include "python/compat.h"
#include "python/object_type.h"

namespace plimsoll::python {
namespace {

using alloc::Allocator;
using alloc::Domain;
using alloc::SampledBlock;
using capture::AllocationDomain;

static_assert(static_cast<int>(Domain::kObject) == static_cast<int>(AllocationDomain::kObject));
static_assert(static_cast<int>(Domain::kMemory) == static_cast<int>(AllocationDomain::kMemory));

PyMemAllocatorDomain python_domain(Domain domain) {
  return domain == Domain::kObject ? PYMEM_DOMAIN_OBJ : PYMEM_DOMAIN_MEM;
}

// Python's table of allocators.
class PythonAllocators final : public alloc::AllocatorTable {
 public:
  [[nodiscard]] Allocator get(Domain domain) const override {
    PyMemAllocatorEx now{};
    PyMem_GetAllocator(python_domain(domain), &now);
    return {now.ctx, now.malloc, now.calloc, now.realloc, now.free};
  }
  void set(Domain domain, const Allocator& allocator) override {
    PyMemAllocatorEx next{allocator.context, allocator.malloc, allocator.calloc, allocator.realloc, allocator.free};
    PyMem_SetAllocator(python_domain(domain), &next);
  }
  [[nodiscard]] bool is_plain() const override {
    using NameOfAllocator = const char* (*)();
    const auto name_of = reinterpret_cast<NameOfAllocator>(::dlsym(RTLD_DEFAULT, "_PyMem_GetCurrentAllocatorName"));
    const char* name = name_of != nullptr ? name_of() : nullptr;
    return name != nullptr && std::strcmp(name, "pymalloc") == 0;
  }
};

// Notes samples in a recording.
class RecordingTaker final : public alloc::SampleTaker {
 public:
  capture::AllocationRecorder* recorder = nullptr;

  std::uint64_t next_number() override { return recorder->next_number(); }
  void count_bytes(std::uint64_t bytes) override { recorder->count_bytes(bytes); }
  bool allocated(const SampledBlock& block, std::uint64_t chance_bytes) override {
    capture::RawAllocation raw;
    raw.number = block.number;
    raw.size = block.size;
    raw.chance_bytes = chance_bytes;
    raw.domain = static_cast<AllocationDomain>(block.kind);
    return recorder->allocated(raw);
  }
  void ended(const void* at, const SampledBlock& block, alloc::End end) override {
    capture::RawRelease raw;
    raw.number = block.number;
    raw.is_freed = end == alloc::End::kOfTime ? 0 : 1;
    if (static_cast<Domain>(block.kind) == Domain::kObject) {
      const ObjectState state = end == alloc::End::kFreed ? ObjectState::kDying : ObjectState::kAlive;
      if (const auto name = type_of_object_in(at, block.size, state)) {
        raw.type_length = static_cast<std::uint8_t>(std::min(name->size(), sizeof raw.type));
        std::memcpy(raw.type, name->data(), raw.type_length);
      }
    }
    if (raw.is_freed != 0 || raw.type_length != 0) recorder->released(raw);
  }
};

// The hooks point to these until the process is gone.
PythonAllocators allocators;
RecordingTaker taker;

// Whether there are interpreters that run at the same time, or may be at any moment.
bool may_have_interpreters_of_own_gil() {
  if (!kInterpretersHaveOwnGils) return false;
  PyInterpreterState* first = PyInterpreterState_Head();
  if (first != nullptr && PyInterpreterState_Next(first) != nullptr) return true;
  PyObject* modules = PyImport_GetModuleDict();
  return std::any_of(kInterpreterModules.begin(), kInterpreterModules.end(), [&](const auto& name) {
    return modules != nullptr && PyDict_GetItemString(modules, name.data()) != nullptr;
  });
}

}  // namespace

Status can_sample_allocations() {
  if (!kIsFreeThreaded) return Ok{};
  return Error{ErrorKind::kUnsupported,
               "free-threaded builds of Python cannot sample allocations yet: leave out --alloc (alloc_bytes)"};
}

Status start_allocation_sampling(capture::AllocationRecorder& recorder, std::uint64_t mean_bytes) {
  PLIMSOLL_TRY(can_sample_allocations());
  taker.recorder = &recorder;
  const auto interpreters =
      may_have_interpreters_of_own_gil() ? alloc::Interpreters::kAtOnce : alloc::Interpreters::kInTurns;
  const Status started = alloc::start_sampling(taker, allocators, mean_bytes, interpreters);
  if (!started.ok()) taker.recorder = nullptr;
  return started;
}

void stop_allocation_sampling() {
  const bool is_whole = alloc::stop_sampling() == alloc::Stopped::kWhole;
  capture::AllocationRecorder* recorder = std::exchange(taker.recorder, nullptr);
  if (recorder == nullptr) return;
  if (!is_whole) recorder->count_cut_short();
  recorder->flush_releases();
}

void abandon_allocation_sampling() {
  alloc::abandon_sampling();
  taker.recorder = nullptr;
}

Status prepare_for_interpreter() { return kInterpretersHaveOwnGils ? alloc::lock_heap() : Status(Ok{}); }

void pause_allocation_sampling() { alloc::pause_sampling(); }

void resume_allocation_sampling() { alloc::resume_sampling(); }

}  // namespace plimsoll::python
