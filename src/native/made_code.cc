#include "native/made_code.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

#include "native/eh_frame.h"
#include "native/elf_source.h"
#include "native/symbols.h"

namespace plimsoll::native {
namespace {

constexpr std::string_view kDescriptor = "__jit_debug_descriptor";
constexpr std::size_t kMostObjects = 100'000;
constexpr std::uint64_t kLargestImage = std::uint64_t{64} << 20U;
constexpr std::uint64_t kMostImages = std::uint64_t{1} << 30U;  // of all that are there together
constexpr std::uint64_t kMostFrames = std::uint64_t{16} << 20U;

// struct jit_code_entry and struct jit_descriptor, of the GDB manual.
struct EntryInMemory {
  std::uint64_t next, previous, image, size;
};
struct DescriptorInMemory {
  std::uint32_t version, action;
  std::uint64_t relevant, first;
};

// By how it begins and ends an image is told from another one of its size that malloc has put in the same place. 0 if
// it cannot be read.
std::uint64_t print_of(const ProcessMemory& memory, std::uint64_t image, std::uint64_t size) {
  constexpr std::uint64_t kPart = 1024;
  const std::uint64_t part = std::min(size, kPart);
  std::string bytes(2 * part, '\0');
  if (!memory.read(Address{image}, bytes.data(), part) ||
      !memory.read(Address{image + (size - part)}, bytes.data() + part, part))
    return 0;
  return std::hash<std::string>{}(bytes);
}

// Without the tags by which a JIT keeps versions of a function apart: "work[abi:v1][abi:c8tJ...](long)".
std::string without_tags(std::string name) {
  constexpr std::string_view kTag = "[abi:";
  for (std::size_t at = name.find(kTag); at != std::string::npos; at = name.find(kTag)) {
    const std::size_t end = name.find(']', at);
    if (end == std::string::npos) break;
    name.erase(at, end + 1 - at);
  }
  return name;
}

bool is_code(const Elf64_Shdr& section) {
  return (section.sh_flags & SHF_EXECINSTR) != 0 && section.sh_addr != 0 && section.sh_size != 0 &&
         section.sh_addr + section.sh_size > section.sh_addr;
}

void read_names(const ElfSource& source, const std::vector<Elf64_Shdr>& sections, CodeNames& names) {
  source.each_symbol(sections, SHT_SYMTAB, [&](const Elf64_Sym& symbol, const std::vector<char>& texts) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx >= sections.size()) return true;
    // (A value is from its section's beginning, as in any file that was not linked.)
    const Elf64_Shdr& within = sections[symbol.st_shndx];
    const bool is_inside = symbol.st_value < within.sh_size && symbol.st_size <= within.sh_size - symbol.st_value;
    if (!is_code(within) || !is_inside) return true;
    const std::string name = without_tags(demangled(ElfSource::text_at(texts, symbol.st_name)));
    if (!name.empty()) names.add(within.sh_addr + symbol.st_value, symbol.st_size, name);
    return true;
  });
}

}  // namespace

std::optional<MadeObject> read_made_object(std::string_view image) {
  const ElfSource source(image);
  const std::vector<Elf64_Shdr> sections = source.sections();
  const std::vector<char> names = source.names_of(sections);
  MadeObject object;
  for (const Elf64_Shdr& section : sections) {
    if (is_code(section)) object.code.emplace_back(section.sh_addr, section.sh_addr + section.sh_size);
    if (ElfSource::text_at(names, section.sh_name) == ".eh_frame" && section.sh_addr != 0) {
      object.frames = section.sh_addr;
      object.frames_size = std::min(section.sh_size, kMostFrames);
    }
  }
  if (object.code.empty()) return std::nullopt;
  std::sort(object.code.begin(), object.code.end());
  for (std::size_t i = 1; i < object.code.size(); ++i)
    if (object.code[i].first < object.code[i - 1].second) return std::nullopt;
  read_names(source, sections, object.names);
  return object;
}

void MadeCodes::find_descriptors(const std::vector<CodeRange>& ranges, const OpenFile& open) {
  std::erase_if(looked_into_, [](const auto& module) { return module.expired(); });
  for (const CodeRange& range : ranges) {
    const auto& module = range.module;
    const bool is_known = std::any_of(looked_into_.begin(), looked_into_.end(),
                                      [&](const auto& known) { return known.lock() == module; });
    if (module == nullptr || module->first.inode == 0 || is_known) continue;
    looked_into_.push_back(module);
    const std::optional<std::uint64_t> variable = variable_in(open(*module).get(), kDescriptor);
    if (!variable) continue;
    const std::uint64_t address = module->slide + *variable;
    std::erase_if(descriptors_, [&](const Descriptor& old) { return old.address == address; });
    descriptors_.push_back({address, 0, 0});
  }
}

