// cli/show_words.h: what the words of `plimsoll show` mean, and of `diff` where it has the same; and which of the views
// of `show` have which options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "profile/filter.h"

namespace plimsoll::cli {

// An error that says which words there are. `path`: the word before, which may be the view's.
Status check_view(std::string_view view, const std::string& path);
Status check_sort(std::string_view word);
// The words after --from and --to, empty without them, as conditions.
Status read_times(const std::string& from, const std::string& to, profile::Filter& conditions);
// Names of activities and of allocators, or of groups of them, as conditions.
Status read_activities(const std::vector<std::string>& names, profile::Filter& conditions);
Status read_domains(const std::vector<std::string>& names, profile::Filter& conditions);

// An option, and whether it was given.
struct ViewOption {
  std::string_view name;
  bool is_given = false;
};

// What a view of memory is drawn as.
enum class ViewShape { kTree, kTable };

// An error for the first option that was given and that the view has nothing of: it would be passed over without a
// word.
Status check_view_options(std::string_view view, ViewShape shape, const std::vector<ViewOption>& options);

}  // namespace plimsoll::cli
