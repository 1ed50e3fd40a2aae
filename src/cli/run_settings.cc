#include "cli/run_settings.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <boost/property_tree/ini_parser.hpp>
#include <boost/property_tree/ptree.hpp>
#include <charconv>
#include <filesystem>
#include <sstream>

#include "base/file_bytes.h"
#include "cli/units.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

bool parse(const std::string& text, std::string& value) {
  value = text;
  return true;
}
bool parse(const std::string& text, bool& value) {
  value = text == "true" || text == "yes" || text == "on" || text == "1";
  return value || text == "false" || text == "no" || text == "off" || text == "0";
}
template <typename Number>
bool parse(const std::string& text, Number& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end;
}

template <typename T>
Status assign(std::optional<T>& setting, const std::string& name, const std::string& text, const std::string& path) {
  T value{};
  if (!parse(text, value))
    return Error{ErrorKind::kUsage, fmt::format("{}: '{}' is no value for {}", path, text, name)};
  setting = std::move(value);
  return Ok{};
}

// As --alloc, which may stand without a value, too.
void assign_alloc(std::optional<std::string>& setting, const std::string& text) {
  const bool is_on = text == "true" || text == "yes" || text == "on";
  const bool is_off = text == "false" || text == "no" || text == "off";
  if (!is_off) setting = is_on ? "512K" : text;
}

Status set_by_name(RunSettings& settings, std::string name, const std::string& text, const std::string& path) {
  std::replace(name.begin(), name.end(), '-', '_');
  if (name == "output") return assign(settings.output, name, text, path);
  if (name == "rate") return assign(settings.rate, name, text, path);
  if (name == "duration") return assign(settings.duration, name, text, path);
  if (name == "mode") return assign(settings.mode, name, text, path);
  if (name == "engine") return assign(settings.engine, name, text, path);
  if (name == "mem") return assign(settings.mem, name, text, path);
  if (name == "native_memory") return assign(settings.native_memory, name, text, path);
  if (name == "alloc") {
    assign_alloc(settings.alloc, text);
    return Ok{};
  }
  if (name == "native") return assign(settings.native, name, text, path);
  if (name == "children") return assign(settings.children, name, text, path);
  if (name == "format") return assign(settings.format, name, text, path);
  if (name == "safe_mode") return assign(settings.safe_mode, name, text, path);
  if (name == "sources") return assign(settings.sources, name, text, path);
  if (name == "tasks") return assign(settings.tasks, name, text, path);
  if (name == "max_overhead") return assign(settings.max_overhead, name, text, path);
  if (name == "memory_limit") return assign(settings.memory_limit, name, text, path);
  if (name == "max_depth") return assign(settings.max_depth, name, text, path);
  return Error{ErrorKind::kUsage,
               fmt::format("{}: no setting '{}'; there are output, rate, duration, mode, engine, mem, alloc, "
                           "native_memory, native, children, "
                           "format, safe_mode, sources, tasks, max_overhead, memory_limit, max_depth",
                           path, name)};
}

std::string as_text(const toml::node& value) {
  if (const auto* text = value.as_string()) return text->get();
  if (const auto* number = value.as_integer()) return std::to_string(number->get());
  if (const auto* number = value.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = value.as_boolean()) return flag->get() ? "true" : "false";
  return "(not a plain value)";
}

// The settings of a TOML file; nothing if it has no table for us.
Result<std::optional<RunSettings>> read_toml(const std::string& path) {
  try {
    const toml::table file = toml::parse_file(path);
    const toml::table* ours = file.at_path("tool.plimsoll").as_table();
    if (ours == nullptr && file.at_path("tool.plimsoll"))
      return Error{ErrorKind::kUsage,
                   fmt::format("{}: tool.plimsoll is no table: settings stand under [tool.plimsoll]", path)};
    if (ours == nullptr) return std::optional<RunSettings>{};
    RunSettings settings;
    for (const auto& [key, value] : *ours)
      PLIMSOLL_TRY(set_by_name(settings, std::string(key.str()), as_text(value), path));
    return std::optional(settings);
  } catch (const toml::parse_error& error) {
    return Error{ErrorKind::kBadInput,
                 fmt::format("{}: line {}: {}", path, error.source().begin.line, std::string(error.description()))};
  }
}

