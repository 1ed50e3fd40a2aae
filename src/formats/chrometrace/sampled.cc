// formats/chrometrace/sampled.cc: call trees in pieces, and times as differences.
#include "formats/chrometrace/sampled.h"

#include <algorithm>

#include "formats/json_values.h"

namespace plimsoll::formats::chrometrace {

namespace json = boost::json;
using cpuprofile::CallTree;

namespace {

// An id, which may be a number in one place and a text in the other.
std::string id_text(const json::value& id) { return id.is_string() ? std::string(text_of(&id)) : json::serialize(id); }

}  // namespace

void ThreadSamples::write(ForeignProfile& out, ThreadId thread, double zero_us) {
  // V8 sends samples nearly in order.
  std::stable_sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) { return a.at_us < b.at_us; });
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const double end_us = i + 1 < rows_.size() ? rows_[i + 1].at_us : std::max(end_us_, rows_[i].at_us);
    const std::int64_t start_ns = nanoseconds_of(rows_[i].at_us - zero_us, kMicrosecond);
    const std::int64_t end_ns = nanoseconds_of(end_us - zero_us, kMicrosecond);
    out.sample_at(end_ns, thread, rows_[i].stack, end_ns - start_ns, Activity::kRunning);
  }
}

SampledProfiles::Sampled& SampledProfiles::at(const std::string& key, ThreadId thread, double start_us) {
  return profiles_.try_emplace(key, Sampled{thread, CallTree(out_), start_us, start_us, {}}).first->second;
}

void SampledProfiles::begin(const std::string& key, ThreadId thread, double start_us) {
  Sampled& sampled = at(key, thread, start_us);
  sampled.thread = thread;
  sampled.start_us = sampled.at_us = start_us;
}

void SampledProfiles::chunk(const std::string& key, ThreadId thread, const json::value* data, double at_us) {
  const json::value* profile = member(data, "cpuProfile");
  Sampled& sampled = at(key, thread, number_member(profile, "startTime").value_or(at_us));
  if (const json::array* nodes = array_member(profile, "nodes"))
    for (const json::value& node : *nodes) sampled.tree.add(node);
  const json::array* deltas = array_member(data, "timeDeltas");
  if (deltas == nullptr) deltas = array_member(profile, "timeDeltas");
  if (const json::array* samples = array_member(profile, "samples"))
    for (std::size_t row = 0; row < samples->size(); ++row) {
      sampled.at_us += number_of(element(deltas, row)).value_or(0);
      sampled.samples.add(sampled.at_us, sampled.tree.stack_of(integer_of(&(*samples)[row])));
    }
  // A whole profile that stands in one chunk has a clock of its own, by which it starts, too.
  const double other_clock_us = number_member(profile, "startTime").value_or(sampled.start_us) - sampled.start_us;
  for (const json::value* place : {data, profile})
    if (const std::optional<double> end = number_member(place, "endTime"))
      sampled.samples.end_at(*end - other_clock_us);
}

void SampledProfiles::write(double zero_us) {
  for (auto& [key, sampled] : profiles_) sampled.samples.write(out_, sampled.thread, zero_us);
}

StackFrames::StackFrames(ForeignProfile& out, const json::value* table) : tree_(out) {
  const json::object* frames = table == nullptr ? nullptr : table->if_object();
  if (frames == nullptr) return;
  for (const auto& frame : *frames) {
    std::optional<CallTree::NodeId> parent;
    if (const json::value* above = member(&frame.value(), "parent")) parent = number_of_id(id_text(*above));
    tree_.add(number_of_id(frame.key()), frame_of_label(text_member(&frame.value(), "name")), parent);
  }
}

CallTree::NodeId StackFrames::number_of_id(const std::string& id) {
  return ids_.try_emplace(id, static_cast<CallTree::NodeId>(ids_.size())).first->second;
}

StackId StackFrames::stack_of(const json::value* frame) {
  if (frame == nullptr || frame->is_structured()) return {};
  const auto found = ids_.find(id_text(*frame));
  return found == ids_.end() ? StackId{} : tree_.stack_of(found->second);
}

}  // namespace plimsoll::formats::chrometrace
