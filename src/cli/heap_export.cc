#include "cli/heap_export.h"
#include "base/write_file.h"

#include <fmt/format.h>

#include "cli/exit_code.h"
#include "cli/heap_input.h"
#include "cli/output_path.h"
#include "cli/suggest.h"
#include "cli/units.h"
#include "formats/heap_formats.h"

namespace plimsoll::cli {

Result<int> export_heap(Console& console, const std::string& input, std::span<const std::string> views,
                        const HeapExport& to) {
  const auto format = to.format.empty() ? formats::heap_format_of(to.output) : formats::heap_format_named(to.format);
  if (!format && !to.format.empty())
    return Error{ErrorKind::kUsage, no_such("format", to.format, {"heapsnapshot", "perfetto", "ndjson"})};
  if (!format)
    return Error{ErrorKind::kUsage, "which format? Call the file .heapsnapshot, .pftrace or .ndjson, or add --format"};
  if (to.output != "-") PLIMSOLL_TRY(check_not_input(to.output, input));
  const Result<heap::Snapshot> snapshot = read_heap(console, input, views);
  if (!snapshot.ok()) return snapshot.error();
  notice_if_incomplete(console, snapshot.value(), input);
  const std::string bytes = formats::write_heap(snapshot.value(), *format);
  if (to.output == "-") {
    PLIMSOLL_TRY(console.print(bytes));
    return kFine;
  }
  PLIMSOLL_TRY(write_file(to.output, bytes));
  console.notice(fmt::format("wrote {} ({})", to.output, format_bytes(static_cast<std::int64_t>(bytes.size()))));
  return kFine;
}

}  // namespace plimsoll::cli
