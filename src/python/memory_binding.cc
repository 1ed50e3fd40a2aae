// python/memory_binding.cc: what a profile knows of memory.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <vector>

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
  if (name == "leaks") return profile::MemoryView::kLeaks;
  if (name == "temporary") return profile::MemoryView::kTemporary;
  raise(Error{ErrorKind::kUsage,
              "there is no view \"" + name + "\" of memory: choose alloc, live, peak, leaks or temporary"});
}

nb::tuple estimate(const MemoryEstimate& of) {
  const profile::Interval interval = of.interval();
  return nb::make_tuple(of.bytes, interval.low, interval.high, of.blocks, of.samples);
}

void check_has_allocations(const Profile& profile) {
  if (!profile.has_allocations())
    raise(Error{ErrorKind::kUsage,
                "this profile holds no allocations: record with alloc_bytes, or plimsoll run --alloc"});
}

nb::object function_or_none(FunctionId function) {
  return function.is_none() ? nb::none() : nb::object(nb::int_(function.index()));
}

nb::str name_or_empty(const Profile& profile, StringId id) {
  return text(id.is_none() ? std::string_view{} : profile.strings[id]);
}

// [(name or "", is object, estimate, function with most of it, bytes of that)]
nb::list types_of(const Profile& profile, const profile::MemoryQuestion& question) {
  nb::list rows;
  for (const profile::TypeRow& row : profile::memory_by_type(profile, question))
    rows.append(nb::make_tuple(name_or_empty(profile, row.type), row.is_object, estimate(row.all),
                               function_or_none(row.mostly), row.mostly_bytes));
  return rows;
}

// (distance, time of the view, estimate of all, [(function, estimate of self, of total)], types, lost)
nb::tuple memory_report(const Profile& profile, const std::string& view, std::int64_t from_ns, std::int64_t at_ns,
                        std::int64_t within_ns) {
  check_has_allocations(profile);
  profile::MemoryQuestion question = view_named(view);
  question.from_ns = from_ns;
  question.at_ns = at_ns;
  question.within_ns = within_ns;
  check(profile::check_question(profile, question));
  const profile::MemoryReport report = [&] {
    const nb::gil_scoped_release release;
    return profile::memory_report(profile, question);
  }();
  nb::list rows;
  for (const profile::MemoryRow& row : report.flat)
    rows.append(nb::make_tuple(row.function.index(), estimate(row.self), estimate(row.total)));
  return nb::make_tuple(profile.allocation_distance, report.at_ns, estimate(report.all), rows,
                        types_of(profile, question), profile::lost_allocations(profile));
}

// [(time, bytes of the process, estimate of what is alive, of what was allocated since the last, function, its bytes)]
nb::list memory_over_time(const Profile& profile, std::size_t moments) {
  check_has_allocations(profile);
  const std::vector<profile::MemoryMoment> found = [&] {
    const nb::gil_scoped_release release;
    return profile::memory_over_time(profile, moments);
  }();
  nb::list rows;
  for (const profile::MemoryMoment& row : found)
    rows.append(nb::make_tuple(row.at_ns, row.rss_bytes, estimate(row.alive), estimate(row.allocated),
                               function_or_none(row.mostly), row.mostly_bytes, estimate(row.alive_native)));
  return rows;
}

const char* domain_name(std::uint8_t domain) { return profile::domain_name(domain); }

nb::list allocations(const Profile& profile) {
  nb::list rows;
  for (const AllocationRow& row : profile.allocations) {
    const nb::object freed_ns = row.freed_ns == AllocationRow::kAlive ? nb::none() : nb::cast(row.freed_ns);
    MemoryEstimate one;
    one.add(row, profile.allocation_distance);
    const std::uint64_t size = (row.size + row.blocks / 2) / row.blocks;  // of one; exact rows are of several
    rows.append(nb::make_tuple(row.time_ns, row.thread.index(), row.stack.index(), size, one.blocks, one.bytes,
                               domain_name(row.domain), freed_ns, name_or_empty(profile, row.type), row.tags.index()));
  }
  return rows;
}

}  // namespace

void bind_memory(nb::module_& module) {
  module.def("memory_report", &memory_report, nb::arg("profile"), nb::arg("view"), nb::arg("from_ns"), nb::arg("at_ns"),
             nb::arg("within_ns"));
  module.def("memory_over_time", &memory_over_time, nb::arg("profile"), nb::arg("moments"));
  module.def("allocations", &allocations, nb::arg("profile"));
}

}  // namespace plimsoll::python
