#include "profile/filter.h"

#include <algorithm>

namespace plimsoll::profile {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool contains(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) { return lower(a) == lower(b); }) != text.end();
}

// For each stack id, whether any of its frames satisfies the condition.
template <typename Condition>
std::vector<bool> stacks_where(const Profile& profile, Condition condition) {
  std::vector<bool> by_function;
  by_function.reserve(profile.functions.size());
  for (const Function& function : profile.functions.rows()) by_function.push_back(condition(function));
  std::vector<bool> matches(profile.stacks.size());
  for (std::size_t i = 0; i < matches.size(); ++i) {
    const StackNode& node = profile.stacks.rows()[i];
    matches[i] = by_function[profile.frames[node.frame].function.index()] ||
                 (!node.parent.is_none() && matches[node.parent.index()]);
  }
  return matches;
}

}  // namespace

void filter(Profile& profile, const Filter& conditions) {
  const std::vector<bool> function_matches = stacks_where(
      profile, [&](const Function& function) { return contains(profile.strings[function.name], conditions.function); });
  const std::vector<bool> file_matches = stacks_where(
      profile, [&](const Function& function) { return contains(profile.strings[function.file], conditions.file); });
  const bool any_stack = conditions.function.empty() && conditions.file.empty();

  const auto thread_matches = [&](ThreadId id) {
    const Thread& thread = profile.threads[id.index()];
    return conditions.thread.empty() || contains(thread.name, conditions.thread) ||
           std::to_string(thread.os_tid) == conditions.thread;
  };
  const auto stack_matches = [&](StackId stack) {
    if (any_stack) return true;
    return !stack.is_none() && function_matches[stack.index()] && file_matches[stack.index()];
  };

  const auto activity_matches = [&](Activity activity) {
    const auto& wanted = conditions.activities;
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), activity) != wanted.end();
  };

  SampleTable kept;
  const SampleTable& all = profile.samples;
  for (std::size_t row = 0; row < all.size(); ++row) {
    const bool in_time = all.time_ns[row] >= conditions.from_ns && all.time_ns[row] < conditions.to_ns;
    if (in_time && activity_matches(all.activity[row]) && thread_matches(all.thread[row]) &&
        stack_matches(all.stack[row]))
      kept.push_back(all.time_ns[row], all.thread[row], all.stack[row], all.weight_ns[row], all.activity[row]);
  }
  profile.samples = std::move(kept);
}

}  // namespace plimsoll::profile
