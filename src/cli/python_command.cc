#include "cli/python_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "cli/python_program.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

// What a file begins with; empty if it cannot be read, or not twice: a pipe's text is for the program.
std::string beginning_of(const fs::path& file) {
  std::error_code none;
  if (!fs::is_regular_file(file, none)) return {};
  std::string text(1024, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

bool is_machine_code(const fs::path& file) {
  return beginning_of(file).starts_with(
      "\x7f"
      "ELF");
}

// python, python3, python3.13t, pypy3.10
bool is_named_like_python(const fs::path& file) {
  const std::string name = file.filename().string();
  for (const std::string_view start : {"python", "pypy"})
    if (name.starts_with(start)) return name.find_first_not_of("0123456789.t", start.size()) == std::string::npos;
  return false;
}

// In a virtual environment, and elsewhere, an interpreter may be a link of any name; and pyenv's are scripts.
bool is_interpreter(const fs::path& file) {
  std::error_code none;
  return is_named_like_python(file) || (is_machine_code(file) && is_named_like_python(fs::canonical(file, none)));
}

// Whether Python runs it by its name.
bool is_program_here(const std::string& word) {
  std::error_code none;
  const fs::file_status status = fs::status(word, none);
  if (fs::is_directory(status)) return fs::exists(fs::path(word) / "__main__.py", none);
  return fs::exists(status);
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), std::istream_iterator<std::string>()};
}

// The first line of a script as the kernel takes it: a program, and what else there is as one word.
std::vector<std::string> words_of_kernel(const std::string& line) {
  constexpr std::string_view kSpace = " \t";
  const std::size_t begin = std::min(line.find_first_not_of(kSpace), line.size());
  const std::size_t end = line.find_last_not_of(kSpace) + 1;
  const std::string all = line.substr(begin, end - std::min(begin, end));
  const std::size_t space = all.find_first_of(kSpace);
  if (space == std::string::npos) return all.empty() ? std::vector<std::string>{} : std::vector{all};
  return {all.substr(0, space), all.substr(all.find_first_not_of(kSpace, space))};
}

// The interpreter that the first lines of a script name, and its options; empty if it is none of Python's.
std::vector<std::string> named_interpreter(const std::string& script) {
  if (!script.starts_with("#!")) return {};
  std::istringstream lines(script.substr(2));
  std::string first, second;
  std::getline(lines, first);
  std::getline(lines, second);
  std::vector<std::string> words = words_of_kernel(first);
  // Where the name of the interpreter is too long for the kernel, installers let the shell read a line that is a string
  // to Python:  '''exec' "/a/long/path/python" "$0" "$@"
  constexpr std::string_view kExec = "'''exec' ";
  if (!words.empty() && fs::path(words[0]).filename() == "sh" && second.starts_with(kExec)) {
    std::string path = second.substr(kExec.size(), second.find(" \"$0\"") - kExec.size());
    std::erase(path, '"');
    words = {path};
  } else if (!words.empty() && fs::path(words[0]).filename() == "env") {
    const auto is_name = [](const std::string& word) {
      return !word.starts_with('-') && word.find('=') == std::string::npos;
    };
    words = words_of(first);  // which env splits, if it is asked to
    words.erase(words.begin(), std::find_if(words.begin() + 1, words.end(), is_name));
  }
  if (words.empty() || !is_named_like_python(words[0])) return {};
  return words;
}

// The options of an interpreter at the beginning of its words, taken from there.
std::vector<std::string> take_options(std::vector<std::string>& words) {
  const auto has_value = [](const std::string& word) {
    return word == "-X" || word == "-W" || word == "--check-hash-based-pycs";
  };
  std::size_t count = 0;
  while (count < words.size() && words[count].starts_with('-') && words[count] != "-" && words[count] != "-m" &&
         words[count] != "-c")
    count += has_value(words[count]) ? 2 : 1;
  const auto end = words.begin() + static_cast<std::ptrdiff_t>(std::min(count, words.size()));
  std::vector<std::string> options(words.begin(), end);
  words.erase(words.begin(), end);
  return options;
}

Result<PythonCommand> begin_with_interpreter(const std::string& asked, const std::string& interpreter,
                                             std::vector<std::string> words) {
  if (!asked.empty())
    return Error{ErrorKind::kUsage, fmt::format("--python {} and {}: which interpreter?", asked, words[0])};
  const std::string name = words[0];
  words.erase(words.begin());
  std::vector<std::string> options = take_options(words);
  if (words.empty())
    return Error{ErrorKind::kUsage, fmt::format("which program? For example: plimsoll run {} app.py", name)};
  return PythonCommand{interpreter, std::move(options), std::move(words)};
}

Error no_such_thing(const std::string& word) {
  std::error_code none;
  if (fs::is_directory(word, none))
    return {ErrorKind::kUsage,
            fmt::format("the directory '{}' has no __main__.py, by which Python would run it", word)};
  return {ErrorKind::kUsage, fmt::format("there is no file '{}', and no command of that name", word)};
}

Error no_program_of_python(const std::string& word, const std::string& found) {
  return {ErrorKind::kUsage,
          fmt::format("there is no file '{0}', and {1} is no program of Python. If there is a module "
                      "of that name: plimsoll run -m {0}",
                      word, found)};
}

Error only_machine_code(const std::string& found) {
  return {ErrorKind::kUsage,
          fmt::format("{} is no program of Python, but machine code. A program that has Python in it "
                      "is recorded while it runs: plimsoll attach PID",
                      found)};
}

}  // namespace

std::vector<std::string> PythonCommand::argv() const {
  std::vector<std::string> all{interpreter};
  all.insert(all.end(), options.begin(), options.end());
  all.insert(all.end(), program.begin(), program.end());
  return all;
}

std::string PythonCommand::isolating_option() const {
  if (!is_interpreter(interpreter)) return {};
  std::vector<std::string> words = options;
  words.insert(words.end(), program.begin(), program.end());
  for (const std::string& word : take_options(words)) {
    if (word.starts_with("--")) continue;
    // Letters may stand together; what follows one of these is its value.
    const std::string letters = word.substr(0, word.find_first_of("XWmc"));
    if (letters.starts_with('-') && letters.find_first_of("IES") != std::string::npos) return word;
  }
  return {};
}

Result<PythonCommand> find_python_command(const std::string& asked, std::vector<std::string> words) {
  Result<std::string> interpreter = find_interpreter(asked);
  if (!interpreter.ok() && !asked.empty()) return interpreter.error();
  // A program of another kind, with Python in it, takes what words it likes; and options are Python's.
  const bool is_python = asked.empty() || is_interpreter(interpreter.value());
  std::vector<std::string> options;
  if (is_python && !words[0].starts_with('-')) {
    const bool is_here = is_program_here(words[0]);
    const std::string found = is_here ? words[0] : find_on_path(words[0]);
    if (found.empty()) return no_such_thing(words[0]);
    if (is_interpreter(found) && (!is_here || is_machine_code(found)))
      return begin_with_interpreter(asked, found, std::move(words));
    if (is_machine_code(found)) return only_machine_code(found);
    if (!is_here) {
      options = named_interpreter(beginning_of(found));
      if (options.empty()) return no_program_of_python(words[0], found);
      if (asked.empty()) interpreter = find_interpreter(options[0]);
      options.erase(options.begin());
      words[0] = found;
    }
  }
  if (!interpreter.ok()) return interpreter.error();
  return PythonCommand{interpreter.take(), std::move(options), std::move(words)};
}

}  // namespace plimsoll::cli
