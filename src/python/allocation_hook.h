// python/allocation_hook.h: records what Python allocates: puts the hooks of alloc/sampling_hooks.h (free-threaded
// builds: of alloc/native_sampling.h), or those of alloc/exact_hooks.h, into Python's table of allocators
// (PyMem_SetAllocator), and notes stacks and types.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "capture/allocation_recorder.h"
#include "capture/exact_recorder.h"

namespace plimsoll::python {

// Whose allocations are recorded.
enum class AllocationScope : std::uint8_t {
  kPython,  // PyObject_Malloc, PyMem_Malloc and PyMem_RawMalloc
  kNative,  // and malloc and its kin, by whomever they are called
};

// All need the GIL. One recording at a time.
Status start_allocation_sampling(capture::AllocationRecorder& recorder, std::uint64_t mean_bytes,
                                 AllocationScope scope);
// Likewise, of all of them.
enum class ExactAllocations : std::uint8_t {
  kSums,    // by stack
  kEvents,  // each, in order
};
Status start_exact_allocations(capture::ExactRecorder& recorder, AllocationScope scope, ExactAllocations what);
// Modules may have been loaded: if malloc is recorded, it is in them, too. Lets go of the GIL if there is something to
// do.
void look_for_new_modules();
// Tells the exact recorder all that there is, so that it can be written.
void close_allocation_epoch();
// Tells the recorder the types of the blocks that are alive, and leaves it alone from then on.
void stop_recording_allocations();
// In the child of a fork: nothing is told to the recorder, whose thread does not exist here.
void abandon_allocations();
// An interpreter may be made from now on, which may run at the same time as the others (from 3.12 on): the heap is
// locked from now on.
Status prepare_for_interpreter();
// While paused, allocations are not recorded; frees are.
void pause_allocations();
void resume_allocations();

// The process is about to have a limit of addresses (RLIMIT_AS): what is reserved and was not used is given back, but
// for a part of it. Needs the GIL.
void prepare_for_address_limit(std::uint64_t bytes);

}  // namespace plimsoll::python
