// formats/tachyon/layout.cc: header, footer, and what stands before the footer.
#include "formats/tachyon/layout.h"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>

namespace plimsoll::formats::tachyon {
namespace {

constexpr std::string_view kMagicLittle = "HCAT";
constexpr std::string_view kMagicBig = "TACH";
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kFooterBytes = 32;
constexpr unsigned kModeBits = 7;  // the bits above are switches of the recording

// Offsets of the header that depend on how wide the number of samples is: 4 bytes in alphas of 3.15, then 8.
struct HeaderPlaces {
  std::size_t sample_bytes, strings, frames, compression;
};
constexpr HeaderPlaces kPlaces = {8, 40, 48, 56};
constexpr HeaderPlaces kAlphaPlaces = {4, 36, 44, 52};
constexpr std::size_t kSamplesAt = 28;
constexpr std::size_t kModeAt = 60;

// Whether the tables come after the header, in order, and after what this program can unpack.
bool is_plausible(std::string_view bytes, ByteOrder order, const HeaderPlaces& places) {
  const std::uint64_t strings = order.number(bytes, places.strings, 8);
  const std::uint64_t frames = order.number(bytes, places.frames, 8);
  return strings >= kHeaderBytes && strings <= frames && order.number(bytes, places.compression, 4) <= 1;
}

double decimal(std::string_view bytes, std::size_t at, ByteOrder order) {
  const auto value = std::bit_cast<double>(order.number(bytes, at, 8));
  return std::isfinite(value) && value >= 0 && value < 1e9 ? value : 0;
}

// A block with a signature near its end; the first one had no percentages.
std::optional<Statistics> find_statistics(std::string_view before_footer, ByteOrder order) {
  constexpr std::string_view kSignature = "TACHSTAT";
  constexpr std::size_t kTrailerBytes = 16, kFirstBytes = 32, kBytes = 56;
  if (before_footer.size() < kFirstBytes) return std::nullopt;
  const std::string_view trailer = before_footer.substr(before_footer.size() - kTrailerBytes);
  const std::uint64_t size = order.number(trailer, 12, 4);
  if (!trailer.starts_with(kSignature) || size < kFirstBytes || size > before_footer.size()) return std::nullopt;
  const std::string_view block = before_footer.substr(before_footer.size() - size);
  Statistics statistics{decimal(block, 0, order), decimal(block, 8, order)};
  if (size < kBytes) return statistics;
  const std::uint64_t is_there = order.number(block, 32, 4);
  if ((is_there & 1U) != 0) statistics.failed_percent = std::min(100.0, decimal(block, 16, order));
  if ((is_there & 2U) != 0) statistics.missed_percent = std::min(100.0, decimal(block, 24, order));
  return statistics;
}

void read_facts(std::string_view bytes, const HeaderPlaces& places, Layout& layout) {
  const auto byte = [&](std::size_t at) { return std::to_string(static_cast<unsigned char>(bytes[at])); };
  layout.python = byte(8) + "." + byte(9) + "." + byte(10);
  layout.start_us = layout.order.number(bytes, 12, 8);
  layout.interval_us = layout.order.number(bytes, 20, 8);
  layout.samples = layout.order.number(bytes, kSamplesAt, places.sample_bytes);
  layout.is_compressed = layout.order.number(bytes, places.compression, 4) == 1;
  layout.mode = static_cast<unsigned>(layout.order.number(bytes, kModeAt, 4) & kModeBits);
}

// The tables, to the end of the file if that is cut.
void find_tables(std::string_view bytes, const HeaderPlaces& places, Layout& layout) {
  const std::uint64_t strings = layout.order.number(bytes, places.strings, 8);
  const std::uint64_t frames = layout.order.number(bytes, places.frames, 8);
  std::string_view tables = bytes;
  if (bytes.size() >= kHeaderBytes + kFooterBytes) {
    const std::string_view footer = bytes.substr(bytes.size() - kFooterBytes);
    layout.is_whole = layout.order.number(footer, 8, 8) == bytes.size() && frames <= bytes.size() - kFooterBytes;
    if (layout.is_whole) {
      tables.remove_suffix(kFooterBytes);
      layout.strings = layout.order.number(footer, 0, 4);
      layout.frames = layout.order.number(footer, 4, 4);
      layout.statistics = find_statistics(tables.substr(frames), layout.order);
    }
  }
  layout.sample_data = bytes.substr(kHeaderBytes, strings - kHeaderBytes);
  layout.string_table = tables.substr(strings, frames - strings);
  layout.frame_table = frames < tables.size() ? tables.substr(frames) : std::string_view{};
}

}  // namespace

std::uint64_t ByteOrder::number(std::string_view bytes, std::size_t at, std::size_t size) const {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t place = is_big_endian ? i : size - 1 - i;
    value = value << 8U | static_cast<unsigned char>(bytes[at + place]);
  }
  return value;
}

