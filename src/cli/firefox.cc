// cli/firefox.cc: a profile -> the Firefox Profiler's format -> a server on the loopback -> a browser.
#include "cli/commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "cli/browser.h"
#include "cli/exit_code.h"
#include "formats/registry.h"
#include "profile/tasks.h"
#include "server/profile_server.h"

namespace plimsoll::cli {
namespace {

class Firefox final : public Command {
 public:
  [[nodiscard]] std::string_view name() const override { return "firefox"; }
  [[nodiscard]] std::string_view summary() const override { return "Open a profile in the Firefox Profiler"; }
  [[nodiscard]] std::string examples() const override {
    return "  plimsoll firefox app.plim                  serves it to the page, opens the browser; ends on Ctrl-C\n"
           "  plimsoll firefox --no-browser app.plim     prints the address only\n"
           "\n"
           "The page comes from profiler.firefox.com and runs in the browser; the profile does not leave this "
           "machine.\n"
           "From another machine: ssh -L 4711:127.0.0.1:4711 HOST plimsoll firefox --port 4711 app.plim";
  }

  void add_arguments(CLI::App& app) override {
    app.add_option("FILE", file_, "The profile; - reads standard input")->required()->type_name("");
    app.add_option("--port", port_, "On the loopback; by default any that is free")->type_name("PORT");
    app.add_flag("--no-browser", no_browser_, "Only print the address");
    app.add_flag("--tasks", with_tasks_,
                 "asyncio's tasks in place of the event loop's frames (recorded with run --tasks)");
    app.add_option("--viewer", viewer_, "The page that shows it (default: https://profiler.firefox.com)")
        ->type_name("URL");
  }

  Result<int> run(Console& console) override {
    Result<Input> input = console.read_profile(file_);
    if (!input.ok()) return input.error();
    profile::Profile profile = std::move(input.value().profile);
    if (profile.samples.size() == 0) {
      console.notice(fmt::format("{} holds no samples; there is nothing to open", file_));
      return kNoSamples;
    }
    if (with_tasks_) profile::put_tasks_on_stacks(profile);
    const Result<formats::Writer> writer = formats::find_writer("firefox", "");
    if (!writer.ok()) return writer.error();
    Result<std::string> bytes = formats::write_as(writer.value(), profile, "profile.json.gz");
    if (!bytes.ok()) return bytes.error();
    auto server = server::ProfileServer::listen(bytes.take(), std::move(profile.sources), port_);
    if (!server.ok()) return server.error();
    const std::string address = server::viewer_address(viewer_, server.value().address());
    PLIMSOLL_TRY(console.print(address + "\n"));
    if (!no_browser_)
      if (const Status opened = open_in_browser(address); !opened.ok())
        console.notice(opened.error().message + "; open the address above by hand");
    console.notice(fmt::format("serving {} on the loopback; Ctrl-C ends", file_));
    server.value().serve();
    return kFine;
  }

 private:
  std::string file_, viewer_ = "https://profiler.firefox.com";
  std::uint16_t port_ = 0;
  bool no_browser_ = false, with_tasks_ = false;
};

}  // namespace

std::unique_ptr<Command> make_firefox() { return std::make_unique<Firefox>(); }

}  // namespace plimsoll::cli
