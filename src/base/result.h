// base/result.h: errors as values.
//
// A function that can fail returns Result<T>. An Error says in one sentence what failed, on which object, and, where
// something can be done, what to do; its kind selects the exit code of the command line. There are no exceptions
// below the Python binding.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace plimsoll {

// What class of failure an Error is; cli/exit_code.h maps each kind to a documented exit code.
enum class ErrorKind {
  kUsage,        // the caller asked for something that makes no sense
  kPermission,   // the system refused
  kBadInput,     // a file or a target is not what it should be
  kUnsupported,  // this system, kernel or Python cannot do it
  kSystem,       // a system call failed
};

// A failure in words. Immutable after construction; safe to copy between threads.
struct Error {
  ErrorKind kind = ErrorKind::kSystem;
  std::string message;
  int errno_value = 0;  // of the system call that failed
};

// A failed system call in words: "what: strerror(errno_value)"; EACCES and EPERM become kPermission.
// Allocates; never call it in signal-time code.
Error system_error(std::string what, int errno_value);

// Either a T or an Error. Check ok() before value() or error().
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  [[nodiscard]] T& value() { return *std::get_if<0>(&state_); }
  [[nodiscard]] const T& value() const { return *std::get_if<0>(&state_); }
  [[nodiscard]] T take() { return std::move(*std::get_if<0>(&state_)); }
  [[nodiscard]] const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

// Success without a value.
struct Ok {};
using Status = Result<Ok>;

// TRY(expression): evaluates a Result and returns its Error from the calling function if it holds one.
#define PLIMSOLL_TRY(expression)                                                                                \
  do {                                                                                                          \
    if (auto plimsoll_try_result = (expression); !plimsoll_try_result.ok()) return plimsoll_try_result.error(); \
  } while (false)

}  // namespace plimsoll
