#include "profile/filter.h"

#include <algorithm>

#include "profile/memory.h"

namespace plimsoll::profile {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Whether the pattern, with * and ?, matches the whole text. Linear in their product at worst, without recursion.
bool matches_pattern(std::string_view text, std::string_view pattern) {
  std::size_t t = 0;
  std::size_t p = 0;
  std::size_t star = std::string_view::npos;  // the last * met, and how much of the text it has taken
  std::size_t taken_to = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken_to = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || lower(pattern[p]) == lower(text[t]))) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++taken_to;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool meets(const Profile& profile, const TagSet& tags, const TagCondition& condition) {
  const auto tag = std::find_if(tags.begin(), tags.end(),
                                [&](const Tag& one) { return profile.strings[one.name] == condition.name; });
  if (tag == tags.end()) return condition.pattern.empty();
  return matches_pattern(profile.strings[tag->value], condition.pattern);
}

// For each tag set, whether it meets all conditions; and in the end whether no tags at all do.
std::vector<bool> tag_sets_where(const Profile& profile, const std::vector<TagCondition>& conditions) {
  const auto meets_all = [&](const TagSet& tags) {
    return std::all_of(conditions.begin(), conditions.end(),
                       [&](const TagCondition& condition) { return meets(profile, tags, condition); });
  };
  std::vector<bool> matches;
  matches.reserve(profile.tag_sets.size() + 1);
  for (const TagSet& tags : profile.tag_sets.rows()) matches.push_back(meets_all(tags));
  matches.push_back(meets_all({}));
  return matches;
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

// The samples of a profile within a window of time.
class TimeWindow {
 public:
  TimeWindow(const Profile& profile, std::int64_t from_ns, std::int64_t to_ns)
      : from_ns_(from_ns), to_ns_(to_ns), is_foreign_(!profile.meta_value("format").empty()) {}

  // Makes of a sample what is within; false if nothing is.
  [[nodiscard]] bool cut(Activity activity, std::int64_t& time_ns, std::int64_t& weight_ns) const {
    // The CPU time of a tick may have passed anywhere since the tick before, which is not long ago. A wait is what
    // passed before it, and so is a sample of another tool, which may have summed up seconds.
    const bool is_span = weight_ns > 0 && (activity != Activity::kRunning || is_foreign_);
    if (!is_span) return time_ns >= from_ns_ && time_ns < to_ns_;
    const std::int64_t began_ns = time_ns - weight_ns;
    const std::int64_t start_ns = from_ns_ > 0 ? std::max(began_ns, from_ns_) : began_ns;
    time_ns = std::min(time_ns, to_ns_);
    weight_ns = time_ns - start_ns;
    return weight_ns > 0;
  }

 private:
  const std::int64_t from_ns_, to_ns_;
  const bool is_foreign_;
};

// Whether any condition but that of time is one of allocations.
bool chooses_allocations(const Filter& conditions) {
  return !conditions.thread.empty() || !conditions.function.empty() || !conditions.file.empty() ||
         !conditions.tags.empty() || !conditions.domains.empty();
}

}  // namespace

TagCondition TagCondition::parse(std::string_view words) {
  const std::size_t equals = words.find('=');
  if (equals == std::string_view::npos) return {std::string(words)};
  return {std::string(words.substr(0, equals)), std::string(words.substr(equals + 1))};
}

bool contains(std::string_view text, std::string_view part) {
  if (part.empty()) return true;  // an empty text contains it, too, where std::search gives its end
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) { return lower(a) == lower(b); }) != text.end();
}

void keep_spans(Profile& profile, const std::vector<ThreadSpan>& spans) {
  const SampleTable& all = profile.samples;
  SampleTable kept;
  for (std::size_t row = 0; row < all.size(); ++row) {
    const std::int64_t tid = profile.threads[all.thread[row].index()].os_tid;
    std::int64_t sum_ns = 0;
    for (const ThreadSpan& span : spans) {
      if (std::find(span.os_tids.begin(), span.os_tids.end(), tid) == span.os_tids.end()) continue;
      std::int64_t time_ns = all.time_ns[row], weight_ns = all.weight_ns[row];
      const TimeWindow window(profile, span.from_ns, span.to_ns);
      if (window.cut(all.activity[row], time_ns, weight_ns)) sum_ns += weight_ns;
    }
    if (sum_ns == 0) continue;
    kept.push_row(all, row);
    kept.weight_ns.back() = sum_ns;
  }
  profile.samples = std::move(kept);
}

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

  const std::vector<bool> tags_match = tag_sets_where(profile, conditions.tags);
  const auto tag_matches = [&](TagSetId tags) {
    return tags_match[tags.is_none() ? tags_match.size() - 1 : tags.index()];
  };

  SampleTable kept;
  SampleTable& all = profile.samples;
  const TimeWindow window(profile, conditions.from_ns, conditions.to_ns);
  for (std::size_t row = 0; row < all.size(); ++row) {
    const bool in_time = window.cut(all.activity[row], all.time_ns[row], all.weight_ns[row]);
    if (in_time && activity_matches(all.activity[row]) && thread_matches(all.thread[row]) &&
        stack_matches(all.stack[row]) && tag_matches(all.tags[row]))
      kept.push_row(all, row);
  }
  profile.samples = std::move(kept);
  const auto domain_matches = [&](std::uint8_t domain) {
    const auto& wanted = conditions.domains;
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), domain) != wanted.end();
  };
  const auto is_other = [&](const AllocationRow& row) {
    return !domain_matches(row.domain) || !thread_matches(row.thread) || !stack_matches(row.stack) ||
           !tag_matches(row.tags);
  };
  if (conditions.from_ns != Filter{}.from_ns || conditions.to_ns != Filter{}.to_ns) {
    std::erase_if(profile.allocations, [&](const AllocationRow& row) {
      return row.time_ns < conditions.from_ns || row.time_ns >= conditions.to_ns;
    });
    profile.peak_allocations.clear();  // when they were allocated is not known
    set_peak(profile, std::nullopt);
  }
  if (chooses_allocations(conditions)) {
    // What a function has of the peak is asked for, not when it had most itself.
    const bool has_peak = profile.has_allocations() && check_question(profile, MemoryView::kPeak).ok();
    if (has_peak) set_peak(profile, peak_of(profile));
    std::erase_if(profile.allocations, is_other);
    std::erase_if(profile.peak_allocations, is_other);
  }
}

}  // namespace plimsoll::profile
