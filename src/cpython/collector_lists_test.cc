// cpython/collector_lists_test.cc: the collector's lists in a drawn interpreter, whole and broken.
#include "cpython/collector_lists.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "cpython/value_testing.h"

namespace plimsoll::cpython {
namespace {

using testing::DrawnInterpreter;
using testing::DrawnObjects;
using Visited = std::vector<std::pair<std::size_t, Address>>;

// Three generations and what is frozen behind them, at a place in the interpreter's state.
class DrawnLists {
 public:
  explicit DrawnLists(std::uint64_t place) : first_(place) {
    interpreter = python.allocate(objects.fields.interpreter.size);
    for (std::size_t list = 0; list < 4; ++list) link(list, {});
  }

  DrawnInterpreter python{layout_from_table({3, 12, 0}).value()};
  DrawnObjects objects{python};
  Address interpreter{};

  // Puts objects onto a list; their links stand in front of them.
  void link(std::size_t list, const std::vector<Address>& held) {
    const Address head = offset_by(interpreter, first_ + list * 24);
    Address before = head;
    const auto follow = [&](Address at) {
      python.memory.put(before, at);
      python.memory.put(offset_by(at, 8), before);
      before = at;
    };
    for (const Address object : held) follow(Address{raw(object) - 16});
    follow(head);
  }
  Visited visited(std::size_t most = 100) {
    const ObjectView<memory::FakeMemory> view(python.memory, python.layout, objects.fields, 1U << 14U);
    const CollectorLists lists(view, interpreter,
                               [&](Address object) { return view.type_of(object) == objects.type("list"); });
    Visited found;
    is_whole = lists.each([&](std::size_t list, Address object) {
      if (found.size() == most) return false;
      found.emplace_back(list, object);
      return true;
    });
    return found;
  }
  bool is_whole = false;

 private:
  std::uint64_t first_;
};

TEST(CollectorLists, AreFoundByWhatTheyAre) {
  // (Some builds of 3.13 have them at a multiple of 4 that is none of 8.)
  for (const std::uint64_t place : {4000U, 4004U}) {
    // GIVEN objects in the youngest generation, in the oldest, and frozen
    DrawnLists lists(place);
    const Address a = lists.objects.object("list"), b = lists.objects.object("list"), c = lists.objects.object("list"),
                  d = lists.objects.object("list");
    lists.link(0, {a, b});
    lists.link(2, {c});
    lists.link(3, {d});
    // THEN each is visited, with the number of its list
    EXPECT_EQ(lists.visited(), (Visited{{0, a}, {0, b}, {2, c}, {3, d}}));
    EXPECT_TRUE(lists.is_whole);
  }
}

TEST(CollectorLists, AreFoundBehindWhatLooksLikeThreeEmptyOnes) {
  // GIVEN other links in front of them that lead to themselves, and a word that is half a link and half something else
  DrawnLists lists(4000);
  for (const std::uint64_t place : {1000U, 1024U, 1048U}) {
    const Address head = offset_by(lists.interpreter, place);
    lists.python.memory.put(head, head);
    lists.python.memory.put(offset_by(head, 8), head);
  }
  const Address a = lists.objects.object("list");
  lists.link(1, {a});
  lists.python.memory.put(offset_by(lists.interpreter, 3000), std::uint64_t{0xb52bb000000010});
  // THEN what there is is visited
  EXPECT_EQ(lists.visited(), (Visited{{3, a}}));
  EXPECT_TRUE(lists.is_whole);
}

TEST(CollectorLists, ThatAreBrokenAreFollowedAsFarAsTheyGo) {
  // GIVEN a list that leads to what is no object, and one that leads round without its head
  DrawnLists lists(4000);
  const Address a = lists.objects.object("list"), b = lists.objects.object("dict"), c = lists.objects.object("list"),
                d = lists.objects.object("list"), e = lists.objects.object("list");
  lists.link(0, {a, b, c});
  lists.link(1, {d, e});
  lists.python.memory.put(Address{raw(d) - 16}, Address{raw(d) - 16});
  // THEN it is told, and whoever visits ends it
  const Visited found = lists.visited(10);
  EXPECT_EQ(found.front(), (std::pair<std::size_t, Address>{0, a}));
  EXPECT_FALSE(lists.is_whole);
  EXPECT_LE(found.size(), 10U);
}

TEST(CollectorLists, AreNotTakenForEmptyWhereThereAreNone) {
  DrawnLists lists(4000);
  lists.python.memory.erase(lists.interpreter, 8000);
  EXPECT_TRUE(lists.visited().empty());
  EXPECT_FALSE(lists.is_whole);
}

}  // namespace
}  // namespace plimsoll::cpython
