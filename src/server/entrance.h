// server/entrance.h: who is let in to a server.
#pragma once

#include <boost/beast/http/field.hpp>
#include <boost/beast/http/message.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::server {

// What a request must know. Nothing is told to who does not know the secret, nor to who came here by another name than
// ours (DNS rebinding): every page in a browser could try.
struct Entrance {
  std::string secret;                    // the first element of all paths
  std::vector<std::string> authorities;  // "127.0.0.1:4711": what the header Host may be; empty: anything
  // A path of one element that leads in, once, for the command line of a browser, which all users of the machine can
  // read; empty if there is none.
  std::string ticket{};

  // What stands behind the secret in a path without its query, if it is there, and `host` is ours.
  [[nodiscard]] std::optional<std::string_view> path_below(std::string_view target, std::string_view host) const;
  // Whether it is the ticket that is asked for; `host` likewise.
  [[nodiscard]] bool is_ticket(std::string_view target, std::string_view host) const;
};

// The header Host of a request, and what it asks for.
template <typename Body>
std::string_view host_of(const boost::beast::http::request<Body>& request) {
  const auto host = request[boost::beast::http::field::host];
  return {host.data(), host.size()};
}
template <typename Body>
std::string_view target_of(const boost::beast::http::request<Body>& request) {
  return {request.target().data(), request.target().size()};
}

}  // namespace plimsoll::server
