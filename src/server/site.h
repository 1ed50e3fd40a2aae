// server/site.h: a store of profiles, for browsers and for clients of vmprof's.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/answers.h"
#include "server/entrance.h"
#include "server/http_server.h"
#include "server/profile_store.h"

namespace plimsoll::server {

// Who may see it, and what else shows profiles.
struct SiteSettings {
  Entrance entrance;
  std::string viewer;  // "https://profiler.firefox.com"
};

// The answers:
//   GET  /TICKET                  once, a redirection (302) to
//   GET  /SECRET/                 a page that lists the profiles
//   GET  /SECRET/graph/NAME       one of them as a page with a flame graph
//   GET  /SECRET/file/NAME        its file
//   GET  /SECRET/open/NAME        a redirection (302) to the Firefox Profiler's page, which asks for
//        /SECRET/firefox/NAME/... what answers.h has
// and for vmprof's clients, of which a profile and a jitlog go into files:
//   POST /SECRET/api/runtime/new                  {"argv", "VM"} -> {"status", "runtime_id"}
//   POST /SECRET/api/runtime/upload/cpu/ID/add    a profile of any format; 400 if it is none
//   POST /SECRET/api/runtime/upload/jit/ID/add    a jitlog
//   POST /SECRET/api/runtime/ID/freeze/           nothing more comes
// and 404 to everything else. What a client says is in JSON, as vmprof's server says it.
class Site : public Answerer {
 public:
  Site(ProfileStore& store, SiteSettings settings) : store_(store), settings_(std::move(settings)) {}

  Response answer(const Request& request) override;
  std::unique_ptr<Upload> begin_upload(const RequestHead& head) override;

 private:
  Response answer_get(const Request& request, std::string_view path);
  Response answer_post(const Request& request, std::string_view path);
  Response answer_firefox(const Request& request, std::string_view rest);
  [[nodiscard]] Response file(const Request& request, std::string_view name) const;
  [[nodiscard]] Response graph(const Request& request, std::string_view name) const;
  [[nodiscard]] Response to_viewer(const Request& request, std::string_view name) const;
  // Makes shown_ that of a profile; why not, if it cannot be.
  Status show(const StoredProfile& profile);

  ProfileStore& store_;
  SiteSettings settings_;
  // The one that the Firefox Profiler's page asks for piece by piece, and of which file that was made.
  Exhibit shown_;
  StoredProfile shown_file_;
};

}  // namespace plimsoll::server
