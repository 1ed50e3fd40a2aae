#include "remote/program_names.h"

#include "cpython/thread_names.h"
#include "memory/remote.h"

namespace plimsoll::remote {

std::map<std::uint64_t, std::string> program_names(const Target& target, Address interpreter) {
  constexpr std::uint64_t kWords = 1U << 16U;  // that one reading may cost
  const Result<cpython::ObjectFields> fields = cpython::object_fields(target.layout.version);
  if (!fields.ok() || is_null(target.code_type)) return {};
  const memory::RemoteReader memory = target.memory();
  memory::PagedReader pages(memory);
  const auto read = [&] {
    pages.forget();
    const cpython::ObjectView<memory::PagedReader> view(pages, target.layout, fields.value(), kWords);
    return cpython::thread_names(view, target.code_type, interpreter);
  };
  std::map<std::uint64_t, std::string> names = read();
  const std::map<std::uint64_t, std::string> again = read();
  std::erase_if(names, [&](const auto& name) {
    const auto same = again.find(name.first);
    return same == again.end() || same->second != name.second;
  });
  return names;
}

}  // namespace plimsoll::remote
