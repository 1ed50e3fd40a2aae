#include "remote/core_file.h"

#include <elf.h>
#include <fcntl.h>
#include <gelf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "cpython/walk.h"
#include "remote/elf_symbols.h"
#include "remote/thread_states.h"

namespace plimsoll::remote {
namespace {

struct CloseElf {
  void operator()(Elf* elf) const { ::elf_end(elf); }
};
using OwnedElf = std::unique_ptr<Elf, CloseElf>;

// A part of a file that the process had mapped, as the note NT_FILE tells.
struct MappedPart {
  std::uint64_t start = 0, end = 0, offset = 0;
  std::string path;
};

constexpr std::size_t kMostParts = 1U << 20U;

// The note: a count and a page size, then for each a start, an end and an offset in pages; then their names.
std::vector<MappedPart> parse_file_note(std::string_view note) {
  std::vector<MappedPart> parts;
  const auto number = [&](std::size_t i) {
    std::uint64_t value = 0;
    if ((i + 1) * sizeof value <= note.size()) std::memcpy(&value, note.data() + i * sizeof value, sizeof value);
    return value;
  };
  const std::uint64_t count = number(0), page = number(1);
  if (count > kMostParts || (2 + count * 3) * 8 > note.size()) return parts;
  std::string_view names = note.substr((2 + count * 3) * 8);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t end = names.find('\0');
    if (end == std::string_view::npos) break;
    const std::uint64_t start = number(2 + i * 3), stop = number(3 + i * 3);
    if (start < stop) parts.push_back({start, stop, number(4 + i * 3) * page, std::string(names.substr(0, end))});
    names.remove_prefix(end + 1);
  }
  return parts;
}

// What the notes say.
struct Notes {
  std::vector<MappedPart> parts;
  std::int32_t pid = 0;
};

void read_notes(Elf* elf, const GElf_Phdr& header, std::string_view bytes, Notes& notes) {
  if (header.p_offset > bytes.size() || header.p_filesz > bytes.size() - header.p_offset) return;
  Elf_Data* data = ::elf_getdata_rawchunk(elf, static_cast<std::int64_t>(header.p_offset), header.p_filesz, ELF_T_NHDR);
  if (data == nullptr) return;
  GElf_Nhdr note;
  std::size_t name = 0, content = 0;
  for (std::size_t at = 0; at < data->d_size && (at = ::gelf_getnote(data, at, &note, &name, &content)) > 0;) {
    const std::string_view text(static_cast<const char*>(data->d_buf) + content, note.n_descsz);
    if (note.n_type == NT_FILE) notes.parts = parse_file_note(text);
    constexpr std::size_t kPid = 24;  // pr_pid of struct elf_prpsinfo
    if (note.n_type == NT_PRPSINFO && text.size() >= kPid + 4) std::memcpy(&notes.pid, text.data() + kPid, 4);
  }
}

UniqueFd open_file(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

// Adds what is in the core file, and what is in files.
void add_memory(Elf* elf, std::string_view bytes, const std::vector<MappedPart>& parts, memory::Image& image) {
  std::size_t count = 0;
  if (::elf_getphdrnum(elf, &count) != 0) return;
  for (std::size_t i = 0; i < std::min(count, kMostParts); ++i) {
    GElf_Phdr header;
    if (::gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr || header.p_type != PT_LOAD) continue;
    if (header.p_offset >= bytes.size()) continue;
    const std::uint64_t size = std::min<std::uint64_t>(header.p_filesz, bytes.size() - header.p_offset);
    image.add(Address{header.p_vaddr}, std::as_bytes(std::span(bytes.data() + header.p_offset, size)));
  }
  std::shared_ptr<const UniqueFd> file;
  const std::string* path = nullptr;
  for (const MappedPart& part : parts) {
    if (path == nullptr || *path != part.path) file = std::make_shared<const UniqueFd>(open_file(part.path));
    path = &part.path;
    if (file->is_open()) image.add_file(Address{part.start}, part.end - part.start, file, part.offset);
  }
}

constexpr std::array<std::string_view, 5> kNames{"_PyRuntime", "PyCode_Type", "Py_Version", "Py_NewRef",
                                                 "PyObject_CallNoArgs"};
enum Name : std::uint8_t { kRuntime, kCodeType, kVersion, kSince310, kSince39 };

// Which Python it is; minor version 8 stands for all before 3.9.
cpython::Version version_of(const memory::Image& image, Address runtime, const ElfSymbols& elf, std::uint64_t bias) {
  using cpython::Version;
  std::array<std::uint64_t, 3> head{};
  constexpr std::string_view kCookie = "xdebugpy";
  if (image.read(runtime, head.data(), sizeof head) && std::memcmp(head.data(), kCookie.data(), kCookie.size()) == 0)
    return Version::from_hex(static_cast<std::uint32_t>(head[1]),
                             head[2] != 0 ? Version::Threading::kFree : Version::Threading::kGil);
  std::uint32_t hex = 0;
  if (elf.symbols[kVersion] && image.load(Address{bias + *elf.symbols[kVersion]}, hex))
    return Version::from_hex(hex, Version::Threading::kGil);
  return {3, elf.symbols[kSince310] ? 10U : elf.symbols[kSince39] ? 9U : 8U, 0};
}

// Looks for an interpreter in one of the files. None if it is not in this one.
std::optional<Status> find_python(const MappedPart& part, const std::string& path, CoreFile& core) {
  const UniqueFd file = open_file(path);
  if (!file.is_open()) return std::nullopt;
  const std::optional<ElfSymbols> elf = read_elf_symbols(file.get(), kNames);
  if (!elf) return std::nullopt;
  const std::uint64_t bias = part.start - elf->first_address;
  const auto runtime = elf->symbols[kRuntime] ? elf->symbols[kRuntime] : elf->python_runtime;
  if (!runtime) return std::nullopt;
  core.runtime = Address{bias + *runtime};
  if (elf->symbols[kCodeType]) core.code_type = Address{bias + *elf->symbols[kCodeType]};
  Result<cpython::Layout> layout =
      cpython::find_layout(core.image, version_of(core.image, core.runtime, *elf, bias), core.runtime);
  if (!layout.ok()) return Status(layout.error());
  core.layout = layout.take();
  if (is_null(core.code_type))
    core.code_type = find_code_type(core.image, core.layout, thread_states(core.image, core.layout, core.runtime));
  return Status(Ok{});
}

}  // namespace

Result<CoreFile> open_core_file(const std::string& path, const std::string& program) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok()) return file.error();
  CoreFile core{file.take(), {}, {}, {}, {}, 0};
  const std::string_view bytes = core.file.view();
  const Error no_core{ErrorKind::kBadInput, path + " is not a core file of x86-64"};
  if (::elf_version(EV_CURRENT) == EV_NONE || bytes.size() < sizeof(Elf64_Ehdr)) return no_core;
  const UniqueFd descriptor = open_file(path);
  const OwnedElf elf(::elf_begin(descriptor.get(), ELF_C_READ, nullptr));
  GElf_Ehdr head;
  if (!elf || ::elf_kind(elf.get()) != ELF_K_ELF || ::gelf_getehdr(elf.get(), &head) == nullptr ||
      head.e_type != ET_CORE || head.e_machine != EM_X86_64)
    return no_core;
  Notes notes;
  std::size_t count = 0;
  if (::elf_getphdrnum(elf.get(), &count) != 0) return no_core;
  for (std::size_t i = 0; i < std::min(count, kMostParts); ++i) {
    GElf_Phdr header;
    if (::gelf_getphdr(elf.get(), static_cast<int>(i), &header) != nullptr && header.p_type == PT_NOTE)
      read_notes(elf.get(), header, bytes, notes);
  }
  core.pid = notes.pid;
  add_memory(elf.get(), bytes, notes.parts, core.image);
  core.image.seal();
  // With a program that was told it is the first file of the process; else whichever has an interpreter.
  for (const MappedPart& part : notes.parts) {
    if (part.offset != 0) continue;
    const std::optional<Status> found = find_python(part, program.empty() ? part.path : program, core);
    if (found && !found->ok()) return found->error();
    if (found) return core;
    if (!program.empty()) break;
  }
  return Error{ErrorKind::kUnsupported, "no CPython is found in " + path +
                                            ", or its program is not where it was: --exe PYTHON says where it is"};
}

}  // namespace plimsoll::remote
