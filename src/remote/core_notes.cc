#include "remote/core_notes.h"

#include <elf.h>
#include <sys/procfs.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace plimsoll::remote {
namespace {

// The note: a count and a page size, then for each a start, an end and an offset in pages; then their names.
std::vector<MappedPart> parse_files(std::string_view note) {
  std::vector<MappedPart> parts;
  const auto number = [&](std::size_t i) {
    std::uint64_t value = 0;
    if ((i + 1) * sizeof value <= note.size()) std::memcpy(&value, note.data() + i * sizeof value, sizeof value);
    return value;
  };
  const std::uint64_t count = number(0), page = number(1);
  if (count > kMostCoreParts || (2 + count * 3) * 8 > note.size()) return parts;
  std::string_view names = note.substr((2 + count * 3) * 8);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t end = names.find('\0');
    if (end == std::string_view::npos) break;
    const std::uint64_t start = number(2 + i * 3), stop = number(3 + i * 3);
    if (start < stop) parts.push_back({start, stop, number(4 + i * 3) * page, std::string(names.substr(0, end))});
    names.remove_prefix(end + 1);
  }
  return parts;
}

template <typename Struct>
std::optional<Struct> parse(std::string_view note) {
  Struct out;
  if (note.size() < sizeof out) return std::nullopt;
  std::memcpy(&out, note.data(), sizeof out);
  return out;
}

// By the numbers of DWARF, of the kernel's struct user_regs_struct (x86-64) or user_pt_regs (aarch64).
native::Registers registers_of(const elf_prstatus& thread) {
#if defined(__aarch64__)
  constexpr std::size_t kInstruction = 32;
  const auto index_of = [](std::size_t number) { return number; };
#else
  constexpr std::array<std::uint8_t, native::kRegisters> kIndex{10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0};
  constexpr std::size_t kInstruction = 16;
  const auto index_of = [&](std::size_t number) { return std::size_t{kIndex[number]}; };
#endif
  native::Registers registers;
  for (std::size_t i = 0; i < native::kRegisters; ++i) registers.value[i] = thread.pr_reg[index_of(i)];
  registers.pc = thread.pr_reg[kInstruction];
  return registers;
}

void read_process(const elf_prpsinfo& process, CoreNotes& notes) {
  notes.pid = process.pr_pid;
  notes.user = process.pr_uid;
  notes.group = process.pr_gid;
  const std::string_view arguments(process.pr_psargs, sizeof process.pr_psargs);
  notes.command = arguments.substr(0, arguments.find('\0'));
  notes.command.erase(notes.command.find_last_not_of(' ') + 1);  // the kernel ends each argument with one
}

}  // namespace

void read_core_notes(std::string_view segment, CoreNotes& notes) {
  const auto padded = [](std::uint64_t size) { return (size + 3) / 4 * 4; };
  while (const auto head = parse<Elf64_Nhdr>(segment)) {
    segment.remove_prefix(sizeof *head);
    const std::uint64_t name = padded(head->n_namesz);
    if (name > segment.size() || head->n_descsz > segment.size() - name) return;
    const std::string_view text = segment.substr(name, head->n_descsz);
    if (head->n_type == NT_FILE) notes.parts = parse_files(text);
    if (head->n_type == NT_PRPSINFO)
      if (const auto process = parse<elf_prpsinfo>(text)) read_process(*process, notes);
    if (head->n_type == NT_PRSTATUS && notes.threads.size() < kMostCoreThreads)
      if (const auto thread = parse<elf_prstatus>(text))
        notes.threads.push_back({thread->pr_pid, thread->pr_cursig, registers_of(*thread)});
    segment.remove_prefix(std::min<std::uint64_t>(segment.size(), name + padded(head->n_descsz)));
  }
}

}  // namespace plimsoll::remote
