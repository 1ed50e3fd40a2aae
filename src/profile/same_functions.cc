#include "profile/same_functions.h"

#include <algorithm>
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <map>
#include <utility>

namespace plimsoll::profile {
namespace {

constexpr std::uint32_t kNoNumber = ~std::uint32_t{0};

// A function of a file; `name` by number.
struct Place {
  std::uint32_t line = 0;
  std::uint32_t name = 0;
  std::uint32_t number = kNoNumber;  // in SameFunctions::all
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> order() const { return {line, name}; }
};

bool is_before(const Place& a, const Place& b) { return a.order() < b.order(); }

using Places = std::vector<Place>;  // in the order of lines

// The best of scores at lower positions, when these come one by one: a tree of Fenwick's.
class BestBefore {
 public:
  struct Best {
    std::int64_t score = 0;
    std::size_t step = ~std::size_t{0};
  };
  explicit BestBefore(std::size_t size) : tree_(size + 1) {}

  void put(std::size_t position, const Best& best) {
    for (std::size_t i = position + 1; i < tree_.size(); i += i & (~i + 1))
      if (best.score > tree_[i].score) tree_[i] = best;
  }
  [[nodiscard]] Best before(std::size_t position) const {
    Best best;
    for (std::size_t i = position; i > 0; i -= i & (~i + 1))
      if (tree_[i].score > best.score) best = tree_[i];
    return best;
  }

 private:
  std::vector<Best> tree_;
};

// Finds the functions that an edit of the file left in their order: as many as may be, but not at the price of as many
// changes of the distance that they have moved by, which is 0 at the beginning of the file. An edit moves all that is
// below it, and a function that was not sampled moves nothing.
class Alignment {
 public:
  Alignment(const Places& before, const Places& after) : before_(before), after_(after), best_(after.size()) {
    for (std::size_t i = 0; i < after.size(); ++i)
      if (after[i].number == kNoNumber) of_name_[after[i].name].push_back(i);
    std::size_t pairs = 0;
    for (const Place& place : before) pairs += of_name_[place.name].size();
    constexpr std::size_t kMostPairs = 1'000'000;  // generated code: then only those that stand where they stood
    may_move_ = pairs <= kMostPairs;
    of_distance_[0] = {};
  }

  // Pairs of places, last first.
  std::vector<std::pair<std::size_t, std::size_t>> pairs() {
    for (std::size_t i = 0; i < before_.size(); ++i) {
      const std::vector<std::size_t>& alike = of_name_[before_[i].name];
      // Backwards, as a function is the same as one other at most.
      for (auto at = alike.rbegin(); at != alike.rend(); ++at) add(i, *at);
    }
    std::vector<std::pair<std::size_t, std::size_t>> result;
    for (std::size_t at = best_.before(after_.size()).step; at != kNone; at = steps_[at].previous)
      result.emplace_back(steps_[at].before, steps_[at].after);
    return result;
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  static constexpr std::int64_t kFound = 1'000;
  static constexpr std::int64_t kMoved = -1'001;

  struct Step {
    std::size_t before, after, previous;
  };

  void add(std::size_t i, std::size_t j) {
    const std::int64_t distance = std::int64_t{after_[j].line} - before_[i].line;
    if (distance != 0 && !may_move_) return;
    BestBefore::Best best = best_.before(j);
    best.score += kMoved;
    BestBefore::Best& alike = of_distance_.try_emplace(distance, best).first->second;
    if (alike.score >= best.score) best = alike;
    steps_.push_back({i, j, best.step});
    best = {best.score + kFound, steps_.size() - 1};
    if (best.score > alike.score) alike = best;
    best_.put(j, best);
  }

  const Places& before_;
  const Places& after_;
  boost::unordered_flat_map<std::uint32_t, std::vector<std::size_t>> of_name_;  // in after_
  boost::unordered_flat_map<std::int64_t, BestBefore::Best> of_distance_;
  BestBefore best_;
  std::vector<Step> steps_;
  bool may_move_ = true;
};

// The functions of one file on both sides.
using FilePlaces = std::array<Places, 2>;

// Numbers the functions of both profiles.
class Numbering {
 public:
  Numbering(const Profile& before, const Profile& after) : profiles_{&before, &after} {}

