// remote/task_picture.h: one picture of all asyncio tasks, out of the readings of the threads.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "remote/task_dump.h"
#include "remote/task_reading.h"

namespace plimsoll::remote {

// Takes one reading after another, and tells who awaits whom. Fills in the loops and tasks of a TaskDump, and what is
// not among them.
class TaskPicture {
 public:
  // `thread`: that was read.
  void take(TaskReading reading, const os::Task& thread);
  // When all have been taken.
  TaskDump finish();

 private:
  std::size_t loop_number(Address loop);
  [[nodiscard]] std::optional<std::size_t> number_of(Address task) const;
  DumpedTask connected(ReadTask& read);

  TaskDump out_;
  std::vector<ReadTask> read_;
  std::size_t edges_ = 0;
  boost::unordered_flat_map<std::uint64_t, std::size_t> numbers_;  // of tasks, by address
  boost::unordered_flat_map<std::uint64_t, std::size_t> loops_;
  std::vector<std::pair<Address, Address>> running_;  // loops and what they run
};

}  // namespace plimsoll::remote
