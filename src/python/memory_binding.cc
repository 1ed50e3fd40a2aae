// python/memory_binding.cc: what a profile knows of memory.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cmath>

#include "profile/memory.h"
#include "python/bindings.h"

namespace nb = nanobind;

namespace plimsoll::python {
namespace {

using profile::AllocationRow;
using profile::MemoryEstimate;
using profile::Profile;

profile::MemoryView view_named(const std::string& name) {
  if (name == "alloc") return profile::MemoryView::kAllocated;
  if (name == "live") return profile::MemoryView::kLive;
  if (name == "peak") return profile::MemoryView::kPeak;
  raise(Error{ErrorKind::kUsage, "there is no view \"" + name + "\" of memory: choose alloc, live or peak"});
}

nb::tuple estimate(const MemoryEstimate& of) {
  const profile::Interval interval = of.interval();
  return nb::make_tuple(of.bytes, interval.low, interval.high, of.blocks, of.samples);
}

// (distance, time of the view, estimate of all, [(function, estimate of self, of total)])
nb::tuple memory_report(const Profile& profile, const std::string& view) {
  if (profile.allocation_distance == 0)
    raise(Error{ErrorKind::kUsage,
                "this profile holds no allocations: record with alloc_bytes, or plimsoll run --alloc"});
  const profile::MemoryReport report = profile::memory_report(profile, view_named(view));
  nb::list rows;
  for (const profile::MemoryRow& row : report.flat)
    rows.append(nb::make_tuple(row.function.index(), estimate(row.self), estimate(row.total)));
  return nb::make_tuple(profile.allocation_distance, report.at_ns, estimate(report.all), rows);
}

nb::list allocations(const Profile& profile) {
  nb::list rows;
  for (const AllocationRow& row : profile.allocations) {
    const nb::object freed_ns = row.freed_ns == AllocationRow::kAlive ? nb::none() : nb::cast(row.freed_ns);
    const std::string_view type = row.type.is_none() ? std::string_view{} : profile.strings[row.type];
    MemoryEstimate one;
    one.add(row, profile.allocation_distance);
    rows.append(nb::make_tuple(row.time_ns, row.thread.index(), row.stack.index(), row.size, one.blocks,
                               row.domain == 0 ? "object" : "memory", freed_ns, nb::str(type.data(), type.size())));
  }
  return rows;
}

}  // namespace

void bind_memory(nb::module_& module) {
  module.def("memory_report", &memory_report, nb::arg("profile"), nb::arg("view"));
  module.def("allocations", &allocations, nb::arg("profile"));
}

}  // namespace plimsoll::python
