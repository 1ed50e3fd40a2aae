// debuginfo/hostile_testing.h: ELF files as somebody with bad intentions would write them. For tests only.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/elf_testing.h"

namespace plimsoll::debuginfo {

// Numbers as debug information has them.
class DebugBytes {
 public:
  template <typename Integer>
  DebugBytes& put(Integer value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  DebugBytes& text(std::string_view text) {
    bytes_.append(text).push_back('\0');
    return *this;
  }
  // What has its own size in front of it: a unit.
  DebugBytes& unit(const DebugBytes& inner) {
    put(static_cast<std::uint32_t>(inner.bytes_.size()));
    bytes_ += inner.bytes_;
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// A section of a file.
struct NamedSection {
  std::string name, bytes;
  std::uint64_t flags = 0;
};
using NamedSections = std::vector<NamedSection>;

// A shared library whose code is from 0x1000 to 0x2000, with these sections.
inline std::string elf_with(const NamedSections& sections) {
  Elf64_Ehdr head = testing::elf_header(ET_DYN, 1);
  head.e_shentsize = sizeof(Elf64_Shdr);
  std::string body(sizeof head + sizeof(Elf64_Phdr), '\0');
  std::string names(1, '\0');
  std::vector<Elf64_Shdr> rows(1);
  const auto add = [&](const std::string& name, std::string_view bytes, Elf64_Word type, std::uint64_t flags) {
    Elf64_Shdr row{};
    row.sh_name = static_cast<Elf64_Word>(names.size());
    names.append(name).push_back('\0');
    row.sh_type = type;
    row.sh_flags = flags;
    row.sh_offset = body.size();
    row.sh_addralign = 1;
    if (name == ".shstrtab") bytes = names;
    row.sh_size = bytes.size();
    body += bytes;
    rows.push_back(row);
  };
  for (const auto& [name, bytes, flags] : sections) add(name, bytes, SHT_PROGBITS, flags);
  add(".shstrtab", {}, SHT_STRTAB, 0);
  head.e_shnum = static_cast<Elf64_Half>(rows.size());
  head.e_shstrndx = static_cast<Elf64_Half>(rows.size() - 1);
  body.resize((body.size() + 7) / 8 * 8);
  head.e_shoff = body.size();
  body.append(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(Elf64_Shdr));
  Elf64_Phdr code{};
  code.p_type = PT_LOAD;
  code.p_flags = PF_R | PF_X;
  code.p_vaddr = code.p_paddr = code.p_filesz = code.p_memsz = code.p_align = 0x1000;
  std::memcpy(body.data(), &head, sizeof head);
  std::memcpy(body.data() + sizeof head, &code, sizeof code);
  return body;
}

}  // namespace plimsoll::debuginfo
