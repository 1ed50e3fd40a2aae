/* For LD_PRELOAD: each new thread sleeps for 20 ms before it begins, as if it waited so long for its first CPU. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

typedef void *Function(void *);
typedef int Create(pthread_t *, const pthread_attr_t *, Function *, void *);

struct Start {
  Function *function;
  void *argument;
};

static void *begin(void *given) {
  const struct Start start = *(struct Start *)given;
  const struct timespec wait = {0, 20000000};
  free(given);
  nanosleep(&wait, 0);
  return start.function(start.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, Function *function, void *argument) {
  Create *create = (Create *)dlsym(RTLD_NEXT, "pthread_create");
  struct Start *start = malloc(sizeof *start);
  start->function = function;
  start->argument = argument;
  return create(thread, attributes, begin, start);
}
