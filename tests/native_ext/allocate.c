/* Known allocations by C code, for tests/python/test_memory_native.py: Python calls these with ctypes. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define OUT __attribute__((noinline, visibility("default")))

/* Blocks that are kept: a list through their first words. */
static void **kept;
static pthread_mutex_t kept_mutex = PTHREAD_MUTEX_INITIALIZER;

static void keep_block(void **block) {
  pthread_mutex_lock(&kept_mutex);
  *block = (void *)kept;
  kept = block;
  pthread_mutex_unlock(&kept_mutex);
}

OUT long keep(long count, long size) {
  for (long i = 0; i < count; ++i) {
    void **block = malloc((size_t)size);
    if (block == NULL) return -1;
    keep_block(block);
  }
  return count;
}

OUT long keep_zeros(long count, long size) {
  for (long i = 0; i < count; ++i) {
    void **block = calloc((size_t)size / 8, 8);
    if (block == NULL || block[1] != NULL) return -1;
    keep_block(block);
  }
  return count;
}

OUT long keep_aligned(long count, long size) {
  for (long i = 0; i < count; ++i) {
    void *block = NULL;
    if (i % 2 == 0 ? posix_memalign(&block, 64, (size_t)size) != 0 : (block = aligned_alloc(64, (size_t)size)) == NULL)
      return -1;
    if ((unsigned long)block % 64 != 0) return -1;
    keep_block(block);
  }
  return count;
}

OUT long churn(long count, long size) {
  for (long i = 0; i < count; ++i) {
    char *volatile block = malloc((size_t)size);
    if (block == NULL) return -1;
    block[0] = 1;
    free(block);
  }
  return count;
}

/* Blocks that grow by a step at a time, with what is in them. Each step counts as a block of its size. */
OUT long grow(long count, long step, long steps) {
  for (long i = 0; i < count; ++i) {
    char *block = malloc((size_t)step);
    for (long at = 1; at <= steps; ++at) {
      memset(block + (at - 1) * step, (int)at, (size_t)step);
      if (at < steps) block = realloc(block, (size_t)((at + 1) * step));
    }
    for (long at = 1; at <= steps; ++at)
      if (block[(at - 1) * step] != (char)at || block[at * step - 1] != (char)at) return -1;
    keep_block((void **)block);
  }
  return count;
}

OUT long free_all(void) {
  long count = 0;
  while (kept != NULL) {
    void **next = (void **)*kept;
    free(kept);
    kept = next;
    ++count;
  }
  return count;
}

struct job {
  long count, size;
};

static void *work(void *of) {
  const struct job *job = of;
  churn(job->count, job->size);
  keep(job->count, job->size);
  return NULL;
}

/* Threads that know nothing of Python. */
OUT long in_threads(long threads, long count, long size) {
  pthread_t all[16];
  struct job job = {count, size};
  for (long i = 0; i < threads; ++i)
    if (pthread_create(&all[i], NULL, work, &job) != 0) return -1;
  for (long i = 0; i < threads; ++i) pthread_join(all[i], NULL);
  return threads;
}

/* What cannot be had. */
OUT long impossible(void) {
  volatile size_t size = (size_t)1 << 62U;
  char *volatile small = malloc(100);
  small[99] = 7;
  const int is_refused = malloc(size) == NULL && calloc(size, 8) == NULL && realloc(small, size) == NULL;
  const int is_there = small[99] == 7;
  free(small);
  return is_refused && is_there;
}
