// jitlog/query.h: the language that picks traces: bridges & op("int_add_ovf") | func("schedule").
//
//   loops, bridges     also loops() and bridges()
//   op("text")         an operation of any stage whose name holds the text
//   func("text")       a place of the recorded stage in a function whose name holds the text
//   file("text")       likewise, by the name of the file
//   count > 1000       how often the trace ran: > >= < <= == !=
//   ~ & | ( )          not, and, or: in this order, as in Python
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "jitlog/forest.h"

namespace plimsoll::jitlog {

// A parsed query.
class Query {
 public:
  // Errors (kUsage) point at the column where the text makes no sense, counted from 1. An empty text matches all.
  static Result<Query> parse(std::string_view text);

  [[nodiscard]] bool matches(const Forest& forest, const Trace& trace) const;

 private:
  friend class QueryParser;
  // What a step of the evaluation does.
  enum class Step : std::uint8_t { kLoops, kBridges, kOperation, kFunction, kFile, kCount, kNot, kAnd, kOr };
  // Of a count with a number.
  enum class Comparison : std::uint8_t { kMore, kMoreOrEqual, kLess, kLessOrEqual, kEqual, kUnequal };
  // A step and what it needs.
  struct Instruction {
    Step step{};
    Comparison comparison{};
    std::string text;
    std::uint64_t number = 0;
  };
  [[nodiscard]] static bool test(const Instruction& instruction, const Forest& forest, const Trace& trace);

  std::vector<Instruction> steps_;  // operands before what is done with them
};

}  // namespace plimsoll::jitlog
