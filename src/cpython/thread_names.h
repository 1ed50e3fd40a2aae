// cpython/thread_names.h: what a program calls its threads: the names that Python's module threading keeps.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cpython/value_reader.h"

namespace plimsoll::cpython {

// Names of an interpreter's threads, by pthread_self(); as far as the module is imported and can be read.
template <memory::Reader M>
std::map<std::uint64_t, std::string> thread_names(const ObjectView<M>& view, Address code_type, Address interpreter) {
  constexpr std::uint64_t kMost = 1U << 12U;
  std::map<std::uint64_t, std::string> names;
  ValueReader<M> values(view, view.type_of(code_type), {});
  const auto is = [&](Address object, ValueKind kind) {
    const ValueClass* type = values.classes().of_object(object);
    return type != nullptr && type->kind == kind;
  };
  const Address modules = view.pointer(interpreter, view.fields().interpreter.modules);
  if (!is(modules, ValueKind::kDict)) return names;
  const Address threading = entry_of(view, modules, "threading");
  if (!is(threading, ValueKind::kModule)) return names;
  const Address active =
      entry_of(view, view.pointer(threading, container_field::kModuleDict + view.head_shift()), "_active");
  if (!is(active, ValueKind::kDict)) return names;
  each_item(
      view, active,
      [&](Address key, Address thread) {
        if (!is(key, ValueKind::kInt)) return;
        const std::string name = values.classes().short_text(values.attribute(thread, "_name"));
        if (const auto id = small_int(view, key); id && !name.empty()) names[*id] = name;
      },
      kMost);
  return names;
}

}  // namespace plimsoll::cpython
