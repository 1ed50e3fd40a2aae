// server/answers.cc: requests -> answers.
#include "server/answers.h"

#include <algorithm>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/verb.hpp>
#include <boost/json.hpp>
#include <optional>
#include <utility>

#include "base/hexadecimal.h"
#include "formats/json_values.h"
#include "formats/registry.h"

namespace plimsoll::server {
namespace {

namespace http = boost::beast::http;
namespace json = boost::json;
using formats::array_member;
using formats::text_member;

json::object failure(std::string_view why) { return {{"error", why}}; }

json::object source_of(const json::value& asked, const Exhibit& exhibit) {
  const std::string_view file = text_member(&asked, "file");
  const auto found = std::find_if(exhibit.sources.begin(), exhibit.sources.end(),
                                  [&](const profile::Source& source) { return source.file == file; });
  if (found == exhibit.sources.end()) return failure("the profile does not hold the text of this file");
  return {{"symbolsLastModified", nullptr}, {"sourceLastModified", nullptr}, {"file", file}, {"source", found->text}};
}

// The frames of one stack, [[index of the module, offset], ...], without names.
json::array unnamed_frames(const json::value& stack, const json::array& modules) {
  json::array frames;
  if (!stack.is_array()) return frames;
  for (const json::value& one : stack.get_array()) {
    const json::array* pair = one.if_array();
    const auto module = formats::index_of(formats::element(pair, 0), modules.size());
    const auto offset = formats::integer_of(formats::element(pair, 1));
    if (!module || !offset) continue;
    const json::array* name = modules[*module].if_array();
    frames.push_back({{"frame", frames.size()},
                      {"module", formats::text_of(formats::element(name, 0))},
                      {"module_offset", hexadecimal(static_cast<std::uint64_t>(*offset))}});
  }
  return frames;
}

json::object without_symbols(const json::value& asked) {
  json::array results;
  const json::array* jobs = array_member(&asked, "jobs");
  for (const json::value& job : jobs == nullptr ? json::array{} : *jobs) {
    const json::array* modules = array_member(&job, "memoryMap");
    const json::array* stacks = array_member(&job, "stacks");
    json::array answered;
    if (modules != nullptr && stacks != nullptr)
      for (const json::value& stack : *stacks) answered.push_back(unnamed_frames(stack, *modules));
    results.push_back({{"stacks", std::move(answered)}, {"found_modules", json::object{}}});
  }
  return {{"results", std::move(results)}};
}

json::object answer_question(std::string_view path, const std::string& body, const Exhibit& exhibit) {
  const Result<json::value> asked = formats::parse_json(body, {});
  if (!asked.ok()) return failure(asked.error().message);
  if (path == "/source/v1") return source_of(asked.value(), exhibit);
  if (path == "/symbolicate/v5") return without_symbols(asked.value());
  if (exhibit.code != nullptr) return exhibit.code->answer(asked.value());
  return failure("there is no machine code in this profile");
}

}  // namespace

Result<Exhibit> exhibit_of(profile::Profile profile) {
  const Result<formats::Writer> writer = formats::find_writer("firefox", "");
  if (!writer.ok()) return writer.error();
  Result<std::string> bytes = formats::write_as(writer.value(), profile, "profile.json.gz");
  if (!bytes.ok()) return bytes.error();
  Exhibit exhibit{bytes.take(), std::move(profile.sources)};
  profile::Attachment* const log = profile.attachment("jitlog");
  if (log != nullptr && !log->bytes.empty()) exhibit.code = JitCode::read(std::move(log->bytes));
  return exhibit;
}

Response answer_below_secret(const Request& request, std::string_view path, const Exhibit& exhibit) {
  const http::verb method = request.method();
  const bool is_profile = path == "/profile.json";
  const bool is_question = path == "/source/v1" || path == "/symbolicate/v5" || path == "/asm/v1";
  if (!is_profile && !is_question) return make_response(request, http::status::not_found, "text/plain", "not found\n");
  if (method == http::verb::options) {
    Response response = make_response(request, http::status::no_content, "", "");
    response.set(http::field::access_control_allow_methods, is_profile ? "GET, HEAD" : "POST");
    if (const auto wanted = request.find(http::field::access_control_request_headers); wanted != request.end())
      response.set(http::field::access_control_allow_headers, wanted->value());
    // A page of the internet asks for something on this machine: browsers want to hear that this is meant.
    response.set("Access-Control-Allow-Private-Network", "true");
    return response;
  }
  if (is_question && method == http::verb::post) {
    const std::string text = json::serialize(answer_question(path, request.body(), exhibit));
    return make_response(request, http::status::ok, "application/json", text);
  }
  if (is_profile && (method == http::verb::get || method == http::verb::head)) {
    Response response = make_response(request, http::status::ok, "application/json", exhibit.profile_gz);
    response.set(http::field::content_encoding, "gzip");
    return response;
  }
  return make_response(request, http::status::method_not_allowed, "text/plain", "not here\n");
}

Response answer(const Request& request, const Exhibit& exhibit) {
  const Entrance& entrance = exhibit.entrance;
  if (entrance.is_ticket(target_of(request), host_of(request))) {
    Response response = make_response(request, http::status::found, "text/plain", "");
    response.set(http::field::location, exhibit.page);
    return response;
  }
  const std::optional<std::string_view> path = entrance.path_below(target_of(request), host_of(request));
  if (!path) return make_response(request, http::status::not_found, "text/plain", "not found\n");
  Response response = answer_below_secret(request, *path, exhibit);
  response.set(http::field::access_control_allow_origin, "*");
  return response;
}

}  // namespace plimsoll::server
