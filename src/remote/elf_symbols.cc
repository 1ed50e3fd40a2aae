#include "remote/elf_symbols.h"

#include <elf.h>

#include <algorithm>

#include "remote/elf_file.h"

namespace plimsoll::remote {
namespace {

constexpr std::uint64_t kPage = 4096;
// No interpreter has nearly as many; more is damage.
constexpr std::size_t kMostSymbols = 4'000'000;

std::optional<std::uint64_t> first_loaded_address(Elf* elf) {
  std::size_t count = 0;
  if (::elf_getphdrnum(elf, &count) != 0) return std::nullopt;
  for (std::size_t i = 0; i < std::min<std::size_t>(count, UINT16_MAX); ++i) {
    GElf_Phdr header;
    if (::gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr) return std::nullopt;
    if (header.p_type == PT_LOAD) return (header.p_vaddr - header.p_offset) / kPage * kPage;
  }
  return std::nullopt;
}

// The bytes of a section of names; empty if there is none.
std::string_view texts_of(Elf* elf, std::size_t index) {
  Elf_Scn* section = ::elf_getscn(elf, index);
  const Elf_Data* data = section != nullptr ? ::elf_getdata(section, nullptr) : nullptr;
  if (data == nullptr || data->d_buf == nullptr) return {};
  return {static_cast<const char*>(data->d_buf), data->d_size};
}

// Whether the text at a place is this one. Of a damaged file all may be one text as long as the file.
bool is_text(std::string_view texts, std::uint64_t at, std::string_view wanted) {
  return at < texts.size() && texts.size() - at > wanted.size() && texts.substr(at, wanted.size()) == wanted &&
         texts[at + wanted.size()] == '\0';
}

void look_up(Elf* elf, Elf_Scn* section, const GElf_Shdr& header, std::span<const std::string_view> names,
             ElfSymbols& out) {
  Elf_Data* data = ::elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return;
  const std::string_view texts = texts_of(elf, header.sh_link);
  const std::size_t count = std::min<std::size_t>(data->d_size / header.sh_entsize, kMostSymbols);
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (::gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) return;
    if (symbol.st_shndx == SHN_UNDEF) continue;
    for (std::size_t n = 0; n < names.size(); ++n)
      if (!out.symbols[n] && is_text(texts, symbol.st_name, names[n])) out.symbols[n] = symbol.st_value;
  }
}

// Goes through the sections of one type, until the visit is false.
template <typename Visit>
void each_section(Elf* elf, GElf_Word type, Visit visit) {
  Elf_Scn* section = nullptr;
  while ((section = ::elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr header;
    if (::gelf_getshdr(section, &header) != nullptr && header.sh_type == type && !visit(section, header)) return;
  }
}

std::optional<std::uint64_t> section_address(Elf* elf, std::string_view wanted) {
  std::size_t names = 0;
  std::optional<std::uint64_t> found;
  if (::elf_getshdrstrndx(elf, &names) != 0) return found;
  const std::string_view texts = texts_of(elf, names);
  const auto look = [&](Elf_Scn*, const GElf_Shdr& header) {
    if (is_text(texts, header.sh_name, wanted)) found = header.sh_addr;
    return true;
  };
  each_section(elf, SHT_PROGBITS, look);
  each_section(elf, SHT_NOBITS, look);
  return found;
}

}  // namespace

std::optional<ElfSymbols> read_elf_symbols(int descriptor, std::span<const std::string_view> names) {
  const ElfHandle elf = open_elf(descriptor);
  if (!elf) return std::nullopt;
  ElfSymbols out;
  const std::optional<std::uint64_t> first = first_loaded_address(elf.get());
  if (!first) return std::nullopt;
  out.first_address = *first;
  out.symbols.resize(names.size());
  // The standard lets a file have one table of each type; one with thousands would take hours.
  const auto look = [&](Elf_Scn* section, const GElf_Shdr& header) {
    look_up(elf.get(), section, header, names, out);
    return false;
  };
  each_section(elf.get(), SHT_DYNSYM, look);
  const bool has_none = std::none_of(out.symbols.begin(), out.symbols.end(), [](const auto& at) { return at; });
  if (has_none) each_section(elf.get(), SHT_SYMTAB, look);
  out.python_runtime = section_address(elf.get(), ".PyRuntime");
  return out;
}

std::optional<std::uint64_t> find_elf_section(int descriptor, std::string_view name) {
  const ElfHandle elf = open_elf(descriptor);
  if (!elf) return std::nullopt;
  const std::optional<std::uint64_t> first = first_loaded_address(elf.get());
  const std::optional<std::uint64_t> section = section_address(elf.get(), name);
  if (!first || !section) return std::nullopt;
  return *section - *first;
}

}  // namespace plimsoll::remote
