/* A thread that Python knows nothing of: it uses so many milliseconds of CPU time, and says how many exactly. */
#include <pthread.h>
#include <stdint.h>
#include <time.h>

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void *busy(void *milliseconds) {
  volatile uint64_t x = 0;
  const int64_t end = (int64_t)(intptr_t)milliseconds * 1000000;
  while (now() < end)
    for (int i = 0; i < 10000; ++i) x += i;
  return (void *)(intptr_t)now();
}

static pthread_t thread;

int busy_start(int milliseconds) { return pthread_create(&thread, 0, busy, (void *)(intptr_t)milliseconds); }

int64_t busy_join(void) {
  void *used = 0;
  pthread_join(thread, &used);
  return (int64_t)(intptr_t)used;
}
