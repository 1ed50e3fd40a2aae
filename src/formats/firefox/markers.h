// formats/firefox/markers.h: markers, and the schemas that tell the viewer how to show them.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "formats/firefox/file_layout.h"
#include "formats/json.h"

namespace plimsoll::formats::firefox {

// A field that markers of one name carry.
struct MarkerField {
  std::string_view key;
  bool is_integer = true;  // in every marker that has it; the viewer then aligns and formats it as a number
};

// All markers of one name share a schema: the union of their fields.
struct MarkerType {
  std::string_view name;
  std::vector<MarkerField> fields;
  boost::unordered_flat_map<std::string_view, std::size_t> index_of_field;  // by key

  [[nodiscard]] bool is_garbage_collection() const { return name == "GC" || name.starts_with("gc-"); }
  // What PyPy calls the sections of its JIT.
  [[nodiscard]] bool is_jit() const { return name.starts_with("jit-"); }
};

// The marker types of a profile, in order of first appearance. The unit of an integer field is the ending of its key:
// _ns, _ms, _bytes.
class MarkerTypes {
 public:
  explicit MarkerTypes(const profile::Profile& profile);

  // Writes the member "markerSchema" of meta.
  void write_schemas(JsonWriter& json) const;
  // Writes one marker's payload.
  void write_payload(JsonWriter& json, const profile::Marker& marker) const;
  [[nodiscard]] const MarkerType& type_of(const profile::Marker& marker) const {
    return types_[index_.at(marker.name)];
  }

 private:
  std::vector<MarkerType> types_;
  boost::unordered_flat_map<std::string_view, std::size_t> index_;
};

// For each thread, by its index in the file: its markers in order of time. Those of no thread go to the first one.
std::vector<std::vector<const profile::Marker*>> markers_by_thread(const FileLayout& layout);

// Writes the member "markers" of one thread.
void write_markers(JsonWriter& json, const MarkerTypes& types, const std::vector<const profile::Marker*>& markers,
                   Texts& texts);

}  // namespace plimsoll::formats::firefox
