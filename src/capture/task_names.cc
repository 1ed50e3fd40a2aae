#include "capture/task_names.h"

namespace plimsoll::capture {
namespace {

// More different names than this are one.
constexpr std::size_t kMostNames = 50'000;

// "Task-12", which nobody has chosen: the coroutine says more.
bool is_given_by_asyncio(std::string_view name) {
  constexpr std::string_view kStart = "Task-";
  return name.starts_with(kStart) && name.size() > kStart.size() &&
         name.find_first_not_of("0123456789", kStart.size()) == std::string_view::npos;
}

}  // namespace

std::string task_label(std::string_view name, std::string_view coroutine) {
  const bool is_chosen = !name.empty() && !is_given_by_asyncio(name);
  return "[task " + std::string(is_chosen ? name : coroutine) + "]";
}

const TaskNames::Named& TaskNames::find(std::string label) {
  if (known_.size() >= kMostNames && !known_.contains(label)) label = "[task]";
  const auto [place, is_new] = known_.try_emplace(label);
  if (is_new) {
    cpython::CodeInfo info;
    info.name = std::move(label);
    place->second = {registry_.new_id(), std::make_shared<const cpython::CodeInfo>(std::move(info))};
  }
  return place->second;
}

}  // namespace plimsoll::capture
