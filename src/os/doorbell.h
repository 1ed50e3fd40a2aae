// os/doorbell.h: wakes a thread that waits for work, also from signal handlers, which a condition variable must not be
// used in.
#pragma once

#include <atomic>
#include <cstdint>

namespace plimsoll::os {

// One thread waits, any may ring.
class Doorbell {
 public:
  // Ends the wait, or if there is none the next one, as soon as it begins. Async-signal-safe; leaves errno as it is. A
  // system call at most, none if it was rung already.
  void ring() noexcept;
  // Until it rings, or `ns` have passed; perhaps, as waits go, for no reason. Whether it was rung.
  bool wait_for(std::int64_t ns) noexcept;

 private:
  std::atomic<std::uint32_t> is_rung_{0};
};

}  // namespace plimsoll::os
