// python/compat.h: C-API twins, for the few calls whose name differs between CPython versions. The only place, with
// cpython/compat.h should it ever be needed, where a version may be tested.
#pragma once

#include <Python.h>

#include <cstddef>

namespace plimsoll::python {

// The attached thread state or null; up to 3.11 that of whichever thread holds the GIL. Async-signal-safe, as
// python/interpreter.cc says.
inline PyThreadState* attached_thread_state() {
#if PY_VERSION_HEX >= 0x030D0000
  return PyThreadState_GetUnchecked();
#else
  return _PyThreadState_UncheckedGet();
#endif
}

// Whether that is of the calling thread. Before, it is of whichever thread has the GIL.
inline constexpr bool kAttachedStateIsOfThread = PY_VERSION_HEX >= 0x030C0000;

// PY_VERSION_HEX of the running interpreter.
inline unsigned long running_version() {
#if PY_VERSION_HEX >= 0x030B0000
  return Py_Version;
#else
  return PyLong_AsUnsignedLong(PySys_GetObject("hexversion"));
#endif
}

// While it lives, no exception is set; the one that was set is set again after.
class ErrorSetAside {
 public:
#if PY_VERSION_HEX >= 0x030C0000
  ErrorSetAside() : error_(PyErr_GetRaisedException()) {}
  ~ErrorSetAside() { PyErr_SetRaisedException(error_); }
#else
  ErrorSetAside() { PyErr_Fetch(&type_, &error_, &trace_); }
  ~ErrorSetAside() { PyErr_Restore(type_, error_, trace_); }
#endif
  ErrorSetAside(const ErrorSetAside&) = delete;
  ErrorSetAside& operator=(const ErrorSetAside&) = delete;

 private:
  PyObject* error_ = nullptr;
#if PY_VERSION_HEX < 0x030C0000
  PyObject *type_ = nullptr, *trace_ = nullptr;
#endif
};

// Up to 3.12 _thread tells sys.unraisablehook which callable a thread was started with when that raises: so it must be
// told of the program's own, not of a wrapper of ours. Takes the exception that is set, tells of it as _thread does,
// and returns None in place of `result`, which is null. From 3.13 on _thread only shows the callable's repr.
inline PyObject* tell_of_uncaught([[maybe_unused]] PyObject* body, PyObject* result) {
#if PY_VERSION_HEX < 0x030D0000
  if (result == nullptr && !PyErr_ExceptionMatches(PyExc_SystemExit)) {
    _PyErr_WriteUnraisableMsg("in thread started by", body);
    Py_RETURN_NONE;
  }
#endif
  return result;
}

// Whether interpreters of one process can run at the same time, and whether an object's dict or weak references may lie
// in front of it.
inline constexpr bool kInterpretersHaveOwnGils = PY_VERSION_HEX >= 0x030C0000;
inline constexpr bool kObjectsHaveManagedFields = PY_VERSION_HEX >= 0x030B0000;

// Whether this build has no GIL; and where an object's reference count is. Without a GIL references of the thread that
// made the object are counted there, and those of others elsewhere, above some bits that say how.
#ifdef Py_GIL_DISABLED
inline constexpr bool kIsFreeThreaded = true;
inline constexpr std::size_t kReferenceCountOffset = offsetof(PyObject, ob_ref_local);
inline constexpr std::size_t kSharedCountOffset = offsetof(PyObject, ob_ref_shared);
inline constexpr std::uint64_t kSharedCountUnit = std::uint64_t{1} << _Py_REF_SHARED_SHIFT;
inline constexpr std::uint32_t kImmortalCount = _Py_IMMORTAL_REFCNT_LOCAL;
#else
inline constexpr bool kIsFreeThreaded = false;
inline constexpr std::size_t kReferenceCountOffset = offsetof(PyObject, ob_refcnt);
inline constexpr std::size_t kSharedCountOffset = 0;
inline constexpr std::uint64_t kSharedCountUnit = 1;
inline constexpr std::uint32_t kImmortalCount = 0;
#endif

}  // namespace plimsoll::python
