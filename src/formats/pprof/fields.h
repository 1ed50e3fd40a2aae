// formats/pprof/fields.h: the field numbers of profile.proto that are written or read, a type per message.
#pragma once

#include <protozero/types.hpp>

namespace plimsoll::formats::pprof {

// A whole file.
enum class ProfileField : protozero::pbf_tag_type {
  kSampleType = 1,         // ValueType, repeated: what the values of a sample are, in order
  kSample = 2,             // Sample, repeated
  kMapping = 3,            // Mapping, repeated
  kLocation = 4,           // Location, repeated
  kFunction = 5,           // Function, repeated
  kStringTable = 6,        // string, repeated: the first is empty; all texts elsewhere are indices into it
  kTimeNanos = 9,          // int64, since 1970 UTC
  kDurationNanos = 10,     // int64
  kPeriodType = 11,        // ValueType
  kPeriod = 12,            // int64, in units of kPeriodType
  kComment = 13,           // int64, repeated, packed: string indices
  kDefaultSampleType = 14  // int64: string index
};

// A kind of value and its unit.
enum class ValueTypeField : protozero::pbf_tag_type { kType = 1, kUnit = 2 };

// A stack and what was measured on it.
enum class SampleField : protozero::pbf_tag_type {
  kLocationId = 1,  // uint64, repeated, packed: innermost call first
  kValue = 2,       // int64, repeated, packed
  kLabel = 3        // Label, repeated
};

// A name and a text.
enum class LabelField : protozero::pbf_tag_type { kKey = 1, kText = 2 };

// Where code comes from. The has_ flags say that there is nothing left to symbolise.
enum class MappingField : protozero::pbf_tag_type {
  kId = 1,
  kStart = 2,   // uint64: the address that its first byte was at
  kOffset = 4,  // uint64: where that byte is in the file
  kFilename = 5,
  kHasFunctions = 7,
  kHasFilenames = 8,
  kHasLineNumbers = 9,
  kHasInlineFrames = 10
};

// A position in code.
enum class LocationField : protozero::pbf_tag_type { kId = 1, kMappingId = 2, kAddress = 3, kLine = 4 };

// A function at a line.
enum class LineField : protozero::pbf_tag_type { kFunctionId = 1, kLine = 2, kColumn = 3 };

// A function.
enum class FunctionField : protozero::pbf_tag_type {
  kId = 1,
  kName = 2,
  kSystemName = 3,  // before demangling
  kFilename = 4,
  kStartLine = 5
};

}  // namespace plimsoll::formats::pprof
