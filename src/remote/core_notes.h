// remote/core_notes.h: what the notes of a core file say of the process: its files, its threads, its command.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "native/registers.h"

namespace plimsoll::remote {

// A part of a file that the process had mapped (NT_FILE).
struct MappedPart {
  std::uint64_t start = 0, end = 0, offset = 0;
  std::string path;
};

// A thread (NT_PRSTATUS). From the kernel the one that got the signal comes first.
struct CoreThread {
  std::int32_t tid = 0;
  std::int32_t signal = 0;  // that it got; 0 if none
  native::Registers registers{};
};

// No core file has more of either.
inline constexpr std::size_t kMostCoreParts = 1U << 20U;
inline constexpr std::size_t kMostCoreThreads = 65536;

// All of them.
struct CoreNotes {
  std::vector<MappedPart> parts;
  std::vector<CoreThread> threads;
  std::int32_t pid = 0;
  std::uint32_t user = 0, group = 0;  // its real ones; root if that is not said
  std::string command;                // its first 79 bytes
};

// Adds what stands in a segment of notes. What is damaged is left out.
void read_core_notes(std::string_view segment, CoreNotes& notes);

}  // namespace plimsoll::remote
