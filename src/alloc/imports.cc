#include "alloc/imports.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/ids.h"

namespace plimsoll::alloc {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kAddress = R_X86_64_64, kData = R_X86_64_GLOB_DAT, kCall = R_X86_64_JUMP_SLOT;
#elif defined(__aarch64__)
constexpr std::uint32_t kAddress = R_AARCH64_ABS64, kData = R_AARCH64_GLOB_DAT, kCall = R_AARCH64_JUMP_SLOT;
#endif

constexpr std::size_t kMostImports = 32;

// What is to become of the words.
enum class Change : std::uint8_t { kPatch, kRestore };

// What a word is for.
enum class Word : std::uint8_t { kJump, kPointer };

// A loaded module, as its program headers and its dynamic section describe it. Nothing that they say is believed
// without a look at where the module's memory is.
class LoadedModule {
 public:
  explicit LoadedModule(const dl_phdr_info& info) : base_(info.dlpi_addr), headers_(info.dlpi_phdr, info.dlpi_phnum) {
    for (const ElfW(Phdr) & header : headers_) {
      if (header.p_type == PT_GNU_RELRO) relro_ = &header;
      if (header.p_type == PT_DYNAMIC && holds(base_ + header.p_vaddr, header.p_memsz))
        read_dynamic(pointer_to<const ElfW(Dyn)>(Address{base_ + header.p_vaddr}), header.p_memsz / sizeof(ElfW(Dyn)));
    }
  }

  // Whether these bytes are in its memory; a table may reach from one segment into the next.
  [[nodiscard]] bool holds(std::uint64_t at, std::uint64_t size) const {
    while (size > 0) {
      const ElfW(Phdr)* segment = segment_of(at, 1);
      if (segment == nullptr) return false;
      const std::uint64_t here = base_ + segment->p_vaddr + segment->p_memsz - at;
      if (size <= here) return true;
      at += here;
      size -= here;
    }
    return true;
  }
  [[nodiscard]] bool holds(const void* at) const { return holds(reinterpret_cast<std::uint64_t>(at), 1); }
  // Whether a word is a page of data that the linker has made read-only.
  [[nodiscard]] bool is_read_only(std::uint64_t at, std::uint64_t page) const {
    if (relro_ == nullptr) return false;
    const std::uint64_t start = (base_ + relro_->p_vaddr) / page * page;
    const std::uint64_t end = (base_ + relro_->p_vaddr + relro_->p_memsz) / page * page;
    return start <= at && at < end;
  }

  // visit(word, name of the imported function, Word) for every word that the linker fills with a function's address.
  template <typename Visit>
  void each_import(Visit visit) const {
    for (const Table& table : {calls_, data_})
      for (std::uint64_t at = table.start; at < table.start + table.bytes; at += sizeof(ElfW(Rela))) {
        const auto& relocation = *pointer_to<const ElfW(Rela)>(Address{at});
        const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(relocation.r_info));
        if (type != kCall && type != kData && (type != kAddress || relocation.r_addend != 0)) continue;
        const char* name = name_of(ELF64_R_SYM(relocation.r_info));
        const std::uint64_t word = base_ + relocation.r_offset;
        const ElfW(Phdr)* segment = segment_of(word, sizeof(std::uint64_t));
        if (name == nullptr || segment == nullptr || (segment->p_flags & PF_W) == 0 || word % sizeof(word) != 0)
          continue;
        visit(pointer_to<std::uint64_t>(Address{word}), name, type == kCall ? Word::kJump : Word::kPointer);
      }
  }

 private:
  // A table of relocations.
  struct Table {
    std::uint64_t start = 0, bytes = 0;
  };

  [[nodiscard]] const ElfW(Phdr) * segment_of(std::uint64_t at, std::uint64_t size) const {
    for (const ElfW(Phdr) & header : headers_) {
      const std::uint64_t start = base_ + header.p_vaddr;
      if (header.p_type == PT_LOAD && start <= at && at - start <= header.p_memsz &&
          size <= header.p_memsz - (at - start))
        return &header;
    }
    return nullptr;
  }

