// formats/vmprof/names_test.cc: colons where one would not expect them.
#include "formats/vmprof/names.h"

#include <gtest/gtest.h>

namespace plimsoll::formats::vmprof {
namespace {

std::string cut(std::string_view text) {
  const CodeName name = parse_name(text);
  return std::string(name.language) + "|" + std::string(name.symbol) + "|" + std::to_string(name.line) + "|" +
         std::string(name.file);
}

TEST(VmprofNames, AreCutAtTheRightColons) {
  // GIVEN names with colons in symbols and files WHEN they are cut THEN the parts are those that were joined
  EXPECT_EQ(cut("py:main:1:app.py"), "py|main|1|app.py");
  EXPECT_EQ(cut("py:main:12:c:\\work\\app.py"), "py|main|12|c:\\work\\app.py");
  EXPECT_EQ(cut("n:std::vector<a::b>::push_back:0:/usr/lib/x.so"), "n|std::vector<a::b>::push_back|0|/usr/lib/x.so");
  EXPECT_EQ(cut("n:<native symbol 0x55>:0:-"), "n|<native symbol 0x55>|0|");
  EXPECT_EQ(cut("py::3:app.py"), "py||3|app.py");
}

TEST(VmprofNames, ThatAreNoneAreSymbols) {
  // GIVEN texts of another form WHEN they are cut THEN nothing is lost
  for (const std::string text : {"", "main", "jit:0x55", "a:b:c", "::", ":::", "py:main:x:app.py"})
    EXPECT_EQ(cut(text), "|" + text + "|0|") << text;
}

TEST(VmprofMaps, FindTheMappingOfAnAddress) {
  // GIVEN maps out of order, one without a file WHEN addresses are looked up THEN the ends are exclusive
  const std::vector<Mapping> maps = parse_maps(
      "7000-8000 rw-p 00000000 00:00 0 \n00400000-00401000 r-xp 00000000 08:01 5938261        /usr/bin/my "
      "program\nx\n");
  ASSERT_EQ(maps.size(), 2U);
  EXPECT_EQ(mapping_at(maps, 0x400000)->path, "/usr/bin/my program");
  EXPECT_EQ(mapping_at(maps, 0x7fff)->path, "");
  EXPECT_EQ(mapping_at(maps, 0x8000), nullptr);
  EXPECT_EQ(mapping_at(maps, 0x6fff), nullptr);
}

}  // namespace
}  // namespace plimsoll::formats::vmprof
