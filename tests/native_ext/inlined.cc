// C++ whose functions are inlined into each other, for tests/python/test_native_lines.py: Python calls them with ctypes.
#include <ctime>

namespace hull {

volatile long sink = 0;

[[gnu::always_inline]] inline void plank(long round) {
  for (long i = 0; i < 20'000; ++i) sink = sink + i * round;  // the line of plank
}

template <typename Number>
[[gnu::always_inline]] inline void deck(Number rounds) {
  for (Number i = 0; i < rounds; ++i) plank(i);  // the line of deck
}

}  // namespace hull

// Computes for so many milliseconds of CPU time.
extern "C" [[gnu::noinline, gnu::visibility("default")]] void keel(long milliseconds) {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  const long long end = now.tv_sec * 1'000'000'000LL + now.tv_nsec + milliseconds * 1'000'000LL;
  do {
    hull::deck(5L);  // the line of keel
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while (now.tv_sec * 1'000'000'000LL + now.tv_nsec < end);
}
