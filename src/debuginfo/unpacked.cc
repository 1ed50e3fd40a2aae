#include "debuginfo/unpacked.h"

#include <dwarf.h>
#include <gelf.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string_view>

namespace plimsoll::debuginfo {
namespace {

// Calls visit(section, header, name) for each section of a file, until it returns false.
template <typename Visit>
void each_section(Elf* elf, Visit visit) {
  std::size_t names = 0;
  if (::elf_getshdrstrndx(elf, &names) != 0) return;
  for (Elf_Scn* section = nullptr; (section = ::elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (::gelf_getshdr(section, &header) == nullptr) continue;
    const char* name = ::elf_strptr(elf, names, header.sh_name);
    if (!visit(section, header, std::string_view(name != nullptr ? name : ""))) return;
  }
}

// Of a section of the older kind, .zdebug_info: "ZLIB", and its size, the highest byte first.
std::uint64_t older_size(int descriptor, const GElf_Shdr& header) {
  std::array<unsigned char, 12> head{};
  if (::pread(descriptor, head.data(), head.size(), static_cast<off_t>(header.sh_offset)) !=
      static_cast<ssize_t>(head.size()))
    return 0;
  std::uint64_t size = 0;
  for (std::size_t i = 4; i < head.size(); ++i) size = size << 8U | head[i];
  return std::memcmp(head.data(), "ZLIB", 4) == 0 ? size : 0;
}

// How long the table at an offset of a section of lines says that it is; 0 if there is none.
std::uint64_t table_size(const Elf_Data& data, std::uint64_t offset) {
  const auto take = [&](std::uint64_t at, auto& out) {
    if (data.d_buf == nullptr || at > data.d_size || data.d_size - at < sizeof out) return false;
    std::memcpy(&out, static_cast<const char*>(data.d_buf) + at, sizeof out);
    return true;
  };
  std::uint32_t size = 0;
  std::uint64_t long_size = 0;
  if (!take(offset, size)) return 0;
  constexpr std::uint32_t kIsLong = 0xffffffff;
  if (size != kIsLong) return size;
  return take(offset + sizeof size, long_size) ? long_size : 0;
}

std::uint64_t lines_of(Dwarf_Die& unit) {
  Dwarf_Attribute attribute;
  Dwarf_Word offset = 0;
  (void)::dwarf_formudata(::dwarf_attr(&unit, DW_AT_stmt_list, &attribute), &offset);  // (of split units, at the front)
  std::uint64_t size = 0;
  each_section(::dwarf_getelf(::dwarf_cu_getdwarf(unit.cu)),
               [&](Elf_Scn* section, const GElf_Shdr&, std::string_view name) {
                 if (name != ".debug_line" && name != ".zdebug_line" && name != ".debug_line.dwo") return true;
                 if (const Elf_Data* data = ::elf_getdata(section, nullptr); data != nullptr)
                   size = table_size(*data, offset);
                 return size == 0;
               });
  return size;
}

}  // namespace

std::uint64_t unpacked_bytes(int descriptor) {
  ::elf_version(EV_CURRENT);
  Elf* elf = ::elf_begin(descriptor, ELF_C_READ, nullptr);
  std::uint64_t sum = 0;
  const auto add = [&](std::uint64_t size) { sum = size > UINT64_MAX - sum ? UINT64_MAX : sum + size; };
  each_section(elf, [&](Elf_Scn* section, const GElf_Shdr& header, std::string_view name) {
    GElf_Chdr packed;
    if ((header.sh_flags & SHF_COMPRESSED) != 0 && ::gelf_getchdr(section, &packed) != nullptr) add(packed.ch_size);
    if (name.starts_with(".zdebug")) add(older_size(descriptor, header));
    return true;
  });
  ::elf_end(elf);
  return sum;
}

bool LineTables::allow(Dwarf_Die& unit) {
  const auto [known, is_new] = known_.try_emplace(unit.addr, false);
  if (!is_new) return known->second;
  const std::uint64_t size = lines_of(unit);
  if (size > kLargest || size > kLargestSum - sum_) return false;
  sum_ += size;
  return known->second = true;
}

}  // namespace plimsoll::debuginfo
