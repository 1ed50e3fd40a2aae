#include "cli/heap_input.h"

#include <fstream>
#include <iterator>
#include <utility>

#include "heap/snapshot_reader.h"
#include "heap/views.h"

namespace plimsoll::cli {
namespace {

std::string view_words(const std::string& words) {
  return words == "raw" || words == "memory" || words == "parts" || words == "module" ? words : rule_words(words);
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

Result<heap::Snapshot> read_heap(const std::string& path, std::span<const std::string> views) {
  heap::View view;
  for (const std::string& words : views) {
    Result<heap::View> added = heap::add_view(std::move(view), view_words(words));
    if (!added.ok()) return added.error();
    view = added.take();
  }
  Result<heap::Snapshot> snapshot = read_heap(path);
  if (!snapshot.ok() || view.empty()) return snapshot;
  return heap::seen_as(snapshot.take(), view);
}

void notice_if_incomplete(Console& console, const heap::Snapshot& snapshot, const std::string& path) {
  if (!snapshot.complete) console.notice(path + " is incomplete: it ends early, so much may seem to be held by none");
}

}  // namespace plimsoll::cli
