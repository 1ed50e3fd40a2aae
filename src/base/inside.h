// base/inside.h: whether what the calling thread allocates is accounted for elsewhere, or nobody's business.
#pragma once

namespace plimsoll {

// The thread is inside an allocator that may turn to the one below it, whose part in it is booked already; or it is a
// thread of ours. In the static TLS block (initial-exec), so that no access allocates.
[[gnu::tls_model("initial-exec")]] inline thread_local constinit bool is_inside = false;

// The allocator below, called.
template <typename Call>
auto inside(Call call) {
  if (is_inside) [[unlikely]]
    return call();
  is_inside = true;
  const auto result = call();
  is_inside = false;
  return result;
}

}  // namespace plimsoll
