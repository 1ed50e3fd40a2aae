#include "debuginfo/line_resolver.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/regular_file.h"
#include "base/unique_fd.h"
#include "debuginfo/debug_files.h"
#include "debuginfo/split_unit.h"
#include "debuginfo/unpacked.h"
#include "native/symbols.h"

namespace plimsoll::debuginfo {
namespace {

constexpr int kDeepest = 200;  // entries in each other; no compiler writes so many

struct EndDwfl {
  void operator()(Dwfl* dwfl) const { ::dwfl_end(dwfl); }
};

bool is_scope(int tag) {
  switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_subprogram:
    case DW_TAG_lexical_block: return true;
    default: return false;
  }
}

std::string text_of(Dwarf_Attribute* attribute) {
  const char* text = attribute != nullptr ? ::dwarf_formstring(attribute) : nullptr;
  return text != nullptr ? text : "";
}

// What the linker knows it by, as its programmer wrote it; else its plain name.
std::string name_of(Dwarf_Die* die, bool& is_linked) {
  is_linked = true;
  Dwarf_Attribute attribute;
  for (const unsigned kind : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name})
    if (const std::string linked = text_of(::dwarf_attr_integrate(die, kind, &attribute)); !linked.empty())
      return native::demangled(linked);
  is_linked = false;
  return text_of(::dwarf_attr_integrate(die, DW_AT_name, &attribute));
}

// The entry that says what a function is, of one that says where its code is.
Dwarf_Die declaration_of(Dwarf_Die die) {
  constexpr int kMostSteps = 8;
  for (int steps = 0; steps < kMostSteps; ++steps) {
    Dwarf_Attribute attribute;
    Dwarf_Die next;
    Dwarf_Attribute* found = ::dwarf_attr(&die, DW_AT_abstract_origin, &attribute);
    if (found == nullptr) found = ::dwarf_attr(&die, DW_AT_specification, &attribute);
    if (found == nullptr || ::dwarf_formref_die(found, &next) == nullptr) break;
    die = next;
  }
  return die;
}

// The entry among those directly below `parent` that is at an address, or has it below itself; false if there is none.
bool child_with(Dwarf_Die& parent, const void* wanted, Dwarf_Die& found) {
  Dwarf_Die next;
  if (::dwarf_child(&parent, &next) != 0) return false;
  const std::less_equal<> is_until;
  if (!is_until(next.addr, wanted)) return false;
  do {
    found = next;
  } while (::dwarf_siblingof(&found, &next) == 0 && is_until(next.addr, wanted));
  return true;
}

// "ship::" for what is in a namespace or a class of that name. (dwarf_getscopes_die would find them, but calls itself
// for each entry in another, and so is at the end of its stack where a file has some hundred thousands of them.)
std::string scopes_of(Dwarf_Die declaration) {
  Dwarf_Die scope;
  Dwarf_Die child;
  std::string text;
  if (::dwarf_diecu(&declaration, &scope, nullptr, nullptr) == nullptr) return text;
  for (int depth = 0; depth < kDeepest && child_with(scope, declaration.addr, child); ++depth, scope = child) {
    if (child.addr == declaration.addr) return text;
    const int tag = ::dwarf_tag(&child);
    const bool is_named = tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type;
    if (!is_named) continue;
    const char* name = ::dwarf_diename(&child);
    // (That of a lambda is such a class.)
    const char* unnamed = tag == DW_TAG_namespace ? "(anonymous namespace)" : "(anonymous class)";
    text += std::string(name != nullptr ? name : unnamed) + "::";
  }
  return {};
}

bool is_of_c(Dwarf_Die* unit) {
  switch (::dwarf_srclang(unit)) {
    case DW_LANG_C89:
    case DW_LANG_C:
    case DW_LANG_C99:
    case DW_LANG_C11: return true;
    default: return false;
  }
}

std::uint32_t number_of(Dwarf_Die* die, unsigned kind) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (::dwarf_formudata(::dwarf_attr_integrate(die, kind, &attribute), &value) != 0) return 0;
  return value <= INT32_MAX ? static_cast<std::uint32_t>(value) : 0;
}

// Where the debug information of a file of that path was found.
std::string directory_of(Dwfl_Module* module, const std::string& path) {
  const char* apart = nullptr;
  ::dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &apart);
  const std::string file = apart != nullptr ? apart : path;
  return file.substr(0, file.rfind('/') + 1);
}

}  // namespace

