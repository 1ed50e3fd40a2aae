// cli/render_tree_test.cc: drawn profiles as call trees on a page.
#include "cli/render_tree.h"

#include <gtest/gtest.h>

#include "profile/filter.h"
#include "profile/testing.h"

namespace plimsoll::cli {
namespace {

using profile::testing::draw_profile;

std::string shown(const profile::Profile& profile, const TreeOptions& options = {}, std::size_t width = 100,
                  profile::Granularity granularity = profile::Granularity::kFunction) {
  Page page;
  page.width = width;
  const profile::Tree tree = profile::tree(profile, granularity);
  return "\n" + render_tree(profile, tree, tree_view(profile, tree, options), options, page);
}

TEST(RenderTree, IndentsOnlyWhereTimeGoesDifferentWays) {
  // GIVEN a chain of calls that ends in a fork
  const profile::Profile profile = draw_profile(R"(
    main(app.py:9 def 1);run(app.py:20 def 12);parse(app.py:31 def 30);tokenise(lex.py:5 def 2)   60
    main(app.py:9 def 1);run(app.py:21 def 12);evaluate(app.py:41 def 40)                         39.5
    main(app.py:9 def 1);run(app.py:22 def 12)                                                     0.5
  )");
  // WHEN it is shown, THEN the chain is a column and the fork is indented
  EXPECT_EQ(shown(profile), R"(
total %  total ms  self ms  function         where
  100.0    100.00        ·  main             app.py:1
  100.0    100.00     0.50  ↳ run            app.py:12
   60.0     60.00        ·    ├─ parse       app.py:30
   60.0     60.00    60.00    │  ↳ tokenise  lex.py:2
   39.5     39.50    39.50    └─ evaluate    app.py:40
)");
}

TEST(RenderTree, ShowsLinesWhenAskedFor) {
  const profile::Profile profile = draw_profile(R"(
    main(app.py:9 def 1);run(app.py:20 def 12)   60
    main(app.py:9 def 1);run(app.py:21 def 12)   40
  )");
  EXPECT_EQ(shown(profile, {}, 100, profile::Granularity::kLine), R"(
total %  total ms  self ms  function  where
  100.0    100.00        ·  main      app.py:9
   60.0     60.00    60.00  ├─ run    app.py:20
   40.0     40.00    40.00  └─ run    app.py:21
)");
}

TEST(RenderTree, FoldsRecursionIntoOneLine) {
  const profile::Profile profile = draw_profile(R"(
    main;fib;fib;fib;fib   70
    main;fib;fib           30
  )");
  EXPECT_EQ(shown(profile), R"(
total %  total ms  self ms  function  where
  100.0    100.00        ·  main
  100.0    100.00   100.00  ↳ fib ×4
)");
}

TEST(RenderTree, NamesAnImportWithoutItsMachinery) {
  const profile::Profile profile = draw_profile(R"(
    <module>(app.py:1 def 1);_find_and_load(<frozen importlib._bootstrap>:9);exec_module(<frozen importlib._bootstrap_external>:9);<module>(lib.py:1 def 1)  90
    <module>(app.py:2 def 1);work(app.py:5 def 4)                                                                                                           10
  )");
  EXPECT_EQ(shown(profile), R"(
total %  total ms  self ms  function                                       where
  100.0    100.00        ·  <module>                                       app.py:1
   90.0     90.00    90.00  ├─ <module> via 2 frames of the import system  lib.py:1
   10.0     10.00    10.00  └─ work                                        app.py:4
)");
}

TEST(RenderTree, FoldsALibraryBetweenItsEntryAndWhereItsTimeGoes) {
  // GIVEN calls through five frames of a library, of which only the last spends time
  const profile::Profile profile = draw_profile(R"(
    main(app.py:1);loads(/lib/python3.12/json/a.py:1);b(/lib/python3.12/json/a.py:2);c(/lib/python3.12/json/a.py:3);d(/lib/python3.12/json/a.py:4);scan(/lib/python3.12/json/a.py:5)  10
  )");
  // WHEN it is shown, THEN the first and the last have a line, and the ones between share one
  EXPECT_EQ(shown(profile), R"(
total %  total ms  self ms  function            where
  100.0    10.000        ·  main                app.py
  100.0    10.000        ·  ↳ loads             json/a.py
  100.0    10.000        ·  ↳ 3 frames of json
  100.0    10.000   10.000  ↳ scan              json/a.py
)");
  // AND without folding all have one
  TreeOptions options;
  options.folding = Folding::kOff;
  EXPECT_NE(shown(profile, options).find("↳ c "), std::string::npos);
}

TEST(RenderTree, SumsUpWhatIsTooLight) {
  // GIVEN one heavy callee and three light ones, which together are not light
  const profile::Profile profile = draw_profile(R"(
    main;heavy  90
    main;a       4
    main;b       3
    main;c       3
  )");
  TreeOptions options;
  options.min_percent = 5;
  EXPECT_EQ(shown(profile, options), R"(
total %  total ms  self ms  function                     where
  100.0    100.00        ·  main
   90.0     90.00    90.00  ├─ heavy
   10.0     10.00        ·  └─ 3 callees under 5 % each

not shown: 3 nodes under 5 % (--min-percent 0 shows all)
)");
}

TEST(RenderTree, StopsAtADepth) {
  const profile::Profile profile = draw_profile("a;b;c;d 10");
  TreeOptions options;
  options.depth = 2;
  EXPECT_EQ(shown(profile, options), R"(
total %  total ms  self ms  function  where
  100.0    10.000        ·  a
  100.0    10.000        ·  ↳ b

not shown: 2 nodes deeper than 2 calls (--depth)
)");
}

TEST(RenderTree, ShowsSeveralRootsAndSamplesWithoutAStack) {
  const profile::Profile profile = draw_profile(R"(
    -               10
    main;work       60
    worker | run    30
  )");
  EXPECT_EQ(shown(profile), R"(
total %  total ms  self ms  function    where
   10.0     10.00    10.00  [no stack]
   60.0     60.00        ·  main
   60.0     60.00    60.00  ↳ work
   30.0     30.00    30.00  run
)");
}

TEST(RenderTree, LeavesOutWhatAFilterTookAway) {
  profile::Profile profile = draw_profile(R"(
    main;kept  10
    main;gone  90
  )");
  profile::filter(profile, {.function = "kept"});
  EXPECT_EQ(shown(profile).find("gone"), std::string::npos);
}

TEST(RenderTree, SurvivesADepthThatNoPageCanShow) {
  // GIVEN a fork in a fork in a fork, 200 times, and a chain of 100000 calls
  profile::Profile profile = draw_profile("");
  std::string stack = "main";
  std::string drawing;
  for (int i = 0; i < 200; ++i) {
    stack += ";f" + std::to_string(i);
    drawing += stack + ";leaf 1\n";
  }
  profile = draw_profile(drawing);
  StackId deep;
  for (int i = 0; i < 100'000; ++i)
    deep = profile.stacks.intern({deep, FrameId{static_cast<std::size_t>(i % 200) + 1}});
  profile.samples.push_back(1, ThreadId{0}, deep, 1'000'000);
  // WHEN everything is shown on a narrow page
  TreeOptions options;
  options.min_percent = 0;
  const std::string text = shown(profile, options, 60);
  // THEN the deepest fork still has its name
  EXPECT_NE(text.find("f199"), std::string::npos);
}

TEST(RenderTree, LetsNoEscapeSequenceOfANameThrough) {
  const profile::Profile profile = draw_profile("evil\x1b[2J 10");
  EXPECT_EQ(shown(profile).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::cli
