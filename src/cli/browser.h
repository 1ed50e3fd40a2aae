// cli/browser.h: the person's web browser.
#pragma once

#include <string>

#include "base/result.h"

namespace plimsoll::cli {

// Starts the program of the variable BROWSER, else the desktop's own choice (xdg-open), with the address; does not wait
// for it. No shell is involved. Fails (kSystem) where there is no screen to show a browser on, or no such program.
Status open_in_browser(const std::string& address);

}  // namespace plimsoll::cli