class LineResolver::Impl {
 public:
  explicit Impl(const Limits& limits) : limits_(limits) {}

  Status open(const std::string& path, const std::string& build_id) {
    UniqueFd file = open_regular_file(path);
    struct stat facts {};
    if (!file.is_open() || ::fstat(file.get(), &facts) != 0)
      return Error{ErrorKind::kBadInput, path + ": is not there any more"};
    if (static_cast<std::uint64_t>(facts.st_size) > limits_.largest_file)
      return Error{ErrorKind::kBadInput, path + ": is too large"};
    if (unpacked_bytes(file.get()) > kMostUnpacked)
      return Error{ErrorKind::kBadInput, path + ": unpacked it is too large"};
    dwfl_.reset(::dwfl_begin(callbacks()));
    if (dwfl_ == nullptr) return Error{ErrorKind::kBadInput, "libdw: " + std::string(::dwfl_errmsg(-1))};
    ::dwfl_report_begin(dwfl_.get());
    Dwfl_Module* module = ::dwfl_report_offline(dwfl_.get(), "", path.c_str(), file.get());
    if (module != nullptr) (void)file.release();  // it belongs to libdw
    ::dwfl_report_end(dwfl_.get(), nullptr, nullptr);
    if (module == nullptr) return Error{ErrorKind::kBadInput, path + ": " + ::dwfl_errmsg(-1)};
    GElf_Addr elf_bias = 0;
    Elf* elf = ::dwfl_module_getelf(module, &elf_bias);
    if (elf == nullptr) return Error{ErrorKind::kBadInput, path + ": " + ::dwfl_errmsg(-1)};
    const unsigned char* id = nullptr;
    GElf_Addr id_address = 0;
    const int id_size = ::dwfl_module_build_id(module, &id, &id_address);
    if (!build_id.empty() &&
        (id_size <= 0 || build_id != std::string(reinterpret_cast<const char*>(id), static_cast<std::size_t>(id_size))))
      return Error{ErrorKind::kBadInput, path + ": is not the file any more that was recorded"};
    Dwarf_Addr bias = 0;
    dwarf_ = ::dwfl_module_getdwarf(module, &bias);
    if (dwarf_ == nullptr) return Error{ErrorKind::kBadInput, path + ": has no debug information"};
    distance_ = elf_bias - bias;
    first_code_ = first_code_of(elf) + distance_;
    index_units(directory_of(module, path));
    return Ok{};
  }

