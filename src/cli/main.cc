// cli/main.cc: the `plimsoll` program: the list of its commands.
#include <string>
#include <vector>

#include "cli/app.h"
#include "cli/attach.h"
#include "cli/console.h"
#include "cli/convert.h"
#include "cli/diff.h"
#include "cli/doctor.h"
#include "cli/dump.h"
#include "cli/firefox.h"
#include "cli/heap.h"
#include "cli/info.h"
#include "cli/jitlog.h"
#include "cli/python_verbs.h"
#include "cli/run.h"
#include "cli/show.h"

int main(int argc, char** argv) {
  using namespace plimsoll::cli;
  Commands commands;  // in the order of --help
  commands.push_back(make_run());
  commands.push_back(make_attach());
  commands.push_back(make_dump());
  commands.push_back(make_show());
  commands.push_back(make_diff());
  commands.push_back(make_info());
  commands.push_back(make_convert());
  commands.push_back(make_firefox());
  commands.push_back(make_upload());
  commands.push_back(make_heap());
  commands.push_back(make_jitlog());
  commands.push_back(make_doctor());
  commands.push_back(make_selftest());

  ProcessConsole console;
  return run_app(commands, std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc), console);
}
