// python/fetch_queue.h: objects that are looked at a little later, when the memory for it has been fetched.
#pragma once

#include <Python.h>

#include <array>
#include <cstddef>
#include <utility>

namespace plimsoll::python {

// A queue of a few. Whoever puts an object in has prefetched what is wanted of it halfway and when it comes out.
template <std::size_t kLength>
class FetchQueue {
 public:
  // Takes an object, or null; gives the one that was taken kLength times before, or null.
  PyObject* pass(PyObject* object) {
    PyObject* fetched = std::exchange(ring_[next_++ % kLength], object);
    if (object != nullptr) ++count_;
    if (fetched != nullptr) --count_;
    return fetched;
  }
  // The object that was taken half as long ago as the one that pass() has given, or null.
  [[nodiscard]] PyObject* halfway() const { return ring_[(next_ + kLength / 2) % kLength]; }
  [[nodiscard]] bool is_empty() const { return count_ == 0; }

 private:
  std::array<PyObject*, kLength> ring_{};
  std::size_t next_ = 0, count_ = 0;
};

}  // namespace plimsoll::python
