// bench/floor.c: the least that any profiler with per-thread perf signals can cost: the same ticks, an empty handler.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile long ticks;
static int event = -1;

static void on_tick(int signal) {
  (void)signal;
  ++ticks;
}

// Starts ticks of `rate` Hz of the calling thread's CPU time; 0 on success.
int floor_start(long rate) {
  struct perf_event_attr attr = {.size = sizeof attr,
                                 .type = PERF_TYPE_SOFTWARE,
                                 .config = PERF_COUNT_SW_TASK_CLOCK,
                                 .sample_period = 1000000000UL / (unsigned long)rate,
                                 .disabled = 1,
                                 .wakeup_events = 1};
  struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
  struct f_owner_ex owner = {F_OWNER_TID, (pid_t)syscall(SYS_gettid)};
  event = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (event < 0) return -1;
  ticks = 0;
  sigaction(SIGRTMAX - 2, &action, 0);
  fcntl(event, F_SETFL, O_ASYNC | O_NONBLOCK);
  fcntl(event, F_SETSIG, SIGRTMAX - 2);
  fcntl(event, F_SETOWN_EX, &owner);
  return ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
}

// Stops and returns the number of ticks.
long floor_stop(void) {
  if (event >= 0) {
    ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
    close(event);
    event = -1;
  }
  return ticks;
}

// What the clocks take that a tick cannot do without: the thread's CPU time, and the time of day. In nanoseconds, the
// median of many.
long floor_clocks_ns(void) {
  enum { kTimes = 1001 };
  static long took[kTimes];
  for (int i = 0; i < kTimes; ++i) {
    struct timespec before, after, unused;
    clock_gettime(CLOCK_MONOTONIC, &before);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &unused);
    clock_gettime(CLOCK_MONOTONIC, &after);
    const long ns = (after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec;
    int place = i;
    for (; place > 0 && took[place - 1] > ns; --place) took[place] = took[place - 1];
    took[place] = ns;
  }
  return took[kTimes / 2];
}
