// server/jit_code.h: the machine code in a profile's jitlog, as the Firefox Profiler's assembly view asks for it
// (asm/v1).
#pragma once

#include <boost/json.hpp>
#include <memory>
#include <optional>
#include <string>

#include "jitlog/disassembler.h"
#include "jitlog/forest.h"

namespace plimsoll::server {

// The code of one jitlog.
class JitCode {
 public:
  // Null if the bytes are no jitlog.
  static std::shared_ptr<const JitCode> read(std::string bytes);

  // {"startAddress", "size", "arch", "syntax", "instructions": [[offset, text], ...]} for a question with the library's
  // name ("debugName" or "name") and "startAddress", or {"error": text}. Between the instructions stand the operations
  // and the lines of the program that they were made of, at the offset of the instruction below.
  [[nodiscard]] boost::json::object answer(const boost::json::value& asked) const;

 private:
  explicit JitCode(std::string bytes) : bytes_(std::move(bytes)) {}

  std::string bytes_;  // the forest points into them
  jitlog::Forest forest_;
  std::optional<jitlog::Disassembler> disassembler_;  // none for machines that it does not know
};

}  // namespace plimsoll::server