Result<RunSettings> read_ini(const std::string& path) {
  const Result<FileBytes> bytes = FileBytes::read(path);
  if (!bytes.ok()) return bytes.error();
  std::string text(bytes.value().view());
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);  // as editors of Windows begin a file
  try {
    boost::property_tree::ptree file;
    std::istringstream lines(text);
    boost::property_tree::ini_parser::read_ini(lines, file);
    RunSettings settings;
    for (const auto& [key, value] : file)
      if (value.empty() && !value.data().empty())
        return Error{ErrorKind::kUsage,
                     fmt::format("{}: '{}' stands in no section: put [plimsoll] above it", path, key)};
    if (const auto ours = file.get_child_optional("plimsoll"))
      for (const auto& [key, value] : *ours) PLIMSOLL_TRY(set_by_name(settings, key, value.data(), path));
    return settings;
  } catch (const boost::property_tree::ini_parser_error& error) {
    return Error{ErrorKind::kBadInput, fmt::format("{}: line {}: {}", path, error.line(), error.message())};
  }
}

template <typename T>
void fill(std::optional<T>& setting, const std::optional<T>& other) {
  if (!setting) setting = other;
}

}  // namespace

Result<std::pair<std::string, std::string>> allocation_setting(const std::string& text) {
  constexpr std::int64_t kShortest = 64;
  constexpr std::int64_t kLongest = std::int64_t{1} << 32U;
  if (text == "exact") return std::pair<std::string, std::string>("alloc_exact", "1");
  if (text == "events") return std::pair<std::string, std::string>("alloc_events", "1");
  const Result<std::int64_t> bytes = parse_bytes(text, "--alloc");
  if (!bytes.ok()) return bytes.error();
  if (bytes.value() < kShortest || bytes.value() > kLongest)
    return Error{ErrorKind::kUsage, "--alloc: from 64 bytes to 4 GiB lie between samples"};
  return std::pair<std::string, std::string>("alloc_bytes", std::to_string(bytes.value()));
}

Status check_range(std::string_view option, int value) {
  constexpr int kMost = 65536;
  if (value >= 1 && value <= kMost) return Ok{};
  return Error{ErrorKind::kUsage, fmt::format("{}: {} is not from 1 to {}", option, value, kMost)};
}

void fill_in(RunSettings& settings, const RunSettings& other) {
  fill(settings.output, other.output);
  fill(settings.rate, other.rate);
  fill(settings.duration, other.duration);
  fill(settings.mode, other.mode);
  fill(settings.engine, other.engine);
  fill(settings.mem, other.mem);
  fill(settings.alloc, other.alloc);
  fill(settings.native_memory, other.native_memory);
  fill(settings.native, other.native);
  fill(settings.children, other.children);
  fill(settings.format, other.format);
  fill(settings.safe_mode, other.safe_mode);
  fill(settings.sources, other.sources);
  fill(settings.tasks, other.tasks);
  fill(settings.max_overhead, other.max_overhead);
  fill(settings.memory_limit, other.memory_limit);
  fill(settings.max_depth, other.max_depth);
}

Result<RunSettings> read_settings(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    return Error{ErrorKind::kBadInput, fmt::format("cannot read the settings file {}: no such file", path)};
  if (!path.ends_with(".toml")) return read_ini(path);
  Result<std::optional<RunSettings>> settings = read_toml(path);
  if (!settings.ok()) return settings.error();
  return settings.value().value_or(RunSettings{});
}

Result<RunSettings> find_settings(const std::string& directory) {
  std::error_code error;
  const fs::path start(directory);
  if (const fs::path ini = start / "plimsoll.ini"; fs::is_regular_file(ini, error)) return read_ini(ini.string());
  for (fs::path at = start;; at = at.parent_path()) {
    if (const fs::path toml = at / "pyproject.toml"; fs::is_regular_file(toml, error)) {
      Result<std::optional<RunSettings>> settings = read_toml(toml.string());
      if (!settings.ok()) return settings.error();
      if (settings.value()) return *settings.value();
    }
    if (at == at.parent_path()) return RunSettings{};
  }
}

}  // namespace plimsoll::cli
