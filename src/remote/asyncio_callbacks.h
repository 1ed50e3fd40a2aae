// remote/asyncio_callbacks.h: where asyncio of another CPython keeps its tasks. Up to 3.13 that, and how its callbacks
// are known, is found by the names that Python itself finds them by, in its modules.
#pragma once

#include <optional>

#include "cpython/future_callbacks.h"
#include "cpython/task_layout.h"
#include "remote/thread_states.h"

namespace plimsoll::remote {

namespace internal {

// Looks names up in the modules of an interpreter. Whatever stands in the memory, what is found is checked by its type.
template <memory::Reader M>
class AsyncioModules {
 public:
  AsyncioModules(const M& memory, const cpython::Layout& layout, const cpython::ObjectFields& fields, Address code_type,
                 Address interpreter)
      : view_(memory, layout, fields, kBudget),
        code_type_(code_type),
        modules_(view_.pointer(interpreter, fields.interpreter.modules)) {}

  // False if asyncio is not there, or not yet whole, or another one.
  bool find(cpython::FutureCallbacks& out) {
    namespace flag = cpython::type_flag;
    const Address tasks = names_of("asyncio.tasks"), types = names_of("types");
    out.current_tasks = entry_of(view_, tasks, "_current_tasks");
    out.task_type = entry_of(view_, tasks, "Task");
    out.future_type = entry_of(view_, names_of("asyncio.futures"), "Future");
    out.function_type = entry_of(view_, types, "FunctionType");
    out.cell_type = entry_of(view_, types, "CellType");
    out.method_type = entry_of(view_, types, "MethodType");
    out.partial_type = entry_of(view_, names_of("functools"), "partial");
    if (out.wakeup_is_method) out.wakeup_type = entry_of(view_, types, "BuiltinFunctionType");
    const Address group = entry_of(view_, names_of("asyncio.taskgroups"), "TaskGroup");
    if (!is_null(group) && is(group, flag::kType))
      out.group_member_done = function_in(view_.pointer(group, cpython::type_field::kDict), "_on_task_done", out);
    out.release_waiter = function_in(tasks, "_release_waiter", out);
    find_sets(tasks, out);
    return is(out.current_tasks, flag::kDict) && is_called(out.task_type, "_asyncio.Task") &&
           is_called(out.future_type, "_asyncio.Future") && is_called(out.function_type, "function") &&
           is_called(out.cell_type, "cell") && is_called(out.method_type, "method") &&
           (!out.wakeup_is_method || is_called(out.wakeup_type, "builtin_function_or_method")) &&
           find_closures(tasks, out);
  }

 private:
  static constexpr std::uint64_t kBudget = 1U << 22U;  // words

  [[nodiscard]] Address names_of(std::string_view module) const {
    const Address found = entry_of(view_, modules_, module);
    return is_null(found) ? found : view_.pointer(found, cpython::container_field::kModuleDict);
  }
  [[nodiscard]] bool is(Address object, std::uint64_t flag) const {
    return !is_null(object) && (view_.word(view_.type_of(object), cpython::type_field::kFlags) & flag) != 0;
  }
  [[nodiscard]] bool is_called(Address type, std::string_view name) const {
    return is(type, cpython::type_flag::kType) &&
           cpython::internal::is_c_string(view_, view_.pointer(type, cpython::type_field::kName), name);
  }
  // Null if it is none.
  [[nodiscard]] Address function_in(Address names, std::string_view name, const cpython::FutureCallbacks& known) const {
    const Address found = entry_of(view_, names, name);
    return !is_null(found) && view_.type_of(found) == known.function_type ? found : Address{};
  }

  // All tasks: up to 3.11 one WeakSet, whose attribute `data` is a set of weak references; then those in their first
  // step apart.
  void find_sets(Address tasks, cpython::FutureCallbacks& out) const {
    const Address all = entry_of(view_, tasks, "_all_tasks");
    const Address weak = is_null(all) ? entry_of(view_, tasks, "_scheduled_tasks") : all;
    if (is_null(weak)) return;
    const auto set_or_null = [&](Address object) {
      return !is_null(object) && is_called(view_.type_of(object), "set") ? object : Address{};
    };
    out.task_references = set_or_null(cpython::internal::attribute(view_, weak, "data"));
    out.eager_tasks = set_or_null(entry_of(view_, tasks, "_eager_tasks"));
  }

