// cli/heap_test.cc: `plimsoll heap` from the words to the page and the exit code.
#include "cli/commands.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/exit_code.h"
#include "cli/testing.h"
#include "heap/snapshot_testing.h"

namespace plimsoll::cli {
namespace {

using heap::testing::SnapshotDrawing;

const char* const kBefore = R"(
  sessions: dict 240  key>first
  key: str 64
  first: app.Session 64  data=data
  data: list 1000
  modules: [modules] 0  sessions=sessions
)";

class HeapCommand : public ::testing::Test {
 protected:
  HeapCommand() {
    std::filesystem::create_directory(directory);
    put("before.heap", SnapshotDrawing(kBefore).file());
    put("after.heap", SnapshotDrawing(std::string(kBefore).insert(1, "  more: list 2000\n")).file());
    put("text.txt", "hello");
  }
  ~HeapCommand() override { std::filesystem::remove_all(directory); }
  HeapCommand(const HeapCommand&) = delete;
  HeapCommand& operator=(const HeapCommand&) = delete;

  void put(const std::string& name, const std::string& bytes) const {
    std::ofstream(directory / name, std::ios::binary) << bytes;
  }
  int run(std::vector<std::string> words) {
    for (std::string& word : words)
      if (word.find(".heap") != std::string::npos || word.find(".txt") != std::string::npos)
        word = (directory / word).string();
    words.insert(words.begin(), "heap");
    return testing::run_words(make_heap(), words, console);
  }

  testing::FakeConsole console;
  std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("heap_command_test." + std::to_string(::getpid()));
};

TEST_F(HeapCommand, ShowsClasses) {
  EXPECT_EQ(run({"show", "before.heap"}), kFine);
  EXPECT_EQ(console.out, R"(4 objects, 1.37 kB, 3 references

count     size     %  retained      %  class
    1  1.00 kB  73.1   1.00 kB   73.1  list
    1    240 B  17.5   1.37 kB  100.0  dict
    1     64 B   4.7   1.06 kB   77.8  app.Session
    1     64 B   4.7      64 B    4.7  str
)");
}

TEST_F(HeapCommand, SaysWhichRulesOfAViewAreForNobody) {
  // GIVEN rules for a class that is there, one whose name is mistyped, one without its module, and a pattern
  for (const auto& [name, said] :
       std::vector<std::pair<std::string, std::string>>{{"app.Session", ""},
                                                        {"app.*", ""},
                                                        {"app.Sesion", "(did you mean \"app.Session\"?)"},
                                                        {"Session", "(did you mean \"app.Session\"?)"},
                                                        {"other.*", "\"other.*\""}}) {
    console.err.clear();
    // WHEN a heap is seen through one THEN what changes nothing is said to
    EXPECT_EQ(run({"show", "before.heap", "types", "--view", name + ": data"}), kFine);
    EXPECT_EQ(console.err.find("there is no object of class") != std::string::npos, !said.empty()) << console.err;
    EXPECT_NE(console.err.find(said), std::string::npos) << console.err;
  }
}

TEST_F(HeapCommand, ShowsTheTreeAndThePaths) {
  EXPECT_EQ(run({"show", "before.heap", "tree", "--of", "app.Session"}), kFine);
  EXPECT_NE(
      console.out.find(
          "1.06 kB  77.8     64 B  app.Session  [str]  0x1040\n 1.00 kB  73.1  1.00 kB    list  .data       0x1060"),
      std::string::npos)
      << console.out;
  console.out.clear();
  EXPECT_EQ(run({"show", "before.heap", "paths", "--of", "list"}), kFine);
  EXPECT_EQ(console.out, R"(list at 0x1060: 1.00 kB, retains 1.00 kB

[modules].sessions
  dict[str]
    app.Session.data
      list
)");
}

TEST_F(HeapCommand, ShowsWhereItPilesUp) {
  EXPECT_EQ(run({"show", "before.heap", "suspects"}), kFine);
  EXPECT_EQ(console.out, R"(4 objects, 1.37 kB, 3 references

1.00 kB (73.1 %) retained by list at 0x1060
  dict[str] -> app.Session.data -> list
)");
}

TEST_F(HeapCommand, ShowsWhatHasGrown) {
  EXPECT_EQ(run({"diff", "before.heap", "after.heap"}), kFine);
  EXPECT_TRUE(console.out.starts_with("before 1.37 kB, after 3.37 kB (+2.00 kB); objects +1\n")) << console.out;
  EXPECT_NE(console.out.find("+2.00 kB            +1  3.00 kB      2    2  list\n"), std::string::npos) << console.out;
}

TEST_F(HeapCommand, WritesJson) {
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"show", "before.heap", "--json"},
                                             {"show", "before.heap", "tree", "--json"},
                                             {"show", "before.heap", "suspects", "--json"},
                                             {"show", "before.heap", "paths", "--of", "list", "--json"},
                                             {"diff", "before.heap", "after.heap", "--json"}}) {
    console.out.clear();
    EXPECT_EQ(run(words), kFine);
    EXPECT_TRUE(console.out.starts_with("{\"schema\":1,")) << console.out;
  }
  EXPECT_NE(console.out.find(R"("type":"list","count_before":1,"count_after":2)"), std::string::npos) << console.out;
}

