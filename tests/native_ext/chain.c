/* Known chains of calls between Python and C, for tests/python/test_native.py: Python calls them with ctypes.

   Each function does something after its last call, so that none is left by a jump. */
#include <alloca.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

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

/* Takes so many blocks, which are kept: each has the address of the one before. */
static void *volatile held;
OUT long hold(long count, long size) {
  for (long i = 0; i < count; ++i) {
    void **block = malloc((size_t)size);
    if (block == NULL) return -1;
    *block = held;
    held = block;
  }
  return count;
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

/* Waits in the kernel for ever, and counts how often the wait was broken off. */
static volatile long interruptions;
OUT void wait_for_ever(void) {
  struct epoll_event event;
  const int poll = epoll_create1(0);
  while (epoll_wait(poll, &event, 1, -1) >= 0 || errno == EINTR) ++interruptions;
}
OUT long times_interrupted(void) { return interruptions; }

/* Runs, waits a moment, runs, and so on; counts the waits that were broken off. */
OUT long wait_briefly(long rounds) {
  const int poller = epoll_create1(0);
  const struct timespec moment = {0, 200000};
  struct epoll_event event;
  struct pollfd none = {-1, 0, 0};
  long broken = 0;
  for (; rounds > 0; --rounds) {
    broken += epoll_wait(poller, &event, 1, 1) < 0;
    for (long i = 0; i < 200000; ++i) sink += i * i;
    broken += nanosleep(&moment, NULL) != 0;
    for (long i = 0; i < 200000; ++i) sink += i * i;
    broken += poll(&none, 1, 1) < 0;
  }
  close(poller);
  return broken;
}

/* A thread that knows no Python: it reads from a pipe that nobody writes to. */
static int nobody[2];
OUT void native_wait(void) {
  char byte;
  while (read(nobody[0], &byte, 1) == 1) ++sink;
  ++sink;
}
static void *native_thread(void *unused) {
  native_wait();
  ++sink;
  return unused;
}
OUT long start_native(void) {
  pthread_t thread;
  return pipe(nobody) != 0 || pthread_create(&thread, NULL, native_thread, NULL) != 0;
}
