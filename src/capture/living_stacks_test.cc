#include "capture/living_stacks.h"

#include <gtest/gtest.h>

#include <string>

namespace plimsoll::capture {
namespace {

// "main load": frames root first, each at line 1; the code's id is that of its first letter.
class Stacks {
 public:
  void allocated(std::uint64_t number, const std::string& words) {
    std::vector<SampleFrame> frames;
    std::vector<std::shared_ptr<const cpython::CodeInfo>> codes;
    for (std::size_t at = 0; at < words.size();) {
      const std::size_t end = std::min(words.find(' ', at), words.size());
      cpython::CodeInfo info;
      info.name = words.substr(at, end - at);
      frames.push_back({CodeId{static_cast<std::uint32_t>(info.name[0])}, {1, 0}});
      codes.push_back(std::make_shared<cpython::CodeInfo>(info));
      at = end + 1;
    }
    stacks.allocated(number, frames, codes);
  }
  // Innermost first; "?" if it is not known.
  [[nodiscard]] std::string find(std::uint64_t number) const {
    std::vector<NamedFrame> frames;
    if (!stacks.find(number, frames)) return "?";
    std::string words;
    for (const NamedFrame& frame : frames) words += (words.empty() ? "" : " ") + frame.code->name;
    return words;
  }
  LivingStacks stacks;
};

TEST(LivingStacks, KnowsTheStackOfWhatLives) {
  Stacks told;
  told.allocated(1, "main load parse");
  told.allocated(2, "main load");
  told.allocated(3, "main view load");
  told.allocated(4, "");
  told.stacks.freed(2);
  EXPECT_EQ(told.find(1), "parse load main");
  EXPECT_EQ(told.find(2), "?");
  EXPECT_EQ(told.find(3), "load view main");
  EXPECT_EQ(told.find(4), "") << "allocated without Python code";
  EXPECT_EQ(told.stacks.tree_size(), 1U + 5U) << "equal beginnings are kept once";
}

TEST(LivingStacks, DropsWhatNothingLivingNeeds) {
  // GIVEN very many stacks, all but two of blocks that are gone
  Stacks told;
  told.allocated(1, "main keep");
  std::vector<SampleFrame> frames(2);
  std::vector<std::shared_ptr<const cpython::CodeInfo>> codes(2, std::make_shared<cpython::CodeInfo>());
  constexpr std::uint32_t kMany = 300'000;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    frames[0] = {CodeId{500}, {i, 0}};
    frames[1] = {CodeId{501}, {i, 0}};
    told.stacks.allocated(10 + i, frames, codes);
    told.stacks.freed(10 + i);
  }
  told.allocated(2, "main keep more");
  // THEN memory is bounded, and the two are as they were
  EXPECT_LT(told.stacks.tree_size(), 100'000U);
  EXPECT_EQ(told.find(1), "keep main");
  EXPECT_EQ(told.find(2), "more keep main");
  EXPECT_EQ(told.stacks.living(), 2U);
}

}  // namespace
}  // namespace plimsoll::capture
