#include "cli/heap_input.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "cli/suggest.h"
#include "cli/utf8.h"
#include "heap/snapshot_reader.h"
#include "heap/views.h"

namespace plimsoll::cli {
namespace {

std::string view_words(const std::string& words) {
  return words == "raw" || words == "memory" || words == "parts" || words == "module" ? words : rule_words(words);
}

// ` (did you mean "app.Session"?)` for a slip of the fingers, or a name without its module.
std::string hint_of_class(const heap::Snapshot& snapshot, const std::string& name) {
  std::vector<std::string_view> names;
  for (const heap::Type& type : snapshot.types) {
    if (type.name.ends_with("." + name)) return fmt::format(" (did you mean \"{}\"?)", printable(type.name));
    if (!type.name.starts_with('<') && !type.name.starts_with('[')) names.push_back(type.name);
  }
  const std::string_view found = name.find_first_of("*?[") == std::string::npos ? nearest(name, names) : "";
  return found.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", printable(found));
}

}  // namespace

std::string rule_words(const std::string& words) {
  if (words.find(':') != std::string::npos) return words;
  std::ifstream file(words);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.find(':') != std::string::npos ? text : words;
}

Result<heap::Snapshot> read_heap(const std::string& path) {
  if (path == "-")
    return Error{ErrorKind::kUsage, "a snapshot is read from a file, not from standard input: give its name"};
  Result<heap::Snapshot> snapshot = heap::read_snapshot_file(path);
  if (!snapshot.ok() && snapshot.error().kind == ErrorKind::kSystem)
    return Error{ErrorKind::kBadInput, snapshot.error().message};
  return snapshot;
}

Result<heap::Snapshot> read_heap(Console& console, const std::string& path, std::span<const std::string> views) {
  heap::View view;
  for (const std::string& words : views) {
    Result<heap::View> added = heap::add_view(std::move(view), view_words(words));
    if (!added.ok()) return added.error();
    view = added.take();
  }
  Result<heap::Snapshot> snapshot = read_heap(path);
  if (!snapshot.ok() || view.empty()) return snapshot;
  for (const std::string& name : heap::classes_not_there(snapshot.value(), view))
    console.notice(fmt::format("--view: there is no object of class \"{}\" in {}{}: this rule changes nothing", name,
                               path, hint_of_class(snapshot.value(), name)));
  return heap::seen_as(snapshot.take(), view);
}

void notice_if_incomplete(Console& console, const heap::Snapshot& snapshot, const std::string& path) {
  if (!snapshot.complete) console.notice(path + " is incomplete: it ends early, so much may seem to be held by none");
}

}  // namespace plimsoll::cli
