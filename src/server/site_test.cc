#include "server/site.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/directory_testing.h"
#include "base/write_file.h"
#include "server/list_page.h"
#include "server/url.h"

namespace plimsoll::server {
namespace {

namespace http = boost::beast::http;

class SiteTest : public plimsoll::testing::DirectoryTest {
 protected:
  void SetUp() override {
    DirectoryTest::SetUp();
    std::ofstream(path("a b&c.collapsed")) << "main;work<1> 10\n";
    profiles.emplace(path(""));
    site.emplace(*profiles, SiteSettings{{"s3cret", {"127.0.0.1:8000"}, "t1cket"}, "https://viewer.example"});
  }
  Response ask(http::verb method, std::string_view target, std::string body = {},
               std::string_view host = "127.0.0.1:8000") {
    Request request(method, target, 11, std::move(body));
    request.set(http::field::host, host);
    return site->answer(request);
  }
  Response get(std::string_view target) { return ask(http::verb::get, target); }
  // Sends a body as the server does; none if there is no room for it.
  std::optional<Response> send(std::string_view target, std::string_view body) {
    RequestHead head(http::verb::post, target, 11);
    head.set(http::field::host, "127.0.0.1:8000");
    const std::unique_ptr<Upload> upload = site->begin_upload(head);
    if (upload == nullptr || write_all(upload->file.get(), body) != 0) return std::nullopt;
    return upload->finish(head);
  }
  // The number of a new entry.
  std::string begin() {
    const std::string answer =
        ask(http::verb::post, "/s3cret/api/runtime/new", R"({"argv":"app.py","VM":"CPython"})").body();
    const std::size_t at = answer.find("runtime_id\":\"") + 13;
    return answer.substr(at, answer.find('"', at) - at);
  }

