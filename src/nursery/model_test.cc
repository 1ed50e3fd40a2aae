// Random programs, run on the heap and on a plain model of it: after every few steps, what can be reached is the same.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

#include "base/random.h"
#include "nursery/testing.h"

namespace plimsoll::nursery {
namespace {

using namespace testing;

// A node of the model: the same name, the same size, the same references by name (0 = none).
struct ModelNode {
  std::size_t size = 0;
  std::array<std::uint64_t, Node::kFields> to{};
};

class RandomProgram {
 public:
  // In a heap of `most_bytes`, beyond which the program drops some of what it has.
  explicit RandomProgram(std::uint64_t seed, std::size_t most_bytes = std::size_t{1} << 40U)
      : random_(seed),
        heap_(heap_with({.nursery_bytes = std::size_t{64} << 10U,
                         .most_bytes = most_bytes,
                         .sampling = {64 + random(5000)},
                         .observer = &notes_})) {
    for (int i = 0; i < kRoots; ++i) roots_.push_back(std::make_unique<Root<Node>>(*heap_));
    names_.resize(kRoots);
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      if (i % 2000 == 1999) {
        compare();
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
    // What the heap holds in the end is what can be reached, to the byte.
    while (!heap_->collect_all()) drop(random(kRoots));
    compare();
    std::size_t bytes = 0;
    for (const std::uint64_t name : reachable()) bytes += model_[name].size;
    EXPECT_EQ(heap_->statistics().old_bytes, bytes);
    for (const Notes::Note& note : notes_.notes) EXPECT_TRUE(note.is_settled);
  }
  [[nodiscard]] Statistics statistics() const { return heap_->statistics(); }
  // How often memory was out.
  [[nodiscard]] int refusals() const { return refusals_; }

 private:
  static constexpr int kRoots = 40;

  std::uint64_t random(std::uint64_t limit) { return next_random(random_) % limit; }

  void step() {
    const std::size_t at = random(kRoots);
    switch (random(20)) {
      case 0: return drop(at);
      case 1:
      case 2: return move_root(at);
      case 3:
      case 4:
      case 5:
      case 6: return link(at);
      case 7:
        if (random(200) == 0 && !heap_->collect_minor()) ++refusals_;
        if (random(4000) == 0 && !heap_->collect_all()) ++refusals_;
        return;
      default: return make(at);
    }
  }

  void drop(std::size_t at) {
    *roots_[at] = nullptr;
    names_[at] = 0;
  }

  void make(std::size_t at) {
    const std::size_t size = random(500) == 0 ? 9000 + random(50'000) : sizeof(Node) + random(3) * random(600);
    auto* node = static_cast<Node*>(heap_->allocate(kNode, size));
    if (node == nullptr) {
      ++refusals_;
      return drop(at);
    }
    node->name = ++last_name_;
    model_[last_name_] = {node->size(), {}};
    if (random(3) != 0) {  // in front of what was there
      heap_->store(node, node->to[0], roots_[at]->get());
      model_[last_name_].to[0] = names_[at];
    }
    *roots_[at] = node;
    names_[at] = last_name_;
  }

  void link(std::size_t at) {
    const std::size_t other = random(kRoots);
    const std::size_t field = random(Node::kFields);
    Node* holder = roots_[at]->get();
    if (holder == nullptr) return;
    heap_->store(holder, holder->to[field], roots_[other]->get());
    model_[names_[at]].to[field] = names_[other];
  }

  void move_root(std::size_t at) {  // to what it refers to, so that references are taken out of old objects
    const std::size_t field = random(Node::kFields);
    Node* node = roots_[at]->get();
    if (node == nullptr) return;
    ModelNode& model = model_[names_[at]];
    const std::size_t other = random(kRoots);
    *roots_[other] = node->to[field];
    names_[other] = model.to[field];
    heap_->store<Node>(node, node->to[field], nullptr);
    model.to[field] = 0;
  }

  std::set<std::uint64_t> reachable() {
    std::set<std::uint64_t> found;
    std::vector<std::uint64_t> open(names_);
    while (!open.empty()) {
      const std::uint64_t name = open.back();
      open.pop_back();
      if (name == 0 || !found.insert(name).second) continue;
      open.insert(open.end(), model_[name].to.begin(), model_[name].to.end());
    }
    return found;
  }

  void compare() {
    std::map<const Node*, std::uint64_t> seen;
    std::vector<std::pair<const Node*, std::uint64_t>> open;
    for (std::size_t i = 0; i < kRoots; ++i) open.emplace_back(roots_[i]->get(), names_[i]);
    while (!open.empty()) {
      const auto [node, name] = open.back();
      open.pop_back();
      ASSERT_EQ(node != nullptr, name != 0);
      if (node == nullptr || !seen.emplace(node, name).second) continue;
      ASSERT_EQ(node->name, name);
      ASSERT_EQ(node->size(), model_[name].size);
      for (std::size_t field = 0; field < Node::kFields; ++field)
        open.emplace_back(node->to[field], model_[name].to[field]);
    }
    const std::set<std::uint64_t> expected = reachable();
    ASSERT_EQ(seen.size(), expected.size());  // and no object is there twice
    std::erase_if(model_, [&](const auto& node) { return !expected.contains(node.first); });
  }

  std::uint64_t random_;
  Notes notes_;
  std::unique_ptr<Heap> heap_;
  std::vector<std::unique_ptr<Root<Node>>> roots_;
  std::vector<std::uint64_t> names_;  // of the roots' objects
  std::map<std::uint64_t, ModelNode> model_;
  std::uint64_t last_name_ = 0;
  int refusals_ = 0;
};

TEST(RandomPrograms, ReachTheSameOnTheHeapAsInTheModel) {
  std::uint64_t major = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    RandomProgram program(seed);
    program.run(20'000);
    if (HasFatalFailure()) return;
    EXPECT_EQ(program.refusals(), 0);
    major += program.statistics().major_collections;
  }
  EXPECT_GT(major, 50U);  // marking in steps was part of it
}

TEST(RandomPrograms, ReachTheSameWhereMemoryIsShort) {
  int refusals = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    RandomProgram program(seed, (std::size_t{3200} + seed * 100) << 10U);
    program.run(20'000);
    if (HasFatalFailure()) return;
    refusals += program.refusals();
  }
  EXPECT_GT(refusals, 50);  // memory was out in many states of the collector
}

}  // namespace
}  // namespace plimsoll::nursery
