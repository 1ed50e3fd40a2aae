// cli/app.cc: parsing with CLI11, whose exceptions end here.
#include "cli/app.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <new>

#include "cli/exit_code.h"
#include "cli/output_path.h"
#include "cli/program_words.h"
#include "cli/suggest.h"

namespace plimsoll::cli {
namespace {

constexpr std::string_view kAbout =
    "Plimsoll: a profiler for Python that reads the load without weighing the program down.";
constexpr std::string_view kExitCodes =
    "Exit codes: 0 fine, 1 failed (a file cannot be written, a process is no CPython, ...), 2 usage, 3 no permission,\n"
    "4 no samples, 5 bad input file; run passes the program's own through.\n"
    "plimsoll COMMAND --help has examples.";

std::vector<std::string_view> names_of(const Commands& commands) {
  std::vector<std::string_view> names;
  std::transform(commands.begin(), commands.end(), std::back_inserter(names),
                 [](const std::unique_ptr<Command>& command) { return command->name(); });
  return names;
}

// `plimsoll help show` is `plimsoll show --help`.
void rewrite_help(std::vector<std::string>& words) {
  if (words.empty() || words[0] != "help") return;
  words.erase(words.begin());
  words.insert(words.begin() + (words.empty() ? 0 : 1), "--help");
}

Status check_command(const Commands& commands, const std::vector<std::string>& words) {
  const std::vector<std::string_view> names = names_of(commands);
  if (words.empty() || words[0].starts_with('-')) return Ok{};
  if (std::find(names.begin(), names.end(), words[0]) != names.end()) return Ok{};
  if (words[0].ends_with(".plim"))
    return Error{ErrorKind::kUsage, fmt::format("a command comes first: plimsoll show {}", shell_word(words[0]))};
  return Error{ErrorKind::kUsage, no_such("command", words[0], names)};
}

// A value that CLI11 did not take, in our words: it says "Could not convert: --limit = x".
std::string of_value(std::string_view message) {
  constexpr std::string_view kBefore = "Could not convert: ", kBetween = " = ";
  const std::size_t between = message.find(kBetween);
  if (!message.starts_with(kBefore) || between == std::string_view::npos) return std::string(message);
  return fmt::format("{}: \"{}\" is no number that it takes", message.substr(kBefore.size(), between - kBefore.size()),
                     message.substr(between + kBetween.size()));
}

// The verbs that were given, each of which is one of those that the one before it has: `heap`, `show`.
std::vector<const CLI::App*> verbs_in(const CLI::App& app) {
  std::vector<const CLI::App*> verbs;
  for (auto chosen = app.get_subcommands(); !chosen.empty(); chosen = verbs.back()->get_subcommands())
    verbs.push_back(chosen[0]);
  return verbs;
}

// What CLI11 did not expect, with the option that may have been meant.
std::string unexpected(const CLI::App& app, const std::vector<const CLI::App*>& verbs, const CLI::ParseError& error) {
  const std::vector<std::string> extras = app.remaining(true);
  const bool is_extra = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  if (!is_extra || extras.empty()) return of_value(error.what());
  const std::string& word = extras[0];
  if (verbs.empty()) return fmt::format("there is no option \"{}\"", word);
  if (!word.starts_with('-')) return fmt::format("\"{}\" is one argument too many", word);
  std::vector<std::string> names;
  for (const CLI::Option* option : verbs.back()->get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return fmt::format("there is no option \"{}\"{}", word, did_you_mean(word, {names.begin(), names.end()}));
}

// Those that `words` name get their arguments, too: to make all of them takes longer, and touches more code, than
// attaching to a process.
void add_commands(CLI::App& app, const Commands& commands, const std::vector<std::string>& words) {
  app.set_help_flag("-h,--help", "Show this and end");
  app.set_version_flag("--version", fmt::format("plimsoll {}", PLIMSOLL_VERSION), "Show the version and end");
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(30);
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.footer(std::string(kExitCodes));
  for (const std::unique_ptr<Command>& command : commands) {
    CLI::App* verb = app.add_subcommand(std::string(command->name()), std::string(command->summary()));
    verb->group("Commands");
    if (std::find(words.begin(), words.end(), command->name()) == words.end()) continue;
    verb->footer("Examples:\n" + command->examples());
    command->add_arguments(*verb);
  }
}

// The profiled program's own words are none of the parser's business.
void hand_over_program(const CLI::App& app, const Commands& commands, std::vector<std::string>& words) {
  for (const std::unique_ptr<Command>& command : commands)
    if (!words.empty() && words[0] == command->name() && command->takes_program())
      command->set_program(take_program(*app.get_subcommand(words[0]), words,
                                        [&](std::string_view word) { return command->is_own_word(word); }));
}

int report(const Error& error, Console& console) {
  console.notice(error.message);
  return exit_code(error.kind);
}

// What a command throws ends here: mostly it is that there is no memory, whatever it was for.
Result<int> run_guarded(Command& command, Console& console) {
  try {
    return command.run(console);
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::kSystem,
                 "there is not enough memory for that; a limit may be set (ulimit -v, a container's)"};
  }
}

int print(const std::string& text, Console& console) {
  const Status printed = console.print(text);
  return printed.ok() ? kFine : report(printed.error(), console);
}

}  // namespace

int run_app(const Commands& commands, std::vector<std::string> words, Console& console) {
  rewrite_help(words);
  if (const Status known = check_command(commands, words); !known.ok()) return report(known.error(), console);

  CLI::App app{std::string(kAbout), "plimsoll"};
  add_commands(app, commands, words);
  hand_over_program(app, commands, words);
  try {
    std::reverse(words.begin(), words.end());  // as App::parse wants them
    app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    return print(app.help(), console);
  } catch (const CLI::CallForVersion& version) {
    return print(fmt::format("{}\n", version.what()), console);
  } catch (const CLI::ParseError& error) {
    const std::vector<const CLI::App*> verbs = verbs_in(app);
    std::string words_of_verbs;
    for (const CLI::App* verb : verbs) words_of_verbs += verb->get_name() + " ";
    return report(
        {ErrorKind::kUsage, fmt::format("{} (plimsoll {}--help)", unexpected(app, verbs, error), words_of_verbs)},
        console);
  }

  for (const std::unique_ptr<Command>& command : commands) {
    if (!app.got_subcommand(std::string(command->name()))) continue;
    const Result<int> result = run_guarded(*command, console);
    return result.ok() ? result.value() : report(result.error(), console);
  }
  console.notice("a command is needed\n\n" + app.help());
  return kUsage;
}

}  // namespace plimsoll::cli
