// Any bytes are either a log, up to where they stop making sense, or an error; and the log can be asked.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "jitlog/listing.h"
#include "jitlog/query.h"
#include "jitlog/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll::jitlog;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // The same bytes as a query, which comes from a person, and as a log.
  const auto query = Query::parse(bytes.substr(0, 200));
  const auto everything = Query::parse("op(\"int\") | func(\"f\") & count > 3 | ~loops");
  const auto forest = read(bytes);
  if (!forest.ok()) return 0;
  const auto disassembler = Disassembler::open("x86_64", false);
  for (const Trace& trace : forest.value().traces) {
    (void)listing(forest.value(), trace, &disassembler.value());
    if (query.ok()) (void)query.value().matches(forest.value(), trace);
    (void)everything.value().matches(forest.value(), trace);
    (void)forest.value().bridge_of(trace.guard);
  }
  return 0;
}
