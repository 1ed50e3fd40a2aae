// remote/static_testing.cc: a program without shared libraries, whose functions are known, and which waits. For tests
// only.
#include <sys/epoll.h>

// Not in a nameless namespace, and not inlined: to be found under these names.
[[gnu::noinline]] void static_wait(int poll) {
  epoll_event event{};
  while (true) ::epoll_wait(poll, &event, 1, -1);
}
[[gnu::noinline]] void around_static_wait(int poll) {
  static_wait(poll);
  asm volatile("" ::: "memory");
}

int main() { around_static_wait(::epoll_create1(0)); }
