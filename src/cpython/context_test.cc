#include "cpython/context.h"

#include <gtest/gtest.h>

#include <optional>

#include "cpython/testing.h"

namespace plimsoll::cpython {
namespace {

constexpr Address kVariable{0x5000};
constexpr Address kOther{0x5040};
constexpr Address kValue{0x6000};
constexpr Address kBitmapNode{0x7200};
constexpr Address kArrayNode{0x7300};
constexpr Address kCollisionNode{0x7400};

// A thread state in a context, whose trie a test draws.
class Context : public ::testing::TestWithParam<Layout> {
 protected:
  Context() : python_(GetParam()), tstate_(python_.allocate()) {}

  void enter(Address root) {
    const Layout& layout = python_.layout;
    const Address context = python_.allocate();
    const Address trie = python_.allocate();
    python_.memory.put(offset_by(tstate_, layout.tstate.context), context);
    python_.memory.put(offset_by(context, layout.context.variables), trie);
    python_.memory.put(offset_by(trie, layout.context.root), root);
  }
  // A node with the branches of `bitmap`, and (key, value) for each of them.
  Address bitmap_node(std::uint32_t bitmap, const std::vector<std::pair<Address, Address>>& pairs) {
    const Address at = python_.allocate();
    python_.memory.put(offset_by(at, python_.layout.object.type), kBitmapNode);
    python_.memory.put(offset_by(at, python_.layout.context.bitmap), bitmap);
    Address entry = offset_by(at, python_.layout.context.bitmap_entries);
    for (const auto& [key, value] : pairs) {
      python_.memory.put(entry, key);
      python_.memory.put(offset_by(entry, 8), value);
      entry = offset_by(entry, 16);
    }
    return at;
  }
  // A node with one child.
  Address array_node(std::uint32_t branch, Address child) {
    const Address at = python_.allocate();
    python_.memory.put(offset_by(at, python_.layout.object.type), kArrayNode);
    for (std::uint64_t i = 0; i < 32; ++i)
      python_.memory.put(offset_by(at, python_.layout.context.array_entries + i * 8), i == branch ? child : Address{});
    return at;
  }
  // The value found; none if unreadable.
  std::optional<Address> find(std::uint32_t hash) {
    Address value{};
    const ContextVariable wanted{kVariable, hash, kBitmapNode, kArrayNode};
    if (!find_in_context(python_.memory, python_.layout, wanted, tstate_, value)) return std::nullopt;
    return value;
  }

  testing::DrawnInterpreter python_;
  Address tstate_;
};

constexpr std::uint32_t kHash = 7U << 5U | 3U;  // branch 3, then branch 7

TEST_P(Context, FindsAVariableInItsNode) {
  // GIVEN a node with branches 1 and 3
  enter(bitmap_node(1U << 1U | 1U << 3U, {{kOther, Address{1}}, {kVariable, kValue}}));
  // WHEN the variable's hash leads to branch 3 THEN its value is that of the second pair
  EXPECT_EQ(find(kHash), kValue);
}

TEST_P(Context, FollowsTheHashThroughNodesOfBothKinds) {
  const Address leaf = bitmap_node(1U << 7U, {{kVariable, kValue}});
  enter(array_node(3, leaf));
  EXPECT_EQ(find(kHash), kValue);
  enter(bitmap_node(1U << 3U, {{Address{}, leaf}}));
  EXPECT_EQ(find(kHash), kValue);
}

TEST_P(Context, SaysThatAVariableIsNotThere) {
  python_.memory.put(offset_by(tstate_, python_.layout.tstate.context), Address{});
  EXPECT_EQ(find(kHash), Address{});
  enter(bitmap_node(1U << 1U, {{kOther, Address{1}}}));
  EXPECT_EQ(find(kHash), Address{});
  enter(bitmap_node(1U << 3U, {{kOther, Address{1}}}));  // another variable whose hash begins alike
  EXPECT_EQ(find(kHash), Address{});
  enter(array_node(4, Address{1}));
  EXPECT_EQ(find(kHash), Address{});
}

TEST_P(Context, DoesNotGuess) {
  // GIVEN a thread state that cannot be read, a node that cannot, one of a third kind, and nodes that form a circle
  EXPECT_EQ(find(kHash), std::nullopt);
  enter(Address{0xdead000});
  EXPECT_EQ(find(kHash), std::nullopt);
  const Address unknown = bitmap_node(1U << 3U, {{kVariable, kValue}});
  python_.memory.put(offset_by(unknown, python_.layout.object.type), kCollisionNode);
  enter(unknown);
  EXPECT_EQ(find(kHash), std::nullopt);
  const Address circle = python_.allocate();
  python_.memory.put(offset_by(circle, python_.layout.object.type), kArrayNode);
  for (std::uint64_t i = 0; i < 32; ++i)
    python_.memory.put(offset_by(circle, python_.layout.context.array_entries + i * 8), circle);
  enter(circle);
  EXPECT_EQ(find(kHash), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(AllVersions, Context, ::testing::ValuesIn(testing::all_layouts()),
                         [](const auto& of) { return testing::test_name(of.param); });

TEST(TrieHash, FoldsTheHalvesAndAvoidsMinusOne) {
  EXPECT_EQ(trie_hash(0x0000000500000003), 6U);
  EXPECT_EQ(trie_hash(0x00000000ffffffff), 0xfffffffeU);
}

}  // namespace
}  // namespace plimsoll::cpython
