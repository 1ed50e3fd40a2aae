#include "profile/plim_markers.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

#include "profile/plim_columns.h"
#include "profile/plim_format.h"

namespace plimsoll::profile {
namespace {

// A garbage collection may be over in microseconds: durations are told in 50 of these, or in the file's units if less.
std::int64_t duration_unit(std::int64_t unit_ns) { return std::min<std::int64_t>(unit_ns, 50'000); }
// Counters are read ten times a second, now and then a little late: their times need be no better than a sample's
// period. But a file written from memory loses nothing.
std::int64_t point_unit(std::int64_t unit_ns) { return unit_ns < 1'000 ? unit_ns : 50 * unit_ns; }

// The number that a text is, if it is one that would be written like this.
std::optional<std::int64_t> as_number(std::string_view text) {
  constexpr std::int64_t kMost = INT64_MAX / 4;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc{} && end == text.data() + text.size();
  return is_whole && number > -kMost && number < kMost && std::to_string(number) == text ? std::optional(number)
                                                                                         : std::nullopt;
}

bool is_of(const Marker& marker, const MarkerShape& shape) {
  const auto is_name = [](const std::string& name, const auto& field) { return name == field.first; };
  return shape.name == marker.name &&
         std::equal(shape.fields.begin(), shape.fields.end(), marker.fields.begin(), marker.fields.end(), is_name);
}

}  // namespace

// ---- written ----

std::size_t MarkerEncoder::shape_of(const Marker& marker) const {
  const auto& all = markers_.so_far;
  const auto is_it = [&](const MarkerShape& shape) { return is_of(marker, shape); };
  return static_cast<std::size_t>(std::find_if(all.begin(), all.end(), is_it) - all.begin());
}

std::string MarkerEncoder::shapes(const Profile& profile, std::size_t next, std::size_t end) {
  std::string out;
  for (; next < end; ++next) {
    const Marker& marker = profile.markers[next];
    if (shape_of(marker) < markers_.so_far.size()) continue;
    MarkerShape shape{marker.name, {}};
    put_bytes(out, marker.name);
    put_varint(out, marker.fields.size());
    for (const auto& field : marker.fields) put_bytes(out, shape.fields.emplace_back(field.first));
    markers_.so_far.push_back(std::move(shape));
  }
  return out;
}

std::string MarkerEncoder::texts(const Profile& profile, std::size_t next, std::size_t end) {
  std::string out;
  for (; next < end; ++next)
    for (const auto& field : profile.markers[next].fields)
      if (!as_number(field.second)) put_bytes(out, field.second);
  return out;
}

void MarkerEncoder::put(const Profile& profile, std::size_t next, std::size_t end, SymbolWriter& out) {
  out.put(markers_.counts, end - next);
  const std::int64_t unit = duration_unit(unit_ns_);
  for (; next < end; ++next) {
    const Marker& marker = profile.markers[next];
    const std::size_t shape = shape_of(marker);
    out.put(markers_.shapes, shape);
    out.put(markers_.threads, optional_id(marker.thread));
    const std::int64_t time = to_units(marker.time_ns, unit_ns_);
    out.put_signed(markers_.times, time - std::exchange(markers_.time, time));
    const std::int64_t duration_ns = marker.duration_ns + duration_rest_ns_;
    const std::int64_t duration = to_units(duration_ns, unit);
    duration_rest_ns_ = duration_ns - duration * unit;
    out.put_signed(markers_.durations, duration);
    for (std::size_t i = 0; i < marker.fields.size(); ++i) {
      const std::optional<std::int64_t> number = as_number(marker.fields[i].second);
      out.put(markers_.values_of(i), number ? zigzag(*number) + 1 : 0);
    }
  }
}

std::string MarkerEncoder::counter_names(const Profile& profile) {
  std::string out;
  for (const Counter& counter : profile.counters) {
    const auto is_it = [&](const CounterState& one) {
      return one.process == counter.process && one.name == counter.name;
    };
    if (std::any_of(counters_.so_far.begin(), counters_.so_far.end(), is_it)) continue;
    put_varint(out, optional_id(counter.process));
    put_bytes(out, counter.name);
    put_bytes(out, counter.unit);
    counters_.so_far.push_back({counter.process, counter.name, counter.unit});
  }
  return out;
}

void MarkerEncoder::put_points(const Counter& counter, CounterState& state, SymbolWriter& out) {
  std::vector<std::int64_t> steps;
  std::uint64_t bits = 0;
  for (const std::int64_t value : counter.value) {
    steps.push_back(value - std::exchange(state.value, value));
    bits |= static_cast<std::uint64_t>(steps.back());
  }
  // Memory grows by pages.
  const int zeros = bits == 0 ? 0 : std::countr_zero(bits);
  out.put(counters_.points, steps.size());
  if (steps.empty()) return;
  out.put(counters_.zeros, static_cast<std::uint64_t>(zeros));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::int64_t time = to_units(counter.time_ns[i], point_unit(unit_ns_));
    const std::int64_t step = time - std::exchange(state.time, time);
    out.put_signed(counters_.times, step - std::exchange(state.step, step));
    out.put_signed(counters_.values, steps[i] >> zeros);
  }
}

void MarkerEncoder::put_counters(const Profile& profile, bool is_first, SymbolWriter& out) {
  out.put(counters_.counts, is_first ? profile.counters.size() : 0);
  if (!is_first) return;
  for (const Counter& counter : profile.counters) {
    const auto is_it = [&](const CounterState& one) {
      return one.process == counter.process && one.name == counter.name;
    };
    const auto state = std::find_if(counters_.so_far.begin(), counters_.so_far.end(), is_it);
    out.put(counters_.numbers, static_cast<std::uint64_t>(state - counters_.so_far.begin()));
    put_points(counter, *state, out);
  }
}

void MarkerEncoder::put_progress(const Profile& profile, SymbolWriter& out) {
  ProgressModels& last = progress_;
  const std::int64_t time = to_units(profile.end_ns, unit_ns_);
  const std::int64_t cpu = to_units(profile.process_cpu_ns, unit_ns_);
  const std::int64_t time_step = time - std::exchange(last.time, time);
  const std::int64_t cpu_step = cpu - std::exchange(last.cpu, cpu);
  out.put_signed(last.times, time_step - std::exchange(last.time_step, time_step));
  out.put_signed(last.cpus, cpu_step - std::exchange(last.cpu_step, cpu_step));
}

// ---- read ----

bool MarkerDecoder::shapes(VarintCursor& cursor) {
  while (!cursor.at_end()) {
    MarkerShape shape;
    shape.name = cursor.bytes();
    const std::size_t fields = cursor.count();
    for (std::size_t i = 0; i < fields && !cursor.failed(); ++i) shape.fields.emplace_back(cursor.bytes());
    bytes_ += sizeof shape + fields * sizeof shape.name;
    if (cursor.failed() || bytes_ > most_bytes_) return false;
    markers_.so_far.push_back(std::move(shape));
  }
  return true;
}

bool MarkerDecoder::texts(VarintCursor& cursor) {
  texts_.clear();
  next_text_ = 0;
  while (!cursor.at_end()) texts_.emplace_back(cursor.bytes());
  return !cursor.failed();
}

bool MarkerDecoder::counter_names(VarintCursor& cursor) {
  while (!cursor.at_end()) {
    CounterState state;
    if (!tables_.process_reference(cursor, state.process)) return false;
    state.name = cursor.bytes();
    state.unit = cursor.bytes();
    bytes_ += sizeof state;
    if (cursor.failed() || bytes_ > most_bytes_) return false;
    counters_.so_far.push_back(std::move(state));
  }
  return true;
}

bool MarkerDecoder::read_value(SymbolReader& rows, SymbolModel& model, std::string& value) {
  const std::uint64_t written = rows.get(model);
  if (written != 0) {
    value = std::to_string(unzigzag(written - 1));
    return true;
  }
  if (next_text_ == texts_.size()) return false;
  value = std::move(texts_[next_text_++]);
  return true;
}

bool MarkerDecoder::read(SymbolReader& rows) {
  const std::uint64_t count = rows.get(markers_.counts);
  if (rows.failed() || count > kRowsInSection) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t shape = rows.get(markers_.shapes);
    const std::uint64_t thread = rows.get(markers_.threads);
    if (shape >= markers_.so_far.size() || thread > profile_.threads.size()) return false;
    const MarkerShape& is = markers_.so_far[shape];
    Marker marker;
    // A few bytes of a file may be very many fields.
    bytes_ += is.fields.size() * sizeof marker.fields[0];
    if (bytes_ > most_bytes_) return false;
    if (thread != 0) marker.thread = ThreadId{static_cast<std::size_t>(thread - 1)};
    if (!add_step(markers_.time, rows.get_signed(markers_.times)) ||
        !to_nanoseconds(markers_.time, unit_ns_, marker.time_ns) ||
        !to_nanoseconds(rows.get_signed(markers_.durations), duration_unit(unit_ns_), marker.duration_ns))
      return false;
    marker.name = is.name;
    repeated_bytes_ += marker.name.size();
    for (const std::string& name : is.fields) {
      repeated_bytes_ += name.size();
      SymbolModel& model = markers_.values_of(marker.fields.size());
      if (!read_value(rows, model, marker.fields.emplace_back(name, std::string()).second)) return false;
    }
    if (rows.failed() || repeated_bytes_ > plim::kMostRepeatedBytes || !add(std::move(marker))) return false;
  }
  return true;
}

bool MarkerDecoder::add(Marker&& marker) {
  bytes_ += sizeof marker + marker.name.size();
  for (const auto& [name, value] : marker.fields) bytes_ += name.size() + value.size();
  profile_.markers.push_back(std::move(marker));
  return bytes_ <= most_bytes_;
}

Counter& MarkerDecoder::counter_of(ProcessId process, std::string_view name, std::string_view unit) {
  auto& all = profile_.counters;
  const auto [found, is_new] = counter_rows_.try_emplace({process.index(), std::string(name)}, all.size());
  if (is_new) {
    all.push_back({process, std::string(name), std::string(unit), {}, {}});
    bytes_ += 2 * sizeof(Counter) + name.size();
  }
  return all[found->second];
}

bool MarkerDecoder::read_points(SymbolReader& rows, CounterState& state) {
  const std::uint64_t count = rows.get(counters_.points);
  if (rows.failed() || count > kRowsInSection) return false;
  Counter& counter = counter_of(state.process, state.name, state.unit);
  if (count == 0) return true;
  const std::uint64_t zeros = rows.get(counters_.zeros);
  if (zeros > 63) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::int64_t time_ns = 0;
    if (!add_step(state.step, rows.get_signed(counters_.times)) || !add_step(state.time, state.step) ||
        !to_nanoseconds(state.time, point_unit(unit_ns_), time_ns))
      return false;
    const auto step = static_cast<std::uint64_t>(rows.get_signed(counters_.values)) << zeros;
    bytes_ += 2 * sizeof step;
    if (rows.failed() || bytes_ > most_bytes_ || !add_step(state.value, static_cast<std::int64_t>(step))) return false;
    counter.time_ns.push_back(time_ns);
    counter.value.push_back(state.value);
  }
  return true;
}

bool MarkerDecoder::read_counters(SymbolReader& rows) {
  const std::uint64_t count = rows.get(counters_.counts);
  if (rows.failed() || count > counters_.so_far.size()) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t number = rows.get(counters_.numbers);
    if (number >= counters_.so_far.size() || !read_points(rows, counters_.so_far[number])) return false;
  }
  return true;
}

