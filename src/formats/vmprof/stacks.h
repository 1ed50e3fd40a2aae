// formats/vmprof/stacks.h: the entries of a vmprof stack -> a StackId.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <memory_resource>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/vmprof/names.h"
#include "formats/vmprof/survey.h"
#include "profile/profile.h"

namespace plimsoll::formats::vmprof {

// Makes the functions, frames and stacks of a profile. Equal entries are looked up by their bytes, so that most samples
// cost one hash of them.
class StackBuilder {
 public:
  // All outlive the builder, as do the entries of the stacks that it is asked for.
  StackBuilder(profile::Profile& profile, const Survey& survey, Layout layout)
      : profile_(profile), survey_(survey), layout_(layout), maps_(parse_maps(survey.maps)) {}

  // `entries` as in Record; `mode` as it is known by then.
  StackId stack_of(std::string_view entries, const Mode& mode);

 private:
  StackId build(std::string_view entries, const Mode& mode);
  void plain_frames(std::string_view entries);
  void line_frames(std::string_view entries);
  void tagged_frames(std::string_view entries);
  void tagged_frame(std::int64_t tag, std::int64_t value);
  void unversioned_frames(std::string_view entries);

  [[nodiscard]] std::size_t count(std::string_view entries) const { return entries.size() / layout_.address; }
  [[nodiscard]] std::int64_t entry(std::string_view entries, std::size_t i) const {
    return number_at(entries, i * layout_.address, layout_.address);
  }
  // The same entries where those of other stacks are near: stacks that return are compared faster, and the file's pages
  // are not needed for it. Of very many stacks only the first ones are copied.
  std::string_view near_others(std::string_view entries);
  FunctionId function_of(std::int64_t id, profile::FunctionKind kind_if_unknown);
  FunctionId named_function(std::string_view name);
  FunctionId unnamed_function(std::int64_t id, profile::FunctionKind kind);
  FunctionId synthetic(std::string_view name);
  FunctionId mapped_function(std::uint64_t address);
  [[nodiscard]] std::optional<std::int64_t> virtual_code(std::int64_t entry) const;
  void push(FunctionId function, std::uint32_t line = 0, StringId trace = {}) {
    frames_.push_back({function, line, 0, trace});
  }

  // Boost's own hash of a text goes byte by byte.
  struct EntriesHash {
    using is_avalanching = void;  // NOLINT(readability-identifier-naming): what Boost asks for
    std::size_t operator()(std::string_view entries) const { return std::hash<std::string_view>()(entries); }
  };

  profile::Profile& profile_;
  const Survey& survey_;
  const Layout layout_;
  const std::vector<Mapping> maps_;
  boost::unordered_flat_map<std::string_view, StackId, EntriesHash> stacks_;  // by entries
  std::pmr::monotonic_buffer_resource copies_;
  std::size_t copied_bytes_ = 0;
  boost::unordered_flat_map<std::int64_t, FunctionId> functions_;  // by id
  // The stack being built, leaf first.
  std::vector<profile::Frame> frames_;
  std::int64_t jitted_ = 0;  // the id of the last frame, if that was machine code of the JIT
  StringId trace_;           // in which jitted frames are
};

}  // namespace plimsoll::formats::vmprof
