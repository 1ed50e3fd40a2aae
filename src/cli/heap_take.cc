#include "cli/heap_take.h"

#include <fmt/format.h>

#include <fstream>

#include "base/clock.h"
#include "cli/exit_code.h"
#include "cli/output_path.h"
#include "cli/units.h"
#include "heap/pools.h"
#include "os/available_memory.h"
#include "remote/core_file.h"
#include "remote/memory_copy.h"
#include "remote/target.h"
#include "remote/thread_states.h"

namespace plimsoll::cli {
namespace {

// Some words that snapshots of one process share.
std::string process_name(os::Pid pid) {
  std::ifstream file("/proc/" + std::to_string(static_cast<int>(pid)) + "/stat");
  std::string line;
  std::getline(file, line);
  constexpr int kStartTime = 22;
  std::string start;
  os::each_stat_field(line, kStartTime, [&](int field, std::string_view word) {
    if (field == kStartTime) start = word;
  });
  return fmt::format("{}@{}", static_cast<int>(pid), start);
}

void add_meta(heap::SnapshotWriter& writer, const HeapTake& take, const cpython::Layout& layout) {
  writer.add_meta("plimsoll", PLIMSOLL_VERSION);
  writer.add_meta("python", layout.version.text());
  writer.add_meta("values", take.values == heap::ImageValues::kShown ? "shown" : "redacted");
  writer.add_meta("taken", take.core.empty() ? "from outside" : "from a core file");
}

std::string report(const HeapTake& take, const heap::ImageStatistics& taken, const heap::SnapshotWriter& writer) {
  std::string text =
      fmt::format("wrote {} ({}): {} objects, {} references", take.output,
                  format_bytes(static_cast<std::int64_t>(writer.file_bytes())), taken.objects, taken.edges);
  if (taken.lost_edges > 0) text += fmt::format("; {} references lead to what could not be read", taken.lost_edges);
  if (taken.is_cut) text += "; not all that the garbage collector knows could be found";
  return text;
}

// Walks a copy of the memory, or a core file's.
Status capture(Console& console, const HeapTake& take, const memory::Image& image, const cpython::Layout& layout,
               const heap::ImageRuntime& runtime, const heap::ImageFacts& facts, heap::SnapshotWriter& writer) {
  const Result<cpython::ObjectFields> fields = cpython::object_fields(layout.version);
  if (!fields.ok()) return fields.error();
  add_meta(writer, take, layout);
  writer.write_beside();
  const heap::ImageView view(image, layout, fields.value());
  const Result<heap::ImageStatistics> taken = heap::capture_image(view, runtime, take.values, facts, writer);
  if (!taken.ok()) {
    writer.discard();
    return taken.error();
  }
  console.notice(report(take, taken.value(), writer));
  return Ok{};
}

Result<int> take_of_core(Console& console, const HeapTake& take) {
  PLIMSOLL_TRY(check_not_input(take.output, take.core));
  const Result<remote::CoreFile> core = remote::open_core_file(take.core, take.program);
  if (!core.ok()) return core.error();
  Result<heap::SnapshotWriter> writer = heap::SnapshotWriter::create(take.output);
  if (!writer.ok()) return writer.error();
  writer.value().add_meta("pid", std::to_string(core.value().notes.pid));
  PLIMSOLL_TRY(capture(console, take, core.value().image, core.value().layout,
                       {core.value().runtime, core.value().code_type}, {{}, take.rules}, writer.value()));
  return kFine;
}

}  // namespace

Result<int> take_heap(Console& console, const HeapTake& take) {
  PLIMSOLL_TRY(check_recording_path(take.output));
  if (!take.core.empty()) return take_of_core(console, take);
  const os::Pid pid{take.pid};
  Result<remote::Target> target = remote::find_named_target(pid);
  if (!target.ok()) return target.error();
  const cpython::Layout& layout = target.value().layout;
  if (const auto fields = cpython::object_fields(layout.version); !fields.ok()) return fields.error();
  const std::uint64_t most = take.most_megabytes != 0 ? take.most_megabytes * 1'000'000 : os::available_memory();
  // Before it is stopped, as the kernel looks at each page for it.
  heap::ImageFacts facts{{}, take.rules};
  if (const auto mappings = os::resident_mappings_of(pid); mappings.ok())
    facts.regions = heap::regions_of(mappings.value());
  const Result<remote::MemoryCopy> copy = remote::copy_memory(pid, most);
  if (!copy.ok()) return copy.error();
  // Not before: what is in a file of that name is lost only when there is something to take its place.
  Result<heap::SnapshotWriter> writer = heap::SnapshotWriter::create(take.output);
  if (!writer.ok()) return writer.error();
  const memory::Image& image = copy.value().image;
  Address& code_type = target.value().code_type;
  if (is_null(code_type))
    code_type = remote::find_code_type(image, layout, remote::thread_states(image, layout, target.value().runtime));
  const std::int64_t stop_ns = copy.value().stop_ns;
  for (const auto& [name, value] : {std::pair<const char*, std::string>{"pid", std::to_string(take.pid)},
                                    {"process", process_name(pid)},
                                    {"time_ns", std::to_string(realtime_ns())},
                                    {"stop_ns", std::to_string(stop_ns)}})
    writer.value().add_meta(name, value);
  PLIMSOLL_TRY(capture(console, take, image, layout, {target.value().runtime, code_type}, facts, writer.value()));
  console.notice(fmt::format("process {} stood still for {:.1f} ms ({} copied)", take.pid,
                             static_cast<double>(stop_ns) / 1e6,
                             format_bytes(static_cast<std::int64_t>(image.copied_bytes()))));
  return kFine;
}

}  // namespace plimsoll::cli
