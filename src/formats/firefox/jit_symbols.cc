// formats/firefox/jit_symbols.cc: addresses -> traces -> symbols.
#include "formats/firefox/jit_symbols.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>

#include "base/hexadecimal.h"
#include "jitlog/reader.h"

namespace plimsoll::formats::firefox {
namespace {

constexpr std::uint64_t kLibraryBytes = std::uint64_t{1} << 30U;
constexpr std::string_view kPrefix = "jit@";

std::string library_at(std::uint64_t base) { return std::string(kPrefix) + hexadecimal(base); }

std::string symbol_name(const jitlog::Trace& trace) {
  std::string name = trace.kind == jitlog::Trace::Kind::kLoop ? "loop " : "bridge ";
  name += std::to_string(trace.id);
  if (const jitlog::MergePoint* place = trace.first_place(); place != nullptr)
    name += ": " + place->function + " (" + place->file +
            (place->line == 0 ? ")" : ":" + std::to_string(place->line) + ")");
  return name;
}

}  // namespace

JitSymbols::JitSymbols(const profile::Profile& profile) {
  const profile::Attachment* log = profile.attachment("jitlog");
  if (log == nullptr) return;
  const Result<jitlog::Forest> forest = jitlog::read(log->bytes);
  if (!forest.ok()) return;
  machine = forest.value().machine;
  boost::unordered_flat_map<std::uint64_t, std::size_t> library_index, symbol_index;  // by base; by address
  of_frame.resize(profile.frames.size());
  for (std::size_t i = 0; i < profile.frames.size(); ++i) {
    const StringId trace = profile.frames.rows()[i].trace;
    const std::optional<std::uint64_t> address =
        trace.is_none() ? std::nullopt : from_hexadecimal(profile.strings[trace]);
    if (!address) continue;
    const auto found = forest.value().by_code_address.find(*address);
    if (found == forest.value().by_code_address.end()) continue;
    const jitlog::Trace& code = forest.value().traces[found->second];
    const auto [symbol, is_new] = symbol_index.try_emplace(*address, symbols.size());
    if (is_new) {
      const std::uint64_t base = *address / kLibraryBytes * kLibraryBytes;
      const auto [library, is_new_library] = library_index.try_emplace(base, libraries.size());
      if (is_new_library) libraries.push_back(library_at(base));
      const std::uint64_t size = code.code_end > code.code_start ? code.code_end - code.code_start : 0;
      symbols.push_back({library->second, *address - base, symbol_name(code), std::min(size, kLibraryBytes)});
    }
    of_frame[i] = symbol->second;
  }
}

std::optional<std::uint64_t> jit_code_address(std::string_view library, std::string_view offset) {
  if (!library.starts_with(kPrefix)) return std::nullopt;
  const std::optional<std::uint64_t> base = from_hexadecimal(library.substr(kPrefix.size()));
  const std::optional<std::uint64_t> from_base = from_hexadecimal(offset);
  if (!base || !from_base || *from_base >= kLibraryBytes) return std::nullopt;
  return *base + *from_base;
}

}  // namespace plimsoll::formats::firefox
