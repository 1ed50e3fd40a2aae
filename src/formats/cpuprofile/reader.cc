// formats/cpuprofile/reader.cc: nodes of a call tree, then the node of each sample.
#include "formats/cpuprofile/reader.h"

#include <algorithm>

#include "formats/cpuprofile/call_tree.h"
#include "formats/foreign.h"
#include "formats/json_values.h"

namespace plimsoll::formats::cpuprofile {
namespace {

namespace json = boost::json;

// Fills a Profile from a file.
class Reader {
 public:
  Result<profile::Profile> read(const json::value& file) {
    const json::array* nodes = array_member(&file, "nodes");
    const json::array* samples = array_member(&file, "samples");
    if (nodes == nullptr || samples == nullptr)
      return Error{ErrorKind::kBadInput, "a .cpuprofile without nodes or samples"};
    for (const json::value& node : *nodes) tree_.add(node);
    const json::array* deltas = array_member(&file, "timeDeltas");
    const ThreadId thread = out_.thread("", "");
    double at_us = number_member(&file, "startTime").value_or(0) + number_of(element(deltas, 0)).value_or(0);
    double next_us = at_us;
    for (std::size_t row = 0; row < samples->size(); ++row) {
      // A delta is the time since the sample before, and so the sample before lasted until then; the last one, until
      // the end. One that V8 noted too late has a negative delta: it has no time of its own.
      const bool is_last = row + 1 == samples->size();
      next_us = is_last ? number_member(&file, "endTime").value_or(at_us)
                        : next_us + number_of(element(deltas, row + 1)).value_or(0);
      const double weight_us = std::max(0.0, next_us - at_us);
      at_us += weight_us;
      out_.sample(thread, tree_.stack_of(integer_of(&(*samples)[row])), nanoseconds_of(weight_us, kMicrosecond));
    }
    return out_.take();
  }

 private:
  ForeignProfile out_{"cpuprofile"};
  CallTree tree_{out_};
};

}  // namespace

bool is_cpuprofile(std::string_view bytes) {
  // Chrome's traces have the same nodes within their events.
  return is_json_with(bytes, "\"nodes\"") && is_json_with(bytes, "\"callFrame\"") &&
         !is_json_with(bytes, "\"traceEvents\"");
}

Result<profile::Profile> read(std::string_view bytes) { return read_json_with<Reader>(bytes); }

}  // namespace plimsoll::formats::cpuprofile
