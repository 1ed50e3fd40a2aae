// remote/greenlet_dump.h: the greenlets of another process, or of its core file: where each is suspended.
//
// They are found among all objects that the garbage collector knows, as no list of greenlets alone exists. That is only
// done where the module greenlet is loaded, and takes some milliseconds for each 100,000 objects.
#pragma once

#include <optional>
#include <span>

#include "remote/core_file.h"
#include "remote/dump.h"
#include "remote/thread_states.h"

namespace plimsoll::remote {

// A thread whose greenlets are wanted.
struct GreenletThread {
  Address state{}, interpreter{};
  Tid tid{};
};

// The threads are all that the interpreters know, in the order in which their greenlets are to come. Where all of them
// stand still, their greenlets are as they were at one moment; else each greenlet is believed if two readings agree.
GreenletDump dump_greenlets(const Target& target, std::span<const GreenletThread> threads,
                            const std::optional<cpython::ValueLimits>& locals);
GreenletDump dump_core_greenlets(const CoreFile& core, std::span<const GreenletThread> threads,
                                 const std::optional<cpython::ValueLimits>& locals);

}  // namespace plimsoll::remote