  std::optional<ProfileStore> profiles;
  std::optional<Site> site;
};

TEST_F(SiteTest, ShowsNothingToWhoDoesNotKnowTheSecret) {
  for (const char* target : {"/", "", "/s3cre/", "/S3CRET/", "/graph/a%20b%26c.collapsed", "//s3cret/", "*",
                             "/api/runtime/new", "/favicon.ico"})
    EXPECT_EQ(get(target).result(), http::status::not_found) << target;
  EXPECT_EQ(ask(http::verb::get, "/s3cret/", {}, "evil.example").result(), http::status::not_found);
  EXPECT_FALSE(send("/api/runtime/upload/cpu/1/add", "main 1\n"));
}

TEST_F(SiteTest, ListsProfilesWithLinksToThem) {
  const Response list = get("/s3cret/");
  EXPECT_EQ(list.result(), http::status::ok);
  EXPECT_EQ(list["Referrer-Policy"], "no-referrer");
  EXPECT_NE(list.body().find(R"(<a href="graph/a%20b%26c.collapsed">a b&amp;c.collapsed</a>)"), std::string::npos);
  EXPECT_EQ(list.count(http::field::access_control_allow_origin), 0U);
  EXPECT_EQ(get("/s3cret").result(), http::status::found);
}

TEST_F(SiteTest, ShowsAProfileAsFlameGraphAndAsFile) {
  EXPECT_NE(get("/s3cret/graph/a%20b%26c.collapsed").body().find("work\\u003c1>"), std::string::npos);
  const Response file = get("/s3cret/file/a%20b%26c.collapsed");
  EXPECT_EQ(file.body(), "main;work<1> 10\n");
  EXPECT_EQ(file[http::field::content_disposition], "attachment; filename*=UTF-8''a%20b%26c.collapsed");
  for (const char* target : {"/s3cret/graph/none.plim", "/s3cret/graph/..%2fa.collapsed", "/s3cret/graph/%zz",
                             "/s3cret/file/.plimsoll-serve", "/s3cret/file/", "/s3cret/file", "/s3cret/x"})
    EXPECT_EQ(get(target).result(), http::status::not_found) << target;
}

TEST_F(SiteTest, SaysWhyAFileCannotBeShown) {
  std::ofstream(path("bad.plim")) << "no profile";
  const Response response = get("/s3cret/graph/bad.plim");
  EXPECT_EQ(response.result(), http::status::unprocessable_entity);
  EXPECT_NE(response.body().find("bad.plim"), std::string::npos);
}

TEST_F(SiteTest, LetsTheFirefoxProfilerReadTheProfileOfTheLink) {
  const Response open = get("/s3cret/open/a%20b%26c.collapsed");
  EXPECT_EQ(open.result(), http::status::found);
  const std::string address = "http://127.0.0.1:8000/s3cret/firefox/a%20b%26c.collapsed";
  EXPECT_EQ(open[http::field::location], "https://viewer.example/from-url/" +
                                             percent_encoded(address + "/profile.json") +
                                             "/?symbolServer=" + percent_encoded(address));
  const Response profile = get("/s3cret/firefox/a%20b%26c.collapsed/profile.json");
  EXPECT_EQ(profile.result(), http::status::ok);
  EXPECT_EQ(profile[http::field::content_encoding], "gzip");
  EXPECT_EQ(profile[http::field::access_control_allow_origin], "*");
  EXPECT_EQ(get("/s3cret/firefox/none.plim/profile.json").result(), http::status::not_found);
}

TEST_F(SiteTest, GivesTheListOnceForATicket) {
  const Response first = get("/t1cket");
  EXPECT_EQ(first.result(), http::status::found);
  EXPECT_EQ(first[http::field::location], "/s3cret/");
  EXPECT_EQ(get("/t1cket").result(), http::status::not_found);
  EXPECT_EQ(get("/").result(), http::status::not_found);
}

TEST_F(SiteTest, TakesProfilesFromVmprofsClients) {
  // GIVEN a new entry
  const std::string entry = begin();
  ASSERT_EQ(entry.size(), 36U);
  // WHEN a profile is sent, and a jitlog, and the end
  const std::optional<Response> sent = send("/s3cret/api/runtime/upload/cpu/" + entry + "/add", "main;sent 10\n");
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->body(), R"({"status":"ok"})");
  EXPECT_EQ(send("/s3cret/api/runtime/upload/jit/" + entry + "/add/", "log")->body(),
            R"({"status":"ok","jid":")" + entry + R"("})");
  EXPECT_EQ(ask(http::verb::post, "/s3cret/api/runtime/" + entry + "/freeze/").result(), http::status::ok);
  // THEN it is there, by the name of its program
  EXPECT_NE(get("/s3cret/graph/app.py-" + entry + ".prof").body().find("sent"), std::string::npos);
  EXPECT_FALSE(send("/s3cret/api/runtime/upload/cpu/" + entry + "/add", "main;late 10\n"));
}

TEST_F(SiteTest, RefusesWhatIsNoProfileOrHasNoEntry) {
  const std::string entry = begin();
  const std::optional<Response> sent = send("/s3cret/api/runtime/upload/cpu/" + entry + "/add", "\x7f");
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->result(), http::status::bad_request);
  EXPECT_EQ(sent->body(), R"(["what was sent is no profile"])");
  for (const std::string target :
       {"/upload/cpu/none/add", "/upload/cpu/add", "/upload/add", "/upload/mem/1/add", "/upload/cpu//add"})
    EXPECT_FALSE(send("/s3cret/api/runtime" + target, "main 1\n")) << target;
  EXPECT_EQ(ask(http::verb::post, "/s3cret/api/runtime/new", "{").result(), http::status::bad_request);
  EXPECT_EQ(ask(http::verb::delete_, "/s3cret/file/a%20b%26c.collapsed").result(), http::status::method_not_allowed);
  // AND nothing of it is left
  EXPECT_EQ(profiles->list().size(), 1U);
}

TEST(Url, EscapesWhatIsNotPlainAndTakesItBack) {
  EXPECT_EQ(percent_encoded("a b/\xc3\xa9~"), "a%20b%2F%C3%A9~");
  EXPECT_EQ(percent_decoded("a%20b%2f%C3%a9~"), "a b/\xc3\xa9~");
  for (const char* damaged : {"%", "%4", "%zz", "a%2"}) EXPECT_FALSE(percent_decoded(damaged)) << damaged;
}

}  // namespace
}  // namespace plimsoll::server
