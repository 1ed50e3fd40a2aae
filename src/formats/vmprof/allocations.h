// formats/vmprof/allocations.h: the sampled allocations of PyPy, and what its garbage collector tells of itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/vmprof/survey.h"
#include "profile/profile.h"

namespace plimsoll::formats::vmprof {

// Meta records that name the types of objects: this and the number of the type.
inline constexpr std::string_view kTypeMeta = "__rtype_";

// Brings together the stacks of sampled allocations and the words on their objects, which follow at the next minor
// collection in the same order.
class Allocations {
 public:
  Allocations(profile::Profile& profile, const Survey& survey, Layout layout);

  // An allocation was sampled.
  void stack(std::int64_t time_ns, ThreadId thread, StackId stack);
  // The objects sampled since the last collection, the first one last, and after them the statistics.
  void objects(std::int64_t time_ns, std::string_view entries);
  // After the last record: the samples become markers, the statistics counters.
  void finish();

 private:
  // One sampled object.
  struct Sample {
    std::int64_t time_ns = 0;
    ThreadId thread;
    StackId stack;
  };
  [[nodiscard]] std::string type_name(std::uint64_t number) const;
  void add_marker(const Sample& sample, const std::int64_t* object);

  profile::Profile& profile_;
  const Survey& survey_;
  const Layout layout_;
  boost::unordered_flat_map<std::string_view, std::string_view> types_;
  std::vector<profile::Counter> statistics_;
  std::vector<Sample> samples_;
  std::vector<std::int64_t> objects_;
};

}  // namespace plimsoll::formats::vmprof
