#include "remote/thread_states.h"

#include <gtest/gtest.h>

#include "cpython/testing.h"

namespace plimsoll::remote {
namespace {

using cpython::Layout;
using cpython::testing::DrawnInterpreter;

// Interpreters with threads, each a word of the drawing: "a b | c" are two interpreters, of two threads and of one.
class ThreadStates : public ::testing::TestWithParam<Layout> {
 protected:
  DrawnInterpreter python{GetParam()};
  const Layout& layout = python.layout;
  const Address runtime = python.allocate(4096);

  void draw(std::string_view drawing) {
    Address slot = offset_by(runtime, layout.runtime.interpreters);
    Address thread_slot = begin_interpreter(slot);
    for (const char mark : drawing) {
      if (mark == '|') thread_slot = begin_interpreter(slot);
      if (mark < 'a' || mark > 'z') continue;
      const Address state = python.allocate(1024);
      python.memory.put(thread_slot, state);
      python.memory.put(offset_by(state, layout.tstate.thread_id), raw(python.allocate(4096)));
      if (layout.tstate.native_thread_id != cpython::kNoField)
        python.memory.put(offset_by(state, layout.tstate.native_thread_id), std::uint64_t(mark));
      thread_slot = offset_by(state, layout.tstate.next);
      python.memory.put(thread_slot, Address{});
      states_.push_back(state);
    }
  }
  [[nodiscard]] std::vector<ThreadState> found() const { return thread_states(python.memory, layout, runtime); }

  std::vector<Address> states_;

