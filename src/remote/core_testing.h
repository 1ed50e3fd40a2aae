// remote/core_testing.h: core files and programs drawn byte by byte, for tests only. No product code may include it.
#pragma once

#include <elf.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/elf_testing.h"
#include "base/unique_fd.h"

namespace plimsoll::remote::testing {

using plimsoll::testing::elf_header;

template <typename Struct>
void append(std::string& out, const Struct& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Bytes as a file that nobody else sees.
inline UniqueFd hidden_file(std::string_view bytes) {
  UniqueFd file(::memfd_create("drawn", MFD_CLOEXEC));
  if (::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) file.reset();
  return file;
}
inline std::string path_of(const UniqueFd& file) { return "/proc/self/fd/" + std::to_string(file.get()); }

inline Elf64_Phdr segment(std::uint32_t type, std::uint64_t offset, std::uint64_t address, std::uint64_t size) {
  Elf64_Phdr made{};
  made.p_type = type;
  made.p_flags = PF_R | PF_W;
  made.p_offset = offset;
  made.p_vaddr = address;
  made.p_filesz = made.p_memsz = size;
  return made;
}

// A program that is loaded from address 0 on, and has these symbols.
inline std::string drawn_program(const std::vector<std::pair<std::string, std::uint64_t>>& symbols) {
  std::string names(1, '\0'), rows(sizeof(Elf64_Sym), '\0');
  for (const auto& [name, value] : symbols) {
    append(rows, Elf64_Sym{static_cast<Elf64_Word>(names.size()), 0x11, 0, 1, value, 8});
    names += name + '\0';
  }
  constexpr std::uint64_t kHeads = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  Elf64_Ehdr head = elf_header(ET_EXEC, 1);
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = 3;
  head.e_shstrndx = 2;
  head.e_shoff = kHeads + rows.size() + names.size();
  std::string out;
  append(out, head);
  append(out, segment(PT_LOAD, 0, 0, kHeads));
  out += rows + names;
  append(out, Elf64_Shdr{});
  Elf64_Shdr section{};
  section.sh_type = SHT_DYNSYM;
  section.sh_offset = kHeads;
  section.sh_size = rows.size();
  section.sh_link = 2;
  section.sh_entsize = sizeof(Elf64_Sym);
  append(out, section);
  section = {};
  section.sh_type = SHT_STRTAB;
  section.sh_offset = kHeads + rows.size();
  section.sh_size = names.size();
  append(out, section);
  return out;
}

inline std::string note(std::uint32_t type, std::string_view content) {
  std::string out;
  append(out, Elf64_Nhdr{5, static_cast<Elf64_Word>(content.size()), type});
  out.append("CORE\0\0\0\0", 8);
  out += content;
  out.resize((out.size() + 3) / 4 * 4);
  return out;
}

// A core file of a process that had `program` mapped at `base`, and `memory` there.
inline std::string drawn_core(const std::string& program, std::uint64_t base, const std::string& memory,
                              std::int32_t pid, std::int16_t signal, std::uint32_t user = 0) {
  elf_prpsinfo process{};
  process.pr_uid = process.pr_gid = user;
  process.pr_pid = pid;
  std::strcpy(process.pr_psargs, "python app.py ");
  elf_prstatus thread{};
  thread.pr_pid = pid;
  thread.pr_cursig = signal;
  std::string files, notes, text;
  for (const std::uint64_t word : {std::uint64_t{1}, std::uint64_t{4096}, base, base + memory.size(), std::uint64_t{0}})
    append(files, word);
  files += program + '\0';
  append(text, process);
  notes += note(NT_PRPSINFO, text);
  text.clear();
  append(text, thread);
  notes += note(NT_PRSTATUS, text) + note(NT_FILE, files);
  constexpr std::uint64_t kHeads = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr);
  std::string out;
  append(out, elf_header(ET_CORE, 2));
  append(out, segment(PT_NOTE, kHeads, 0, notes.size()));
  append(out, segment(PT_LOAD, kHeads + notes.size(), base, memory.size()));
  return out + notes + memory;
}

}  // namespace plimsoll::remote::testing
