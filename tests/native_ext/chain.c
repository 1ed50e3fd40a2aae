/* Known chains of calls between Python and C, for tests/python/test_native.py: Python calls them with ctypes.

   Each function does something after its last call, so that none is left by a jump. */
#include <alloca.h>
#include <stdlib.h>
#include <time.h>

#define OUT __attribute__((noinline, visibility("default")))

typedef long (*callback)(long);

static volatile long sink;

/* Computes for so many milliseconds of CPU time. */
OUT void burn(long milliseconds) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  const long long end = now.tv_sec * 1000000000LL + now.tv_nsec + milliseconds * 1000000LL;
  do {
    for (long i = 0; i < 20000; ++i) sink += i * i;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while (now.tv_sec * 1000000000LL + now.tv_nsec < end);
}

/* Calls back from some calls further in. */
OUT long descend(long depth, callback call) {
  const long result = depth == 0 ? call(depth) : descend(depth - 1, call);
  ++sink;
  return result;
}

/* A frame whose size is known when it runs only. */
OUT long with_alloca(long size, callback call) {
  volatile char *room = alloca((size_t)size);
  room[0] = 1;
  const long result = call(size);
  room[size - 1] = 1;
  return result;
}

/* A frame that is aligned to more than the stack is. */
OUT long with_aligned(callback call) {
  _Alignas(64) volatile char room[192];
  room[sink % 192] = 1;
  const long result = call(64);
  room[sink % 192] = 2;
  return result;
}

static callback current;
static int compare(const void *a, const void *b) {
  const long result = current(*(const int *)a);
  ++sink;
  (void)b;
  return (int)result;
}

/* The C library calls back. */
OUT long sort_two(callback call) {
  int two[2] = {2, 1};
  current = call;
  qsort(two, 2, sizeof two[0], compare);
  ++sink;
  return two[0];
}
