// cli/render_flat_test.cc: drawn profiles as a list of functions.
#include "cli/render_flat.h"

#include <gtest/gtest.h>

#include "profile/testing.h"

namespace plimsoll::cli {
namespace {

profile::Profile sample() {
  return profile::testing::draw_profile(R"(
    main(app.py:1 def 1);parse(app.py:31 def 30)      60
    main(app.py:1 def 1);evaluate(app.py:41 def 40)   30
    main(app.py:1 def 1)                              10
  )");
}

std::string shown(const profile::Profile& profile, const FlatOptions& options) {
  return "\n" + render_flat(profile, flat_rows(profile, options.sort), options, Page{});
}

TEST(RenderFlat, OrdersBySelfTime) {
  EXPECT_EQ(shown(sample(), {}), R"(
self %              self ms  total ms  samples  function  where
  60.0  ██████████    60.00     60.00        1  parse     app.py:30
  30.0  █████         30.00     30.00        1  evaluate  app.py:40
  10.0  █▋            10.00    100.00        1  main      app.py:1
)");
}

TEST(RenderFlat, OrdersByTotalTimeWhenAskedFor) {
  FlatOptions options;
  options.sort = SortBy::kTotal;
  EXPECT_EQ(shown(sample(), options), R"(
total %              self ms  total ms  samples  function  where
  100.0  ██████████    10.00    100.00        3  main      app.py:1
   60.0  ██████        60.00     60.00        1  parse     app.py:30
   30.0  ███           30.00     30.00        1  evaluate  app.py:40
)");
}

TEST(RenderFlat, HasWhatHasNoStack) {
  // GIVEN samples without a stack THEN the own times add up to the whole, as in the tree
  const profile::Profile profile = profile::testing::draw_profile(R"(
    main(app.py:1 def 1)   60
    -                      30
    -                      10
  )");
  EXPECT_EQ(shown(profile, {}), R"(
self %              self ms  total ms  samples  function    where
  60.0  ██████████    60.00     60.00        1  main        app.py:1
  40.0  ██████▋       40.00     40.00        2  [no stack]
)");
}

TEST(RenderFlat, SaysWhatTheLimitCutOff) {
  FlatOptions options;
  options.limit = 1;
  EXPECT_EQ(shown(sample(), options), R"(
self %              self ms  total ms  samples  function  where
  60.0  ██████████    60.00     60.00        1  parse     app.py:30

not shown: 2 functions with 40.0 ms self time together, 40.0 % (--limit 0 shows all)
)");
}

}  // namespace
}  // namespace plimsoll::cli
