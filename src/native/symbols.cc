#include "native/symbols.h"

#include <cxxabi.h>
#include <elf.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "native/elf_source.h"
#include "native/rust_name.h"

namespace plimsoll::native {
// Fills a SymbolTable.
class SymbolReader {
 public:
  static SymbolTable read(const ElfSource& source) {
    SymbolTable table;
    const std::vector<Elf64_Shdr> sections = source.sections();
    for (const Elf64_Word type : {Elf64_Word{SHT_SYMTAB}, Elf64_Word{SHT_DYNSYM}}) {
      source.each_symbol(sections, type, [&](const Elf64_Sym& symbol, const std::vector<char>& texts) {
        return add(symbol, texts, table);
      });
      if (!table.functions_.empty()) break;  // .symtab has all that .dynsym has
    }
    sort(table);
    for (const Elf64_Shdr& section : sections)
      if (section.sh_type == SHT_NOTE && table.build_id_.empty()) table.build_id_ = build_id_in(source, section);
    return table;
  }

 private:
  static std::string build_id_in(const ElfSource& source, const Elf64_Shdr& section) {
    constexpr std::uint64_t kLargestNotes = 65536;
    if (section.sh_size > kLargestNotes) return {};
    const std::vector<char> notes = source.rows<char>(section.sh_offset, section.sh_size);
    Elf64_Nhdr note{};
    const auto padded = [](std::uint64_t size) { return (size + 3) / 4 * 4; };
    for (std::size_t at = 0; notes.size() - at >= sizeof note;) {
      std::memcpy(&note, notes.data() + at, sizeof note);
      at += sizeof note;
      const std::uint64_t name = padded(note.n_namesz);
      if (name + padded(note.n_descsz) > notes.size() - at) return {};
      constexpr std::string_view kGnu("GNU\0", 4);
      if (note.n_type == NT_GNU_BUILD_ID && std::string_view(notes.data() + at, name) == kGnu)
        return {notes.data() + at + name, note.n_descsz};
      at += name + padded(note.n_descsz);
    }
    return {};
  }
  // If it is a function. False if there is no room for more names.
  static bool add(const Elf64_Sym& symbol, const std::vector<char>& texts, SymbolTable& table) {
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    const bool is_code = type == STT_FUNC || type == STT_GNU_IFUNC;
    if (!is_code || symbol.st_shndx == SHN_UNDEF || symbol.st_size == 0) return true;
    const std::string_view name = ElfSource::text_at(texts, symbol.st_name);
    if (name.empty()) return true;
    if (table.names_.size() + name.size() >= ElfSource::kLargestSection) return false;
    const auto size = std::min<std::uint64_t>(symbol.st_size, std::numeric_limits<std::uint32_t>::max());
    table.functions_.push_back({symbol.st_value, static_cast<std::uint32_t>(size),
                                static_cast<std::uint32_t>(table.names_.size()),
                                ELF64_ST_BIND(symbol.st_info) == STB_LOCAL});
    table.names_.append(name).push_back('\0');
    return true;
  }

  // Of several names for one function the first in this order is shown: global ones, then the shortest.
  static void sort(SymbolTable& table) {
    const auto length = [&](const SymbolTable::Function& function) {
      return std::string_view(table.names_.c_str() + function.name).size();
    };
    std::stable_sort(table.functions_.begin(), table.functions_.end(),
                     [&](const SymbolTable::Function& a, const SymbolTable::Function& b) {
                       if (a.start != b.start) return a.start < b.start;
                       if (a.is_local != b.is_local) return b.is_local;
                       return length(a) < length(b);
                     });
    const auto end =
        std::unique(table.functions_.begin(), table.functions_.end(),
                    [](const SymbolTable::Function& a, const SymbolTable::Function& b) { return a.start == b.start; });
    table.functions_.erase(end, table.functions_.end());
    table.functions_.shrink_to_fit();
    table.names_.shrink_to_fit();
  }
};

SymbolTable SymbolTable::of_file(int descriptor) {
  return descriptor < 0 ? SymbolTable() : SymbolReader::read(ElfSource(descriptor));
}

SymbolTable SymbolTable::of_image(std::string_view image) { return SymbolReader::read(ElfSource(image)); }

std::optional<std::uint64_t> variable_in(int descriptor, std::string_view name) {
  if (descriptor < 0) return std::nullopt;
  const ElfSource source(descriptor);
  const std::vector<Elf64_Shdr> sections = source.sections();
  std::optional<std::uint64_t> address;
  for (const Elf64_Word type : {Elf64_Word{SHT_SYMTAB}, Elf64_Word{SHT_DYNSYM}})
    source.each_symbol(sections, type, [&](const Elf64_Sym& symbol, const std::vector<char>& texts) {
      const bool is_variable = ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_shndx != SHN_UNDEF;
      if (is_variable && ElfSource::text_at(texts, symbol.st_name) == name) address = symbol.st_value;
      return !address;
    });
  return address;
}

std::string_view SymbolTable::find(std::uint64_t address, std::uint64_t& start) const {
  const auto next = std::upper_bound(functions_.begin(), functions_.end(), address,
                                     [](std::uint64_t wanted, const Function& each) { return wanted < each.start; });
  if (next == functions_.begin()) return {};
  const Function& found = *(next - 1);
  if (address - found.start >= found.size) return {};
  start = found.start;
  return names_.c_str() + found.name;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> SymbolTable::parts_of(std::string_view name) const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> parts;
  for (const Function& function : functions_) {
    const std::string_view each = names_.c_str() + function.name;
    if (each.starts_with(name) && (each.size() == name.size() || each.substr(name.size()).starts_with(".cold")))
      parts.emplace_back(function.start, function.start + function.size);
  }
  return parts;
}

namespace {

// The most bytes that a mangled name may become, as a power of two. A reference (S0_, T_) repeats something that came
// before it, which may have references itself: with so many of them, the most comes of it if each part refers to the
// one before three times. A pack (Dp) repeats something for each of its elements, of which there are fewer than bytes.
double most_doublings(std::string_view name) {
  const double length = std::log2(static_cast<double>(name.size()));
  const double reference = std::log2(3.0) / 3;
  double doublings = length;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i).starts_with("Dp")) doublings += length;
    if (name[i] != 'S' && name[i] != 'T') continue;
    const std::size_t end = name.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", i + 1);
    if (end != std::string_view::npos && name[end] == '_') doublings += reference;
  }
  return doublings;
}

}  // namespace

std::string demangled(std::string_view name) {
  if (std::optional<std::string> rust = rust_name(name)) return std::move(*rust);
  if (!name.starts_with("_Z")) return std::string(name);
  int status = 0;
  // The version of a symbol, or the clone that a compiler made of it, is not part of what is mangled.
  const std::string whole(name.substr(0, name.find('.')));
  // A few hundred bytes can say gigabytes. Of the names of real libraries one in a thousand is beyond this.
  constexpr double kMostDoublings = 24;
  if (most_doublings(whole) > kMostDoublings) return std::string(name);
  const std::unique_ptr<char, void (*)(void*)> text(::abi::__cxa_demangle(whole.c_str(), nullptr, nullptr, &status),
                                                    &std::free);
  if (text == nullptr || status != 0) return std::string(name);
  return text.get();
}

}  // namespace plimsoll::native