  void read_dynamic(const ElfW(Dyn) * dynamic, std::size_t most) {
    std::uint64_t kind = DT_RELA;
    for (std::size_t i = 0; i < most && dynamic[i].d_tag != DT_NULL; ++i) {
      // The linker has made addresses of most of them; what is less than the module's own is none.
      std::uint64_t value = dynamic[i].d_un.d_val;
      const std::uint64_t address = value < base_ ? value + base_ : value;
      switch (dynamic[i].d_tag) {
        case DT_JMPREL: calls_.start = address; break;
        case DT_PLTRELSZ: calls_.bytes = value; break;
        case DT_PLTREL: kind = value; break;
        case DT_RELA: data_.start = address; break;
        case DT_RELASZ: data_.bytes = value; break;
        case DT_SYMTAB: symbols_ = address; break;
        case DT_STRTAB: strings_ = address; break;
        case DT_STRSZ: strings_bytes_ = value; break;
        default: break;
      }
    }
    if (kind != DT_RELA) calls_ = {};
    for (Table* table : {&calls_, &data_}) {
      table->bytes = table->bytes / sizeof(ElfW(Rela)) * sizeof(ElfW(Rela));
      if (!holds(table->start, table->bytes)) *table = {};
    }
    if (!holds(strings_, strings_bytes_)) strings_bytes_ = 0;
  }

  // Of a symbol that another module is to have; null if it is the module's own.
  [[nodiscard]] const char* name_of(std::uint64_t number) const {
    const std::uint64_t at = symbols_ + number * sizeof(ElfW(Sym));
    if (number == 0 || !holds(at, sizeof(ElfW(Sym)))) return nullptr;
    const auto& symbol = *pointer_to<const ElfW(Sym)>(Address{at});
    if (symbol.st_shndx != SHN_UNDEF || symbol.st_name >= strings_bytes_) return nullptr;
    const auto* name = pointer_to<const char>(Address{strings_ + symbol.st_name});
    return std::memchr(name, 0, strings_bytes_ - symbol.st_name) != nullptr ? name : nullptr;
  }

  const std::uint64_t base_;
  const std::span<const ElfW(Phdr)> headers_;
  const ElfW(Phdr) * relro_ = nullptr;
  Table calls_, data_;
  std::uint64_t symbols_ = 0, strings_ = 0, strings_bytes_ = 0;
};

// One pass over all modules.
class Pass {
 public:
  Pass(std::span<const Import> imports, Change change)
      : imports_(imports.first(std::min(imports.size(), kMostImports))),
        change_(change),
        page_(static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))) {}

  void visit(const dl_phdr_info& info) {
    // (Not by dladdr: whoever visits modules holds one of the linker's locks, and whoever loads one takes the other
    // first, which dladdr would wait for.)
    const bool is_linkers = info.dlpi_addr == _r_debug.r_ldbase;
    const LoadedModule module(info);
    if (is_linkers || module.holds(reinterpret_cast<const void*>(&patch_imports))) return;
    if (std::any_of(imports_.begin(), imports_.end(), [&](const Import& each) { return module.holds(each.original); }))
      return;
    if (change_ == Change::kPatch && uses_others(module)) return;
    const std::size_t before = counts_.words;
    module.each_import([&](std::uint64_t* word, const char* name, Word what) {
      const Import* import = find(name);
      if (import == nullptr) return;
      const auto ours = reinterpret_cast<std::uint64_t>(import->ours);
      const std::uint64_t now = __atomic_load_n(word, __ATOMIC_RELAXED);
      const bool is_alias = what == Word::kPointer && import->alias != nullptr;
      if (change_ == Change::kRestore && now == ours)
        put(module, word, reinterpret_cast<std::uint64_t>(is_alias ? import->alias : import->original));
      if (change_ == Change::kPatch && is_original(module, *import, now)) put(module, word, ours);
    });
    if (counts_.words != before) ++counts_.modules;
  }

  [[nodiscard]] const PatchCounts& counts() const { return counts_; }

 private:
  [[nodiscard]] const Import* find(const char* name) const {
    const auto found = std::find_if(imports_.begin(), imports_.end(), [&](const Import& each) {
      return each.original != nullptr && std::strcmp(each.name, name) == 0;
    });
    return found == imports_.end() ? nullptr : &*found;
  }
  // The word holds the function, or will at its first call: until then it leads to the module's own code.
  static bool is_original(const LoadedModule& module, const Import& import, std::uint64_t now) {
    const bool is_alias = import.alias != nullptr && now == reinterpret_cast<std::uint64_t>(import.alias);
    return now == reinterpret_cast<std::uint64_t>(import.original) || is_alias || module.holds(now, 1);
  }
  [[nodiscard]] bool uses_others(const LoadedModule& module) const {
    bool is_other = false;
    module.each_import([&](const std::uint64_t* word, const char* name, Word) {
      const Import* import = find(name);
      if (import == nullptr) return;
      const std::uint64_t now = __atomic_load_n(word, __ATOMIC_RELAXED);
      const bool is_ours = now == reinterpret_cast<std::uint64_t>(import->ours);
      is_other = is_other || (!is_ours && now != 0 && !is_original(module, *import, now));
    });
    return is_other;
  }
  void put(const LoadedModule& module, std::uint64_t* word, std::uint64_t value) {
    const auto at = reinterpret_cast<std::uint64_t>(word);
    auto* page = pointer_to<void>(Address{at / page_ * page_});
    const bool is_read_only = module.is_read_only(at, page_);
    if (is_read_only && ::mprotect(page, page_, PROT_READ | PROT_WRITE) != 0) {
      ++counts_.failures;
      return;
    }
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
    if (is_read_only) ::mprotect(page, page_, PROT_READ);
    ++counts_.words;
  }

  const std::span<const Import> imports_;
  const Change change_;
  const std::uint64_t page_;
  PatchCounts counts_;
};