  // As _CALLBACKS of python/plimsoll/_tasks.py has them.
  [[nodiscard]] bool find_closures(Address tasks, cpython::FutureCallbacks& out) const {
    struct Known {
      std::string_view function, callback, future;
    };
    constexpr std::array<Known, 4> kKnown{{{"gather", "_done_callback", "outer"},
                                           {"_gather", "_done_callback", "outer"},
                                           {"shield", "_inner_done_callback", "outer"},
                                           {"_wait", "_on_completion", "waiter"}}};
    constexpr std::size_t kLeast = 3;  // either of the first two
    std::size_t count = 0;
    for (const Known& each : kKnown) {
      const Address function = function_in(tasks, each.function, out);
      if (is_null(function)) continue;
      const Address code = view_.pointer(function, out.function_code);
      const Address constants = view_.pointer(code, out.fields.code.consts);
      each_in_tuple(constants, [&](std::uint64_t, Address inner) {
        std::uint32_t cell = 0;
        if (count == out.closures.size() || view_.type_of(inner) != code_type_ ||
            !is_text(view_.pointer(inner, view_.layout().code.name), each.callback) ||
            !find_cell(inner, each.future, out.fields, cell))
          return;
        out.closures[count++] = {inner, cell};
      });
    }
    return count >= kLeast;
  }

  // The place of a name among the free variables of a code object.
  [[nodiscard]] bool find_cell(Address code, std::string_view name, const cpython::ObjectFields& fields,
                               std::uint32_t& cell) const {
    // Of co_localspluskinds.
    constexpr std::uint8_t kFree = 0x80;
    const bool is_apart = fields.code.freevars != cpython::kNoField;
    const Address names = view_.pointer(code, is_apart ? fields.code.freevars : fields.code.variable_names);
    const Address kinds = is_apart ? Address{} : view_.pointer(code, fields.code.variable_kinds);
    bool is_found = false;
    std::uint32_t place = 0;
    each_in_tuple(names, [&](std::uint64_t i, Address each) {
      const std::uint64_t kind_at = view_.layout().bytes.data + i;
      if (!is_apart && (view_.template number<std::uint8_t>(kinds, kind_at) & kFree) == 0) return;
      if (!is_found && is_text(each, name)) {
        is_found = true;
        cell = place;
      }
      ++place;
    });
    return is_found;
  }

  [[nodiscard]] bool is_text(Address object, std::string_view text) const {
    return is(object, cpython::type_flag::kText) && cpython::internal::is_text(view_, object, text);
  }
  template <typename Visit>
  void each_in_tuple(Address tuple, Visit visit) const {
    constexpr std::uint64_t kMost = 256;
    if (!is(tuple, cpython::type_flag::kTuple)) return;
    const std::uint64_t count = std::min(view_.item_count(tuple), kMost);
    for (std::uint64_t i = 0; i < count; ++i)
      visit(i, view_.pointer(tuple, view_.fields().tuple_items + i * sizeof(Address)));
  }

  const cpython::ObjectView<M> view_;
  const Address code_type_;
  const Address modules_;
};

}  // namespace internal

// Of the main interpreter whose _PyRuntime lies at `runtime`; none while asyncio is not imported there, if another
// module takes its place, or in another version. What runs meanwhile may be missed: ask again.
template <memory::Reader M>
std::optional<cpython::TaskLayout> find_asyncio_callbacks(const M& memory, const cpython::Layout& layout,
                                                          Address code_type, Address runtime) {
  Result<cpython::TaskLayout> tasks = cpython::find_older_tasks(memory, layout, runtime);
  if (!tasks.ok()) return std::nullopt;
  cpython::TaskLayout out = tasks.take();
  Address interpreter{};
  Address next{};
  if (!memory::load_address(memory, offset_by(runtime, layout.runtime.interpreters), next)) return std::nullopt;
  // The main one is the last.
  for (std::size_t i = 0; i < kMostInterpreters && !is_null(next); ++i) {
    interpreter = next;
    if (!memory::load_address(memory, offset_by(interpreter, layout.runtime.next_interpreter), next))
      return std::nullopt;
  }
  if (is_null(interpreter)) return std::nullopt;
  const cpython::ObjectFields fields = out.callbacks->fields;
  internal::AsyncioModules<M> modules(memory, layout, fields, code_type, interpreter);
  if (!modules.find(*out.callbacks)) return std::nullopt;
  return out;
}

// Where asyncio keeps its tasks, in the way of the version: by the table that it publishes, whose address `find_table`
// says (std::optional<Address>), or up to 3.13 as above. None while there is no asyncio. An error if there is, but its
// table makes no sense.
template <memory::Reader M, typename FindTable>
Result<std::optional<cpython::TaskLayout>> locate_tasks(const M& memory, const cpython::Layout& layout,
                                                        Address code_type, Address runtime, FindTable find_table) {
  using Found = std::optional<cpython::TaskLayout>;
  if (!cpython::tells_of_tasks(layout.version).ok())
    return is_null(code_type) ? Found{} : find_asyncio_callbacks(memory, layout, code_type, runtime);
  const std::optional<Address> table = find_table();
  if (!table) return Found{};
  Result<cpython::TaskLayout> tasks = cpython::find_task_layout(memory, layout, runtime, *table);
  if (!tasks.ok()) return tasks.error();
  return Found{tasks.take()};
}

}  // namespace plimsoll::remote