bool MadeCodes::has_changed(const ProcessMemory& memory) {
  bool has = false;
  for (Descriptor& known : descriptors_) {
    DescriptorInMemory now{};
    if (!memory.read(Address{known.address}, &now, sizeof now) || now.version != 1) now = {};
    const std::uint64_t print = print_of_relevant(memory, known);
    has = has || now.first != known.first || now.relevant != known.relevant || print != known.print;
    known.first = now.first;
    known.relevant = now.relevant;
    known.print = print;
  }
  return has;
}

// Of an object that is on a list: what was taken off it is not there any more.
std::uint64_t MadeCodes::print_of_relevant(const ProcessMemory& memory, const Descriptor& descriptor) const {
  EntryInMemory entry{};
  if (!objects_.contains(descriptor.relevant) || !memory.read(Address{descriptor.relevant}, &entry, sizeof entry))
    return 0;
  return print_of(memory, entry.image, entry.size);
}

bool MadeCodes::look(const ProcessMemory& memory, RulePool& pool) {
  if (!has_changed(memory)) return false;
  for (auto& [entry, object] : objects_) object.is_listed = false;
  bool has_new = false;
  std::size_t seen = 0;
  for (const Descriptor& descriptor : descriptors_) {
    EntryInMemory entry{};
    for (std::uint64_t at = descriptor.first; at != 0 && seen < kMostObjects; at = entry.next, ++seen) {
      if (!memory.read(Address{at}, &entry, sizeof entry)) break;
      has_new = add(at, entry.image, entry.size, memory, pool) || has_new;
    }
  }
  const std::size_t gone = std::erase_if(objects_, [&](const auto& each) {
    const Object& object = each.second;
    if (!object.is_listed && object.counts) bytes_ -= object.size;
    return !object.is_listed;
  });
  return has_new || gone != 0;
}

bool MadeCodes::add(std::uint64_t entry, std::uint64_t image, std::uint64_t size, const ProcessMemory& memory,
                    RulePool& pool) {
  const auto known = objects_.find(entry);
  const std::uint64_t print = print_of(memory, image, size);
  if (known != objects_.end() && known->second.image == image && known->second.size == size &&
      known->second.print == print) {
    known->second.is_listed = true;
    return false;
  }
  if (known != objects_.end() && known->second.counts) bytes_ -= known->second.size;
  objects_.insert_or_assign(entry, read(image, size, print, memory, pool));
  return true;
}

MadeCodes::Object MadeCodes::read(std::uint64_t image, std::uint64_t size, std::uint64_t print,
                                  const ProcessMemory& memory, RulePool& pool) {
  Object result{image, size, print, {}, nullptr};
  if (size > kLargestImage || size > kMostImages - bytes_) return result;
  bytes_ += size;
  result.counts = true;
  std::string bytes(size, '\0');
  if (!memory.read(Address{image}, bytes.data(), bytes.size())) return result;
  const std::optional<MadeObject> object = read_made_object(bytes);
  if (!object) return result;
  object->names.each([&](std::uint64_t start, const CodeNames::Function& function) {
    names_.add(start, function.end - start, function.name);
  });
  std::vector<std::byte> frames(object->frames_size);
  if (frames.empty() || !memory.read(Address{object->frames}, frames.data(), frames.size())) return result;
  auto table = std::make_shared<MadeTable>();
  table->start = object->code.front().first;
  table->table = compile_eh_frame({frames, object->frames, table->start, object->code.back().second}, pool);
  if (table->table.empty() || object->code.back().second - table->start > std::numeric_limits<std::uint32_t>::max())
    return result;
  result.code = object->code;
  result.table = std::move(table);
  return result;
}

std::vector<CodeRange> MadeCodes::put_into(std::vector<CodeRange> ranges) const {
  std::vector<CodeRange> pieces;
  for (const auto& [entry, object] : objects_)
    for (const auto& [start, end] : object.code) pieces.push_back({start, end, nullptr, object.table});
  if (pieces.empty()) return ranges;
  std::sort(pieces.begin(), pieces.end(), [](const CodeRange& a, const CodeRange& b) { return a.start < b.start; });
  std::vector<CodeRange> result;
  auto next = pieces.begin();
  for (const CodeRange& range : ranges) {
    std::uint64_t at = range.start;
    const auto put_up_to = [&](std::uint64_t end) {
      if (at < end) result.push_back({at, end, range.module});
      at = std::max(at, end);
    };
    for (; next != pieces.end() && next->start < range.end; ++next) {
      // (Of two that overlap, one is a leftover; and a file's code is what the file says.)
      if (range.module != nullptr || next->start < at || next->end > range.end) continue;
      put_up_to(next->start);
      result.push_back(*next);
      at = next->end;
    }
    put_up_to(range.end);
  }
  return result;
}

}  // namespace plimsoll::native
