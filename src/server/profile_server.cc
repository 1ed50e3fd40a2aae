// server/profile_server.cc: connections, one coroutine each, on one thread (Boost.Beast and Boost.Asio).
#include "server/profile_server.h"

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <csignal>
#include <utility>

#include "os/os.h"
#include "server/answers.h"

namespace plimsoll::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

constexpr std::size_t kLargestHeader = 16U << 10U;
constexpr std::size_t kLargestQuestion = 1U << 20U;
constexpr std::chrono::seconds kPatience{30};  // with a client that says nothing or does not listen
constexpr std::size_t kSecretBytes = 24;
constexpr std::size_t kMostConnections = 64;  // at a time; each may ask with a megabyte

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

asio::awaitable<void> converse(tcp::socket socket, Exhibit& exhibit, Connection /*counted*/) {
  beast::tcp_stream stream(std::move(socket));
  beast::flat_buffer buffer(kLargestHeader + kLargestQuestion);
  for (bool goes_on = true; goes_on;) {
    http::request_parser<http::string_body> parser;
    parser.header_limit(kLargestHeader);
    parser.body_limit(kLargestQuestion);
    stream.expires_after(kPatience);
    const auto [read_error, read_bytes] = co_await http::async_read(stream, buffer, parser, kAwait);
    if (read_error) co_return;  // the client has gone, or is no client of this protocol
    const Response response = answer(parser.get(), exhibit);
    if (response.result() == http::status::found) exhibit.ticket.clear();
    goes_on = co_await send(stream, response) && response.keep_alive();
  }
  boost::system::error_code ignored;
  stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
}

asio::awaitable<void> accept_all(tcp::acceptor& acceptor, Exhibit& exhibit, std::size_t& connections) {
  constexpr std::chrono::milliseconds kPause{100};  // where there is no descriptor left, until there is one
  asio::steady_timer pause(acceptor.get_executor());
  while (acceptor.is_open()) {
    auto [error, socket] = co_await acceptor.async_accept(kAwait);
    if (error) {
      pause.expires_after(kPause);
      co_await pause.async_wait(kAwait);
    } else if (connections < kMostConnections) {
      asio::co_spawn(acceptor.get_executor(), converse(std::move(socket), exhibit, Connection(connections)),
                     asio::detached);
    }
  }
}

Error cannot_listen(const boost::system::error_code& error, std::uint16_t port) {
  const bool refused = error == boost::system::errc::permission_denied;
  return Error{refused ? ErrorKind::kPermission : ErrorKind::kSystem,
               "cannot listen on 127.0.0.1:" + std::to_string(port) + ": " + error.message()};
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    const bool is_plain = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
                          (byte >= 'A' && byte <= 'Z') || character == '-' || character == '.' || character == '_' ||
                          character == '~';
    if (is_plain)
      out += character;
    else
      (out += '%').append({kDigits[byte >> 4U], kDigits[byte & 15U]});
  }
  return out;
}

}  // namespace

struct ProfileServer::State {
  std::size_t connections = 0;  // outlives them, and so the context
  asio::io_context context{1};
  asio::signal_set ends{context, SIGINT, SIGTERM, SIGHUP};
  tcp::acceptor acceptor{context};
  Exhibit exhibit;
  std::string origin, address;
};

ProfileServer::ProfileServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
ProfileServer::ProfileServer(ProfileServer&&) noexcept = default;
ProfileServer& ProfileServer::operator=(ProfileServer&&) noexcept = default;
ProfileServer::~ProfileServer() = default;

Result<ProfileServer> ProfileServer::listen(std::string profile_gz, std::vector<profile::Source> sources,
                                            std::string jitlog, std::uint16_t port) {
  const Result<std::string> secret = os::random_hex(kSecretBytes);
  if (!secret.ok()) return secret.error();
  auto state = std::make_unique<State>();
  boost::system::error_code error;
  const tcp::endpoint wanted(asio::ip::address_v4::loopback(), port);
  tcp::acceptor& acceptor = state->acceptor;
  acceptor.open(wanted.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(wanted, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (error) return cannot_listen(error, port);
  const std::string bound = std::to_string(acceptor.local_endpoint(error).port());
  if (error) return cannot_listen(error, port);
  state->exhibit = {std::move(profile_gz),
                    std::move(sources),
                    secret.value(),
                    {"127.0.0.1:" + bound, "localhost:" + bound},
                    jitlog.empty() ? nullptr : JitCode::read(std::move(jitlog))};
  state->origin = "http://127.0.0.1:" + bound + "/";
  state->address = state->origin + secret.value();
  return ProfileServer(std::move(state));
}

const std::string& ProfileServer::address() const { return state_->address; }

Result<std::string> ProfileServer::ticket_to(std::string page) {
  const Result<std::string> ticket = os::random_hex(kSecretBytes);
  if (!ticket.ok()) return ticket.error();
  state_->exhibit.ticket = ticket.value();
  state_->exhibit.page = std::move(page);
  return state_->origin + ticket.value();
}

void ProfileServer::serve() {
  state_->ends.async_wait([&](const boost::system::error_code&, int) { state_->context.stop(); });
  asio::co_spawn(state_->context, accept_all(state_->acceptor, state_->exhibit, state_->connections), asio::detached);
  state_->context.run();
}

std::string viewer_address(const std::string& viewer, const std::string& server_address) {
  return viewer + "/from-url/" + percent_encoded(server_address + "/profile.json") +
         "/?symbolServer=" + percent_encoded(server_address);
}

}  // namespace plimsoll::server
