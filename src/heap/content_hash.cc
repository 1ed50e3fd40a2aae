#include "heap/content_hash.h"

#include <sys/random.h>

#include "base/clock.h"

namespace plimsoll::heap {

ContentHash::Key random_key() {
  ContentHash::Key key{};
  if (::getrandom(key.data(), sizeof key, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof key))
    key = {static_cast<std::uint64_t>(realtime_ns()), static_cast<std::uint64_t>(monotonic_ns())};
  return key;
}

}  // namespace plimsoll::heap
