// native/elf_source.h: an ELF file by its bytes, which may be anything.
//
// Not libelf's: that would be one more library to load into every recorded program, also those that are recorded
// without native frames, as its archive cannot be part of a shared object (its thread-local variable).
#pragma once

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace plimsoll::native {

// Reads an open file, or an image in memory; whoever has it must keep it.
class ElfSource {
 public:
  static constexpr std::uint64_t kLargestSection = std::uint64_t{256} << 20U;

  explicit ElfSource(int descriptor) : descriptor_(descriptor) {}
  explicit ElfSource(std::string_view image) : image_(image) {}

  // Exactly so many bytes; false if they are not all there. The file is not mapped: one that is cut short meanwhile
  // must be an error, not a fault.
  bool read(std::uint64_t offset, void* out, std::size_t size) const {
    if (offset > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) return false;
    if (descriptor_ < 0) {
      if (offset > image_.size() || size > image_.size() - offset) return false;
      std::memcpy(out, image_.data() + offset, size);
      return true;
    }
    auto* to = static_cast<char*>(out);
    for (std::size_t done = 0; done < size;) {
      const ssize_t got = ::pread(descriptor_, to + done, size - done, static_cast<off_t>(offset + done));
      if (got <= 0) return false;
      done += static_cast<std::size_t>(got);
    }
    return true;
  }
  // A whole section, as rows; empty if it is damaged, or larger than any that is real.
  template <typename Row>
  [[nodiscard]] std::vector<Row> rows(std::uint64_t offset, std::uint64_t size) const {
    if (size > kLargestSection || (descriptor_ < 0 && size > image_.size())) return {};
    std::vector<Row> rows(size / sizeof(Row));
    if (rows.empty() || !read(offset, rows.data(), rows.size() * sizeof(Row))) return {};
    return rows;
  }
  // The headers of its sections; none if it is no file of this machine's kind.
  [[nodiscard]] std::vector<Elf64_Shdr> sections() const {
    Elf64_Ehdr header{};
    if (!read(0, &header, sizeof header)) return {};
    const bool is_ours = std::equal(header.e_ident, header.e_ident + SELFMAG, ELFMAG) &&
                         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB &&
                         header.e_shentsize == sizeof(Elf64_Shdr);
    if (!is_ours) return {};
    return rows<Elf64_Shdr>(header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  }
  // The names of `sections`, each at its sh_name; none if there are none.
  [[nodiscard]] std::vector<char> names_of(const std::vector<Elf64_Shdr>& sections) const {
    Elf64_Ehdr header{};
    if (!read(0, &header, sizeof header) || header.e_shstrndx >= sections.size()) return {};
    return rows<char>(sections[header.e_shstrndx].sh_offset, sections[header.e_shstrndx].sh_size);
  }
  // The header of the first section of a name, if there is one.
  [[nodiscard]] std::optional<Elf64_Shdr> section(std::string_view name) const {
    const std::vector<Elf64_Shdr> all = sections();
    const std::vector<char> names = names_of(all);
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Elf64_Shdr& each) { return text_at(names, each.sh_name) == name; });
    return found != all.end() ? std::optional(*found) : std::nullopt;
  }
  // The text at an offset of a table of them; empty if there is none.
  static std::string_view text_at(const std::vector<char>& texts, std::uint32_t offset) {
    constexpr std::size_t kLongest = 4096;
    if (offset >= texts.size()) return {};
    return {texts.data() + offset, ::strnlen(texts.data() + offset, std::min(texts.size() - offset, kLongest))};
  }
  // Calls visit(const Elf64_Sym&, texts) for each symbol in the table of a type, of which text_at(texts, st_name) is
  // the name, until that is false.
  template <typename Visit>
  void each_symbol(const std::vector<Elf64_Shdr>& sections, Elf64_Word type, Visit visit) const {
    for (const Elf64_Shdr& section : sections) {
      if (section.sh_type != type || section.sh_link >= sections.size()) continue;
      const Elf64_Shdr& table = sections[section.sh_link];
      const std::vector<char> texts = rows<char>(table.sh_offset, table.sh_size);
      for (const Elf64_Sym& symbol : rows<Elf64_Sym>(section.sh_offset, section.sh_size))
        if (!visit(symbol, texts)) return;
      return;  // the standard lets a file have one table of each type; one with thousands would take hours
    }
  }

 private:
  const int descriptor_ = -1;
  const std::string_view image_;
};

}  // namespace plimsoll::native
