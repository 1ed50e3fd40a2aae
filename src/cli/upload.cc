// cli/upload.cc: hands a profile to plimsoll/upload.py, since Python has HTTP, TLS and the user's certificates.
#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/python_program.h"

namespace plimsoll::cli {
namespace {

class Upload final : public Command {
 public:
  [[nodiscard]] std::string_view name() const override { return "upload"; }
  [[nodiscard]] std::string_view summary() const override { return "Send a profile to a vmprof server"; }
  [[nodiscard]] std::string examples() const override {
    return "  plimsoll upload app.plim --web-url http://profiles.example:8000\n"
           "  plimsoll upload app.prof --web-url profiles.example --web-auth TOKEN   with app.prof.jit, if there is "
           "one";
  }
  void add_arguments(CLI::App& app) override {
    app.add_option("FILE", file_, "The profile, of any format")->required()->type_name("");
    app.add_option("--web-url", url_, "The server")->required()->type_name("URL");
    app.add_option("--web-auth", token_, "Your token there; without one the upload is anonymous")->type_name("TOKEN");
    app.add_option("--jitlog", jitlog_, "A log of PyPy's JIT; by default FILE.jit, if it is there")->type_name("LOG");
    app.add_option("--python", python_, "The interpreter; by default the one plimsoll is installed beside")
        ->type_name("PYTHON");
  }
  Result<int> run(Console&) override {
    if (url_.empty()) return Error{ErrorKind::kUsage, "--web-url: which server? It is empty"};
    std::vector<std::string> words{"--web-url=" + url_};
    if (!token_.empty()) words.push_back("--web-auth=" + token_);
    if (!jitlog_.empty()) words.push_back("--jitlog=" + jitlog_);
    words.insert(words.end(), {"--", file_});
    return run_module(python_, "plimsoll.upload", words);
  }

 private:
  std::string file_, url_, token_, jitlog_, python_;
};

}  // namespace

std::unique_ptr<Command> make_upload() { return std::make_unique<Upload>(); }

}  // namespace plimsoll::cli
