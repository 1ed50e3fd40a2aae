#include "remote/core_file.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/regular_file.h"
#include "native/elf_source.h"
#include "os/process_files.h"
#include "remote/elf_file.h"
#include "remote/found_python.h"
#include "remote/thread_states.h"

namespace plimsoll::remote {
namespace {

// That this was built for: registers are known of no other.
#if defined(__aarch64__)
constexpr std::uint16_t kThisMachine = EM_AARCH64;
constexpr std::string_view kThisMachineName = "aarch64";
#else
constexpr std::uint16_t kThisMachine = EM_X86_64;
constexpr std::string_view kThisMachineName = "x86-64";
#endif

std::string machine_name(std::uint16_t machine) {
  switch (machine) {
    case EM_386: return "32-bit x86";
    case EM_X86_64: return kThisMachine == EM_X86_64 ? "32-bit programs on x86-64" : "x86-64";
    case EM_AARCH64: return "aarch64";
    case EM_ARM: return "32-bit Arm";
    case EM_PPC64: return "PowerPC";
    case EM_S390: return "s390";
    case EM_RISCV: return "RISC-V";
    default: return "ELF machine " + std::to_string(machine);
  }
}

// An error if it is no core file that can be read here.
Status check_header(const std::string& path, std::string_view bytes) {
  const auto bad = [&](const std::string& words) { return Error{ErrorKind::kBadInput, path + words}; };
  Elf64_Ehdr head;  // whose first fields are those of 32 bits, too
  if (!bytes.starts_with(std::string_view(ELFMAG, SELFMAG))) return bad(" is not a core file");
  if (bytes.size() < sizeof head) return bad(" is cut short: not even its header is whole");
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.e_ident[EI_DATA] != ELFDATA2LSB)
    return bad(" is of a big-endian machine: core files of " + std::string(kThisMachineName) + " can be read");
  if (head.e_type != ET_CORE) return bad(" is a program or a library, not a core file");
  if (head.e_machine != kThisMachine || head.e_ident[EI_CLASS] != ELFCLASS64)
    return bad(" is a core file of " + machine_name(head.e_machine) + ": those of " + std::string(kThisMachineName) +
               " can be read");
  const std::size_t parts = std::size_t{head.e_phnum} * sizeof(Elf64_Phdr);
  if (head.e_phoff > bytes.size() || parts > bytes.size() - head.e_phoff)
    return bad(" is cut short: not even the list of its parts is whole");
  return Ok{};
}

template <typename Visit>
void each_segment(Elf* elf, GElf_Word type, Visit visit) {
  std::size_t count = 0;
  if (::elf_getphdrnum(elf, &count) != 0) return;
  for (std::size_t i = 0; i < std::min(count, kMostCoreParts); ++i) {
    GElf_Phdr header;
    if (::gelf_getphdr(elf, static_cast<int>(i), &header) != nullptr && header.p_type == type) visit(header);
  }
}

// Ranges, of which there may be very many, and which may overlap.
class Ranges {
 public:
  explicit Ranges(std::vector<MemoryRange> ranges) : ranges_(std::move(ranges)) {
    std::sort(ranges_.begin(), ranges_.end(),
              [](const MemoryRange& a, const MemoryRange& b) { return a.start < b.start; });
    std::uint64_t end = 0;
    for (const MemoryRange& range : ranges_) furthest_.push_back(end = std::max(end, range.end));
  }
  // Whether any of them has a byte of these.
  [[nodiscard]] bool has_any_of(std::uint64_t start, std::uint64_t end) const {
    const auto next = std::lower_bound(ranges_.begin(), ranges_.end(), end,
                                       [](const MemoryRange& range, std::uint64_t at) { return range.start < at; });
    return next != ranges_.begin() && furthest_[static_cast<std::size_t>(next - ranges_.begin()) - 1] > start;
  }