  SameFunctions run() {
    for (const std::size_t side : {0U, 1U}) collect(side);
    for (auto& [file, places] : files_) number_file(file, places);
    for (const std::size_t side : {0U, 1U}) {
      std::vector<std::uint32_t>& numbers = side == 0 ? result_.before : result_.after;
      for (const auto& [file, place] : functions_[side]) {
        const Places& places = (*file)[side];
        numbers.push_back(std::lower_bound(places.begin(), places.end(), place, &is_before)->number);
      }
    }
    return std::move(result_);
  }

 private:
  void collect(std::size_t side) {
    std::string base(profiles_[side]->meta_value("directory"));
    if (base.empty()) base = profiles_[1 - side]->meta_value("directory");
    if (!base.empty() && base.back() != '/') base += '/';
    const Profile& profile = *profiles_[side];
    for (const Function& function : profile.functions.rows()) {
      std::string_view file = profile.strings[function.file];
      if (!base.empty() && file.starts_with(base)) file.remove_prefix(base.size());
      const Place place{function.first_line, names_.intern(profile.strings[function.name]).index()};
      FilePlaces& places = files_[std::string(file)];
      places[side].push_back(place);
      functions_[side].emplace_back(&places, place);
    }
  }

  void number_file(const std::string& file, FilePlaces& places) {
    for (Places& side : places) {
      std::sort(side.begin(), side.end(), &is_before);
      const auto is_same = [](const Place& a, const Place& b) { return a.order() == b.order(); };
      side.erase(std::unique(side.begin(), side.end(), is_same), side.end());
    }
    number_without_lines(file, places);
    for (const auto& [before, after] : Alignment(places[0], places[1]).pairs())
      places[0][before].number = places[1][after].number = new_number(file, places[0][before].name);
    number_rest(file, places);
  }

  void number_without_lines(const std::string& file, FilePlaces& places) {
    std::map<std::uint32_t, std::uint32_t> numbers;  // by name
    for (const Places& side : places)
      for (std::size_t i = 0; i < side.size() && side[i].line == 0; ++i)
        if (numbers.find(side[i].name) == numbers.end()) {
          numbers[side[i].name] = new_number(file, side[i].name);
          result_.all.back().has_first_line = false;
        }
    for (Places& side : places)
      for (Place& place : side)
        if (const auto found = numbers.find(place.name); found != numbers.end()) place.number = found->second;
  }

  // Those of a name that are left between two that are the same, on both sides alike, are paired as they come.
  void number_rest(const std::string& file, FilePlaces& places) {
    std::map<std::uint32_t, std::array<std::vector<Place*>, 2>> of_names;
    for (const std::size_t side : {0U, 1U})
      for (Place& place : places[side]) of_names[place.name][side].push_back(&place);
    for (const auto& [name, all] : of_names) {
      const std::vector<Place*>&before = all[0], &after = all[1];
      for (std::size_t i = 0, j = 0; i < before.size() || j < after.size();) {
        const bool is_left_before = i < before.size() && before[i]->number == kNoNumber;
        const bool is_left_after = j < after.size() && after[j]->number == kNoNumber;
        const bool are_both_known = !is_left_before && !is_left_after;
        if (!are_both_known) {
          const std::uint32_t number = new_number(file, name);
          if (is_left_before) before[i]->number = number;
          if (is_left_after) after[j]->number = number;
        }
        i += is_left_before || are_both_known ? 1 : 0;
        j += is_left_after || are_both_known ? 1 : 0;
      }
    }
  }

  std::uint32_t new_number(const std::string& file, std::uint32_t name) {
    result_.all.push_back({std::string(names_[StringId{name}]), file});
    return static_cast<std::uint32_t>(result_.all.size() - 1);
  }

  std::array<const Profile*, 2> profiles_;
  StringTable names_;
  std::map<std::string, FilePlaces> files_;
  std::array<std::vector<std::pair<const FilePlaces*, Place>>, 2> functions_;
  SameFunctions result_;
};

}  // namespace

SameFunctions same_functions(const Profile& before, const Profile& after) { return Numbering(before, after).run(); }

}  // namespace plimsoll::profile
