// cli/main.cc: the `plimsoll` program: the list of its commands.
#include <string>
#include <vector>

#include "cli/app.h"
#include "cli/commands.h"
#include "cli/console.h"

int main(int argc, char** argv) {
  using namespace plimsoll::cli;
  Commands commands;  // in the order of --help
  commands.push_back(make_run());
  commands.push_back(make_attach());
  commands.push_back(make_dump());
  commands.push_back(make_top());
  commands.push_back(make_show());
  commands.push_back(make_diff());
  commands.push_back(make_info());
  commands.push_back(make_convert());
  commands.push_back(make_firefox());
  commands.push_back(make_serve());
  commands.push_back(make_upload());
  commands.push_back(make_heap());
  commands.push_back(make_jitlog());
  commands.push_back(make_doctor());
  commands.push_back(make_selftest());

  ProcessConsole console;
  return run_app(commands, std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc), console);
}
