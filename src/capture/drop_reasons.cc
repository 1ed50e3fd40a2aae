#include "capture/raw_sample.h"

namespace plimsoll::capture {

const char* text(DropReason reason) {
  switch (reason) {
    case DropReason::kRingFull: return "ring full";
    case DropReason::kUnreadable: return cpython::text(cpython::WalkStop::kUnreadable);
    case DropReason::kEntering: return cpython::text(cpython::WalkStop::kEntering);
    case DropReason::kUnlinked: return cpython::text(cpython::WalkStop::kUnlinked);
    case DropReason::kMisaligned: return cpython::text(cpython::WalkStop::kMisaligned);
    case DropReason::kBadOwner: return cpython::text(cpython::WalkStop::kBadOwner);
    case DropReason::kNotCode: return cpython::text(cpython::WalkStop::kNotCode);
    case DropReason::kCycle: return cpython::text(cpython::WalkStop::kCycle);
    case DropReason::kUnknownCode: return "code object not known";
    case DropReason::kReentered: return "handler re-entered";
    case DropReason::kForeignSignal: return "signal not ours";
    case DropReason::kMoved: return "thread ran on";
    case DropReason::kSignalBlocked: return "thread blocks the signal";
    case DropReason::kThreadEnded: return "end of thread";
    case DropReason::kMetLate: return "thread not known yet";
    case DropReason::kTooManyThreads: return "too many threads";
    case DropReason::kNotTold: return "too many open files";
    case DropReason::kHooksRemoved: return "allocation hooks removed by another tool";
    case DropReason::kAllocation: return "allocation not recorded";
    case DropReason::kNativeTruncated: return "native frames missing: stack too deep";
    case DropReason::kNativeNoModule: return "native frames missing: code of no known file";
    case DropReason::kNativeNoTable: return "native frames missing: file without unwind table";
    case DropReason::kNativeNoRule: return "native frames missing: no unwind rule";
    case DropReason::kNativeExpression: return "native frames missing: unwind rule not understood";
    case DropReason::kNativeRegister: return "native frames missing: register not known";
    case DropReason::kNativeUnreadable: return "native frames missing: stack unreadable";
    case DropReason::kNativeStuck: return "native frames missing: frames do not lead outwards";
    case DropReason::kNativeUnmatched: return "native frames missing: entry into Python not found";
    case DropReason::kCount: break;
  }
  return "?";
}

}  // namespace plimsoll::capture
