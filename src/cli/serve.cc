// cli/serve.cc: a directory of profiles, for browsers, and for what vmprof's clients send.
#include <fmt/format.h>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <filesystem>
#include <utility>

#include "cli/browser.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "os/os.h"
#include "server/site.h"

namespace plimsoll::cli {
namespace {

constexpr std::uint16_t kUsualPort = 8000;  // as vmprof's server

class Serve final : public Command {
 public:
  [[nodiscard]] std::string_view name() const override { return "serve"; }
  [[nodiscard]] std::string_view summary() const override { return "Serve a directory of profiles to browsers"; }
  [[nodiscard]] std::string examples() const override {
    return "  plimsoll serve                             the profiles of this directory, to this machine; Ctrl-C ends\n"
           "  plimsoll serve profiles --no-browser       prints the address only\n"
           "  plimsoll upload app.plim --web-url ADDRESS   adds one; so does python -m vmprof --web --web-url ADDRESS\n"
           "  plimsoll serve --host 0.0.0.0 profiles     to all who reach this machine and know the address\n"
           "\n"
           "The address has a secret in it, which is kept in DIR/.plimsoll-serve: who knows it sees all profiles, and "
           "may\n"
           "add some. Nothing is encrypted: across a network, put a server with TLS in front, or use ssh -L "
           "8000:127.0.0.1:8000.";
  }

  void add_arguments(CLI::App& app) override {
    app.add_option("DIR", directory_, "The directory; by default this one")->type_name("");
    app.add_option("--host", host_, "The address to listen on (default: 127.0.0.1, this machine only)")
        ->type_name("ADDRESS");
    app.add_option("--port", port_, "The port (default: 8000; 0: any that is free)")->type_name("PORT");
    app.add_flag("--no-browser", has_no_browser_, "Only print the address");
    app.add_option("--viewer", viewer_, "The Firefox Profiler's page (default: https://profiler.firefox.com)")
        ->type_name("URL");
  }

  Result<int> run(Console& console) override {
    std::error_code error;
    if (!std::filesystem::is_directory(directory_, error))
      return Error{ErrorKind::kUsage, fmt::format("{} is no directory", directory_)};
    server::ProfileStore store(directory_);
    const Result<std::string> secret = store.secret();
    if (!secret.ok()) return secret.error();
    Result<server::HttpServer> listening = server::HttpServer::listen(host_, port_);
    if (!listening.ok()) return taken(listening.error());
    server::HttpServer server = listening.take();
    const std::string origin = "http://" + reached_by(server.authority()) + "/";
    const std::string address = origin + secret.value() + "/";
    PLIMSOLL_TRY(console.print(address + "\n"));
    console.notice(fmt::format("serving the profiles in {}; Ctrl-C ends", directory_));
    server::SiteSettings settings{{secret.value(), server.authorities()}, viewer_};
    if (!has_no_browser_) {
      const Result<std::string> ticket = os::random_hex(server::kSecretBytes);
      if (!ticket.ok()) return ticket.error();
      settings.entrance.ticket = ticket.value();
      if (const Status opened = open_in_browser(origin + ticket.value()); !opened.ok())
        console.notice(opened.error().message + "; open the address above by hand");
    }
    server::Site site(store, std::move(settings));
    server.serve(site);
    return kFine;
  }

 private:
  // What listens on all addresses is called by this machine's name.
  static std::string reached_by(const std::string& authority) {
    std::array<char, 256> name{};
    const bool is_all = authority.starts_with("0.0.0.0:") || authority.starts_with("[::]:");
    if (!is_all || ::gethostname(name.data(), name.size() - 1) != 0) return authority;
    return name.data() + authority.substr(authority.rfind(':'));
  }

  [[nodiscard]] Error taken(Error error) const {
    if (error.kind == ErrorKind::kSystem && port_ == kUsualPort) error.message += "; another one: --port";
    return error;
  }

  std::string directory_ = ".", host_ = "127.0.0.1", viewer_ = "https://profiler.firefox.com";
  std::uint16_t port_ = kUsualPort;
  bool has_no_browser_ = false;
};

}  // namespace

std::unique_ptr<Command> make_serve() { return std::make_unique<Serve>(); }

}  // namespace plimsoll::cli
