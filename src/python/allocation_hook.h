// python/allocation_hook.h: samples what Python allocates through PyObject_Malloc and PyMem_Malloc: puts the hooks of
// alloc/sampling_hooks.h into Python's table of allocators (PyMem_SetAllocator), and notes the stacks and types of the
// samples.
#pragma once

#include <array>
#include <cstdint>

#include "base/result.h"
#include "capture/allocation_recorder.h"

namespace plimsoll::python {

// kUnsupported in free-threaded builds, whose collector must find all objects in their own heaps.
Status can_sample_allocations();

// All need the GIL. One recording at a time.
Status start_allocation_sampling(capture::AllocationRecorder& recorder, std::uint64_t mean_bytes);
// Tells the recorder the types of the sampled blocks that are alive, and leaves it alone from then on.
void stop_allocation_sampling();
// In the child of a fork: nothing is told to the recorder, whose thread does not exist here.
void abandon_allocation_sampling();
// Modules that make interpreters with GILs of their own.
inline constexpr std::array<std::array<char, 24>, 4> kInterpreterModules{
    {{"_interpreters"}, {"_xxsubinterpreters"}, {"_testcapi"}, {"_testinternalcapi"}}};
// An interpreter may be made from now on, which may run at the same time as the others (from 3.12 on): the heap is
// locked from now on.
Status prepare_for_interpreter();
// While paused, allocations are not sampled; frees are.
void pause_allocation_sampling();
void resume_allocation_sampling();

}  // namespace plimsoll::python
