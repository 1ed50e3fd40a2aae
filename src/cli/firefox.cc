// cli/firefox.cc: a profile -> the page of the Firefox Profiler, or an archive that it opens elsewhere.
#include "base/write_file.h"
#include "cli/commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "cli/exit_code.h"
#include "cli/firefox_page.h"
#include "cli/native_frames.h"
#include "cli/output_path.h"
#include "cli/profile_input.h"
#include "cli/units.h"
#include "formats/firefox/bundle.h"

namespace plimsoll::cli {
namespace {

class Firefox final : public Command {
 public:
  [[nodiscard]] std::string_view name() const override { return "firefox"; }
  [[nodiscard]] std::string_view summary() const override { return "Open a profile in the Firefox Profiler"; }
  [[nodiscard]] std::string examples() const override {
    return "  plimsoll firefox app.plim                  serves it to the page, opens the browser; ends on Ctrl-C\n"
           "  plimsoll firefox --no-browser app.plim     prints the address only\n"
           "  plimsoll firefox app.plim --zip app.zip    for another machine: an archive that the page opens\n"
           "\n"
           "The page comes from profiler.firefox.com and runs in the browser; the profile does not leave this "
           "machine.\n"
           "From another machine: ssh -L 4711:127.0.0.1:4711 HOST plimsoll firefox --port 4711 app.plim";
  }

  void add_arguments(CLI::App& app) override {
    input_.add_arguments(app);
    app.add_option("--port", page_.port, "On the loopback; by default any that is free")->type_name("PORT");
    app.add_flag_callback(
        "--no-browser", [this] { page_.browser = FirefoxPage::Browser::kNone; }, "Only print the address");
    app.add_option("--zip", zip_, "Write a bundle for another machine instead: profile, sources, what to do")
        ->type_name("OUT.zip");
    input_.add_tasks_flag(app);
    app.add_option("--viewer", page_.viewer, "The page that shows it (default: https://profiler.firefox.com)")
        ->type_name("URL");
  }

  Result<int> run(Console& console) override {
    if (zip_ == "-") return Error{ErrorKind::kUsage, "--zip: the bundle is a file, so it needs a name"};
    if (!zip_.empty()) PLIMSOLL_TRY(check_not_input(zip_, input_.path()));
    Result<Input> input = input_.read(console);
    if (!input.ok()) return input.error();
    profile::Profile profile = std::move(input.value().profile);
    if (profile.samples.size() == 0 && !profile.has_allocations()) {
      console.notice(fmt::format("{} holds no samples; there is nothing to open", input_.path()));
      return kNoSamples;
    }
    choose_native_frames(profile, NativeFrames::kAll, console);
    if (!zip_.empty()) return write_zip(profile, console);
    PLIMSOLL_TRY(show_in_firefox(std::move(profile), input_.path(), page_, console));
    return kFine;
  }

 private:
  Result<int> write_zip(profile::Profile& profile, Console& console) const {
    const Result<std::string> bytes = formats::firefox::write_bundle(profile, input_.path());
    if (!bytes.ok()) return bytes.error();
    PLIMSOLL_TRY(write_file(zip_, bytes.value()));
    console.notice(fmt::format("wrote {} ({}); its README.txt says how to open it", zip_,
                               format_bytes(static_cast<std::int64_t>(bytes.value().size()))));
    return kFine;
  }

  ProfileInput input_;
  std::string zip_;
  FirefoxPage page_;
};

}  // namespace

std::unique_ptr<Command> make_firefox() { return std::make_unique<Firefox>(); }

}  // namespace plimsoll::cli