// Where a module's file is, as the linker says; empty for the program itself.
std::vector<std::string> paths_of_modules() {
  std::vector<std::string> paths;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        if (info->dlpi_name != nullptr && *info->dlpi_name != '\0')
          static_cast<std::vector<std::string>*>(to)->emplace_back(info->dlpi_name);
        return 0;
      },
      &paths);
  return paths;
}

std::string path_of(const void* at) {
  Dl_info info{};
  return ::dladdr(at, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

// Whether a module that imports `name` has its code at `at`.
bool is_stub(const void* at, const char* name) {
  struct Question {
    const void* at;
    const char* name;
    bool is_stub;
  } question{at, name, false};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        auto& asked = *static_cast<Question*>(to);
        const LoadedModule module(*info);
        if (!module.holds(asked.at)) return 0;
        module.each_import([&](const std::uint64_t*, const char* imported, Word) {
          asked.is_stub = asked.is_stub || std::strcmp(imported, asked.name) == 0;
        });
        return 1;
      },
      &question);
  return question.is_stub;
}

constexpr std::uint64_t kAnyLoads = ~std::uint64_t{0};
// If so many modules have been loaded.
PatchCounts change_all(std::span<const Import> imports, Change change, std::uint64_t loads) {
  struct Visit {
    Pass pass;
    std::uint64_t loads;
    bool is_whole = true;
  } visit{Pass(imports, change), loads};
  // While it visits a module, nobody can add one, or unload it.
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        auto& now = *static_cast<Visit*>(to);
        now.is_whole = now.loads == kAnyLoads || now.loads == info->dlpi_adds;
        if (now.is_whole) now.pass.visit(*info);
        return now.is_whole ? 0 : 1;
      },
      &visit);
  PatchCounts counts = visit.pass.counts();
  counts.is_whole = visit.is_whole;
  return counts;
}

}  // namespace

PatchCounts patch_imports(std::span<const Import> imports, std::uint64_t loads) {
  return change_all(imports, Change::kPatch, loads);
}

// (Words that are ours are on pages which the linker is done with.)
PatchCounts restore_imports(std::span<const Import> imports) {
  return change_all(imports, Change::kRestore, kAnyLoads);
}

std::uint64_t modules_loaded() {
  std::uint64_t loads = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        *static_cast<std::uint64_t*>(to) = info->dlpi_adds;
        return 1;
      },
      &loads);
  return loads;
}

void wait_for_loading() {
  // The linker's lock is taken for this, and is held by whoever loads.
  void* program = ::dlopen(nullptr, RTLD_LAZY | RTLD_NOLOAD);
  if (program != nullptr) ::dlclose(program);
}

void* imported_function(const char* name) {
  void* found = ::dlsym(RTLD_DEFAULT, name);
  if (found == nullptr || !is_stub(found, name)) return found;
  // In the order in which the linker asks them.
  for (const std::string& path : paths_of_modules()) {
    void* module = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (module == nullptr) continue;
    void* here = ::dlsym(module, name);  // or in what it needs
    const bool is_its_own = here != nullptr && path == path_of(here);
    ::dlclose(module);
    if (is_its_own) return here;
  }
  return nullptr;
}

void* alias_of(const char* name) {
  void* found = ::dlsym(RTLD_DEFAULT, name);
  return found != nullptr && is_stub(found, name) ? found : nullptr;
}

}  // namespace plimsoll::alloc
