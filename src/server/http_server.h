// server/http_server.h: connections, on one thread; what is answered is up to others.
#pragma once

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace plimsoll::server {

using Request = boost::beast::http::request<boost::beast::http::string_body>;
using Response = boost::beast::http::response<boost::beast::http::string_body>;
// A request of which the body has not come yet.
using RequestHead = boost::beast::http::request<boost::beast::http::empty_body>;

// Random bytes in an address that nobody can guess.
inline constexpr std::size_t kSecretBytes = 24;

// A body on its way into a file. What has not come whole is dropped with this.
struct Upload {
  UniqueFd file;                                       // not open: nothing is taken, and the answer says why
  std::function<Response(const RequestHead&)> finish;  // the answer, once all is there
};

// What a server answers. Called by its one thread.
class Answerer {
 public:
  Answerer() = default;
  Answerer(const Answerer&) = delete;
  Answerer& operator=(const Answerer&) = delete;
  virtual ~Answerer() = default;

  virtual Response answer(const Request& request) = 0;
  // Where the body of this request goes; null: into memory, and to answer() then.
  virtual std::unique_ptr<Upload> begin_upload(const RequestHead& head) {
    (void)head;
    return nullptr;
  }
};

// An answer of these bytes; to HEAD without them.
template <typename Body>
Response make_response(const boost::beast::http::request<Body>& request, boost::beast::http::status status,
                       std::string_view type, std::string body) {
  namespace http = boost::beast::http;
  Response response(status, request.version());
  response.keep_alive(request.keep_alive());
  response.set(http::field::cache_control, "no-store");
  if (!type.empty()) response.set(http::field::content_type, type);
  response.body() = std::move(body);
  response.prepare_payload();
  // The length stays that of the answer to GET. A body here would pass for the beginning of the next answer.
  if (request.method() == http::verb::head) response.body().clear();
  return response;
}

// A server that listens from its making on, and answers in serve. One thread. As long as there is one, SIGINT, SIGTERM
// and SIGHUP do not end the process, but serve, also if they come before it.
class HttpServer {
 public:
  static constexpr std::uint64_t kLargestUpload = std::uint64_t{4} << 30U;

  // Listens on an address of this machine, "127.0.0.1" or "::1" for example, and a port; 0 = one that is free. Errors:
  // kUsage if it is no address; kSystem, or kPermission (ports below 1024), for example because the port is taken.
  static Result<HttpServer> listen(const std::string& host, std::uint16_t port);

  HttpServer(HttpServer&&) noexcept;
  HttpServer& operator=(HttpServer&&) noexcept;
  ~HttpServer();

  // "127.0.0.1:4711"
  [[nodiscard]] const std::string& authority() const;
  // By what names who is on this machine may call it, as the header Host says them; none if it listens to others, too.
  [[nodiscard]] std::vector<std::string> authorities() const;
  // Answers until one of the signals comes.
  void serve(Answerer& answerer);

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace plimsoll::server
