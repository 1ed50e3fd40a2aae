#include "python/allocation_hook.h"

#include <Python.h>
#include <dlfcn.h>

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstring>
#include <string>
#include <utility>

#include "alloc/exact_hooks.h"
#include "alloc/native_sampling.h"
#include "alloc/patched_malloc.h"
#include "alloc/sampling_hooks.h"
#include "base/clock.h"
#include "memory/local.h"
#include "python/compat.h"
#include "python/interpreter.h"
#include "python/interpreter_guard.h"
#include "python/object_type.h"

namespace plimsoll::python {
namespace {

using alloc::Allocator;
using alloc::Domain;
using alloc::SampledBlock;

PyMemAllocatorDomain python_domain(Domain domain) {
  if (domain == Domain::kRaw) return PYMEM_DOMAIN_RAW;
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

// As much of a name in UTF-8 as there is room for, in whole characters: its end, which tells it from others of its
// module.
std::string_view end_within(std::string_view name, std::size_t most) {
  std::size_t from = name.size() - std::min(name.size(), most);
  while (from < name.size() && (static_cast<unsigned char>(name[from]) & 0xc0U) == 0x80U) ++from;
  return name.substr(from);
}

capture::RawAllocation raw_of(const SampledBlock& block, std::uint64_t chance_bytes) {
  capture::RawAllocation raw;
  raw.number = block.number;
  raw.size = block.size;
  raw.chance_bytes = chance_bytes;
  raw.domain = static_cast<Domain>(block.kind);
  return raw;
}

// Notes samples in a recording, of one thread at a time or of several.
class RecordingTaker final : public alloc::SampleTaker {
 public:
  capture::AllocationRecorder* recorder = nullptr;
  TypeNames names;

  std::uint64_t next_number() override { return recorder->next_number(); }
  void count_bytes(std::uint64_t bytes) override { recorder->count_bytes(bytes); }
  bool allocated(const SampledBlock& block, std::uint64_t chance_bytes) override {
    return recorder->allocated(raw_of(block, chance_bytes));
  }
  void ended(const void* at, const SampledBlock& block, alloc::End end) override {
    capture::RawRelease raw;
    raw.number = block.number;
    raw.is_freed = end == alloc::End::kOfTime ? 0 : 1;
    raw.is_moved = end == alloc::End::kMoved ? 1 : 0;
    if (static_cast<Domain>(block.kind) == Domain::kObject && at != nullptr) {
      const ObjectState state = end == alloc::End::kFreed ? ObjectState::kDying : ObjectState::kAlive;
      if (const Address type = type_of_object_in(at, block.size, state); !is_null(type)) {
        const std::string name = names.of(type);
        const std::string_view kept = end_within(name, sizeof raw.type);
        raw.type_length = static_cast<std::uint8_t>(kept.size());
        std::memcpy(raw.type, kept.data(), kept.size());
      }
    }
    if (raw.is_freed != 0 || raw.type_length != 0) recorder->released(raw);
  }
};

// Passes the books of an exact recording on.
class BooksTaker final : public alloc::ExactTaker {
 public:
  void begin(capture::ExactRecorder& recorder, ExactAllocations what) {
    recorder_ = &recorder;
    what_ = what;
    living_ = {};
    living_slots_ = {};
    types_.clear();
    names_.prepare(recorder.stacks().interpreter().layout);
    if (what == ExactAllocations::kEvents)
      recorder.expect_events(&alloc::take_words_back, &alloc::note_time_has_passed);
    find_key = recorder.stacks().key_finder();
    clock_ns = &recorder.clock();
    gil_ = word_of_gil(recorder.stacks().interpreter());
  }
  // The recorder, which is not told of anything from now on but of the types of what is alive.
  capture::ExactRecorder* end() {
    try {
      if (recorder_ != nullptr && !living_.living.empty()) recorder_->add(std::exchange(living_, {}));
      if (recorder_ != nullptr && !living_slots_.living.empty()) recorder_->add(std::exchange(living_slots_, {}));
    } catch (const std::bad_alloc&) {
      lost();
    }
    return std::exchange(recorder_, nullptr);
  }

  std::uint32_t stack() override { return recorder_->stacks().stack_of_caller(); }
  std::uint32_t stack_of(StackKey& key) override { return recorder_->stacks().stack_of(key); }
  [[nodiscard]] bool is_attached() const override { return has_gil(); }
  [[nodiscard]] bool is_gil_free() const override {
    std::uint32_t is_taken = 1;
    return !is_null(gil_) && memory::LocalReader{}.load(gil_, is_taken) && is_taken == 0;
  }
  void lost() override { recorder_->lost(); }
  void failed() override { recorder_->fail(); }
  void closed(std::uint8_t epoch, std::int64_t at_ns, ExactRows rows, std::int64_t peak_ns) override {
    capture::ExactBatch batch{epoch, at_ns, peak_ns, std::move(rows), {}, {}};
    living_.epoch = epoch;
    living_.time_ns = batch.time_ns;
    recorder_->add(std::move(batch));
  }
  void logged(alloc::EventBatch events) override {
    capture::EventBatch batch;
    for (const alloc::LoggedSite& site : events.sites) batch.sites.push_back({site.stack, site.domain, site.size});
    batch.words = std::move(events.words);
    recorder_->add(std::move(batch));
  }
  void alive(const void* at, alloc::BlockBooks::Token token, const alloc::BlockBooks::Facts& facts) override {
    if (facts.domain != Domain::kObject) return;
    const Address type = type_of_object_in(at, facts.size, ObjectState::kAlive);
    if (is_null(type)) return;
    // No class ends while its living objects are told.
    std::vector<std::string>& names = what_ == ExactAllocations::kSums ? living_.types : living_slots_.types;
    const auto [found, is_new] = types_.try_emplace(raw(type), static_cast<std::uint32_t>(names.size()));
    if (is_new) names.push_back(names_.of(type));
    if (what_ == ExactAllocations::kEvents)
      living_slots_.living.emplace_back(alloc::EventLog::slot_of(token), found->second);
    else
      living_.living.push_back(
          {{ExactChange::kType, Domain::kObject, facts.epoch, facts.stack, 1, static_cast<std::int64_t>(facts.size)},
           found->second});
  }

 private:
  capture::ExactRecorder* recorder_ = nullptr;
  ExactAllocations what_{};
  Address gil_{};  // see word_of_gil()
  // Of what is alive at the end.
  capture::ExactBatch living_;
  capture::EventBatch living_slots_;
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> types_;  // of either, by the class's address
  TypeNames names_;
};

// The hooks point to these until the process is gone.
PythonAllocators allocators;
RecordingTaker taker;
BooksTaker books_taker;

// Without a GIL the threads of one interpreter are at once what interpreters can be.
alloc::Interpreters interpreters_now() {
  if (kIsFreeThreaded) return alloc::Interpreters::kAtOnce;
  return may_have_interpreters_at_once(&prepare_for_interpreter) ? alloc::Interpreters::kAtOnce
                                                                 : alloc::Interpreters::kInTurns;
}

}  // namespace

Status start_allocation_sampling(capture::AllocationRecorder& recorder, std::uint64_t mean_bytes,
                                 AllocationScope scope) {
  taker.recorder = &recorder;
  taker.names.prepare(recorder.interpreter().layout);
  // Python's own hooks first: where they lie below, the C library's are told that a block is known.
  if (!kIsFreeThreaded) PLIMSOLL_TRY(alloc::start_sampling(taker, allocators, mean_bytes, interpreters_now()));
  const bool is_native = scope == AllocationScope::kNative;
  return alloc::start_native_sampling(taker, allocators, mean_bytes,
                                      {.has_all_domains = kIsFreeThreaded, .has_malloc = is_native});
}

Status start_exact_allocations(capture::ExactRecorder& recorder, AllocationScope scope, ExactAllocations what) {
  books_taker.begin(recorder, what);
  const bool is_native = scope == AllocationScope::kNative;
  Status started = alloc::start_exact(
      books_taker, allocators, interpreters_now(), is_native ? alloc::ExactScope::kNative : alloc::ExactScope::kPython,
      what == ExactAllocations::kEvents ? alloc::ExactDetail::kEvents : alloc::ExactDetail::kSums);
  if (started.ok())
    recorder.expect_epochs(&alloc::ask_for_exact_epoch, &alloc::hand_over_exact_epoch, &alloc::silence_exact);
  else
    books_taker.end();
  return started;
}

void look_for_new_modules() {
  if (!alloc::has_new_modules()) return;
  // Whoever is loading one may wait for the GIL.
  Py_BEGIN_ALLOW_THREADS;
  alloc::patch_new_modules();
  Py_END_ALLOW_THREADS;
}

void close_allocation_epoch() { alloc::close_exact_epoch(); }

void stop_recording_allocations() {
  const bool is_native_whole = alloc::stop_native_sampling() == alloc::Stopped::kWhole;
  const bool is_whole = alloc::stop_sampling() == alloc::Stopped::kWhole && is_native_whole;
  if (capture::AllocationRecorder* recorder = std::exchange(taker.recorder, nullptr)) {
    if (!is_whole) recorder->count_cut_short();
    recorder->flush_releases();
  }
  const bool is_exact_whole = alloc::stop_exact() == alloc::Stopped::kWhole;
  capture::ExactRecorder* exact = books_taker.end();
  if (exact != nullptr && !is_exact_whole) exact->count_cut_short();
}

void abandon_allocations() {
  alloc::abandon_native_sampling();
  alloc::abandon_sampling();
  taker.recorder = nullptr;
  alloc::abandon_exact();
  books_taker.end();
}

Status prepare_for_interpreter() { return alloc::lock_exact(); }

void prepare_for_address_limit(std::uint64_t bytes) { alloc::prepare_for_address_limit(bytes); }

void pause_allocations() {
  alloc::pause_sampling();
  alloc::pause_native_sampling();
  alloc::pause_exact();
}

void resume_allocations() {
  alloc::resume_sampling();
  alloc::resume_native_sampling();
  alloc::resume_exact();
}

}  // namespace plimsoll::python