  std::vector<Place> find(std::uint64_t address) {
    const Dwarf_Addr at = address + distance_;
    if (is_late()) return {};
    const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), at,
                                        [](Dwarf_Addr wanted, const Range& each) { return wanted < each.start; });
    if (after == ranges_.begin() || at >= (after - 1)->end) return {};
    Unit& unit = units_[(after - 1)->index];
    const Function* function = function_in(unit, at);
    if (function == nullptr) return {};
    std::vector<Dwarf_Die> scopes;
    Dwarf_Die die;
    if (::dwarf_offdie(::dwarf_cu_getdwarf(unit.scopes.cu), function->offset, &die) == nullptr) return {};
    scopes.push_back(die);
    add_inlined(die, at, scopes, 0);
    if (is_late()) return {};  // some may be missing
    return places(unit, at, scopes);
  }

 private:
  // The code of a function, or of a unit.
  struct Range {
    Dwarf_Addr start = 0, end = 0;
    std::size_t index = 0;
  };
  struct Function {
    Dwarf_Addr start = 0, end = 0;
    Dwarf_Off offset = 0;
  };
  struct Unit {
    Dwarf_Die lines;   // has the table of lines
    Dwarf_Die scopes;  // has the functions; the same, but where they are in a .dwo file
    std::vector<Function> functions;
    bool is_indexed = false;
  };

  bool is_late() const { return monotonic_ns() > limits_.deadline_ns; }

  static GElf_Addr first_code_of(Elf* elf) {
    std::size_t count = 0;
    GElf_Addr first = 0;
    bool is_found = false;
    if (::elf_getphdrnum(elf, &count) != 0) return 0;
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Phdr header;
      if (::gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr) break;
      if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
      first = is_found ? std::min(first, header.p_vaddr) : header.p_vaddr;
      is_found = true;
    }
    return first;
  }

  // Whether there are too many ranges by now, or there is no time for more.
  bool has_enough_ranges() {
    constexpr std::size_t kBetweenLooks = 4096;
    return ranges_seen_ >= limits_.most_ranges || (ranges_seen_ % kBetweenLooks == kBetweenLooks - 1 && is_late());
  }

  // (Of functions that the linker has left out, as another file had them, the debug information is still there, and
  // says that they begin at 0.)
  template <typename Add>
  void each_range(Dwarf_Die* die, Add add) {
    Dwarf_Addr base = 0;
    Dwarf_Addr start = 0;
    Dwarf_Addr end = 0;
    std::ptrdiff_t at = 0;
    for (; !has_enough_ranges() && (at = ::dwarf_ranges(die, at, &base, &start, &end)) > 0; ++ranges_seen_)
      if (start < end && start >= first_code_) add(start, end);
  }

  // `directory`: of the file that the units are in.
  void index_units(const std::string& directory) {
    Dwarf_CU* unit = nullptr;
    Dwarf_Die die;
    std::uint8_t type = 0;
    while (::dwarf_get_units(dwarf_, unit, &unit, nullptr, &type, &die, nullptr) == 0 && !is_late()) {
      if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
      const Dwarf_Die part = type == DW_UT_skeleton ? split_part_of(unit, die, directory) : Dwarf_Die{};
      units_.push_back({die, part.addr != nullptr ? part : die, {}, false});
      each_range(&die, [&](Dwarf_Addr start, Dwarf_Addr end) { ranges_.push_back({start, end, units_.size() - 1}); });
    }
    std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.start < b.start; });
  }

  void add_functions(Unit& unit, Dwarf_Die& parent, int depth) {
    Dwarf_Die child;
    if (depth > kDeepest || ::dwarf_child(&parent, &child) != 0) return;
    do {
      if (entries_ == limits_.most_entries || (++entries_ % 4096 == 0 && is_late())) return;
      const int tag = ::dwarf_tag(&child);
      if (tag == DW_TAG_subprogram)
        each_range(&child, [&](Dwarf_Addr start, Dwarf_Addr end) {
          unit.functions.push_back({start, end, ::dwarf_dieoffset(&child)});
        });
      if (is_scope(tag)) add_functions(unit, child, depth + 1);
    } while (::dwarf_siblingof(&child, &child) == 0);
  }

  const Function* function_in(Unit& unit, Dwarf_Addr at) {
    if (!std::exchange(unit.is_indexed, true)) {
      entries_ = 0;
      add_functions(unit, unit.scopes, 0);
      std::sort(unit.functions.begin(), unit.functions.end(),
                [](const Function& a, const Function& b) { return a.start < b.start; });
    }
    const auto after = std::upper_bound(unit.functions.begin(), unit.functions.end(), at,
                                        [](Dwarf_Addr wanted, const Function& each) { return wanted < each.start; });
    if (after == unit.functions.begin() || at >= (after - 1)->end) return nullptr;
    return &*(after - 1);
  }

  // What was inlined at an address into `parent`, the outer ones first.
  void add_inlined(Dwarf_Die parent, Dwarf_Addr at, std::vector<Dwarf_Die>& scopes, int depth) {
    Dwarf_Die child;
    if (depth > kDeepest || ::dwarf_child(&parent, &child) != 0) return;
    // (Each may have a list of ranges that is as long as the file.)
    constexpr std::size_t kBetweenLooks = 16;
    do {
      if (++entries_ % kBetweenLooks == 0 && is_late()) return;
      const int tag = ::dwarf_tag(&child);
      if ((tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block) || ::dwarf_haspc(&child, at) != 1) continue;
      if (tag == DW_TAG_inlined_subroutine) scopes.push_back(child);
      return add_inlined(child, at, scopes, depth + 1);
    } while (::dwarf_siblingof(&child, &child) == 0);
  }

  // Functions that the linker knows nothing of have no namespace in their names.
  const std::string& full_name(Unit& unit, Dwarf_Die& die) {
    Dwarf_Die declaration = declaration_of(die);
    const auto [known, is_new] = names_.try_emplace(declaration.addr);
    if (is_new) {
      bool is_linked = false;
      known->second = name_of(&die, is_linked);
      if (!is_linked && !known->second.empty() && !is_of_c(&unit.scopes))
        known->second.insert(0, scopes_of(declaration));
    }
    return known->second;
  }

  // A name of a file as the unit has it, made absolute.
  std::string absolute(Unit& unit, const char* file) {
    if (file == nullptr) return {};
    Dwarf_Attribute attribute;
    const std::string directory = text_of(::dwarf_attr(&unit.lines, DW_AT_comp_dir, &attribute));
    return *file == '/' || directory.empty() ? file : directory + "/" + file;
  }
  // `table`: the entry of the unit that the number is of.
  std::string numbered_file(Unit& unit, Dwarf_Die& table, Dwarf_Word number) {
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    if (number == 0 || !line_tables_.allow(table) || ::dwarf_getsrcfiles(&table, &files, &count) != 0 ||
        number >= count)
      return {};
    return absolute(unit, ::dwarf_filesrc(files, number, nullptr, nullptr));
  }
  // Where the function of an entry is defined. (dwarf_decl_file would say it, but for split units it ends the process:
  // elfutils 0.188 supposes that whoever has a unit's lines has its files.)
  std::string declared_file(Unit& unit, Dwarf_Die& die) {
    Dwarf_Attribute attribute;
    Dwarf_Word number = 0;
    Dwarf_Die owner;  // what a function was inlined from can be of another unit
    if (::dwarf_formudata(::dwarf_attr_integrate(&die, DW_AT_decl_file, &attribute), &number) != 0 ||
        ::dwarf_cu_die(attribute.cu, &owner, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) == nullptr)
      return {};
    return numbered_file(unit, owner, number);
  }

  Dwarf_Line* line_at(Unit& unit, Dwarf_Addr at) {
    return line_tables_.allow(unit.lines) ? ::dwarf_getsrc_die(&unit.lines, at) : nullptr;
  }

  std::vector<Place> places(Unit& unit, Dwarf_Addr at, std::vector<Dwarf_Die>& scopes) {
    std::vector<Place> places;
    for (std::size_t i = 0; i < scopes.size(); ++i) {
      Place place;
      place.function = full_name(unit, scopes[i]);
      place.is_inlined = i > 0;
      place.file = declared_file(unit, scopes[i]);
      std::string file;
      if (i + 1 < scopes.size()) {
        place.line = number_of(&scopes[i + 1], DW_AT_call_line);
        file = numbered_file(unit, unit.scopes, number_of(&scopes[i + 1], DW_AT_call_file));
      } else if (Dwarf_Line* line = line_at(unit, at); line != nullptr) {
        int number = 0;
        if (::dwarf_lineno(line, &number) == 0 && number > 0) place.line = static_cast<std::uint32_t>(number);
        file = absolute(unit, ::dwarf_linesrc(line, nullptr, nullptr));
      }
      if (place.file.empty()) place.file = file;
      if (place.file != file) place.line = 0;  // a line of something else: of what a macro or an #include put there
      places.push_back(std::move(place));
    }
    return places;
  }

  const Limits limits_;
  std::unique_ptr<Dwfl, EndDwfl> dwfl_;
  Dwarf* dwarf_ = nullptr;
  Dwarf_Addr first_code_ = 0;  // in the debug information: no function of this file begins before it
  Dwarf_Addr distance_ = 0;    // of addresses in the debug information from those in the file
  LineTables line_tables_;
  std::vector<Unit> units_;
  std::vector<Range> ranges_;  // by address
  std::size_t entries_ = 0, ranges_seen_ = 0;
  // By the entries that declare them: where these are in memory, as offsets are of one file's debug information each,
  // and that of split units, or what dwz has put together, is in other files.
  std::map<const void*, std::string> names_;
};

LineResolver::LineResolver(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LineResolver::~LineResolver() = default;

Result<std::unique_ptr<LineResolver>> LineResolver::open(const std::string& path, const std::string& build_id,
                                                         const Limits& limits) {
  auto impl = std::make_unique<Impl>(limits);
  PLIMSOLL_TRY(impl->open(path, build_id));
  return std::unique_ptr<LineResolver>(new LineResolver(std::move(impl)));
}

std::vector<Place> LineResolver::find(std::uint64_t address) { return impl_->find(address); }

}  // namespace plimsoll::debuginfo