// A drawing of an object for each of so many classes.
std::string objects_of_classes(int count) {
  std::string objects, modules = "modules: [modules] 0 ";
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    objects += "o" + number + ": app.Class" + number + " " + std::to_string(100 + i) + "\n";
    modules += " o" + number;
  }
  return objects + modules;
}

TEST_F(HeapCommand, WritesAsManyRowsOfJsonAsAreAskedFor) {
  // GIVEN a snapshot with more classes and objects than the page shows
  put("many.heap", SnapshotDrawing(objects_of_classes(40)).file());
  put("none.heap", SnapshotDrawing("only: app.Other 8\n modules: [modules] 0  only").file());
  const auto rows = [&](std::vector<std::string> words, std::string_view member) {
    console.out.clear();
    words.emplace_back("--json");
    EXPECT_EQ(run(words), kFine);
    std::size_t count = 0;
    for (std::size_t at = console.out.find(member); at != std::string::npos; at = console.out.find(member, at + 1))
      ++count;
    return count;
  };
  const auto says_more = [&] { return console.out.find(R"("more":true)") != std::string::npos; };
  // WHEN it is asked for in all ways THEN all rows are there, or as many as the limit says
  const std::vector<std::pair<std::vector<std::string>, std::string>> ways{
      {{"show", "many.heap"}, "\"count\":"},
      {{"show", "many.heap", "tree", "--raw"}, "\"depth\":"},
      {{"show", "many.heap", "groups", "--by", "module", "--of", "app.Class3"}, "\"retained_bytes\":"},
      {{"show", "many.heap", "groups", "--by", "place"}, "\"retained_bytes\":"},
      {{"diff", "none.heap", "many.heap"}, "\"count_before\":0"},
      {{"diff", "none.heap", "many.heap", "many.heap"}, "\"count\":"},
      {{"query", "many.heap", "select 'row' from types"}, "\"row\""}};
  for (const auto& [words, member] : ways) {
    const std::size_t whole = rows(words, member);
    EXPECT_FALSE(says_more()) << console.out;
    std::vector<std::string> limited = words;
    limited.insert(limited.end(), {"--limit", "3"});
    EXPECT_EQ(rows(limited, member), std::min<std::size_t>(whole, 3)) << console.out;
    EXPECT_EQ(says_more(), whole > 3) << console.out;
  }
  EXPECT_EQ(rows(ways[0].first, ways[0].second), 40U);
  // AND they are in the order that is asked for
  (void)rows({"show", "many.heap", "groups", "--by", "size", "--sort", "count", "--limit", "1"}, "");
  EXPECT_NE(console.out.find("\"count\":28"), std::string::npos) << console.out;
}

TEST_F(HeapCommand, RefusesOptionsThatAViewDoesNotHave) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"types", "--of", "list"},
                                                                                     {"suspects", "--of", "list"},
                                                                                     {"tree", "--by", "size"},
                                                                                     {"tree", "--sort", "count"},
                                                                                     {"types", "--depth", "2"}}) {
    std::vector<std::string> all{"show", "before.heap"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_EQ(run(all), kUsage) << words[0] << words[1];
    EXPECT_NE(console.err.find(words[1] + ": not for the view " + words[0]), std::string::npos) << console.err;
  }
}

TEST_F(HeapCommand, BuffersThatAreNoObjectsAreFreedWithThemToo) {
  put("mapped.heap", SnapshotDrawing("one: app.Map 48  buffer=buffer\n  buffer: [buffer] 1000\n"
                                     "  modules: [modules] 0  one")
                         .file());
  EXPECT_EQ(run({"show", "mapped.heap", "retained", "--of", "app.Map"}), kFine);
  EXPECT_TRUE(
      console.out.starts_with("app.Map: 1 object, 48 B; with all of them 1 object, 1.05 kB would be freed\n\n"
                              "count     size     %  retained      %  class\n"
                              "    1  1.00 kB  95.4   1.00 kB   95.4  [buffer]\n"))
      << console.out;
  console.out.clear();
  EXPECT_EQ(run({"show", "mapped.heap", "retained", "--of", "app.Map", "--json"}), kFine);
  EXPECT_NE(console.out.find(R"("count":1,"bytes":48,"retained_count":1,"retained_bytes":1048)"), std::string::npos)
      << console.out;
}

