#include "native/loaded_file.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "native/elf_source.h"

namespace plimsoll::native {
namespace {

constexpr std::size_t kMostHeaders = 128;

// The address of .eh_frame, as .eh_frame_hdr at `header` says it: four bytes of which the second tells how the address
// behind them is written. 0 if it is not written as all linkers do, relative to itself in 32 bits.
std::uint64_t indexed_section(const ProcessMemory& memory, std::uint64_t header) {
  constexpr std::uint32_t kVersion = 1;
  constexpr std::uint32_t kRelative = 0x1b;  // DW_EH_PE_pcrel | DW_EH_PE_sdata4
  std::uint32_t kinds = 0;
  std::uint32_t distance = 0;
  if (!memory.load(Address{header}, kinds) || !memory.load(Address{header + 4}, distance)) return 0;
  if ((kinds & 0xffU) != kVersion || ((kinds >> 8U) & 0xffU) != kRelative) return 0;
  return header + 4 + static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(distance)});
}

// The build-id among a file's notes, which are in memory from `at` to `end`.
std::optional<ModuleMark> build_id_in(const ProcessMemory& memory, std::uint64_t at, std::uint64_t end) {
  constexpr int kMostNotes = 16;
  constexpr std::uint64_t kLargestId = 64;
  const auto aligned = [](std::uint64_t size) { return (size + 3) & ~std::uint64_t{3}; };
  Elf64_Nhdr note{};
  for (int seen = 0; seen < kMostNotes && at < end && memory.read(Address{at}, &note, sizeof note); ++seen) {
    at += sizeof note + aligned(note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz > 0 && note.n_descsz <= kLargestId)
      return ModuleMark{at, note.n_descsz, 0};
    at += aligned(note.n_descsz);
  }
  return std::nullopt;
}

constexpr std::size_t kLargestMark = 1024;

// Where a file's mark is.
ModuleMark place_of_mark(const Module& module, const std::vector<Elf64_Phdr>& headers, const ProcessMemory& memory) {
  for (const Elf64_Phdr& header : headers) {
    const std::uint64_t start = module.slide + header.p_vaddr;
    if (header.p_type != PT_NOTE) continue;
    if (const auto id = build_id_in(memory, start, start + header.p_filesz)) return *id;
  }
  return {module.first.start, kLargestMark, 0};
}

// A hash of the bytes that are in memory where a mark is; 0 if they cannot be read.
std::size_t hash_at(const ModuleMark& mark, const ProcessMemory& memory) {
  std::array<char, kLargestMark> bytes;
  if (!memory.read(Address{mark.start}, bytes.data(), mark.size)) return 0;
  return std::hash<std::string_view>{}({bytes.data(), mark.size});
}

// Where .eh_frame is in memory; 0 if that is not known. An index of it tells, for which the linker made a header;
// static executables have none (they register the section themselves), but a table of sections, which is in the file
// only.
std::uint64_t find_section(const Module& module, const std::vector<Elf64_Phdr>& headers, const LoadedFiles& files) {
  if (const Elf64_Phdr* index = header_of(headers, PT_GNU_EH_FRAME))
    return indexed_section(files.memory, module.slide + index->p_vaddr);
  if (module.first.inode == 0) return 0;
  const UniqueFd file = files.open(module.first);
  const std::optional<Elf64_Shdr> section = ElfSource(file.get()).section(".eh_frame");
  return section && section->sh_addr != 0 ? module.slide + section->sh_addr : 0;
}

}  // namespace

bool read_headers(const ProcessMemory& memory, std::uint64_t start, std::vector<Elf64_Phdr>& headers) {
  Elf64_Ehdr file{};
  if (!memory.read(Address{start}, &file, sizeof file)) return false;
  const bool is_ours = std::equal(file.e_ident, file.e_ident + SELFMAG, ELFMAG) &&
                       file.e_ident[EI_CLASS] == ELFCLASS64 && file.e_phentsize == sizeof(Elf64_Phdr);
  if (!is_ours || file.e_phnum == 0 || file.e_phnum > kMostHeaders) return false;
  headers.resize(file.e_phnum);
  return memory.read(Address{start + file.e_phoff}, headers.data(), headers.size() * sizeof(Elf64_Phdr));
}

const Elf64_Phdr* header_of(const std::vector<Elf64_Phdr>& headers, std::uint32_t type) {
  const auto found =
      std::find_if(headers.begin(), headers.end(), [&](const Elf64_Phdr& each) { return each.p_type == type; });
  return found != headers.end() ? &*found : nullptr;
}

std::uint64_t slide_of(std::uint64_t start, const Elf64_Phdr& first) {
  return start - (first.p_vaddr - first.p_offset);
}

bool is_replaced(const Module& module, const ProcessMemory& memory) {
  const std::size_t hash = hash_at(module.mark, memory);
  return hash != 0 && hash != module.mark.hash;
}

void compile(Module& module, RulePool& pool, const LoadedFiles& files, const Meanwhile& meanwhile) {
  const ProcessMemory& memory = files.memory;
  std::vector<Elf64_Phdr> headers;
  module.is_elf = read_headers(memory, module.first.start, headers);
  if (const Elf64_Phdr* first = header_of(headers, PT_LOAD)) module.slide = slide_of(module.first.start, *first);
  module.mark = place_of_mark(module, headers, memory);
  module.mark.hash = hash_at(module.mark, memory);
  if (!module.is_elf || header_of(headers, PT_LOAD) == nullptr) return;
  const std::uint64_t section = find_section(module, headers, files);
  if (section == 0) return;
  for (const Elf64_Phdr& header : headers) {
    const std::uint64_t start = module.slide + header.p_vaddr;
    if (header.p_type != PT_LOAD || section < start || section - start >= header.p_filesz) continue;
    const std::uint64_t size = std::min(header.p_filesz - (section - start), ElfSource::kLargestSection);
    std::vector<std::byte> bytes(size);
    if (!memory.read(Address{section}, bytes.data(), bytes.size())) return;
    module.table = compile_eh_frame({bytes, section, module.first.start, module.end}, pool, meanwhile);
    return;
  }
}

}  // namespace plimsoll::native
