// cli/firefox_page.h: a profile in the page of the Firefox Profiler, for the commands that open it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/console.h"

namespace plimsoll::cli {

// Which page, and how it gets at the profile.
struct FirefoxPage {
  // Who opens the page.
  enum class Browser : std::uint8_t { kOpen, kNone };

  std::string viewer = "https://profiler.firefox.com";
  std::uint16_t port = 0;  // on the loopback; 0 = any that is free
  Browser browser = Browser::kOpen;
};

// Serves the profile on the loopback, prints the address of the page that shows it and opens that, until a signal ends
// it. `name` is what the profile is called.
Status show_in_firefox(profile::Profile profile, std::string_view name, const FirefoxPage& page, Console& console);

}  // namespace plimsoll::cli
