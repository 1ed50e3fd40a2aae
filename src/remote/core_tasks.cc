#include "remote/core_tasks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "cpython/thread_names.h"
#include "remote/asyncio_callbacks.h"
#include "remote/elf_symbols.h"
#include "remote/local_variables.h"
#include "remote/task_picture.h"
#include "remote/thread_states.h"

namespace plimsoll::remote {
namespace {

// The table that the module _asyncio publishes, in its own file or the interpreter's. Names prove nothing, but tell
// where to look first.
std::optional<Address> find_asyncio_debug(const CoreFile& core) {
  const auto look_into = [&](bool by_name) -> std::optional<Address> {
    for (const MappedPart& part : core.notes.parts) {
      if (part.offset != 0 || (part.path.find("/_asyncio.") != std::string::npos) != by_name) continue;
      const UniqueFd file = core.open(part.path);
      if (!file.is_open()) continue;
      if (const auto section = find_elf_section(file.get(), ".AsyncioDebug")) return Address{part.start + *section};
    }
    return std::nullopt;
  };
  const std::optional<Address> found = look_into(true);
  return found ? found : look_into(false);
}

TaskDump read_all(const CoreFile& core, const cpython::TaskLayout& layout, const cpython::ObjectFields& fields) {
  const cpython::ObjectView<memory::Image> view(core.image, core.layout, fields, kWordsPerValue);
  const cpython::TaskPlaces places{core.layout, layout, core.code_type};
  const std::vector<ThreadState> states = thread_states_of(core);
  const std::vector<Address> loops = running_loops(core.image, places, states);
  std::map<std::uint64_t, std::string> names;  // of the threads of an interpreter
  TaskPicture picture;
  for (const TaskShare& share : share_out(states)) {
    if (!is_null(share.interpreter)) names.merge(cpython::thread_names(view, core.code_type, share.interpreter));
    const auto name = names.find(share.thread.pthread);
    const Tid tid{static_cast<std::int32_t>(share.thread.tid())};
    picture.take(read_tasks(core.image, places, share, loops),
                 {tid, tid, name != names.end() ? name->second : std::string(), '?'});
  }
  return picture.finish();
}

}  // namespace

Result<TaskDump> take_core_task_dump(const CoreFile& core) {
  PLIMSOLL_TRY(cpython::knows_awaiters(core.layout.version));
  const Result<cpython::ObjectFields> fields = cpython::object_fields(core.layout.version);
  if (!fields.ok()) return fields.error();
  const Result<std::optional<cpython::TaskLayout>> layout =
      locate_tasks(core.image, core.layout, core.code_type, core.runtime, [&] { return find_asyncio_debug(core); });
  if (!layout.ok()) return layout.error();
  TaskDump dump;
  dump.has_asyncio = layout.value().has_value();
  if (dump.has_asyncio) dump = read_all(core, *layout.value(), fields.value());
  dump.pid = os::Pid{core.notes.pid};
  dump.version = core.layout.version;
  dump.command = core.notes.command;
  dump.is_of_core_file = true;
  dump.missing_bytes = core.missing_bytes;
  return dump;
}

}  // namespace plimsoll::remote
