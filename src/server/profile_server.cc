// server/profile_server.cc: one profile, and the way to it.
#include "server/profile_server.h"

#include <utility>

#include "os/os.h"
#include "server/answers.h"
#include "server/http_server.h"
#include "server/url.h"

namespace plimsoll::server {

struct ProfileServer::State : Answerer {
  explicit State(HttpServer made) : server(std::move(made)) {}
  Response answer(const Request& request) override {
    Response response = server::answer(request, exhibit);
    if (response.result() == boost::beast::http::status::found) exhibit.entrance.ticket.clear();
    return response;
  }

  HttpServer server;
  Exhibit exhibit;
  std::string origin, address;
};

ProfileServer::ProfileServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
ProfileServer::ProfileServer(ProfileServer&&) noexcept = default;
ProfileServer& ProfileServer::operator=(ProfileServer&&) noexcept = default;
ProfileServer::~ProfileServer() = default;

Result<ProfileServer> ProfileServer::listen(profile::Profile profile, std::uint16_t port) {
  const Result<std::string> secret = os::random_hex(kSecretBytes);
  if (!secret.ok()) return secret.error();
  Result<Exhibit> exhibit = exhibit_of(std::move(profile));
  if (!exhibit.ok()) return exhibit.error();
  Result<HttpServer> listening = HttpServer::listen("127.0.0.1", port);
  if (!listening.ok()) return listening.error();
  auto state = std::make_unique<State>(listening.take());
  state->exhibit = exhibit.take();
  state->exhibit.entrance = {secret.value(), state->server.authorities()};
  state->origin = "http://" + state->server.authority() + "/";
  state->address = state->origin + secret.value();
  return ProfileServer(std::move(state));
}

const std::string& ProfileServer::address() const { return state_->address; }

Result<std::string> ProfileServer::ticket_to(std::string page) {
  const Result<std::string> ticket = os::random_hex(kSecretBytes);
  if (!ticket.ok()) return ticket.error();
  state_->exhibit.entrance.ticket = ticket.value();
  state_->exhibit.page = std::move(page);
  return state_->origin + ticket.value();
}

void ProfileServer::serve() { state_->server.serve(*state_); }

std::string viewer_address(const std::string& viewer, const std::string& server_address) {
  return viewer + "/from-url/" + percent_encoded(server_address + "/profile.json") +
         "/?symbolServer=" + percent_encoded(server_address);
}

}  // namespace plimsoll::server
