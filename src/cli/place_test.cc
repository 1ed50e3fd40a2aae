// cli/place_test.cc: names of places.
#include "cli/place.h"

#include <gtest/gtest.h>

#include "profile/testing.h"

namespace plimsoll::cli {
namespace {

using profile::testing::draw_profile;
using profile::testing::function_named;

TEST(ShownPath, IsRelativeToTheCurrentDirectory) {
  EXPECT_EQ(shown_path("/home/me/app/db/pool.py", "/home/me/app").text, "db/pool.py");
  EXPECT_EQ(shown_path("/home/me/app2/x.py", "/home/me/app").text, "/home/me/app2/x.py");
  EXPECT_EQ(shown_path("/x.py", "/").text, "/x.py");
  EXPECT_FALSE(shown_path("/home/me/app/db/pool.py", "/home/me/app").is_library);
}

TEST(ShownPath, StartsAtThePackage) {
  const ShownPath path = shown_path("/app/.venv/lib/python3.12/site-packages/numpy/linalg/_linalg.py", "/app");
  EXPECT_EQ(path.text, "numpy/linalg/_linalg.py");
  EXPECT_TRUE(path.is_library);
  EXPECT_EQ(shown_path("/usr/lib/python3/dist-packages/yaml/reader.py", "").text, "yaml/reader.py");
}

TEST(ShownPath, StartsAtTheModuleOfTheStandardLibrary) {
  EXPECT_EQ(shown_path("/usr/lib/python3.12/json/decoder.py", "").text, "json/decoder.py");
  EXPECT_EQ(shown_path("/opt/python/lib/python3.14t/ast.py", "").text, "ast.py");
  EXPECT_TRUE(shown_path("<frozen posixpath>", "").is_library);
  EXPECT_FALSE(shown_path("/srv/lib/python3.tools/a.py", "").is_library);
}

TEST(PlaceOf, ShowsTheLineOrElseTheDefinition) {
  const profile::Profile profile = draw_profile("f(/app/a.py:7 def 3) 1");
  const FunctionId f = function_named(profile, "f");
  EXPECT_EQ(place_of(profile, f, 0, "/app").text, "a.py:3");
  EXPECT_EQ(place_of(profile, f, 7, "/app").text, "a.py:7");
}

TEST(PlaceOf, NamesOnlyTheLibraryOfMachineCode) {
  const profile::Profile profile = draw_profile("main;!memcpy(/lib/x86_64-linux-gnu/libc.so.6) 1");
  EXPECT_EQ(place_of(profile, function_named(profile, "memcpy"), 0, "").text, "libc.so.6");
}

TEST(FunctionName, NeverIsEmpty) {
  const profile::Profile profile = draw_profile("");
  EXPECT_EQ(function_name(profile, FunctionId{}), "[no stack]");
}

TEST(LibraryOf, TellsThePackageAndNothingForOwnCode) {
  const profile::Profile profile = draw_profile(R"(
    own(/app/a.py:1);dumps(/usr/lib/python3.12/json/__init__.py:9)                1
    own(/app/a.py:1);parse(/usr/lib/python3.12/ast.py:9)                          1
    own(/app/a.py:1);_find_and_load(<frozen importlib._bootstrap>:9)              1
    _run_code(<frozen runpy>:88);own(/app/a.py:1)                                 1
  )");
  EXPECT_EQ(library_of(profile, function_named(profile, "own")), "");
  EXPECT_EQ(library_of(profile, function_named(profile, "dumps")), "json");
  EXPECT_EQ(library_of(profile, function_named(profile, "parse")), "ast");
  EXPECT_TRUE(is_machinery(library_of(profile, function_named(profile, "_find_and_load"))));
  EXPECT_TRUE(is_machinery(library_of(profile, function_named(profile, "_run_code"))));
  EXPECT_FALSE(is_machinery("json"));
}

}  // namespace
}  // namespace plimsoll::cli
