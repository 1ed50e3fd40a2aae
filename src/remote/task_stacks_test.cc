// remote/task_stacks_test.cc: stacks of tasks, in memory of this process that looks like an interpreter's.
#include "remote/task_stacks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <map>

#include "cpython/debug_offsets_testing.h"

namespace plimsoll::remote {
namespace {

using cpython::PyFrame;
using cpython::WalkStop;

// Objects of CPython 3.14 in a piece of memory, one every kRoom bytes.
class Image {
 public:
  Image() {
    const cpython::testing::DrawnOffsets drawn = cpython::testing::offsets_3_14();
    const std::string offsets = drawn.bytes();
    constexpr std::array<std::uint64_t, 13> kAsyncio{168,    136,   96,  108, 109, 128, 152,
                                                     225864, 10880, 936, 864, 872, 880};
    layout = drawn.layout().take();
    tasks = cpython::task_layout_from_tables(layout, reinterpret_cast<const unsigned char*>(offsets.data()),
                                             reinterpret_cast<const unsigned char*>(kAsyncio.data()))
                .take();
    code_type = allocate();
    coroutine_type = type("coroutine", 0);
    text_type = type("str", std::uint64_t{1} << 28U);
    thread = allocate();
    stacks = std::make_unique<TaskStacks>(layout, tasks, code_type);
  }

  template <typename T>
  void put(Address at, std::uint32_t offset, T value) {
    std::memcpy(reinterpret_cast<std::byte*>(words_.data()) + (raw(at) - raw(start()) + offset), &value, sizeof value);
  }
  Address text(const std::string& words) {
    const Address at = allocate();
    put(at, layout.object.type, text_type);
    put(at, layout.unicode.length, std::uint64_t{words.size()});
    put(at, layout.unicode.state, (1U | 8U | 16U) << layout.unicode.kind_shift);
    for (std::uint32_t i = 0; i < words.size(); ++i) put(at, layout.unicode.ascii_size + i, words[i]);
    return at;
  }
  // A frame of a function; its code is noted under its name.
  void put_frame(Address at, std::uint32_t offset, const std::string& function, Address previous) {
    Address& code = codes[function];
    if (is_null(code)) {
      code = allocate();
      put(code, layout.object.type, code_type);
      put(code, layout.object.var_size, std::uint64_t{8});
      put(code, layout.code.qualname, text(function));
    }
    put(at, offset + layout.frame.executable, code);
    put(at, offset + layout.frame.previous, previous);
    put(at, offset + layout.frame.position, offset_by(code, layout.code.bytecode + 2));
  }
  // A task whose coroutine is in `function`: suspended outside of any await, or in a state of its own.
  Address task(const std::string& name, const std::string& function, std::int8_t state = -2, Address previous = {}) {
    const Address coroutine = allocate();
    put(coroutine, layout.object.type, coroutine_type);
    put(coroutine, tasks.coroutine.frame_state, state);
    put_frame(coroutine, tasks.coroutine.frame, function, previous);
    const Address at = allocate();
    put(at, tasks.task.is_task, std::uint8_t{1});
    put(at, tasks.task.name, text(name));
    put(at, tasks.task.coroutine, coroutine);
    return at;
  }
  void await(Address task, Address awaiter) { put(task, tasks.task.awaited_by, awaiter); }
  // The task runs in the thread, in the event loop's frame, and has called "work".
  Address run(const std::string& name, const std::string& function) {
    const Address loop = allocate();
    put_frame(loop, 0, "loop", {});
    const Address running = task(name, function, tasks.coroutine.executing, loop);
    Address coroutine{};
    EXPECT_TRUE(memory::load_address(memory, offset_by(running, tasks.task.coroutine), coroutine));
    const Address work = allocate();
    put_frame(work, 0, "work", offset_by(coroutine, tasks.coroutine.frame));
    put(thread, layout.tstate.current_frame, work);
    put(thread, tasks.tstate.running_task, running);
    return running;
  }

  // The stack with those who await it, innermost frame first; "!" before it if outer ones are missing.
  std::string stack(std::size_t room = 32) {
    const memory::PagedReader pages(memory);
    std::vector<PyFrame> frames(room);
    cpython::Walk walk = cpython::walk_thread(pages, layout, code_type, thread, frames);
    const std::size_t count = stacks->put_awaiting(pages, thread, frames, walk.count, walk.stop);
    stacks->note_proven();
    for (const auto& [code, info] : stacks->take_new_frames()) codes[info->name] = code;
    std::string out = walk.stop == WalkStop::kTruncated ? "!" : "";
    for (std::size_t i = 0; i < count; ++i) {
      for (const auto& [name, code] : codes)
        if (code == frames[i].code) out += (out.empty() || out == "!" ? "" : " < ") + name;
    }
    return out;
  }

