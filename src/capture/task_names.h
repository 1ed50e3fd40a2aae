// capture/task_names.h: what asyncio's tasks are called on a stack: "[task fetch]".
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "capture/code_registry.h"

namespace plimsoll::capture {

// What stands for those who await a task that several await.
inline constexpr std::string_view kSeveralTasks = "[several tasks]";

// What stands for a task. One that nobody has given a name has that of its coroutine.
std::string task_label(std::string_view name, std::string_view coroutine);

// A CodeId for each label, as if it were a function without a file.
class TaskNames {
 public:
  // What a label is known by.
  struct Named {
    CodeId id;
    std::shared_ptr<const cpython::CodeInfo> info;
  };

  explicit TaskNames(CodeRegistry& registry) : registry_(registry) {}

  // The reference is good until the next call.
  const Named& find(std::string label);

 private:
  CodeRegistry& registry_;
  boost::unordered_flat_map<std::string, Named> known_;
};

}  // namespace plimsoll::capture