 private:
  Address begin_interpreter(Address& slot) {
    const Address interpreter = python.allocate(16384);
    python.memory.put(slot, interpreter);
    slot = offset_by(interpreter, layout.runtime.next_interpreter);
    python.memory.put(slot, Address{});
    const Address threads = offset_by(interpreter, layout.runtime.threads);
    python.memory.put(threads, Address{});
    return threads;
  }
};

TEST_P(ThreadStates, OfAllInterpretersAreFound) {
  draw("a b | c");
  const std::vector<ThreadState> states = found();
  ASSERT_EQ(states.size(), 3U);
  for (std::size_t i = 0; i < states.size(); ++i) EXPECT_EQ(states[i].address, states_[i]);
  EXPECT_EQ(states[0].interpreter, states[1].interpreter);
  EXPECT_NE(states[1].interpreter, states[2].interpreter);
}

TEST_P(ThreadStates, OfAnInterpreterThatHasNotBegunAreNone) {
  EXPECT_TRUE(found().empty());
  python.memory.put(offset_by(runtime, layout.runtime.interpreters), Address{});
  EXPECT_TRUE(found().empty());
}

TEST_P(ThreadStates, InACircleAreFoundOnce) {
  // GIVEN a list that leads back to its beginning
  draw("a b");
  python.memory.put(offset_by(states_[1], layout.tstate.next), states_[0]);
  // THEN it ends there
  EXPECT_EQ(found().size(), 2U);
}

TEST_P(ThreadStates, AreNotTheSameThreadsWhenEitherIdIsAnother) {
  // GIVEN the state of a thread as it was found
  draw("a");
  const ThreadState state = found()[0];
  EXPECT_TRUE(is_still_its(python.memory, layout, state));
  // WHEN the thread writes that the state is its own: first the one id, then the other
  if (layout.tstate.native_thread_id != cpython::kNoField) {
    const Address native_id = offset_by(states_[0], layout.tstate.native_thread_id);
    python.memory.put(native_id, std::uint64_t{'b'});
    // THEN either says that it is another's
    EXPECT_FALSE(is_still_its(python.memory, layout, state));
    python.memory.put(native_id, std::uint64_t{'a'});
  }
  python.memory.put(offset_by(states_[0], layout.tstate.thread_id), state.pthread + 1);
  EXPECT_FALSE(is_still_its(python.memory, layout, state));
}

TEST_P(ThreadStates, LearnTheKernelsIdsFromTheCLibrary) {
  draw("a b c");
  std::vector<ThreadState> states = found();
  // GIVEN records of threads with the kernel's id at 720, and in one of them another id by chance elsewhere
  std::vector<os::Task> tasks;
  for (std::size_t i = 0; i < states.size(); ++i) {
    tasks.push_back({Tid{500}, Tid{static_cast<std::int32_t>(100 + i)}, "", 'S'});
    for (std::uint64_t at = 0; at < 2048; at += 8) python.memory.put(Address{states[i].pthread + at}, at);
    python.memory.put(Address{states[i].pthread + 720}, static_cast<std::uint32_t>(100 + i));
  }
  python.memory.put(Address{states[1].pthread + 16}, std::uint32_t{100});
  // WHEN they are learned
  learn_ids(python.memory, tasks, states);
  // THEN each has its own
  for (std::size_t i = 0; i < states.size(); ++i) EXPECT_EQ(states[i].tid(), 100 + i);
}

TEST_P(ThreadStates, LearnNoIdsFromTheUpperHalvesOfPointers) {
  // GIVEN records of threads with pointers, whose upper half is the number of one of the tasks
  for (const char* drawn : {"a b c", "a"}) {
    draw(drawn);
    std::vector<ThreadState> states = found();
    const std::vector<os::Task> tasks = {{Tid{500}, Tid{500}, "", 'S'},
                                         {Tid{501}, Tid{501}, "", 'S'},
                                         {Tid{502}, Tid{502}, "", 'S'},
                                         {Tid{0x7fbd}, Tid{0x7fbd}, "", 'S'}};
    for (std::size_t i = 0; i < states.size(); ++i) {
      for (std::uint64_t at = 0; at < 2048; at += 8)
        python.memory.put(Address{states[i].pthread + at}, std::uint64_t{0x7fbd'1234'5678} + at);
      python.memory.put(Address{states[i].pthread + 720}, std::uint64_t{500 + i});
    }
    // WHEN they are learned
    learn_ids(python.memory, tasks, states);
    // THEN each has its own
    for (std::size_t i = 0; i < states.size(); ++i) EXPECT_EQ(states[i].tid(), 500 + i);
  }
}

TEST_P(ThreadStates, OfAProcessThatCCodeHasForkedAreOfItsThreads) {
  if (layout.tstate.native_thread_id == cpython::kNoField) GTEST_SKIP() << "the test above is of these";
  // GIVEN a child whose interpreter has its parent's threads: of two, one lives on under another number, which its C
  // library knows; a third was made by the child
  draw("a b c");
  std::vector<ThreadState> states = found();
  const std::vector<os::Task> tasks = {{Tid{500}, Tid{500}, "", 'S'}, {Tid{501}, Tid{'c'}, "", 'S'}};
  const std::uint32_t ids[] = {'a', 500, 'c'};
  for (std::size_t i = 0; i < states.size(); ++i) {
    for (std::uint64_t at = 0; at < 2048; at += 8) python.memory.put(Address{states[i].pthread + at}, std::uint64_t{0});
    python.memory.put(Address{states[i].pthread + 720}, ids[i]);
  }
  // (what was left in the memory of one that ended looks like the number of another)
  python.memory.put(Address{states[0].pthread + 16}, std::uint32_t{'c'});
  // WHEN they are looked for
  learn_ids(python.memory, tasks, states);
  // THEN each task has its own, and the thread that the child has not has none
  EXPECT_EQ(task_of(tasks, states[0]), nullptr);
  EXPECT_EQ(task_of(tasks, states[1]), &tasks[0]);
  EXPECT_EQ(task_of(tasks, states[2]), &tasks[1]);
  // and it is still known by what its interpreter says
  EXPECT_TRUE(is_still_its(python.memory, layout, states[1]));
}

TEST_P(ThreadStates, LearnNothingWhereNothingIs) {
  draw("a");
  std::vector<ThreadState> states = found();
  states[0].native_id = 7;
  learn_ids(python.memory, {}, states);
  EXPECT_EQ(states[0].tid(), 7U);
}

INSTANTIATE_TEST_SUITE_P(Versions, ThreadStates, ::testing::ValuesIn(cpython::testing::all_layouts()),
                         [](const auto& test) { return "Python" + cpython::testing::test_name(test.param); });

}  // namespace
}  // namespace plimsoll::remote
