// cli/commands.h: the verbs of the command line, each in the file of its name. main.cc puts them in order.
#pragma once

#include <memory>

#include "cli/command.h"

namespace plimsoll::cli {

std::unique_ptr<Command> make_attach();
std::unique_ptr<Command> make_convert();
std::unique_ptr<Command> make_diff();
std::unique_ptr<Command> make_doctor();
std::unique_ptr<Command> make_dump();
std::unique_ptr<Command> make_firefox();
std::unique_ptr<Command> make_heap();
std::unique_ptr<Command> make_info();
std::unique_ptr<Command> make_jitlog();
std::unique_ptr<Command> make_run();
std::unique_ptr<Command> make_selftest();
std::unique_ptr<Command> make_serve();
std::unique_ptr<Command> make_show();
std::unique_ptr<Command> make_top();
std::unique_ptr<Command> make_upload();

}  // namespace plimsoll::cli