 private:
  std::vector<MemoryRange> ranges_;
  std::vector<std::uint64_t> furthest_;  // of each and those before it, the end
};

// The parts of a file that is loaded, as its headers say.
class LoadedParts {
 public:
  LoadedParts() = default;
  // `start`: of the memory that the file's first byte is at.
  LoadedParts(int descriptor, std::uint64_t start) {
    const native::ElfSource source(descriptor);
    Elf64_Ehdr head{};
    if (!source.read(0, &head, sizeof head) || head.e_phentsize != sizeof(Elf64_Phdr)) return;
    bool is_first = true;
    std::uint64_t slide = 0;
    for (const Elf64_Phdr& part :
         source.rows<Elf64_Phdr>(head.e_phoff, std::uint64_t{head.e_phnum} * sizeof(Elf64_Phdr))) {
      if (part.p_type != PT_LOAD) continue;
      if (std::exchange(is_first, false)) slide = start - (part.p_vaddr - part.p_offset);
      end_ = std::max(end_, slide + part.p_vaddr + part.p_memsz);
      if ((part.p_flags & PF_X) != 0) code_.push_back({slide + part.p_vaddr, slide + part.p_vaddr + part.p_filesz});
    }
  }
  [[nodiscard]] bool has_code_in(std::uint64_t start, std::uint64_t end) const {
    return std::any_of(code_.begin(), code_.end(),
                       [&](const MemoryRange& range) { return range.start < end && start < range.end; });
  }
  [[nodiscard]] std::uint64_t end() const { return end_; }

 private:
  std::vector<MemoryRange> code_;
  std::uint64_t end_ = 0;
};

// Who looks at a core file as root is not to be shown, line by line, what the process could not read. Whose it was the
// core file says, which its owner may have made by hand: files are theirs that both may read. (Who is not root cannot
// become somebody else, and sees what he may see anyway.) `program` was named by the caller.
OpenNamedFile named_by(const CoreNotes& notes, const UniqueFd& core, const std::string& program) {
  if (::geteuid() != 0) return open_regular_file;
  struct stat facts {};
  std::vector<os::FileUser> users{{notes.user, notes.group, {}, 0}};
  if (::fstat(core.get(), &facts) == 0) users.push_back({facts.st_uid, facts.st_gid, {}, 0});
  for (os::FileUser& user : users)
    if (user.user == 0) user.capabilities = ~std::uint64_t{0};
  const auto files = std::make_shared<const os::ProcessFiles>(std::move(users));
  return [files, program](const std::string& path) {
    return path == program ? open_regular_file(path) : files->open(path);
  };
}

// Fills a CoreFile.
class CoreOpener {
 public:
  CoreOpener(const std::string& path, const std::string& program, CoreFile& core)
      : path_(path), program_(program), core_(core) {}

  Status run(Elf* elf, const UniqueFd& descriptor) {
    read_notes(elf);
    if (!core_.open) core_.open = named_by(core_.notes, descriptor, program_);
    if (!program_.empty()) PLIMSOLL_TRY(put_program());
    add_memory(elf);
    add_mappings();
    for (const MappedPart& part : core_.notes.parts) {
      if (part.offset != 0) continue;
      const UniqueFd file = core_.open(part.path);
      if (!file.is_open()) continue;
      const auto found = look_for_python(file.get(), part.start);
      if ((found || part.path == program_) && !is_what_ran(part, file.get()))
        return Error{ErrorKind::kBadInput,
                     part.path + " is not the file that ran, but another build: --exe PYTHON says where that one is"};
      if (found) return take(*found, part);
    }
    return no_python();
  }

 private:
  void read_notes(Elf* elf) {
    const std::string_view bytes = core_.file.view();
    std::uint64_t left = bytes.size();  // segments that together are larger than the file are damage
    each_segment(elf, PT_NOTE, [&](const GElf_Phdr& segment) {
      if (segment.p_offset > bytes.size() || segment.p_filesz > std::min(bytes.size() - segment.p_offset, left)) return;
      left -= segment.p_filesz;
      read_core_notes(bytes.substr(segment.p_offset, segment.p_filesz), core_.notes);
    });
  }

  static std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

  // The program that was told takes the place of the file of its name, or of the process's first.
  Status put_program() {
    if (!core_.open(program_).is_open())
      return Error{ErrorKind::kBadInput, "there is no file " + program_ + ", which is to be the program of " + path_};
    std::vector<MappedPart>& parts = core_.notes.parts;
    if (parts.empty()) return Ok{};
    const auto is_it = [&](const MappedPart& part) { return name_of(part.path) == name_of(program_); };
    const auto found = std::find_if(parts.begin(), parts.end(), is_it);
    const std::string replaced = (found != parts.end() ? *found : parts.front()).path;
    for (MappedPart& part : parts)
      if (part.path == replaced) part.path = program_;
    return Ok{};
  }

