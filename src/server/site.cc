#include "server/site.h"

#include <boost/json.hpp>
#include <optional>
#include <utility>

#include "base/file_bytes.h"
#include "base/unkept_file.h"
#include "formats/flamegraph/writer.h"
#include "formats/input.h"
#include "formats/json_values.h"
#include "server/list_page.h"
#include "server/profile_server.h"
#include "server/url.h"

namespace plimsoll::server {
namespace {

namespace http = boost::beast::http;
namespace json = boost::json;

constexpr std::size_t kLongestArgv = 4096;
constexpr std::int64_t kLargestSent = std::int64_t{256} << 20U;  // it is in memory meanwhile

template <typename Body>
Response not_found(const http::request<Body>& request) {
  return make_response(request, http::status::not_found, "text/plain", "not found\n");
}

template <typename Body>
Response json_response(const http::request<Body>& request, http::status status, const json::value& value) {
  return make_response(request, status, "application/json", json::serialize(value));
}

// The address has the secret in it: no other site is told of it.
Response page(const Request& request, std::string text) {
  Response response = make_response(request, http::status::ok, "text/html; charset=utf-8", std::move(text));
  response.set("Referrer-Policy", "no-referrer");
  response.set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'");
  return response;
}

Response failure(const Request& request, const Error& error) {
  return make_response(request, http::status::unprocessable_entity, "text/plain; charset=utf-8", error.message + "\n");
}

// What follows `prefix`; none if it does not stand there.
std::optional<std::string_view> after(std::string_view path, std::string_view prefix) {
  return path.starts_with(prefix) ? std::optional(path.substr(prefix.size())) : std::nullopt;
}

Response to_list(const Request& request, const std::string& secret) {
  Response response = make_response(request, http::status::found, "text/plain", "");
  response.set(http::field::location, "/" + secret + "/");
  return response;
}

std::string_view without_slash(std::string_view path) {
  return path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
}

// What an upload is of.
struct Sent {
  std::string entry;
  ProfileStore::Kind kind;
};

// "/api/runtime/upload/cpu/ENTRY/add"; none if it is something else.
std::optional<Sent> sent_to(std::string_view path) {
  constexpr std::string_view kEnd = "/add";
  for (const auto& [before, kind] : {std::pair("/api/runtime/upload/cpu/", ProfileStore::Kind::kProfile),
                                     std::pair("/api/runtime/upload/jit/", ProfileStore::Kind::kJitlog)})
    if (const auto rest = after(path, before); rest && rest->ends_with(kEnd))
      return Sent{std::string(rest->substr(0, rest->size() - kEnd.size())), kind};
  return std::nullopt;
}

}  // namespace

Response Site::answer(const Request& request) {
  Entrance& entrance = settings_.entrance;
  if (entrance.is_ticket(target_of(request), host_of(request))) {
    entrance.ticket.clear();
    return to_list(request, entrance.secret);
  }
  const std::optional<std::string_view> path = entrance.path_below(target_of(request), host_of(request));
  if (!path) return not_found(request);
  if (const auto rest = after(*path, "/firefox/")) return answer_firefox(request, *rest);
  switch (request.method()) {
    case http::verb::get:
    case http::verb::head: return answer_get(request, *path);
    case http::verb::post: return answer_post(request, *path);
    default: return make_response(request, http::status::method_not_allowed, "text/plain", "not here\n");
  }
}

Response Site::answer_get(const Request& request, std::string_view path) {
  if (path.empty()) return to_list(request, settings_.entrance.secret);  // of which the links are relative
  if (path == "/") return page(request, list_page(store_.list()));
  for (const auto& [prefix, show_it] :
       {std::pair(std::string_view("/graph/"), &Site::graph), std::pair(std::string_view("/file/"), &Site::file),
        std::pair(std::string_view("/open/"), &Site::to_viewer)})
    if (const auto encoded = after(path, prefix))
      if (const std::optional<std::string> name = percent_decoded(*encoded)) return (this->*show_it)(request, *name);
  return not_found(request);
}

Response Site::graph(const Request& request, std::string_view name) const {
  const std::optional<StoredProfile> stored = store_.find(name);
  if (!stored) return not_found(request);
  const Result<profile::Profile> profile = formats::read_profile_file(store_.path_of(*stored));
  if (!profile.ok()) return failure(request, profile.error());
  return page(request, formats::flamegraph::write(profile.value()));
}

Response Site::file(const Request& request, std::string_view name) const {
  const std::optional<StoredProfile> stored = store_.find(name);
  if (!stored) return not_found(request);
  if (stored->bytes > kLargestSent)
    return failure(request, {ErrorKind::kBadInput, stored->name + " is too large to be sent: copy it by other means"});
  const Result<FileBytes> bytes = FileBytes::read(store_.path_of(*stored));
  if (!bytes.ok()) return failure(request, bytes.error());
  Response response =
      make_response(request, http::status::ok, "application/octet-stream", std::string(bytes.value().view()));
  response.set(http::field::content_disposition, "attachment; filename*=UTF-8''" + percent_encoded(name));
  return response;
}

Response Site::to_viewer(const Request& request, std::string_view name) const {
  if (!store_.find(name)) return not_found(request);
  const std::string address =
      "http://" + std::string(host_of(request)) + "/" + settings_.entrance.secret + "/firefox/" + percent_encoded(name);
  Response response = make_response(request, http::status::found, "text/plain", "");
  response.set(http::field::location, viewer_address(settings_.viewer, address));
  response.set("Referrer-Policy", "no-referrer");
  return response;
}

Response Site::answer_firefox(const Request& request, std::string_view rest) {
  const std::size_t slash = rest.find('/');
  const std::optional<std::string> name = percent_decoded(rest.substr(0, slash));
  const std::optional<StoredProfile> stored = name ? store_.find(*name) : std::nullopt;
  if (!stored || slash == std::string_view::npos) return not_found(request);
  const Status shown = request.method() == http::verb::options ? Status(Ok{}) : show(*stored);
  Response response =
      shown.ok() ? answer_below_secret(request, rest.substr(slash), shown_) : failure(request, shown.error());
  response.set(http::field::access_control_allow_origin, "*");
  return response;
}

Status Site::show(const StoredProfile& stored) {
  if (stored == shown_file_) return Ok{};
  Result<profile::Profile> profile = formats::read_profile_file(store_.path_of(stored));
  if (!profile.ok()) return profile.error();
  Result<Exhibit> exhibit = exhibit_of(profile.take());
  if (!exhibit.ok()) return exhibit.error();
  shown_ = exhibit.take();
  shown_file_ = stored;
  return Ok{};
}

Response Site::answer_post(const Request& request, std::string_view path) {
  const std::string_view plain = without_slash(path);
  if (plain == "/api/runtime/new") {
    const Result<json::value> asked = formats::parse_json(request.body(), {});
    if (!asked.ok()) return json_response(request, http::status::bad_request, json::array{asked.error().message});
    const std::string_view argv = formats::text_member(&asked.value(), "argv");
    const Result<std::string> entry = store_.begin(argv.substr(0, kLongestArgv));
    if (!entry.ok())
      return json_response(request, http::status::service_unavailable, json::array{entry.error().message});
    return json_response(request, http::status::ok, {{"status", "ok"}, {"runtime_id", entry.value()}});
  }
  const auto rest = after(plain, "/api/runtime/");
  if (!rest || !rest->ends_with("/freeze")) return not_found(request);
  store_.freeze(rest->substr(0, rest->find('/')));
  return json_response(request, http::status::ok, {{"status", "ok"}});
}

std::unique_ptr<Upload> Site::begin_upload(const RequestHead& head) {
  const std::optional<std::string_view> path = settings_.entrance.path_below(target_of(head), host_of(head));
  const std::optional<Sent> sent = path ? sent_to(without_slash(*path)) : std::nullopt;
  if (head.method() != http::verb::post || !sent || !store_.is_open(sent->entry)) return nullptr;
  Result<Arriving> room = store_.receive();
  if (!room.ok()) {
    const std::string why = room.error().message;
    return std::make_unique<Upload>(Upload{{}, [why](const RequestHead& asked) {
                                             return json_response(asked, http::status::insufficient_storage,
                                                                  json::array{why});
                                           }});
  }
  auto [file, where] = room.take();
  auto part = std::make_shared<UnkeptFile>(where);
  const auto keep = [this, sent = *sent, part, where = where](const RequestHead& asked) {
    const Status kept = store_.keep(sent.entry, sent.kind, where);
    if (!kept.ok()) return json_response(asked, http::status::bad_request, json::array{kept.error().message});
    part->keep();
    json::object said{{"status", "ok"}};
    if (sent.kind == ProfileStore::Kind::kJitlog) said["jid"] = sent.entry;
    return json_response(asked, http::status::ok, said);
  };
  return std::make_unique<Upload>(Upload{std::move(file), keep});
}

}  // namespace plimsoll::server
