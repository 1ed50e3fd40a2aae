// python/allocation_hook.h: samples what Python allocates through PyObject_Malloc and PyMem_Malloc.
//
// Python's allocators are replaced (PyMem_SetAllocator). Blocks of at most 512 bytes come from alloc::ObjectHeap, whose
// slow path is where samples are taken; larger ones from the allocator below, and a thread counts their bytes down to
// its next sample point, at an exponential distance. A small sampled block lies in a region of ours, so that one
// comparison tells it when it is freed.
//
// All that only where Python's own allocator lies below, and nothing else: hooks that were there before ours may put
// back what was there before them, and then our blocks would be freed by an allocator that does not know them. With
// such hooks (tracemalloc, PYTHONMALLOC) blocks of all sizes come from below, are counted, and sampled ones are told by
// a filter.
//
// Blocks from before are freed by their owner, ours by us after the hooks were taken out, too: those for frees stay.
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
inline constexpr std::array kInterpreterModules{"_interpreters", "_xxsubinterpreters", "_testcapi",
                                                "_testinternalcapi"};
// An interpreter may be made from now on, which may run at the same time as the others (from 3.12 on): the heap is
// locked from now on.
Status prepare_for_interpreter();
// While paused, allocations are not sampled; frees are.
void pause_allocation_sampling();
void resume_allocation_sampling();

}  // namespace plimsoll::python
