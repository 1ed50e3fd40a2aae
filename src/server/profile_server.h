// server/profile_server.h: serves one profile on the loopback, for the page of the Firefox Profiler.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::server {

// A server that listens from its making on, and answers in serve. One thread. As long as there is one, SIGINT, SIGTERM
// and SIGHUP do not end the process, but serve, also if they come before it.
class ProfileServer {
 public:
  // Listens on 127.0.0.1:`port`; 0 = a port that is free. Errors: those of exhibit_of; kSystem, kPermission (ports
  // below 1024), for example because the port is taken.
  static Result<ProfileServer> listen(profile::Profile profile, std::uint16_t port);

  ProfileServer(ProfileServer&&) noexcept;
  ProfileServer& operator=(ProfileServer&&) noexcept;
  ~ProfileServer();

  // "http://127.0.0.1:4711/SECRET": the address of everything that is served.
  [[nodiscard]] const std::string& address() const;
  // An address of ours that leads to `page`, once: for the command line of a browser, which all users of the machine
  // can read for as long as it runs. Error kSystem if there is no randomness.
  Result<std::string> ticket_to(std::string page);
  // Answers until one of the signals comes.
  void serve();

 private:
  struct State;
  explicit ProfileServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The address that opens a served profile in the page of the viewer ("https://profiler.firefox.com").
std::string viewer_address(const std::string& viewer, const std::string& server_address);

}  // namespace plimsoll::server
