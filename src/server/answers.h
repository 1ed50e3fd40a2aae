// server/answers.h: what the Firefox Profiler's page asks of a profile's server, and the answers. Pure functions.
//
// The page is loaded from elsewhere (profiler.firefox.com) and reads the profile across origins.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.h"
#include "server/entrance.h"
#include "server/http_server.h"
#include "server/jit_code.h"

namespace plimsoll::server {

// What a server has to show, and how it is reached.
struct Exhibit {
  std::string profile_gz;                 // a processed profile of the Firefox Profiler's, gzipped
  std::vector<profile::Source> sources;   // texts for its source view
  std::shared_ptr<const JitCode> code{};  // for its assembly view; null if there is none
  Entrance entrance{};
  std::string page{};  // where the entrance's ticket leads
};

// What there is to show of a profile. Errors as of formats::write_as.
Result<Exhibit> exhibit_of(profile::Profile profile);

// The answer to one request:
//   GET  /SECRET/profile.json      the profile
//   POST /SECRET/source/v1         {"file": F} -> {"file": F, "source": text}, of files that the profile holds
//   POST /SECRET/symbolicate/v5    every frame without a name: a profile's frames have their names in it
//   POST /SECRET/asm/v1            the machine code of a trace of the JIT, as instructions (jit_code.h)
//   OPTIONS                        which headers may be sent, as browsers ask before they do
//   GET  /TICKET                   a redirection (302) to the page
// and 404 to everything else. Errors of the APIs are {"error": text} with status 200, as the page expects.
Response answer(const Request& request, const Exhibit& exhibit);

// The same of what stands in `path` behind the secret, which the request has known. Any page may read the answer.
Response answer_below_secret(const Request& request, std::string_view path, const Exhibit& exhibit);

}  // namespace plimsoll::server
