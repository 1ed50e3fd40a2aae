#include "debuginfo/split_unit.h"

#include <dwarf.h>

#include "debuginfo/debug_files.h"

namespace plimsoll::debuginfo {
namespace {

std::string text_of(Dwarf_Die& die, unsigned kind) {
  Dwarf_Attribute attribute;
  const char* text = ::dwarf_formstring(::dwarf_attr(&die, kind, &attribute));
  return text != nullptr ? text : "";
}

}  // namespace

Dwarf_Die split_part_of(Dwarf_CU* unit, Dwarf_Die& skeleton, const std::string& directory) {
  Dwarf_Die part{};
  std::string name = text_of(skeleton, DW_AT_dwo_name);
  if (name.empty()) name = text_of(skeleton, DW_AT_GNU_dwo_name);
  const std::string compiled_in = text_of(skeleton, DW_AT_comp_dir);
  // The places where libdw looks.
  for (const std::string& folder : {directory, compiled_in, directory + "/" + compiled_in})
    if (!may_be_opened(name.starts_with('/') ? name : folder + "/" + name)) return part;
  if (::dwarf_cu_info(unit, nullptr, nullptr, nullptr, &part, nullptr, nullptr, nullptr) != 0) part = {};
  return part;
}

}  // namespace plimsoll::debuginfo