TEST_F(HeapCommand, TellsWhatWouldBeFreedWithAllOfAClass) {
  // GIVEN two connections that share a buffer, which nobody else holds
  put("shared.heap", SnapshotDrawing("one: app.Conn 48  buffer=buffer\n  two: app.Conn 48  buffer=buffer\n"
                                     "  buffer: bytearray 1000\n  modules: [modules] 0  one two")
                         .file());
  // WHEN / THEN
  EXPECT_EQ(run({"show", "shared.heap", "retained", "--of", "app.*"}), kFine);
  EXPECT_TRUE(
      console.out.starts_with("app.*: 2 objects, 96 B; with all of them 3 objects, 1.10 kB would be freed\n\n"
                              "count     size     %  retained     %  class\n"
                              "    1  1.00 kB  91.2   1.00 kB  91.2  bytearray\n"))
      << console.out;
  console.out.clear();
  EXPECT_EQ(run({"show", "shared.heap", "retained", "--of", "app.Conn", "--json"}), kFine);
  EXPECT_NE(console.out.find(R"("of":"app.Conn","count":2,"bytes":96,"retained_count":3,"retained_bytes":1096)"),
            std::string::npos)
      << console.out;
  // AND what is not there, or not said, is told
  EXPECT_EQ(run({"show", "shared.heap", "retained", "--of", "app.Nobody"}), kUsage);
  EXPECT_EQ(run({"show", "shared.heap", "retained", "--of", "0x10"}), kUsage);
  EXPECT_EQ(run({"show", "shared.heap", "retained"}), kUsage);
}

TEST_F(HeapCommand, TellsWhatCameAndStayed) {
  // GIVEN a list that came after the first snapshot
  std::string later = kBefore;
  later.insert(later.find("  modules"), "  more: list 2000\n");
  put("second.heap", SnapshotDrawing(later).file());
  EXPECT_EQ(run({"diff", "before.heap", "second.heap", "second.heap"}), kFine);
  EXPECT_TRUE(console.out.starts_with("1 object, 2.00 kB, came between the first two snapshots")) << console.out;
  console.out.clear();
  EXPECT_EQ(run({"diff", "before.heap", "second.heap", "before.heap"}), kFine);
  EXPECT_TRUE(console.out.starts_with("nothing that came")) << console.out;
  console.out.clear();
  EXPECT_EQ(run({"diff", "before.heap", "second.heap", "second.heap", "--json"}), kFine);
  EXPECT_NE(console.out.find(R"("view":"survivors")"), std::string::npos) << console.out;
  put("other.heap", SnapshotDrawing(kBefore).file("2:b"));
  EXPECT_EQ(run({"diff", "before.heap", "after.heap", "other.heap"}), kBadInput);
}

TEST_F(HeapCommand, AnswersInSql) {
  EXPECT_EQ(run({"query", "before.heap", "select type, size from objects where size > 100 order by size desc"}), kFine);
  EXPECT_EQ(console.out, "type  size\nlist  1000\ndict   240\n");
  console.out.clear();
  EXPECT_EQ(run({"query", "before.heap", "select text, size / 2.0 from objects where type = 'list'", "--json"}), kFine);
  EXPECT_NE(console.out.find(R"("columns":["text","size / 2.0"],"rows":[[null,500]],"more":false)"), std::string::npos)
      << console.out;
  EXPECT_EQ(run({"query", "before.heap"}), kFine) << "tells of the tables";
  EXPECT_NE(console.out.find("edges(holder INTEGER"), std::string::npos);
  EXPECT_EQ(run({"query", "before.heap", "select sise from objects"}), kUsage);
  EXPECT_NE(console.err.find("no such column: sise"), std::string::npos) << console.err;
}

TEST_F(HeapCommand, ExportsForDevTools) {
  EXPECT_EQ(run({"export", "before.heap", "-o", "out.heapsnapshot"}), kFine);
  EXPECT_TRUE(std::filesystem::exists(directory / "out.heapsnapshot"));
  EXPECT_NE(console.err.find("wrote "), std::string::npos);
  EXPECT_EQ(run({"export", "before.heap", "-o", "before.heap"}), kUsage) << "not onto itself";
  EXPECT_EQ(run({"export", "before.heap", "-o", "out.heap"}), kUsage) << "which format?";
  EXPECT_EQ(run({"export", "before.heap", "-o", "-", "--format", "hprof"}), kUsage);
  console.out.clear();
  EXPECT_EQ(run({"export", "before.heap", "-o", "-", "--format", "ndjson"}), kFine);
  EXPECT_TRUE(console.out.starts_with(R"({"meta":{"process":"1:a"},"objects":4,)")) << console.out;
  EXPECT_EQ(run({"export", "before.heap", "-o", "-", "--format", "perfetto"}), kFine);
}

