// formats/firefox/packages_test.cc: paths and the packages guessed from them.
#include "formats/firefox/packages.h"

#include <gtest/gtest.h>

namespace plimsoll::formats::firefox {
namespace {

TEST(PackageOf, NamesInstalledPackages) {
  // GIVEN files below site-packages WHEN they are grouped THEN the name is that of the directory, or of the module
  EXPECT_EQ(package_of("/usr/lib/python3/dist-packages/numpy/core/x.py"), "numpy");
  EXPECT_EQ(package_of("/v/lib/python3.12/site-packages/six.py"), "six");
  EXPECT_EQ(package_of(R"(C:\Python312\Lib\site-packages\yaml\loader.py)"), "yaml");
}

TEST(PackageOf, KnowsTheStandardLibrary) {
  // GIVEN files of the standard library WHEN they are grouped THEN they are one package
  for (const auto* file : {"/usr/lib/python3.11/json/decoder.py", "<frozen importlib._bootstrap>",
                           "/opt/pypy/lib/pypy3.11/ast.py", R"(C:\Python312\Lib\ast.py)"})
    EXPECT_EQ(package_of(file), "Python standard library") << file;
}

TEST(PackageOf, TakesTheDirectoryOfOtherFiles) {
  // GIVEN files of the program WHEN they are grouped THEN by their directory, as far as there is one
  EXPECT_EQ(package_of("/home/me/shop/cart.py"), "shop");
  EXPECT_EQ(package_of("app.py"), "app.py");
  EXPECT_EQ(package_of("<string>"), "<string>");
  EXPECT_EQ(package_of("/site-packages"), "/site-packages");
  EXPECT_EQ(package_of(""), "");
}

}  // namespace
}  // namespace plimsoll::formats::firefox
