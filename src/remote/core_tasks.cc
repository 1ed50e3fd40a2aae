#include "remote/core_tasks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "cpython/thread_names.h"
#include "remote/elf_file.h"
#include "remote/elf_symbols.h"
#include "remote/local_variables.h"
#include "remote/task_picture.h"
#include "remote/thread_states.h"

namespace plimsoll::remote {
namespace {

// The table that the module _asyncio publishes, in its own file or the interpreter's. Names prove nothing, but tell
// where to look first.
std::optional<Address> find_asyncio_debug(const CoreFile& core, const OpenNamedFile& open) {
  const auto look_into = [&](bool by_name) -> std::optional<Address> {
    for (const MappedPart& part : core.notes.parts) {
      if (part.offset != 0 || (part.path.find("/_asyncio.") != std::string::npos) != by_name) continue;
      const UniqueFd file = open(part.path);
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
  std::vector<ThreadState> states = thread_states(core.image, core.layout, core.runtime);
  std::reverse(states.begin(), states.end());                     // the newest comes first
  std::map<Address, std::map<std::uint64_t, std::string>> names;  // of threads, by interpreter
  TaskPicture picture;
  for (const ThreadState& state : states) {
    const auto [known, is_first] = names.try_emplace(state.interpreter);
    if (is_first) known->second = cpython::thread_names(view, core.code_type, state.interpreter);
    const auto name = known->second.find(state.pthread);
    const Tid tid{static_cast<std::int32_t>(state.native_id)};
    picture.take(
        read_tasks(core.image, {core.layout, layout, core.code_type}, state, is_first ? state.interpreter : Address{}),
        {tid, tid, name != known->second.end() ? name->second : std::string(), '?'});
  }
  return picture.finish();
}

}  // namespace

Result<TaskDump> take_core_task_dump(const CoreFile& core, const OpenNamedFile& open) {
  PLIMSOLL_TRY(cpython::tells_of_tasks(core.layout.version));
  const Result<cpython::ObjectFields> fields = cpython::object_fields(core.layout.version);
  if (!fields.ok()) return fields.error();
  TaskDump dump;
  const std::optional<Address> table = find_asyncio_debug(core, open);
  if (table) {
    const Result<cpython::TaskLayout> layout = cpython::find_task_layout(core.image, core.layout, core.runtime, *table);
    if (!layout.ok()) return layout.error();
    dump = read_all(core, layout.value(), fields.value());
  }
  dump.has_asyncio = table.has_value();
  dump.pid = os::Pid{core.notes.pid};
  dump.version = core.layout.version;
  dump.command = core.notes.command;
  dump.is_of_core_file = true;
  dump.missing_bytes = core.missing_bytes;
  return dump;
}

}  // namespace plimsoll::remote