  // Adds what is in the core file, and what is in files.
  void add_memory(Elf* elf) {
    const std::string_view bytes = core_.file.view();
    each_segment(elf, PT_LOAD, [&](const GElf_Phdr& segment) {
      const std::uint64_t offset = std::min<std::uint64_t>(segment.p_offset, bytes.size());
      const std::uint64_t size = std::min<std::uint64_t>(segment.p_filesz, bytes.size() - offset);
      core_.missing_bytes += segment.p_filesz - size;
      if (size > 0) core_.image.add(Address{segment.p_vaddr}, std::as_bytes(std::span(bytes.data() + offset, size)));
      parts_.push_back({segment.p_vaddr, segment.p_vaddr + segment.p_memsz});
      if ((segment.p_flags & PF_X) != 0) code_.push_back({segment.p_vaddr, segment.p_vaddr + segment.p_memsz});
      if ((segment.p_flags & PF_W) != 0) writable_.push_back({segment.p_vaddr, segment.p_vaddr + size});
    });
    std::shared_ptr<const UniqueFd> file;
    const std::string* path = nullptr;
    for (const MappedPart& part : core_.notes.parts) {
      if (path == nullptr || *path != part.path) file = std::make_shared<const UniqueFd>(core_.open(part.path));
      path = &part.path;
      if (file->is_open()) core_.image.add_file(Address{part.start}, part.end - part.start, file, part.offset);
    }
    core_.image.seal();
  }

  // What is loaded: each file from its first mapping to its last, if its headers are those that ran.
  void add_mappings() {
    const Ranges code(code_), parts(parts_);
    std::uint64_t number = 0;
    const std::string* path = nullptr;
    bool is_same = false;
    LoadedParts loaded;
    for (const MappedPart& part : core_.notes.parts) {
      const bool is_other = path == nullptr || *path != part.path;
      if (is_other || (part.offset == 0 && part.start >= loaded.end())) {
        const UniqueFd file = core_.open(part.path);
        is_same = file.is_open() && is_what_ran(part, file.get());
        // (A part of it may be mapped once more, somewhere before it: libffi does that with its trampolines.)
        loaded = is_same && part.offset == 0 ? LoadedParts(file.get(), part.start) : LoadedParts();
      }
      if (is_other) ++number;
      path = &part.path;
      if (!is_same) continue;
      os::Mapping& mapping = core_.mappings.emplace_back();
      mapping.start = part.start;
      mapping.end = part.end;
      mapping.file_offset = part.offset;
      mapping.inode = number;
      mapping.path = part.path;
      // What was never written to may be left out of the core file (gcore does), and with it what it was good for.
      mapping.is_executable = code.has_any_of(part.start, part.end) ||
                              (!parts.has_any_of(part.start, part.end) && loaded.has_code_in(part.start, part.end));
    }
    add_vdso();
    std::sort(core_.mappings.begin(), core_.mappings.end(),
              [](const os::Mapping& a, const os::Mapping& b) { return a.start < b.start; });
  }

  // Code that is of no file, but begins as one.
  void add_vdso() {
    std::vector<MemoryRange> parts;
    for (const MappedPart& part : core_.notes.parts) parts.push_back({part.start, part.end});
    const Ranges of_files(std::move(parts));
    for (const MemoryRange& range : code_) {
      char magic[SELFMAG];
      if (of_files.has_any_of(range.start, range.end) || !core_.image.has_copy(Address{range.start}, sizeof magic) ||
          !core_.image.read(Address{range.start}, magic, sizeof magic) || std::memcmp(magic, ELFMAG, SELFMAG) != 0)
        continue;
      os::Mapping& mapping = core_.mappings.emplace_back();
      mapping.start = range.start;
      mapping.end = range.end;
      mapping.is_executable = true;
      mapping.path = "[vdso]";
    }
  }

  Status take(const FoundPython& found, const MappedPart& part) {
    core_.runtime = *found.runtime();
    core_.code_type = found.at(FoundPython::kCodeType).value_or(Address{});
    const cpython::Version version = version_of(core_.image, found, [&] { return variables_of(part); });
    if (version.major == 3 && version.minor < 9)
      return Error{ErrorKind::kUnsupported, path_ + " is of a Python before 3.9: Plimsoll knows CPython 3.9 to 3.15"};
    Result<cpython::Layout> layout = cpython::find_layout(core_.image, version, core_.runtime);
    if (!layout.ok()) return core_.missing_bytes > 0 ? cut_short() : layout.error();
    core_.layout = layout.take();
    if (is_null(core_.code_type))
      core_.code_type =
          find_code_type(core_.image, core_.layout, thread_states(core_.image, core_.layout, core_.runtime));
    return Ok{};
  }

