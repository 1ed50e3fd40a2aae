#include "remote/memory_copy.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "memory/remote.h"
#include "os/stopped_process.h"
#include "remote/permission.h"

namespace plimsoll::remote {
namespace {

// The machine's: 4, 16 or 64 KiB.
std::uint64_t page_size() { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

using From = MemoryPart::From;

// Memory that is no program's data: reading it may have effects, or fails.
bool is_special(const os::Mapping& mapping) {
  return mapping.path == "[vvar]" || mapping.path == "[vsyscall]" || mapping.path == "[vvar_vclock]" ||
         mapping.path.starts_with("/dev/");
}

void add_part(std::vector<MemoryPart>& out, const MemoryPart& part) {
  const bool follows = !out.empty() && out.back().end == part.start && out.back().from == part.from &&
                       out.back().mapping == part.mapping;
  if (follows)
    out.back().end = part.end;
  else if (part.end > part.start)
    out.push_back(part);
}

// What is to be copied, by what the process has mapped at this moment.
struct Plan {
  std::vector<os::Mapping> mappings;
  std::vector<MemoryPart> parts;
  std::uint64_t bytes = 0;  // to be copied
};

Result<Plan> make_plan(os::Pid pid) {
  Result<std::vector<os::Mapping>> mappings = os::mappings_of(pid);
  if (!mappings.ok()) return mappings.error();
  Plan plan{mappings.take(), {}, 0};
  os::PageMap page_map(pid);
  for (std::size_t i = 0; i < plan.mappings.size(); ++i) {
    const os::Mapping& mapping = plan.mappings[i];
    if (!mapping.is_readable || mapping.is_shared || is_special(mapping)) continue;
    const bool is_code = mapping.is_executable && !mapping.is_writable;
    add_parts(mapping, i, is_code ? std::nullopt : page_map.runs(mapping.start, mapping.end), plan.parts);
  }
  for (const MemoryPart& part : plan.parts)
    if (part.from == From::kMemory) plan.bytes += part.end - part.start;
  return plan;
}

std::string megabytes(std::uint64_t bytes) { return std::to_string((bytes + 999'999) / 1'000'000) + " MB"; }

Error too_large(os::Pid pid, std::uint64_t bytes, std::uint64_t most) {
  return Error{ErrorKind::kSystem, "process " + std::to_string(static_cast<int>(pid)) + " has " + megabytes(bytes) +
                                       " of memory to copy, and " + megabytes(most) +
                                       " are allowed: --max-copy MB allows more"};
}

Error grows_too_fast(os::Pid pid) {
  return Error{ErrorKind::kSystem, "process " + std::to_string(static_cast<int>(pid)) +
                                       " took more memory than there was room made for, each time that it was "
                                       "looked at: try again when it grows more slowly"};
}

// Bytes that were copied: a whole block, or pages of one of which others cannot be read.
using Copied = std::vector<memory::RemoteReader::Block>;

void copy_block(const memory::RemoteReader& process, const memory::RemoteReader::Block& block, Copied& out) {
  if (process.read(block.at, block.out.data(), block.out.size())) return out.push_back(block);
  const std::uint64_t page = page_size();
  for (std::size_t at = 0; at < block.out.size(); at += page)
    if (process.read(offset_by(block.at, at), block.out.data() + at, page))
      out.push_back({offset_by(block.at, at), block.out.subspan(at, page)});
}

// Copies the parts that are memory's to `room`; false if the process has gone. What cannot be read is left out. By more
// than one thread, as the kernel copies at the speed of one CPU a call: while the process stands still, its CPUs are
// free.
bool copy_parts(const memory::RemoteReader& process, const Plan& plan, std::span<std::byte> room,
                memory::Image& image) {
  constexpr std::uint64_t kLargestBlock = std::uint64_t{4} << 20U;
  constexpr std::size_t kMostThreads = 4, kLeastBlocks = 8;  // for a thread more
  std::vector<memory::RemoteReader::Block> blocks;
  for (const MemoryPart& part : plan.parts) {
    if (part.from != From::kMemory) continue;
    for (std::uint64_t at = part.start; at < part.end; at += kLargestBlock) {
      const std::uint64_t size = std::min(kLargestBlock, part.end - at);
      blocks.push_back({Address{at}, room.first(size)});
      room = room.subspan(size);
    }
  }
  std::atomic<std::size_t> next{0};
  const auto copy_some = [&](Copied& copied) {
    for (std::size_t i = next.fetch_add(1); i < blocks.size(); i = next.fetch_add(1))
      copy_block(process, blocks[i], copied);
  };
  const std::size_t count = std::clamp<std::size_t>(
      std::min<std::size_t>(std::thread::hardware_concurrency(), blocks.size() / kLeastBlocks), 1, kMostThreads);
  std::vector<Copied> copied(count);
  {
    std::vector<std::jthread> others;
    try {
      for (std::size_t i = 1; i < count; ++i) others.emplace_back([&, i] { copy_some(copied[i]); });
    } catch (const std::system_error&) {
      // There are no more threads to be had: those that there are do it all.
    }
    copy_some(copied[0]);
  }
  bool has_any = blocks.empty();
  for (const Copied& of_thread : copied)
    for (const memory::RemoteReader::Block& block : of_thread) {
      image.add(block.at, block.out);
      has_any = true;
    }
  return has_any;
}

// After the process goes on: the rest of its memory, which does not change.
void add_files(os::Pid pid, const Plan& plan, memory::Image& image) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::shared_ptr<const UniqueFd>> files;  // by device and inode
  for (const MemoryPart& part : plan.parts) {
    if (part.from == From::kZeros) image.add_zeros(Address{part.start}, part.end - part.start);
    if (part.from != From::kFile) continue;
    const os::Mapping& mapping = plan.mappings[part.mapping];
    const auto [file, is_new] = files.try_emplace({mapping.device, mapping.inode});
    if (is_new) file->second = std::make_shared<const UniqueFd>(os::open_mapped_file(pid, mapping));
    if (!file->second->is_open()) continue;
    image.add_file(Address{part.start}, part.end - part.start, file->second,
                   mapping.file_offset + (part.start - mapping.start));
  }
}

}  // namespace

void add_parts(const os::Mapping& mapping, std::size_t number, const std::optional<std::span<const os::PageRun>>& runs,
               std::vector<MemoryPart>& out) {
  const bool has_file = mapping.inode != 0;
  const From other = has_file ? From::kFile : From::kZeros;
  if (!runs) {
    const bool is_code = mapping.is_executable && !mapping.is_writable;
    return add_part(out, {mapping.start, mapping.end, has_file && is_code ? From::kFile : From::kMemory, number});
  }
  std::uint64_t at = mapping.start;
  for (const os::PageRun& run : *runs) {
    add_part(out, {at, run.start, other, number});
    add_part(out, {run.start, run.end, has_file && run.is_of_file ? other : From::kMemory, number});
    at = run.end;
  }
  add_part(out, {at, mapping.end, other, number});
}

Result<MemoryCopy> copy_memory(os::Pid pid, std::uint64_t most_bytes) {
  constexpr int kTries = 3;
  std::uint64_t size = 0;
  for (int tried = 0; tried < kTries; ++tried) {
    Result<Plan> before = make_plan(pid);
    if (!before.ok()) return before.error();
    size = std::max(size, before.value().bytes);
    if (size > most_bytes) return too_large(pid, size, most_bytes);
    // It goes on growing while we make room; pages that are there are not waited for while it stands still.
    const std::uint64_t with_growth = size + size / 8 + (std::uint64_t{16} << 20U);
    Result<memory::Room> room = memory::Room::make(std::min(with_growth, most_bytes));
    if (!room.ok()) return room.error();
    room.value().prepare(size);

    const std::int64_t start_ns = monotonic_ns();
    Result<os::StoppedProcess> stopped = os::StoppedProcess::stop(pid);
    if (!stopped.ok()) return stopped.error();
    const Result<Plan> plan = make_plan(pid);
    if (!plan.ok()) return plan.error();
    if (plan.value().bytes > room.value().bytes().size()) {
      size = plan.value().bytes;
      continue;
    }
    MemoryCopy copy;
    const bool is_copied =
        copy_parts(memory::RemoteReader(static_cast<pid_t>(pid)), plan.value(), room.value().bytes(), copy.image);
    stopped.value().resume();
    copy.stop_ns = monotonic_ns() - start_ns;
    if (!is_copied) return os::is_alive(pid) ? refusal(pid) : Error{ErrorKind::kBadInput, "it has ended"};
    add_files(pid, plan.value(), copy.image);
    copy.image.keep(room.take());
    copy.image.seal();
    return copy;
  }
  return grows_too_fast(pid);
}

}  // namespace plimsoll::remote
