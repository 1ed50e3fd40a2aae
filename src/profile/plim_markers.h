// profile/plim_markers.h: markers, counters and progress of a .plim file, written and read.
#pragma once

#include <algorithm>
#include <array>
#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/symbols.h"
#include "base/varint.h"
#include "profile/plim_tables.h"
#include "profile/profile.h"

namespace plimsoll::profile {

// What markers have in common that are of one kind: their name and the names of their fields.
struct MarkerShape {
  std::string name;
  std::vector<std::string> fields;
  bool operator==(const MarkerShape&) const = default;
};

// How probable the numbers of markers are, and what they are written relative to. In the file's units.
struct MarkerModels {
  SymbolModel counts{32}, shapes{16}, threads{16}, times{64}, durations{64};
  // Of the values of a marker's first field, its second, and so on; those after the last here are as that one.
  std::array<SymbolModel, 4> values{SymbolModel{64}, SymbolModel{64}, SymbolModel{64}, SymbolModel{64}};
  SymbolModel& values_of(std::size_t field) { return values[std::min(field, values.size() - 1)]; }
  std::vector<MarkerShape> so_far;
  std::int64_t time = 0;
};

// What the points of a counter are written relative to.
struct CounterState {
  ProcessId process;
  std::string name;
  std::string unit;
  std::int64_t time = 0, step = 0;  // in the file's units
  std::int64_t value = 0;
};

// How probable the numbers of counters are.
struct CounterModels {
  SymbolModel counts{8}, numbers{8}, points{32}, zeros{32}, times{64}, values{64};
  std::vector<CounterState> so_far;
};

// Likewise, and what progress is written relative to. In the file's units.
struct ProgressModels {
  SymbolModel times{64}, cpus{64};
  std::int64_t time = 0, time_step = 0, cpu = 0, cpu_step = 0;
};

// Writes them, each relative to what was before it.
class MarkerEncoder {
 public:
  explicit MarkerEncoder(std::int64_t unit_ns) : unit_ns_(unit_ns) {}

  // The payloads of sections with the shapes of so many markers, and the texts among their values; and with the names
  // of counters. put() and put_counters() need them.
  std::string shapes(const Profile& profile, std::size_t next, std::size_t end);
  static std::string texts(const Profile& profile, std::size_t next, std::size_t end);
  std::string counter_names(const Profile& profile);
  // Those markers; all points of all counters, unless they are in the file already; progress.
  void put(const Profile& profile, std::size_t next, std::size_t end, SymbolWriter& out);
  void put_counters(const Profile& profile, bool is_first, SymbolWriter& out);
  void put_progress(const Profile& profile, SymbolWriter& out);

 private:
  std::size_t shape_of(const Marker& marker) const;
  void put_points(const Counter& counter, CounterState& state, SymbolWriter& out);

  const std::int64_t unit_ns_;
  std::int64_t duration_rest_ns_ = 0;  // what was rounded away
  MarkerModels markers_;
  CounterModels counters_;
  ProgressModels progress_;
};

// Reads sections of them into a Profile.
class MarkerDecoder {
 public:
  // Markers and counters may take so many bytes.
  MarkerDecoder(Profile& profile, const TableDecoder& tables, std::uint64_t most_bytes)
      : profile_(profile), tables_(tables), most_bytes_(most_bytes) {}
  // Times count so many nanoseconds.
  void set_unit(std::int64_t unit_ns) { unit_ns_ = unit_ns; }

  // One section each; false if it makes no sense. What came before it stays.
  bool shapes(VarintCursor& cursor);
  bool texts(VarintCursor& cursor);
  bool counter_names(VarintCursor& cursor);
  bool read(SymbolReader& rows);
  bool read_counters(SymbolReader& rows);
  bool read_progress(SymbolReader& rows);
  // What they take by now.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // Those of version 2.
  bool old_markers(VarintCursor& cursor);
  bool old_counter(VarintCursor& cursor);
  bool old_progress(VarintCursor& cursor);

 private:
  bool add(Marker&& marker);
  bool read_value(SymbolReader& rows, SymbolModel& model, std::string& value);
  bool read_points(SymbolReader& rows, CounterState& state);
  using CounterKey = std::pair<std::size_t, std::string>;  // process and name
  Counter& counter_of(ProcessId process, std::string_view name, std::string_view unit);

  Profile& profile_;
  const TableDecoder& tables_;
  std::int64_t unit_ns_ = 1;
  const std::uint64_t most_bytes_;
  std::uint64_t bytes_ = 0, repeated_bytes_ = 0;  // of all; of names
  std::vector<std::string> texts_;                // of the section at hand
  std::size_t next_text_ = 0;
  MarkerModels markers_;
  CounterModels counters_;
  boost::unordered_flat_map<CounterKey, std::size_t, boost::hash<CounterKey>> counter_rows_;
  ProgressModels progress_;
};

}  // namespace plimsoll::profile
