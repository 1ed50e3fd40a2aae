// server/jit_code_test.cc: questions of the assembly view, in the words of the symbol server's API.
#include "server/jit_code.h"

#include <gtest/gtest.h>

#include "jitlog/testing.h"

namespace plimsoll::server {
namespace {

std::string ask(std::string_view question) {
  const std::shared_ptr<const JitCode> code = JitCode::read(jitlog::testing::loop_and_bridge(4, false));
  return boost::json::serialize(code->answer(boost::json::parse({question.data(), question.size()})));
}

TEST(JitCode, AnswersWithInstructionsBetweenWhatTheyComeFrom) {
  // GIVEN a log WHEN the page asks for the code of its loop THEN it gets pairs of offset and text, and where they are
  EXPECT_EQ(ask(R"({"debugName":"jit@0x0","debugId":"0","name":"jit@0x0","codeId":null,"startAddress":"0x1000",
                    "size":"0x100","continueUntilFunctionEnd":false})"),
            R"json({"startAddress":"0x1000","size":"0x100","arch":"x86_64","syntax":["Intel"],"instructions":[)json"
            R"json([0,"  label(i0,i1)  <Loop7>"],[4,"  i2 = int_add_ovf(i0,i1)"],[4,"    add rax, rbx"],)json"
            R"json([7,"  guard_no_overflow(i2)  <Guard, of 9>  -> bridge 8"]]})json");
}

TEST(JitCode, SaysWhatItDoesNotHold) {
  for (const std::string_view question :
       {R"({"debugName":"libc.so.6","startAddress":"0x1000"})", R"({"debugName":"jit@0x0","startAddress":"0x1001"})",
        R"({"debugName":"jit@0x0"})", "{}", "[]", "7", R"({"name":7,"startAddress":[]})"})
    EXPECT_TRUE(ask(question).starts_with(R"({"error":)")) << question;
  EXPECT_EQ(JitCode::read("no log"), nullptr);
}

}  // namespace
}  // namespace plimsoll::server