TEST_F(HeapCommand, ShowsGroupsAndWaste) {
  EXPECT_EQ(run({"show", "before.heap", "groups", "--of", "list"}), kFine);
  EXPECT_EQ(console.out, "count     size  retained\n    1  1.00 kB   1.00 kB  app.Session.data\n");
  console.out.clear();
  EXPECT_EQ(run({"show", "before.heap", "waste"}), kFine);
  EXPECT_NE(console.out.find("1.00 kB      1  1.00 kB  empty  list   app.Session.data\n"), std::string::npos)
      << console.out;
  console.out.clear();
  for (const char* view : {"duplicates", "arenas", "rss"}) {
    EXPECT_EQ(run({"show", "before.heap", view}), kFine);
    EXPECT_NE(console.out.find("older version"), std::string::npos) << "it is not known: " << console.out;
    console.out.clear();
  }
  EXPECT_EQ(run({"show", "before.heap", "groups", "--by", "colour"}), kUsage);
  EXPECT_EQ(run({"show", "before.heap", "waste", "--json"}), kFine);
  EXPECT_NE(console.out.find(R"({"kind":"empty","type":"list","place":"app.Session.data","count":1,"size":1000,)"),
            std::string::npos)
      << console.out;
}

TEST_F(HeapCommand, RefusesWhatMakesNoSense) {
  EXPECT_EQ(run({}), kUsage);
  EXPECT_EQ(run({"show", "before.heap", "leaves"}), kUsage);
  EXPECT_EQ(run({"show", "before.heap", "paths"}), kUsage);
  EXPECT_EQ(run({"show", "before.heap", "paths", "--of", "app.Nothing"}), kUsage);
  EXPECT_EQ(run({"show", "before.heap", "--sort", "name"}), kUsage);
  EXPECT_EQ(run({"show", "-"}), kUsage);
  EXPECT_EQ(run({"show", "no.heap"}), kBadInput);
  EXPECT_EQ(run({"show", "text.txt"}), kBadInput);
  EXPECT_EQ(run({"diff", "before.heap"}), kUsage);
}

TEST_F(HeapCommand, SaysOfEveryFileThatEndsEarly) {
  // GIVEN a snapshot of which the end is missing, and one of which nothing is there but its beginning
  const std::string whole = SnapshotDrawing(kBefore).file();
  put("begun.heap", whole.substr(0, 30));
  std::string many;
  for (int i = 0; i < 70'000; ++i) many += "o" + std::to_string(i) + ": list 56\n";
  const std::string large = SnapshotDrawing(many).file();
  put("cut.heap", large.substr(0, large.size() - 10));
  const std::string output = (directory / "out.ndjson").string();
  // WHEN they are asked in all ways THEN it is said on standard error
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"diff", "before.heap", "cut.heap"},
                                             {"diff", "cut.heap", "before.heap"},
                                             {"query", "cut.heap", "select count(*) from objects"},
                                             {"export", "cut.heap", "-o", output},
                                             {"show", "cut.heap", "groups"},
                                             {"show", "cut.heap", "--json"}}) {
    console.err.clear();
    EXPECT_EQ(run(words), kFine);
    EXPECT_NE(console.err.find("cut.heap is incomplete: it ends early"), std::string::npos) << words[0];
  }
  console.err.clear();
  EXPECT_EQ(run({"show", "begun.heap"}), kNoSamples);
  EXPECT_NE(console.err.find("begun.heap ends early: it holds no objects"), std::string::npos) << console.err;
  // AND nothing of one that is whole
  console.err.clear();
  EXPECT_EQ(run({"diff", "before.heap", "after.heap"}), kFine);
  EXPECT_EQ(console.err, "");
}

TEST_F(HeapCommand, RefusesGroupsOfAClassThatIsNotThere) {
  EXPECT_EQ(run({"show", "before.heap", "groups", "--of", "list"}), kFine);
  EXPECT_EQ(run({"show", "before.heap", "groups", "--of", "app.Nothing"}), kUsage);
  EXPECT_NE(console.err.find("there is no object of class \"app.Nothing\""), std::string::npos) << console.err;
}

}  // namespace
}  // namespace plimsoll::cli