  // Whether the headers of a file, with the sizes of all its parts, are those that the core file has, if it has them.
  [[nodiscard]] bool is_what_ran(const MappedPart& part, int descriptor) const {
    constexpr std::size_t kMostHeaders = 64;
    Elf64_Ehdr head{};
    if (!core_.image.has_copy(Address{part.start}, sizeof head)) return true;
    std::string here(sizeof head + kMostHeaders * sizeof(Elf64_Phdr), '\0');
    const ssize_t read = ::pread(descriptor, here.data(), here.size(), 0);
    here.resize(read > 0 ? static_cast<std::size_t>(read) : 0);
    if (here.size() < sizeof head) return false;
    std::memcpy(&head, here.data(), sizeof head);
    const bool is_usual = head.e_phoff == sizeof head && head.e_phnum <= kMostHeaders;
    here.resize(std::min(here.size(), sizeof head + (is_usual ? head.e_phnum * sizeof(Elf64_Phdr) : 0)));
    std::string ran(here.size(), '\0');
    return core_.image.read(Address{part.start}, ran.data(), ran.size()) && ran == here;
  }

  // Writable memory from the file's first mapping to its last, and what follows: variables that begin as zero.
  [[nodiscard]] std::vector<MemoryRange> variables_of(const MappedPart& first) const {
    std::uint64_t end = first.end;
    for (const MappedPart& part : core_.notes.parts)
      if (part.path == first.path) end = std::max(end, part.end);
    std::vector<MemoryRange> found;
    for (const MemoryRange& range : writable_)
      if (range.start >= first.start && range.start <= end && range.start < range.end) found.push_back(range);
    return found;
  }

  [[nodiscard]] Error cut_short() const {
    constexpr std::uint64_t kMegabyte = 1'000'000;
    return Error{ErrorKind::kBadInput, path_ + " is cut short: " + std::to_string(core_.missing_bytes / kMegabyte) +
                                           " MB of its memory are missing, and what tells of Python is among them"};
  }

  [[nodiscard]] Error no_python() const {
    if (core_.notes.parts.empty())
      return core_.missing_bytes > 0
                 ? cut_short()
                 : Error{ErrorKind::kBadInput, path_ + " does not tell which files the process had mapped (NT_FILE)"};
    for (const MappedPart& part : core_.notes.parts)
      if (part.offset == 0 && (&part == &core_.notes.parts.front() || name_of(part.path).starts_with("libpython")) &&
          !core_.open(part.path).is_open())
        return Error{ErrorKind::kUnsupported, "the program of " + path_ + " is not where it was, " + part.path +
                                                  ": --exe PYTHON says where it is"};
    return Error{ErrorKind::kUnsupported,
                 path_ + " is not of CPython: its program is " + core_.notes.parts.front().path};
  }

  const std::string& path_;
  const std::string& program_;
  CoreFile& core_;
  std::vector<MemoryRange> parts_, writable_, code_;
};

}  // namespace

Result<CoreFile> open_core_file(const std::string& path, const std::string& program, OpenNamedFile open) {
  const Result<RegularFile> file = RegularFile::open(path);
  if (!file.ok()) return file.error();
  Result<MappedFile> bytes = MappedFile::map(file.value(), path);
  if (!bytes.ok()) return bytes.error();
  CoreFile core{bytes.take(), {}, {}, {}, {}, {}, {}, 0, std::move(open)};
  PLIMSOLL_TRY(check_header(path, core.file.view()));
  const ElfHandle elf = open_elf(file.value().fd.get());
  if (!elf) return Error{ErrorKind::kBadInput, path + " is damaged: it cannot be read as an ELF file"};
  PLIMSOLL_TRY(CoreOpener(path, program, core).run(elf.get(), file.value().fd));
  return core;
}

std::vector<os::Task> tasks_of(const CoreFile& core) {
  std::vector<os::Task> tasks;
  for (const CoreThread& thread : core.notes.threads) tasks.push_back({Tid{thread.tid}, Tid{thread.tid}, "", '?'});
  return tasks;
}

std::vector<ThreadState> thread_states_of(const CoreFile& core) {
  std::vector<ThreadState> states = thread_states(core.image, core.layout, core.runtime);
  learn_ids(core.image, tasks_of(core), states);
  std::reverse(states.begin(), states.end());  // the interpreter's newest comes first
  return states;
}

}  // namespace plimsoll::remote
