// Any bytes are either a profile, up to where they stop making sense, or an error; and a profile can be used.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "profile/flat.h"
#include "profile/memory.h"
#include "profile/plim_reader.h"
#include "profile/plim_testing.h"
#include "profile/tree.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll::profile;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // Once as a file, and as what is in a chunk, which random changes would not get past the checksum with: sections of
  // version 2, and of this one, with rows behind them, which begin where the first two bytes say.
  if (size < 2) return 0;
  const std::string_view rest = bytes.substr(2);
  const std::size_t sections = std::min<std::size_t>(data[0] + 256U * data[1], rest.size());
  for (const std::string& file : {std::string(bytes), old_plim_file_with_chunk(bytes),
                                  plim_file_with_chunk(rest.substr(0, sections), rest.substr(sections))}) {
    const auto profile = read_plim(file);
    if (!profile.ok()) continue;
    (void)tree(profile.value(), Granularity::kLine);
    (void)flat(profile.value());
    (void)lines(profile.value());
    (void)read_plim(PlimEncoder::file_header() + PlimEncoder(1000).encode(profile.value()));
    if (!profile.value().has_allocations()) continue;
    for (const MemoryView view :
         {MemoryView::kAllocated, MemoryView::kLive, MemoryView::kPeak, MemoryView::kLeaks, MemoryView::kTemporary}) {
      (void)memory_report(profile.value(), view).all.interval();
      (void)memory_by_type(profile.value(), view);
    }
    (void)lifetimes(profile.value());
    (void)memory_over_time(profile.value(), 3);
    (void)alive_over_time(profile.value(), 3);
    (void)read_plim(PlimEncoder::file_header() + PlimEncoder(1).encode(profile.value()));
  }
  return 0;
}