  const memory::RemoteReader memory{::getpid()};
  cpython::Layout layout;
  cpython::TaskLayout tasks;
  Address code_type{}, coroutine_type{}, text_type{}, thread{};
  std::map<std::string, Address> codes;
  std::unique_ptr<TaskStacks> stacks;

 private:
  static constexpr std::uint64_t kRoom = 1024;
  [[nodiscard]] Address start() const { return Address{reinterpret_cast<std::uintptr_t>(words_.data())}; }
  Address allocate() { return offset_by(start(), kRoom * used_++); }
  Address type(const std::string& name, std::uint64_t flags) {
    const Address at = allocate();
    const Address text_at = allocate();
    for (std::uint32_t i = 0; i < name.size(); ++i) put(text_at, i, name[i]);
    put(at, tasks.type.name, text_at);
    put(at, tasks.type.flags, flags);
    return at;
  }

  std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(64 * kRoom / 8);
  std::uint64_t used_ = 0;
};

TEST(TaskStacks, HaveThoseWhoAwaitInPlaceOfTheEventLoop) {
  Image image;
  const Address fetch = image.run("fetch", "fetch()");
  EXPECT_EQ(image.stack(), "work < fetch() < [task fetch]");
  // GIVEN a task that awaits it, which nobody has given a name WHEN it is read THEN it has that of its coroutine
  image.await(fetch, image.task("Task-1", "main()"));
  EXPECT_EQ(image.stack(), "work < fetch() < [task fetch] < main() < [task main()]");
  EXPECT_EQ(image.stacks->counts().found, 2U);
}

TEST(TaskStacks, EndWhereSeveralAwait) {
  Image image;
  const Address fetch = image.run("fetch", "fetch()");
  const Address set = image.task("set", "set");
  const Address table = image.task("table", "table");
  image.await(fetch, set);
  image.put(fetch, image.tasks.task.awaited_by_is_set, std::uint8_t{1});
  image.put(set, image.tasks.set.table, table);
  image.put(set, image.tasks.set.mask, std::uint64_t{1});
  image.put(table, 0, image.task("one", "one()"));
  image.put(table, 16, image.task("two", "two()"));
  EXPECT_EQ(image.stack(), "work < fetch() < [task fetch] < [several tasks]");
}

TEST(TaskStacks, AreTheEventLoopsWhereTheWayIsTorn) {
  Image image;
  const Address fetch = image.run("fetch", "fetch()");
  const Address main = image.task("main", "main()");
  image.await(fetch, main);
  // GIVEN a task that awaits it, whose name makes no sense WHEN it is read
  image.put(main, image.tasks.task.name, Address{8});
  // THEN nothing of it is there, and it is counted
  EXPECT_EQ(image.stack(), "work < fetch() < loop");
  EXPECT_EQ(image.stacks->counts().unreadable, 1U);
  EXPECT_EQ(image.stacks->counts().found, 0U);
}

TEST(TaskStacks, AreLeftAloneBetweenSteps) {
  Image image;
  image.run("fetch", "fetch()");
  // GIVEN a thread that has a current task, whose coroutine does not run yet
  image.put(image.thread, image.tasks.tstate.running_task, image.task("next", "next()", -3));
  EXPECT_EQ(image.stack(), "work < fetch() < loop");
  // and one that has none
  image.put(image.thread, image.tasks.tstate.running_task, Address{});
  EXPECT_EQ(image.stack(), "work < fetch() < loop");
  EXPECT_EQ(image.stacks->counts().unreadable, 0U);
}

TEST(TaskStacks, EndInRingsAndWhereThereIsNoRoom) {
  Image image;
  const Address fetch = image.run("fetch", "fetch()");
  const Address left = image.task("left", "left()");
  const Address right = image.task("right", "right()");
  image.await(fetch, left);
  image.await(left, right);
  image.await(right, left);
  EXPECT_EQ(image.stack(), "!work < fetch() < [task fetch] < left() < [task left] < right() < [task right]");
  EXPECT_EQ(image.stack(4), "!work < fetch() < [task fetch] < left()");
}

}  // namespace
}  // namespace plimsoll::remote
