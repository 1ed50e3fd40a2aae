// cli/firefox_page.cc: a profile -> the Firefox Profiler's format -> a server on the loopback -> a browser.
#include "cli/firefox_page.h"

#include <fmt/format.h>

#include <utility>

#include "cli/browser.h"
#include "server/profile_server.h"

namespace plimsoll::cli {

Status show_in_firefox(profile::Profile profile, std::string_view name, const FirefoxPage& page, Console& console) {
  auto server = server::ProfileServer::listen(std::move(profile), page.port);
  if (!server.ok()) return server.error();
  const std::string address = server::viewer_address(page.viewer, server.value().address());
  PLIMSOLL_TRY(console.print(address + "\n"));
  if (page.browser == FirefoxPage::Browser::kOpen) {
    const Result<std::string> ticket = server.value().ticket_to(address);
    if (!ticket.ok()) return ticket.error();
    if (const Status opened = open_in_browser(ticket.value()); !opened.ok())
      console.notice(opened.error().message + "; open the address above by hand");
  }
  console.notice(fmt::format("serving {} on the loopback; Ctrl-C ends", name));
  server.value().serve();
  return Ok{};
}

}  // namespace plimsoll::cli
