#include "remote/permission.h"

#include <string>

namespace plimsoll::remote {
namespace {

// Values of kernel.yama.ptrace_scope.
constexpr int kChildrenOnly = 1;
constexpr int kCapableOnly = 2;
constexpr int kNobody = 3;

std::string reason(const os::Access& access) {
  if (access.ptrace_scope == kNobody)
    return "kernel.yama.ptrace_scope is 3: nobody may look into another process. It can be changed by a restart of "
           "the machine only";
  if (access.has_capability)
    return "this process has CAP_SYS_PTRACE, so a security module or a seccomp filter forbids process_vm_readv: in a "
           "container, start it with --cap-add SYS_PTRACE (which also opens the seccomp filter)";
  // (No capability that a container is given helps who is not root there.)
  if (!access.is_same_user && !access.is_root)
    return "it belongs to another user: put sudo before the command, or look as that one";
  if (access.is_contained || access.is_root)
    return "the capability CAP_SYS_PTRACE is missing: start the container with --cap-add SYS_PTRACE (in Kubernetes: "
           "securityContext.capabilities.add: [SYS_PTRACE]), or look from its host, as root";
  if (access.ptrace_scope == kCapableOnly)
    return "kernel.yama.ptrace_scope is 2: put sudo before the command (CAP_SYS_PTRACE is needed)";
  if (access.ptrace_scope == kChildrenOnly)
    return "kernel.yama.ptrace_scope is 1: a process may only look into its own children. Put sudo before the command, "
           "or allow it until the next restart: sudo sysctl kernel.yama.ptrace_scope=0";
  return "it has given up being looked at (prctl PR_SET_DUMPABLE, or a set-user-id program): put sudo before the "
         "command";
}

}  // namespace

Error explain_refusal(os::Pid pid, const os::Access& access) {
  return Error{ErrorKind::kPermission,
               "no permission to look into process " + std::to_string(static_cast<int>(pid)) + ": " + reason(access)};
}

}  // namespace plimsoll::remote
