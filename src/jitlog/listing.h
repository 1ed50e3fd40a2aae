// jitlog/listing.h: a trace's machine code with the operations and the lines of the program that it comes from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jitlog/disassembler.h"
#include "jitlog/forest.h"

namespace plimsoll::jitlog {

// A place of the program, and the operation that it stands before.
struct PlacedPoint {
  std::size_t before = 0;  // index of an operation of the assembled stage
  const MergePoint* place = nullptr;
};

// The places of the assembled stage. A log has them with the optimised stage only; the guards and labels that both
// stages have, and the operations between them that do the same, tell where they are: right to a few operations.
std::vector<PlacedPoint> assembled_places(const Forest& forest, const Trace& trace);

// "app.py:3  schedule  LOAD_FAST  total += n", as far as it is known.
std::string place_text(const Forest& forest, const MergePoint& place);
// "i2 = int_add(i0, i1)  <descriptor>  -> bridge 8".
std::string operation_text(const Forest& forest, const Operation& operation);

// A line of a listing.
struct ListingLine {
  std::uint64_t offset = 0;  // from the start of the machine code; never less than that of the line before
  std::string text;
};

// Places, operations below them, instructions below those (if there is a disassembler). Of a trace without machine code
// its optimised operations, or else those recorded.
std::vector<ListingLine> listing(const Forest& forest, const Trace& trace, const Disassembler* disassembler);

}  // namespace plimsoll::jitlog
