// native/process_memory.h: the memory of a process, which may be this one.
#pragma once

#include <unistd.h>

#include <optional>

#include "memory/image.h"
#include "memory/local.h"
#include "memory/reader.h"
#include "memory/remote.h"
#include "os/process.h"

namespace plimsoll::native {

// Reads it, by guarded loads (which need a FaultGuard) or by system calls. Not for signal handlers.
class ProcessMemory {
 public:
  ProcessMemory() = default;  // of this one, also after a fork
  // Of one that has ended; `image` must outlive it.
  explicit ProcessMemory(const memory::Image& image) : image_(&image) {}
  explicit ProcessMemory(os::Pid other) : other_(other), remote_(std::in_place, static_cast<pid_t>(other)) {}

  [[nodiscard]] bool is_own() const { return !remote_ && image_ == nullptr; }
  [[nodiscard]] os::Pid pid() const { return remote_ ? other_ : os::Pid{::getpid()}; }
  template <typename Word>
  [[nodiscard]] bool load(Address at, Word& out) const {
    return read(at, &out, sizeof out);
  }
  [[nodiscard]] bool read(Address at, void* out, std::size_t size) const {
    if (image_ != nullptr) return image_->read(at, out, size);
    return remote_ ? remote_->read(at, out, size) : memory::LocalReader{}.read(at, out, size);
  }

 private:
  os::Pid other_{};
  const memory::Image* image_ = nullptr;
  std::optional<memory::RemoteReader> remote_;
};
static_assert(memory::Reader<ProcessMemory>);

}  // namespace plimsoll::native
