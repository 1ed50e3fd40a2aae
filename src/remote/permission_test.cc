#include "remote/permission.h"

#include <gtest/gtest.h>

namespace plimsoll::remote {
namespace {

std::string said(const os::Access& access) {
  const Error error = explain_refusal(os::Pid{42}, access);
  EXPECT_EQ(error.kind, ErrorKind::kPermission);
  EXPECT_TRUE(error.message.starts_with("no permission to look into process 42: ")) << error.message;
  return error.message;
}

TEST(Refusal, NamesWhatForbidsItAndTheCommandThatAllowsIt) {
  const auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  contains(said({.is_same_user = false}), "belongs to another user: put sudo");
  contains(said({.is_same_user = true, .ptrace_scope = 1}), "sudo sysctl kernel.yama.ptrace_scope=0");
  contains(said({.is_same_user = true, .ptrace_scope = 2}), "ptrace_scope is 2");
  contains(said({.is_same_user = true, .has_capability = true, .is_root = true, .ptrace_scope = 3}), "restart");
  contains(said({.is_same_user = true, .is_root = true, .is_contained = true}), "--cap-add SYS_PTRACE");
  contains(said({.is_same_user = true, .is_contained = true}), "--cap-add SYS_PTRACE");
  contains(said({.is_same_user = false, .is_root = true, .is_contained = true}), "--cap-add SYS_PTRACE");
  contains(said({.is_same_user = false, .is_contained = true}), "belongs to another user: put sudo");
  contains(said({.is_same_user = true, .has_capability = true, .is_root = true}), "seccomp");
  contains(said({.is_same_user = true, .ptrace_scope = 0}), "PR_SET_DUMPABLE");
}

}  // namespace
}  // namespace plimsoll::remote
