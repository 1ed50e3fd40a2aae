// C++ with exceptions across frames, for tests/python/test_native.py: Python calls them with ctypes.
#include <ctime>
#include <stdexcept>

#define OUT __attribute__((noinline, visibility("default")))

namespace ship {

volatile long sink = 0;

OUT void burn(long milliseconds) {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  const long long end = now.tv_sec * 1'000'000'000LL + now.tv_nsec + milliseconds * 1'000'000LL;
  do {
    for (long i = 0; i < 20'000; ++i) sink = sink + i * i;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while (now.tv_sec * 1'000'000'000LL + now.tv_nsec < end);
}

// Computes while an exception passes by.
struct Guard {
  long milliseconds;
  OUT ~Guard() {
    burn(milliseconds);
    sink = sink + 1;
  }
};

OUT void founder(int depth) {
  const Guard guard{depth == 1 ? 60 : 0};
  if (depth == 0) throw std::runtime_error("aground");
  founder(depth - 1);
  sink = sink + 1;
}

template <typename Callback>
OUT long rescue(Callback callback) {
  try {
    founder(3);
  } catch (const std::runtime_error&) {
    return callback(1);
  }
  return 0;
}

}  // namespace ship

extern "C" OUT long sail(long (*callback)(long)) {
  const long result = ship::rescue(callback);
  ship::sink = ship::sink + 1;
  return result;
}

// Throws and catches, over and over: the time is in the runtime's own unwinder.
extern "C" OUT void storm(long times) {
  for (long i = 0; i < times; ++i) {
    try {
      ship::founder(0);
    } catch (const std::runtime_error&) {
      ship::sink = ship::sink + 1;
    }
  }
}
