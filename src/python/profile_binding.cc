#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <tuple>
#include <utility>

#include "formats/input.h"
#include "formats/registry.h"
#include "profile/filter.h"
#include "profile/flat.h"
#include "profile/join.h"
#include "profile/plim_reader.h"
#include "profile/plim_writer.h"
#include "profile/profile.h"
#include "profile/tasks.h"
#include "profile/tree.h"
#include "profile/without_native.h"
#include "python/bindings.h"

namespace nb = nanobind;

namespace plimsoll::python {
namespace {

using profile::Profile;

nb::list functions(const Profile& profile) {
  nb::list rows;
  for (const profile::Function& function : profile.functions.rows())
    rows.append(nb::make_tuple(text(profile.strings[function.name]), text(profile.strings[function.file]),
                               function.first_line, text(profile::function_kind_name(function.kind))));
  return rows;
}

nb::list frames(const Profile& profile) {
  nb::list rows;
  for (const profile::Frame& frame : profile.frames.rows())
    rows.append(nb::make_tuple(frame.function.index(), frame.line, frame.column, text(profile.strings[frame.trace])));
  return rows;
}

nb::list threads(const Profile& profile) {
  nb::list rows;
  for (const profile::Thread& thread : profile.threads) {
    const std::int64_t pid = thread.process.is_none() ? 0 : profile.processes[thread.process.index()].pid;
    rows.append(nb::make_tuple(thread.os_tid, text(thread.name), thread.is_main, pid, thread.start_ns, thread.end_ns,
                               thread.cpu_ns));
  }
  return rows;
}

// For each tag set, its tags as a dict.
nb::list tag_sets(const Profile& profile) {
  nb::list rows;
  for (const profile::TagSet& set : profile.tag_sets.rows()) {
    nb::dict tags;
    for (const profile::Tag& tag : set) tags[text(profile.strings[tag.name])] = text(profile.strings[tag.value]);
    rows.append(tags);
  }
  return rows;
}

nb::list markers(const Profile& profile) {
  nb::list rows;
  for (const profile::Marker& marker : profile.markers) {
    nb::dict fields;
    for (const auto& [name, value] : marker.fields) fields[text(name)] = text(value);
    rows.append(nb::make_tuple(text(marker.name), marker.time_ns, marker.duration_ns, fields));
  }
  return rows;
}

nb::dict counters(const Profile& profile, nb::handle owner) {
  nb::dict result;
  for (const profile::Counter& counter : profile.counters) {
    nb::object name = text(counter.name);
    if (result.contains(name) && !counter.process.is_none())
      name = nb::str("{} of {}").format(name, profile.processes[counter.process.index()].pid);
    result[name] = nb::make_tuple(text(counter.unit), column(counter.time_ns, owner), column(counter.value, owner));
  }
  return result;
}

nb::list drops(const Profile& profile) {
  nb::list rows;
  for (const profile::Drop& drop : profile.drops)
    rows.append(nb::make_tuple(text(drop.reason), drop.count, drop.cpu_ns));
  return rows;
}

nb::list flat_rows(const std::vector<profile::FlatRow>& rows) {
  nb::list result;
  for (const profile::FlatRow& row : rows)
    result.append(
        nb::make_tuple(row.function.index(), row.line, row.self_ns, row.total_ns, row.self_samples, row.total_samples));
  return result;
}

nb::list tree_nodes(const Profile& profile, bool by_line) {
  const profile::Tree tree =
      profile::tree(profile, by_line ? profile::Granularity::kLine : profile::Granularity::kFunction);
  nb::list nodes;
  for (const profile::TreeNode& node : tree.nodes) {
    nb::list children;
    for (const std::size_t child : node.children) children.append(child);
    const nb::object function = node.function.is_none() ? nb::none() : nb::cast(node.function.index());
    nodes.append(nb::make_tuple(function, node.line, node.total_ns, node.self_ns, node.samples, children));
  }
  return nodes;
}

nb::object stack_frames(const Profile& profile, std::int64_t number) {
  nb::list ids;
  const StackId stack = std::in_range<std::uint32_t>(number) ? StackId{static_cast<std::uint32_t>(number)} : StackId{};
  if (stack.is_none() && number == 0xffffffff) return ids;  // the empty stack
  if (stack.is_none() || stack.index() >= profile.stacks.size()) throw nb::index_error("no such stack");
  for (const FrameId frame : profile::frames_of(profile.stacks, stack)) ids.append(frame.index());
  return ids;
}

std::vector<Activity> activities_named(const std::vector<std::string>& names) {
  std::vector<Activity> activities;
  for (const std::string& name : names) {
    const std::optional<Activity> activity = activity_named(name);
    if (!activity) raise(Error{ErrorKind::kUsage, "there is no activity \"" + name + "\""});
    activities.push_back(*activity);
  }
  return activities;
}

std::string encoded(const Profile& profile) {
  profile::PlimEncoder encoder(1);
  return profile::PlimEncoder::file_header() + encoder.encode(profile);
}

nb::bytes file_bytes(const Profile& profile) {
  const std::string bytes = encoded(profile);
  return nb::bytes(bytes.data(), bytes.size());
}

// A copy without the samples that do not match. The tables are re-read from the encoded profile: a StringTable has
// no copy, and a filtered profile is rare.
std::shared_ptr<Profile> filtered(const Profile& profile, const profile::Filter& conditions) {
  auto copy = std::make_shared<Profile>(value_or_raise(profile::read_plim(encoded(profile))));
  profile::filter(*copy, conditions);
  return copy;
}

// A copy with the samples of stretches of time: of each the beginning, the end, and its threads.
using Spans = std::vector<std::tuple<std::int64_t, std::int64_t, std::vector<std::int64_t>>>;
std::shared_ptr<Profile> in_spans(const Profile& self, const Spans& spans) {
  std::vector<profile::ThreadSpan> stretches;
  for (const auto& [from_ns, to_ns, os_tids] : spans) stretches.push_back({from_ns, to_ns, os_tids});
  std::shared_ptr<Profile> copy = filtered(self, {});
  profile::keep_spans(*copy, stretches);
  return copy;
}

// A copy of one with what is in the other.
std::shared_ptr<Profile> joined(const Profile& self, const Profile& other) {
  std::shared_ptr<Profile> all = filtered(self, {});
  check(profile::join(*all, std::move(*filtered(other, {}))));
  return all;
}

template <void (*change)(Profile&)>
std::shared_ptr<Profile> with_changed_stacks(const Profile& self) {
  std::shared_ptr<Profile> copy = filtered(self, {});
  change(*copy);
  return copy;
}

formats::Writer writer_for(const std::string& format, const FilePath& path) {
  return value_or_raise(formats::find_writer(format, path.bytes, "format="));
}

std::shared_ptr<Profile> what_meets(const Profile& self, std::string thread, std::string function, std::string file,
                                    const std::vector<std::string>& activities, const std::vector<std::string>& tags,
                                    std::int64_t from_ns, std::int64_t to_ns) {
  profile::Filter conditions{std::move(thread), std::move(function), std::move(file), activities_named(activities)};
  for (const std::string& tag : tags) conditions.tags.push_back(profile::TagCondition::parse(tag));
  conditions.from_ns = from_ns;
  conditions.to_ns = to_ns;
  return filtered(self, conditions);
}

std::shared_ptr<Profile> turned_round(const Profile& self, const std::string& function) {
  std::shared_ptr<Profile> copy = filtered(self, profile::Filter{.function = function});
  profile::turn_round(*copy, function);
  return copy;
}

std::shared_ptr<Profile> begun_at(const Profile& self, const std::string& file) {
  std::shared_ptr<Profile> copy = filtered(self, {});
  profile::begin_at_file(*copy, file);
  return copy;
}

std::string nothing_to_write(const Profile& profile, const std::string& format, const FilePath& path) {
  return std::string(formats::nothing_to_write(writer_for(format, path), profile));
}

nb::bytes converted(const std::shared_ptr<Profile>& original, const std::string& format, const FilePath& path) {
  const formats::Writer writer = writer_for(format, path);
  const std::string bytes = value_or_raise([&] {
    const nb::gil_scoped_release release;
    // Waits are put onto stacks there, and tags into markers, which the original must not see.
    const bool is_changed = original->has_waits() || original->tag_sets.size() > 0;
    const std::shared_ptr<Profile> profile = is_changed ? filtered(*original, {}) : original;
    return formats::write_as(writer, *profile, path.bytes);
  }());
  return nb::bytes(bytes.data(), bytes.size());
}

nb::dict profile_meta(const Profile& profile) {
  nb::dict result;
  for (const auto& [name, value] : profile.meta) result[text(name)] = text(value);
  return result;
}

nb::dict sources(const Profile& profile) {
  nb::dict result;
  for (const profile::Source& source : profile.sources)
    result[text(source.file)] = nb::bytes(source.text.data(), source.text.size());
  return result;
}

}  // namespace

void bind_profile(nb::module_& module) {
  nb::class_<Profile>(module, "ProfileData", "A profile's tables; see plimsoll.Profile.")
      .def_static("open",
                  [](const FilePath& path) {
                    Result<Profile> profile = [&] {
                      const nb::gil_scoped_release release;
                      return formats::read_profile_file(path.bytes);
                    }();
                    return std::make_shared<Profile>(value_or_raise(std::move(profile)));
                  })
      .def_static("read",
                  [](const nb::bytes& bytes) {
                    const std::string_view view(bytes.c_str(), bytes.size());
                    Result<Profile> profile = [&] {
                      const nb::gil_scoped_release release;
                      return formats::read_profile(view);
                    }();
                    return std::make_shared<Profile>(value_or_raise(std::move(profile)));
                  })
      .def_prop_ro("meta", &profile_meta)
      .def_prop_ro("start_realtime_ns", [](const Profile& self) { return self.start_realtime_ns; })
      .def_prop_ro("end_ns", [](const Profile& self) { return self.end_ns; })
      .def_prop_ro("process_cpu_ns", [](const Profile& self) { return self.process_cpu_ns; })
      .def("sampled_ns", &Profile::sampled_ns)
      .def("sampled_cpu_ns", &Profile::sampled_cpu_ns)
      .def_prop_ro("complete", [](const Profile& self) { return self.complete; })
      .def_prop_ro("sample_count", [](const Profile& self) { return self.samples.size(); })
      .def_prop_ro("stack_count", [](const Profile& self) { return self.stacks.size(); })
      .def("time_ns", [](nb::handle self) { return column(nb::cast<const Profile&>(self).samples.time_ns, self); })
      .def("thread", [](nb::handle self) { return column(nb::cast<const Profile&>(self).samples.thread, self); })
      .def("stack", [](nb::handle self) { return column(nb::cast<const Profile&>(self).samples.stack, self); })
      .def("weight_ns", [](nb::handle self) { return column(nb::cast<const Profile&>(self).samples.weight_ns, self); })
      .def("activity", [](nb::handle self) { return column(nb::cast<const Profile&>(self).samples.activity, self); })
      .def("tag", [](nb::handle self) { return column(nb::cast<const Profile&>(self).samples.tags, self); })
      .def("tag_sets", &tag_sets)
      .def("functions", &functions)
      .def("frames", &frames)
      .def("threads", &threads)
      .def("markers", &markers)
      .def("counters", [](nb::handle self) { return counters(nb::cast<const Profile&>(self), self); })
      .def("drops", &drops)
      .def("sources", &sources)
      .def("stack_frames", &stack_frames)
      .def("tree", &tree_nodes, nb::arg("by_line"))
      .def("flat", [](const Profile& self) { return flat_rows(profile::flat(self)); })
      .def("lines", [](const Profile& self) { return flat_rows(profile::lines(self)); })
      .def("filter", &what_meets, nb::kw_only(), nb::arg("thread"), nb::arg("function"), nb::arg("file"),
           nb::arg("activities"), nb::arg("tags"), nb::arg("from_ns"), nb::arg("to_ns"))
      .def("in_spans", &in_spans)
      .def("joined", &joined)
      .def("with_tasks", &with_changed_stacks<profile::put_tasks_on_stacks>)
      .def("without_native", &with_changed_stacks<profile::leave_out_native>)
      .def("with_folded_native", &with_changed_stacks<profile::fold_native>)
      .def("turned_round", &turned_round, nb::arg("function"))
      .def("begun_at", &begun_at, nb::arg("file"))
      .def("encoded", &file_bytes)
      .def("save", [](const Profile& self, const FilePath& path) { check(profile::write_plim_file(self, path.bytes)); })
      .def("nothing_to_write", &nothing_to_write, nb::arg("format"), nb::arg("path"))
      .def("convert", &converted, nb::arg("format"), nb::arg("path"));
  nb::list activities;
  for (const std::string_view name : kActivityNames) activities.append(std::string(name));
  module.attr("activities") = nb::tuple(activities);
  module.def("formats", [] {
    nb::list names;
    for (const formats::Writer& writer : formats::writers())
      names.append(
          nb::make_tuple(std::string(writer.name), std::string(writer.extension), std::string(writer.summary)));
    return names;
  });
}

}  // namespace plimsoll::python
