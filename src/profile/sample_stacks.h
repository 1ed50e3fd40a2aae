// profile/sample_stacks.h: the stacks of samples, as they arrive -> rows of a profile's tables.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <vector>

#include "capture/sink.h"
#include "profile/profile.h"

namespace plimsoll::profile {

// Adds functions, frames and stacks to a profile. It knows what a thread's previous sample looked like: most of a stack
// is the same from one tick to the next.
class SampleStacks {
 public:
  // `profile` must outlive it, at the same place.
  explicit SampleStacks(Profile& profile) : profile_(profile) {}

  void code(capture::CodeId id, const cpython::CodeInfo& info);
  void native_function(capture::CodeId id, const capture::NativeFunction& function);
  StackId of(const capture::Sample& sample);
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

  void put(capture::CodeId id, const Function& function);
  // Of a function of machine code, where it begins.
  struct NativeStart {
    std::uint64_t address = 0;
    bool is_native = false;
  };

  FrameId frame_of(const capture::SampleFrame& frame);
  StackId synthetic_root(const char* name);

  Profile& profile_;
  std::vector<FunctionId> functions_;                    // by CodeId
  std::vector<NativeStart> starts_;                      // likewise
  boost::unordered_flat_map<std::uint32_t, Last> last_;  // by ThreadSerial
};

}  // namespace plimsoll::profile
