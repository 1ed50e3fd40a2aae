// server/answers_test.cc: what the page asks, what pages that know no secret get, and what garbage gets.
#include "server/answers.h"

#include <gtest/gtest.h>

#include "jitlog/testing.h"

namespace plimsoll::server {
namespace {

namespace http = boost::beast::http;

Exhibit exhibit() {
  return {"PROFILE",
          {{"/app/main.py", "print('tea')\n"}},
          JitCode::read(jitlog::testing::loop_and_bridge(4, false)),
          {"s3cret", {"127.0.0.1:4711"}}};
}

Request request(http::verb method, std::string_view target, std::string body = {}) {
  Request asked(method, target, 11, std::move(body));
  asked.set(http::field::host, "127.0.0.1:4711");
  return asked;
}

TEST(Answers, GiveTheProfileToAnyPageThatKnowsTheSecret) {
  const Response response = answer(request(http::verb::get, "/s3cret/profile.json"), exhibit());
  EXPECT_EQ(response.result(), http::status::ok);
  EXPECT_EQ(response.body(), "PROFILE");
  EXPECT_EQ(response[http::field::content_encoding], "gzip");
  EXPECT_EQ(response[http::field::access_control_allow_origin], "*");
  EXPECT_EQ(response[http::field::content_length], "7");
}

TEST(Answers, GiveNothingAwayWithoutTheSecretNorUnderAnotherName) {
  for (const char* target : {"/profile.json", "/s3cre/profile.json", "/s3cretprofile.json", "/S3CRET/profile.json", "/",
                             "", "//s3cret/profile.json", "/s3cret", "/s3cret/../profile.json", "*"}) {
    const Response response = answer(request(http::verb::get, target), exhibit());
    EXPECT_EQ(response.result(), http::status::not_found) << target;
    EXPECT_EQ(response.body(), "not found\n") << target;
  }
  // a name of the internet that was made to point to the loopback
  Request rebound = request(http::verb::get, "/s3cret/profile.json");
  rebound.set(http::field::host, "evil.example:4711");
  EXPECT_EQ(answer(rebound, exhibit()).result(), http::status::not_found);
  EXPECT_EQ(answer(rebound, exhibit()).count(http::field::access_control_allow_origin), 0U);
  rebound.erase(http::field::host);
  EXPECT_EQ(answer(rebound, exhibit()).result(), http::status::not_found);
}

TEST(Answers, LetTheBrowserAskBeforehand) {
  Request asked = request(http::verb::options, "/s3cret/source/v1");
  asked.set(http::field::access_control_request_headers, "content-type");
  const Response response = answer(asked, exhibit());
  EXPECT_EQ(response.result(), http::status::no_content);
  EXPECT_EQ(response[http::field::access_control_allow_headers], "content-type");
  EXPECT_EQ(response[http::field::access_control_allow_methods], "POST");
  EXPECT_EQ(response["Access-Control-Allow-Private-Network"], "true");
}

TEST(Answers, GiveSourcesThatTheProfileHolds) {
  const auto ask = [](std::string body) {
    return answer(request(http::verb::post, "/s3cret/source/v1", std::move(body)), exhibit());
  };
  EXPECT_NE(ask(R"({"file":"/app/main.py","debugName":"x"})").body().find(R"("source":"print('tea')\n")"),
            std::string::npos);
  // and no others, whatever is on the disk
  EXPECT_NE(ask(R"({"file":"/etc/passwd"})").body().find("error"), std::string::npos);
  for (const char* garbage : {"", "{", "[]", "7", R"({"file":7})", "\xff"})
    EXPECT_NE(ask(garbage).body().find("error"), std::string::npos) << garbage;
}

TEST(Answers, NameNoFramesAgain) {
  const Response response = answer(
      request(
          http::verb::post, "/s3cret/symbolicate/v5",
          R"({"jobs":[{"memoryMap":[["libc.so.6","ABC"]],"stacks":[[[0,4660],[9,1],["x"],[0,-1]]]},{"stacks":3},4]})"),
      exhibit());
  EXPECT_EQ(response.body(),
            R"({"results":[{"stacks":[[{"frame":0,"module":"libc.so.6","module_offset":"0x1234"},)"
            R"({"frame":1,"module":"libc.so.6","module_offset":"0xffffffffffffffff"}]],"found_modules":{}},)"
            R"({"stacks":[],"found_modules":{}},{"stacks":[],"found_modules":{}}]})");
}

TEST(Answers, ShowMachineCodeOfTheJit) {
  const Request asked =
      request(http::verb::post, "/s3cret/asm/v1", R"({"debugName":"jit@0x0","startAddress":"0x1000"})");
  EXPECT_NE(answer(asked, exhibit()).body().find("add rax, rbx"), std::string::npos);
  Exhibit without = exhibit();
  without.code = nullptr;
  EXPECT_NE(answer(asked, without).body().find("no machine code"), std::string::npos);
}

TEST(Answers, KnowWhichMethodIsForWhat) {
  EXPECT_EQ(answer(request(http::verb::post, "/s3cret/profile.json"), exhibit()).result(),
            http::status::method_not_allowed);
  EXPECT_EQ(answer(request(http::verb::get, "/s3cret/source/v1"), exhibit()).result(),
            http::status::method_not_allowed);
  EXPECT_EQ(answer(request(http::verb::delete_, "/s3cret/asm/v1"), exhibit()).result(),
            http::status::method_not_allowed);
  EXPECT_TRUE(answer(request(http::verb::head, "/s3cret/profile.json?x=1"), exhibit()).body().empty());
}

TEST(Answers, ToHeadHaveNoBodyWhateverTheySay) {
  // WHEN only the head of an answer is asked for, of what is there, of what is not, and of what is asked otherwise
  for (const char* target : {"/s3cret/profile.json", "/s3cret/nothing", "/wrong", "/s3cret/source/v1"}) {
    const Response response = answer(request(http::verb::head, target), exhibit());
    // THEN nothing follows it that the client would take for the next answer, and the length is that of GET's
    EXPECT_TRUE(response.body().empty()) << target;
    EXPECT_EQ(response[http::field::content_length],
              std::to_string(answer(request(http::verb::get, target), exhibit()).body().size()))
        << target;
  }
}

}  // namespace
}  // namespace plimsoll::server
