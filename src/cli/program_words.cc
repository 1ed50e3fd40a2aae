#include "cli/program_words.h"

#include <CLI/CLI.hpp>

namespace plimsoll::cli {
namespace {

// How many words the option at words[at] takes, itself included; 0 if it is no option of the verb.
std::size_t words_of_option(const CLI::App& verb, const std::string& word) {
  const bool is_long = word.starts_with("--");
  const std::size_t equals = is_long ? word.find('=') : std::string::npos;
  // A short option may have its value attached: -r100.
  const bool has_value = is_long ? equals != std::string::npos : word.size() > 2;
  const std::string name = is_long ? word.substr(0, equals) : word.substr(0, 2);
  const CLI::Option* option = verb.get_option_no_throw(name);
  if (option == nullptr) return 0;
  return option->get_items_expected_min() == 0 || has_value ? 1 : 2;
}

}  // namespace

std::vector<std::string> take_program(const CLI::App& verb, std::vector<std::string>& words,
                                      const std::function<bool(std::string_view)>& is_own) {
  std::size_t at = 1;
  while (at < words.size()) {
    const std::string& word = words[at];
    if (word == "--" || word == "-" || !word.starts_with('-')) break;
    const std::size_t taken = words_of_option(verb, word);
    if (taken == 0 && (word.starts_with("-m") || word.starts_with("-c"))) break;
    at += std::max<std::size_t>(taken, 1);  // an unknown option is for the parser to complain about
  }
  if (at >= words.size() || is_own(words[at])) return {};
  const std::size_t first = words[at] == "--" ? at + 1 : at;
  std::vector<std::string> program(words.begin() + static_cast<std::ptrdiff_t>(first), words.end());
  words.resize(at);
  return program;
}

}  // namespace plimsoll::cli
