// server/http_server.cc: connections, one coroutine each, on one thread (Boost.Beast and Boost.Asio).
#include "server/http_server.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/file_posix.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/basic_file_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/write.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <utility>

namespace plimsoll::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using FileBody = http::basic_file_body<beast::file_posix>;

constexpr std::uint32_t kLargestHeader = 16U << 10U;
constexpr std::uint64_t kLargestQuestion = 1U << 20U;
constexpr std::chrono::seconds kPatience{30};  // with a client that says nothing or does not listen
constexpr std::size_t kMostConnections = 64;   // at a time; each may ask with a megabyte

// Instead of exceptions: std::tuple<error_code, result>.
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

// One of the connections that there are, as long as this lives.
class Connection {
 public:
  explicit Connection(std::size_t& count) : count_(&count) { ++count; }
  Connection(Connection&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  Connection& operator=(Connection&&) = delete;
  ~Connection() {
    if (count_ != nullptr) --*count_;
  }

 private:
  std::size_t* count_;
};

// Waits for as long as the client takes more within the time, however slowly that is.
asio::awaitable<bool> send(beast::tcp_stream& stream, const Response& response) {
  http::response_serializer<Response::body_type> serializer(response);
  while (!serializer.is_done()) {
    stream.expires_after(kPatience);
    const auto [error, written] = co_await http::async_write_some(stream, serializer, kAwait);
    if (error) co_return false;
  }
  co_return true;
}

// An answer to what has not come whole: the rest of it is not read.
Response before_its_end(Response response) {
  response.keep_alive(false);
  return response;
}

Response too_large(const RequestHead& head) {
  return before_its_end(make_response(head, http::status::payload_too_large, "text/plain", "this is too large\n"));
}

// Whether it is the file that did not take something, and not the client who has gone.
bool is_of_file(const boost::system::error_code& error) {
  return error == boost::system::errc::no_space_on_device || error == boost::system::errc::file_too_large ||
         error == boost::system::errc::io_error || error.value() == EDQUOT;
}

// The rest of a request goes into a file. What went wrong, if anything did.
asio::awaitable<boost::system::error_code> receive(beast::tcp_stream& stream, beast::flat_buffer& buffer,
                                                   http::request_parser<FileBody>& parser) {
  while (!parser.is_done()) {
    stream.expires_after(kPatience);
    const auto [error, bytes] = co_await http::async_read_some(stream, buffer, parser, kAwait);
    if (error) co_return error;
  }
  co_return boost::system::error_code{};
}

asio::awaitable<std::optional<Response>> answer_upload(beast::tcp_stream& stream, beast::flat_buffer& buffer,
                                                       http::request_parser<http::empty_body>& head, Upload& upload) {
  const RequestHead asked = head.get();
  if (!upload.file.is_open()) co_return before_its_end(upload.finish(asked));
  if (head.content_length().value_or(0) > HttpServer::kLargestUpload) co_return too_large(asked);
  http::request_parser<FileBody> parser(std::move(head));
  parser.body_limit(HttpServer::kLargestUpload);
  beast::file_posix file;
  file.native_handle(upload.file.release());
  boost::system::error_code error;
  parser.get().body().reset(std::move(file), error);
  if (!error) error = co_await receive(stream, buffer, parser);
  if (is_of_file(error))
    co_return before_its_end(make_response(asked, http::status::insufficient_storage, "text/plain",
                                           "cannot be kept: " + error.message() + "\n"));
  if (error) co_return std::nullopt;
  parser.get().body().close();  // and all of it is in the file
  co_return upload.finish(asked);
}

asio::awaitable<std::optional<Response>> answer_next(beast::tcp_stream& stream, beast::flat_buffer& buffer,
                                                     Answerer& answerer) {
  http::request_parser<http::empty_body> head;
  head.header_limit(kLargestHeader);
  head.body_limit(boost::none);  // it is looked at below
  stream.expires_after(kPatience);
  const auto [head_error, head_bytes] = co_await http::async_read_header(stream, buffer, head, kAwait);
  if (head_error) co_return std::nullopt;  // the client has gone, or is no client of this protocol
  if (const std::unique_ptr<Upload> upload = answerer.begin_upload(head.get()))
    co_return co_await answer_upload(stream, buffer, head, *upload);
  if (head.content_length().value_or(0) > kLargestQuestion) co_return too_large(head.get());
  http::request_parser<http::string_body> parser(std::move(head));
  parser.body_limit(kLargestQuestion);
  const auto [error, bytes] = co_await http::async_read(stream, buffer, parser, kAwait);
  if (error) co_return std::nullopt;
  co_return answerer.answer(parser.get());
}

// What a client still sends is read and forgotten for a while: a connection that is closed before takes the answer with
// it, before the client has read that.
asio::awaitable<void> close_gently(beast::tcp_stream& stream, beast::flat_buffer& buffer) {
  constexpr std::chrono::seconds kLinger{2};
  constexpr std::size_t kPiece = 64U << 10U;
  boost::system::error_code error;
  stream.socket().shutdown(tcp::socket::shutdown_send, error);
  stream.expires_after(kLinger);
  while (!error) {
    buffer.clear();
    const auto [read_error, bytes] = co_await stream.async_read_some(buffer.prepare(kPiece), kAwait);
    error = read_error;
  }
}

asio::awaitable<void> converse(tcp::socket socket, Answerer& answerer, Connection /*counted*/) {
  beast::tcp_stream stream(std::move(socket));
  beast::flat_buffer buffer(kLargestHeader + kLargestQuestion);
  for (bool goes_on = true; goes_on;) {
    const std::optional<Response> response = co_await answer_next(stream, buffer, answerer);
    if (!response) co_return;
    goes_on = co_await send(stream, *response) && response->keep_alive();
  }
  co_await close_gently(stream, buffer);
}

asio::awaitable<void> accept_all(tcp::acceptor& acceptor, Answerer& answerer, std::size_t& connections) {
  constexpr std::chrono::milliseconds kPause{100};  // where there is no descriptor left, until there is one
  asio::steady_timer pause(acceptor.get_executor());
  while (acceptor.is_open()) {
    auto [error, socket] = co_await acceptor.async_accept(kAwait);
    if (error) {
      pause.expires_after(kPause);
      co_await pause.async_wait(kAwait);
    } else if (connections < kMostConnections) {
      asio::co_spawn(acceptor.get_executor(), converse(std::move(socket), answerer, Connection(connections)),
                     asio::detached);
    }
  }
}

// With a port behind it.
std::string text_of(const asio::ip::address& address, std::uint16_t port) {
  const std::string host = address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
  return host + ":" + std::to_string(port);
}

Error cannot_listen(const boost::system::error_code& error, const std::string& where) {
  const bool refused = error == boost::system::errc::permission_denied;
  return Error{refused ? ErrorKind::kPermission : ErrorKind::kSystem,
               "cannot listen on " + where + ": " + error.message()};
}

}  // namespace