bool has_magic(std::string_view bytes) { return bytes.starts_with(kMagicLittle) || bytes.starts_with(kMagicBig); }

Result<Layout> find_layout(std::string_view bytes) {
  Layout layout;
  layout.order.is_big_endian = bytes.starts_with(kMagicBig);
  if (bytes.size() < kHeaderBytes)
    return Error{ErrorKind::kBadInput, "a binary profile of profiling.sampling that is cut at byte " +
                                           std::to_string(bytes.size()) + ", within its header"};
  if (const std::uint64_t version = layout.order.number(bytes, 4, 4); version != kVersion)
    return Error{ErrorKind::kUnsupported, "a binary profile of profiling.sampling of version " +
                                              std::to_string(version) + ": version 1 can be read"};
  // The other header's numbers are far beyond the end of the file, as half of each is the lower half of another.
  const auto is_within = [&](const HeaderPlaces& places) {
    return is_plausible(bytes, layout.order, places) && layout.order.number(bytes, places.frames, 8) <= bytes.size();
  };
  const bool is_alpha = !is_within(kPlaces) && is_within(kAlphaPlaces);
  const HeaderPlaces& places = is_alpha ? kAlphaPlaces : kPlaces;
  if (!is_plausible(bytes, layout.order, places))
    return Error{ErrorKind::kBadInput,
                 "a binary profile of profiling.sampling whose header, bytes 28 to 63, makes no sense"};
  if (const std::uint64_t strings = layout.order.number(bytes, places.strings, 8); strings > bytes.size())
    return Error{ErrorKind::kBadInput,
                 "a binary profile of profiling.sampling that is cut at byte " + std::to_string(bytes.size()) +
                     ", before the names of its functions, which begin at byte " + std::to_string(strings)};
  read_facts(bytes, places, layout);
  find_tables(bytes, places, layout);
  return layout;
}

std::string_view unpacked_samples(const Layout& layout, std::string& storage) {
  if (!layout.is_compressed) return layout.sample_data;
  // A small file must not fill the memory; real ones unpack to fifty times their size, constant ones to some hundreds.
  // A sample may take two bytes, and is 29 in a profile.
  constexpr std::size_t kAlways = std::size_t{16} << 20U, kMostTimes = 1'000, kEver = std::size_t{512} << 20U;
  const std::size_t most = std::min(kAlways + kMostTimes * layout.sample_data.size(), kEver);
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (context == nullptr) return {};
  ZSTD_inBuffer in{layout.sample_data.data(), layout.sample_data.size(), 0};
  std::string block(ZSTD_DStreamOutSize(), '\0');
  while (storage.size() < most) {
    ZSTD_outBuffer out{block.data(), block.size(), 0};
    const std::size_t state = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(state) != 0) break;
    storage.append(block, 0, out.pos);
    if (out.pos < out.size && in.pos == in.size) break;
  }
  return storage;
}

}  // namespace plimsoll::formats::tachyon
