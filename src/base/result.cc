#include "base/result.h"

#include <cerrno>
#include <system_error>

namespace plimsoll {

Error system_error(std::string what, int errno_value) {
  const bool refused = errno_value == EACCES || errno_value == EPERM;
  what += ": ";
  what += std::generic_category().message(errno_value);
  return Error{refused ? ErrorKind::kPermission : ErrorKind::kSystem, std::move(what), errno_value};
}

}  // namespace plimsoll
