// formats/firefox/allocations.cc: rows -> what happened to their blocks, in order of time.
#include "formats/firefox/allocations.h"

#include <algorithm>
#include <cmath>

#include "profile/memory.h"

namespace plimsoll::formats::firefox {
namespace {

using profile::AllocationRow;

// A block that was allocated or freed.
struct Event {
  std::int64_t time_ns = 0;
  std::uint32_t row = 0;  // of the allocation table
  bool is_free = false;
};

std::vector<Event> events_of(const profile::Profile& profile, const std::vector<std::uint32_t>& rows) {
  std::vector<Event> events;
  for (const std::uint32_t index : rows) {
    const AllocationRow& row = profile.allocations[index];
    events.push_back({row.time_ns, index, false});
    if (row.freed_ns != AllocationRow::kAlive) events.push_back({std::max(row.freed_ns, row.time_ns), index, true});
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.time_ns < b.time_ns; });
  return events;
}

// Writes the tables of one thread.
class Allocations {
 public:
  Allocations(JsonWriter& json, const FileLayout& layout)
      : json_(json), columns_(json, layout.slabs), profile_(layout.profile) {}

  void write_native(const std::vector<Event>& events) {
    json_.key("nativeAllocations");
    json_.begin_object();
    columns_.milliseconds("time", events, [](const Event& event) { return event.time_ns; });
    json_.column("weight", events, [&](const Event& event) {
      json_.integer(event.is_free ? -bytes_of(event.row) : bytes_of(event.row));
    });
    json_.member("weightType", "bytes");
    json_.column("stack", events, [&](const Event& event) { event.is_free ? json_.null() : stack(event.row); });
    json_.column("memoryAddress", events, [&](const Event& event) { json_.integer(std::int64_t{event.row} + 1); });
    json_.column("threadId", events, [&](const Event& event) {
      json_.integer(profile_.threads[profile_.allocations[event.row].thread.index()].os_tid);
    });
    json_.member("length", static_cast<std::int64_t>(events.size()));
    json_.end_object();
  }

  void write_types(const std::vector<std::uint32_t>& rows) {
    json_.key("jsAllocations");
    json_.begin_object();
    columns_.milliseconds("time", rows, [&](std::uint32_t row) { return profile_.allocations[row].time_ns; });
    for (const std::string_view name : {"className", "typeName"})
      json_.column(name, rows, [&](std::uint32_t row) { json_.text(type_of(row)); });
    json_.column("coarseType", rows, [&](std::uint32_t) { json_.text("Object"); });
    json_.column("weight", rows, [&](std::uint32_t row) { json_.integer(bytes_of(row)); });
    json_.member("weightType", "bytes");
    json_.column("inNursery", rows, [&](std::uint32_t) { json_.boolean(false); });
    json_.column("stack", rows, [&](std::uint32_t row) { stack(row); });
    json_.member("length", static_cast<std::int64_t>(rows.size()));
    json_.end_object();
  }

 private:
  [[nodiscard]] std::int64_t bytes_of(std::uint32_t row) const {
    constexpr double kMost = 9e15;  // that a number of JSON holds exactly
    profile::MemoryEstimate estimate;
    estimate.add(profile_.allocations[row], profile_.allocation_distance);
    return std::llround(std::min(estimate.bytes, kMost));
  }
  [[nodiscard]] std::string_view type_of(std::uint32_t row) const {
    const StringId type = profile_.allocations[row].type;
    return type.is_none() ? std::string_view("memory") : profile_.strings[type];
  }
  void stack(std::uint32_t row) {
    const StackId stack = profile_.allocations[row].stack;
    stack.is_none() ? json_.null() : json_.integer(stack.index());
  }

  JsonWriter& json_;
  Columns columns_;
  const profile::Profile& profile_;
};

}  // namespace

std::vector<std::vector<std::uint32_t>> allocations_by_thread(const profile::Profile& profile) {
  std::vector<std::vector<std::uint32_t>> rows(profile.threads.size());
  for (std::size_t i = 0; i < profile.allocations.size(); ++i)
    rows[profile.allocations[i].thread.index()].push_back(static_cast<std::uint32_t>(i));
  for (std::vector<std::uint32_t>& of_thread : rows)
    std::stable_sort(of_thread.begin(), of_thread.end(), [&](std::uint32_t a, std::uint32_t b) {
      return profile.allocations[a].time_ns < profile.allocations[b].time_ns;
    });
  return rows;
}

void write_allocations(JsonWriter& json, const FileLayout& layout, const std::vector<std::uint32_t>& rows) {
  if (rows.empty()) return;
  Allocations allocations(json, layout);
  allocations.write_native(events_of(layout.profile, rows));
  allocations.write_types(rows);
}

}  // namespace plimsoll::formats::firefox