bool MarkerDecoder::read_progress(SymbolReader& rows) {
  ProgressModels& last = progress_;
  return add_step(last.time_step, rows.get_signed(last.times)) && add_step(last.cpu_step, rows.get_signed(last.cpus)) &&
         add_step(last.time, last.time_step) && add_step(last.cpu, last.cpu_step) &&
         to_nanoseconds(last.time, unit_ns_, profile_.end_ns) &&
         to_nanoseconds(last.cpu, unit_ns_, profile_.process_cpu_ns);
}

// ---- version 2 ----

bool MarkerDecoder::old_markers(VarintCursor& cursor) {
  while (!cursor.at_end()) {
    Marker marker;
    marker.time_ns = cursor.signed_varint();
    marker.duration_ns = cursor.signed_varint();
    if (!tables_.thread_reference(cursor, marker.thread)) return false;
    marker.name = cursor.bytes();
    const std::size_t fields = cursor.count();
    bytes_ += fields * sizeof marker.fields[0];
    for (std::size_t i = 0; i < fields && !cursor.failed(); ++i) {
      const std::string_view name = cursor.bytes();
      const std::string_view value = cursor.bytes();
      marker.fields.emplace_back(name, value);
    }
    if (cursor.failed() || !add(std::move(marker))) return false;
  }
  return true;
}

bool MarkerDecoder::old_counter(VarintCursor& cursor) {
  ProcessId process;
  if (!tables_.process_reference(cursor, process)) return false;
  const std::string_view name = cursor.bytes();
  const std::string_view unit = cursor.bytes();
  const std::size_t count = cursor.count();
  if (cursor.failed()) return false;
  Counter& counter = counter_of(process, name, unit);
  bytes_ += count * 2 * sizeof(std::int64_t);
  std::int64_t time = 0;
  std::int64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t time_ns = 0;
    if (!add_step(time, cursor.signed_varint()) || !add_step(value, cursor.signed_varint()) ||
        !to_nanoseconds(time, unit_ns_, time_ns) || cursor.failed())
      return false;
    counter.time_ns.push_back(time_ns);
    counter.value.push_back(value);
  }
  return true;
}

bool MarkerDecoder::old_progress(VarintCursor& cursor) {
  profile_.end_ns = cursor.signed_varint();
  profile_.process_cpu_ns = cursor.signed_varint();
  return !cursor.failed();
}

}  // namespace plimsoll::profile
