// profile/sample_stacks.h: the stacks of samples, as they arrive -> rows of a profile's tables.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <vector>

#include "base/id_table.h"
#include "capture/sink.h"
#include "profile/profile.h"

namespace plimsoll::profile {

// What stands for the outermost frames of a stack that was cut.
inline constexpr const char* kTooDeep = "[stack too deep: outer frames missing]";

// Adds functions, frames and stacks to a profile. It knows what a thread's previous sample looked like: most of a stack
// is the same from one tick to the next.
class SampleStacks {
 public:
  // `profile` must outlive it, at the same place.
  explicit SampleStacks(Profile& profile) : profile_(profile) {}

  void code(capture::CodeId id, const cpython::CodeInfo& info);
  void native_function(capture::CodeId id, const capture::NativeFunction& function);
  // Its frames will not occur again, unless it is described again.
  void forget_code(capture::CodeId id) { codes_.forget(id); }
  StackId of(const capture::Sample& sample);
  // A frame on top of a stack; none: it is the outermost.
  StackId on_top(StackId stack, const capture::SampleFrame& frame) {
    return profile_.stacks.intern(StackNode{stack, frame_of(frame)});
  }
  // What stands for frames that there are not, or that are not known.
  StackId without_python() { return synthetic_root("[no Python frame]"); }
  StackId native_thread() { return synthetic_root("[native thread]"); }
  StackId too_deep() { return synthetic_root(kTooDeep); }
  // No sample of that thread will come.
  void forget_thread(capture::ThreadSerial thread) { last_.erase(thread.index()); }
  // Those whose previous sample is known.
  [[nodiscard]] std::size_t threads_in_memory() const { return last_.size(); }
  // The profile's tables begin anew: all code objects must be described again.
  void forget();

 private:
  // What a thread's previous sample looked like.
  struct Last {
    std::vector<capture::SampleFrame> frames;
    std::vector<StackId> stacks;  // of each prefix of `frames`
    StackId root;
  };

  // A code object, or a function of machine code.
  struct Code {
    FunctionId function;
    bool is_native = false;
    std::uint64_t start = 0;  // of machine code; 0 = not known
  };

  FrameId frame_of(const capture::SampleFrame& frame);
  StackId synthetic_root(const char* name);

  Profile& profile_;
  IdTable<capture::CodeId, Code> codes_;
  boost::unordered_flat_map<std::uint32_t, Last> last_;  // by ThreadSerial
};

}  // namespace plimsoll::profile