struct HttpServer::State {
  std::size_t connections = 0;  // outlives them, and so the context
  asio::io_context context{1};
  asio::signal_set ends{context, SIGINT, SIGTERM, SIGHUP};
  tcp::acceptor acceptor{context};
  asio::ip::address address;
  std::uint16_t port = 0;
  std::string authority;
};

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpServer::HttpServer(HttpServer&&) noexcept = default;
HttpServer& HttpServer::operator=(HttpServer&&) noexcept = default;
HttpServer::~HttpServer() = default;

Result<HttpServer> HttpServer::listen(const std::string& host, std::uint16_t port) {
  auto state = std::make_unique<State>();
  boost::system::error_code error;
  state->address = asio::ip::make_address(host, error);
  if (error)
    return Error{ErrorKind::kUsage, "\"" + host + "\" is no address of this machine: it is four numbers, such as " +
                                        "127.0.0.1 (only this machine) or 0.0.0.0 (all that reach it)"};
  const tcp::endpoint wanted(state->address, port);
  tcp::acceptor& acceptor = state->acceptor;
  acceptor.open(wanted.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(wanted, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (!error) state->port = acceptor.local_endpoint(error).port();
  if (error) return cannot_listen(error, text_of(state->address, port));
  state->authority = text_of(state->address, state->port);
  return HttpServer(std::move(state));
}

const std::string& HttpServer::authority() const { return state_->authority; }

std::vector<std::string> HttpServer::authorities() const {
  if (!state_->address.is_loopback()) return {};
  return {state_->authority, "localhost:" + std::to_string(state_->port)};
}

void HttpServer::serve(Answerer& answerer) {
  state_->ends.async_wait([&](const boost::system::error_code&, int) { state_->context.stop(); });
  asio::co_spawn(state_->context, accept_all(state_->acceptor, answerer, state_->connections), asio::detached);
  state_->context.run();
}

}  // namespace plimsoll::server
