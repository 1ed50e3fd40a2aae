// server/jit_code.cc: an address -> a trace -> its listing.
#include "server/jit_code.h"

#include "base/hexadecimal.h"
#include "formats/firefox/jit_symbols.h"
#include "formats/json_values.h"
#include "formats/labels.h"
#include "jitlog/listing.h"
#include "jitlog/reader.h"

namespace plimsoll::server {

namespace json = boost::json;
using formats::text_member;

std::shared_ptr<const JitCode> JitCode::read(std::string bytes) {
  const std::shared_ptr<JitCode> code(new JitCode(std::move(bytes)));
  Result<jitlog::Forest> forest = jitlog::read(code->bytes_);
  if (!forest.ok()) return nullptr;
  code->forest_ = forest.take();
  Result<jitlog::Disassembler> disassembler = jitlog::Disassembler::open(code->forest_.machine, code->forest_.is_32bit);
  if (disassembler.ok()) code->disassembler_ = disassembler.take();
  return code;
}

json::object JitCode::answer(const json::value& asked) const {
  const std::string_view start = text_member(&asked, "startAddress");
  std::optional<std::uint64_t> address = formats::firefox::jit_code_address(text_member(&asked, "debugName"), start);
  if (!address) address = formats::firefox::jit_code_address(text_member(&asked, "name"), start);
  if (!address) return {{"error", "the profile holds the machine code of the JIT only"}};
  const auto found = forest_.by_code_address.find(*address);
  if (found == forest_.by_code_address.end())
    return {{"error", "the profile's jitlog has no trace whose machine code begins there"}};
  const jitlog::Trace& trace = forest_.traces[found->second];
  json::array instructions;
  std::uint64_t last = 0;
  for (const jitlog::ListingLine& line : jitlog::listing(forest_, trace, disassembler_ ? &*disassembler_ : nullptr)) {
    instructions.push_back(json::array{line.offset, formats::valid_utf8(line.text)});
    last = line.offset;
  }
  const std::uint64_t size = trace.code_end > trace.code_start ? trace.code_end - trace.code_start : last;
  const std::string digits = hexadecimal(size);
  return {{"startAddress", start},
          {"size", digits},
          {"arch", formats::valid_utf8(forest_.machine)},
          {"syntax", json::array{"Intel"}},
          {"instructions", std::move(instructions)}};
}

}  // namespace plimsoll::server
