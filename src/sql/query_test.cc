// sql/query_test.cc: statements about snapshots drawn in text.
#include "sql/query.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "heap/snapshot_testing.h"
#include "sql/heap_tables.h"

namespace plimsoll::sql {
namespace {

using heap::testing::SnapshotDrawing;

// Two sessions share a cache; one of them alone holds the data.
const char* const kHeap = R"(
  sessions: list 72  first second
  first: app.Session 64  data=data cache=cache
  second: app.Session 64  cache=cache
  cache: dict 240  key>value
  key: str 50
  value: str 60
  data: bytes 1000
  observer: weakref 80  ~second
  modules: [modules] 0  app=sessions watch=observer
)";

std::string text_of(const Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* number = std::get_if<double>(&value)) return std::to_string(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "-";
}

class HeapQuery : public ::testing::Test {
 protected:
  // Rows as lines, values by commas; or the error.
  std::string ask(std::string_view statement, std::size_t most = 100) {
    const Result<Answer> answer = database->ask(statement, most);
    if (!answer.ok()) return "error: " + answer.error().message;
    std::string text;
    for (const auto& row : answer.value().rows) {
      for (std::size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : ",") + text_of(row[i]);
      text += "\n";
    }
    return text + (answer.value().is_cut ? "...\n" : "");
  }
  [[nodiscard]] std::string id(const std::string& name) const { return std::to_string(drawing[name]); }

  SnapshotDrawing drawing{kHeap};
  heap::Snapshot snapshot = drawing.snapshot();
  std::unique_ptr<HeapDatabase> database = HeapDatabase::open(snapshot).take();
};

TEST_F(HeapQuery, CountsByType) {
  EXPECT_EQ(
      ask("select type, count(*), sum(size) from objects where address is not null group by type order by 3 desc"),
      "bytes,1,1000\ndict,1,240\napp.Session,2,128\nstr,2,110\nweakref,1,80\nlist,1,72\n");
  EXPECT_EQ(ask("select name, count, size, retained from types where count = 2 order by size desc"),
            "app.Session,2,128,1128\nstr,2,110,110\n");
}

TEST_F(HeapQuery, KnowsWhatWouldBeFreed) {
  // THEN the first session frees the data with it, and neither frees the cache, which the list does
  EXPECT_EQ(ask("select retained from objects where type = 'app.Session' order by id"), "1064\n64\n");
  EXPECT_EQ(ask("select id from objects where dominator = " + id("sessions") + " order by id"),
            id("first") + "\n" + id("second") + "\n" + id("cache") + "\n");
}

TEST_F(HeapQuery, MakesATableWhenItsRowsAreAskedFor) {
  // GIVEN tables of what takes work WHEN a plan wants to know how many rows they have THEN a guess will do
  HeapFacts facts(snapshot);
  for (const auto& table : heap_tables(facts)) {
    if (std::string_view(table->name()) != "duplicates") continue;
    EXPECT_EQ(table->row_estimate(), 100);
    EXPECT_EQ(table->row_count(), 0);
    EXPECT_EQ(table->row_estimate(), 0);
  }
}

TEST_F(HeapQuery, EndsWhereItIsEnough) {
  // GIVEN a statement that never ends WHEN somebody has had enough THEN it ends, and the next one is answered
  int asked = 0;
  const Result<Answer> answer =
      database->ask("with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n", 10,
                    [&] { return ++asked == 2; });
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message.find("interrupted"), std::string::npos) << answer.error().message;
  EXPECT_EQ(ask("select count(*) from meta"), "1\n");
}

TEST_F(HeapQuery, FindsTheSameRowsByAnIndexAsByLookingAtAll) {
  for (const std::string column : {"id", "type", "address", "dominator"}) {
    // (a sum hides the column from the index)
    const std::string all = ask("select group_concat(id) from objects where +" + column + " is not null group by +" +
                                column + " order by min(id)");
    const std::string found =
        ask("select group_concat(o.id) from (select distinct " + column + " as v from objects where " + column +
            " is not null) d join objects o on o." + column + " = d.v group by d.v order by min(o.id)");
    EXPECT_EQ(found, all) << column;
    EXPECT_GT(std::count(all.begin(), all.end(), '\n'), 2) << all;
  }
}

TEST_F(HeapQuery, FollowsEdgesBothWays) {
  EXPECT_EQ(ask("select holder, kind, name from edges where held = " + id("cache") + " order by holder"),
            id("first") + ",attribute,.cache\n" + id("second") + ",attribute,.cache\n");
  EXPECT_EQ(ask("select held, kind, name from edges where holder = " + id("sessions")),
            id("first") + ",element,[0]\n" + id("second") + ",element,[1]\n");
  EXPECT_EQ(ask("select holder from edges where kind = 'weak' and held = " + id("second")), id("observer") + "\n");
  EXPECT_EQ(ask("select held from edges where kind = 'weak' and holder = " + id("observer")), id("second") + "\n");
  EXPECT_EQ(ask("select count(*) from edges e join objects o on o.id = e.held where o.type = 'str'"), "2\n");
  EXPECT_EQ(ask("select holders, held from objects where id = " + id("cache")), "2,2\n");
}

TEST_F(HeapQuery, WalksTheGraphByRecursion) {
  EXPECT_EQ(ask("with recursive below(id) as (select " + id("second") +
                " union select held from edges join below on holder = id where kind <> 'weak')"
                " select sum(size) from objects join below using (id)"),
            "414\n");
}

TEST_F(HeapQuery, SaysInWordsWhatIsWhere) {
  EXPECT_EQ(ask("select describe(" + id("first") + "), path(" + id("data") + ")"),
            "app.Session,[modules].app[0].data\n");
  EXPECT_EQ(ask("select describe(-1), describe(99999999), path('no number')"), "-,-,-\n");
}

TEST_F(HeapQuery, AddsUpWhatWouldBeFreedWithAllOfAGroup) {
  // GIVEN two sessions that share a cache WHEN each is looked at alone, and both together THEN the cache is freed with
  // both
  EXPECT_EQ(ask("select sum(retained), retained_together(id) from objects where type = 'app.Session'"), "1128,1478\n");
  EXPECT_EQ(ask("select retained_together(id) = retained from objects where address is not null group by id, retained "
                "having retained_together(id) <> retained"),
            "");
  // AND each root, too, retains what the tree of dominators says
  EXPECT_EQ(ask("select count(*) from (select retained, retained_together(id) as together from objects group by id, "
                "retained) where together <> retained"),
            "0\n");
  EXPECT_EQ(ask("select retained_together(id) from objects where type = 'nobody'"), "0\n");
  EXPECT_EQ(ask("select retained_together(-1), retained_together('x'), retained_together(null)"), "0,0,0\n");
}

TEST_F(HeapQuery, TakesValuesOfAnyKindForANumber) {
  const std::string one = id("first") + "\n";
  EXPECT_EQ(ask("select id from objects where id = " + id("first") + ".0"), one);
  EXPECT_EQ(ask("select id from objects where id = '" + id("first") + "'"), one);
  for (const std::string wrong : {"1.5", "1e300", "-1", "'x'", "null", "x'00'", "9223372036854775807"})
    for (const std::string column : {"id", "address", "dominator", "type"})
      EXPECT_EQ(ask("select id from objects where " + column + " = " + wrong), "") << column << wrong;
  EXPECT_EQ(ask("select count(*) from edges where holder = 1e18 or held = -5 or rowid = 77777 or rowid = -1"), "0\n");
}

TEST_F(HeapQuery, ComparesTextAsItIsAskedTo) {
  EXPECT_EQ(ask("select count(*) from objects where type = 'STR'"), "0\n");
  EXPECT_EQ(ask("select count(*) from objects where type = 'STR' collate nocase"), "2\n");
  EXPECT_EQ(ask("select count(*) from objects where type like 'app.%'"), "2\n");
}

TEST_F(HeapQuery, GivesNoMoreRowsThanWanted) {
  EXPECT_EQ(ask("select size from objects order by size desc", 2), "1000\n240\n...\n");
  EXPECT_EQ(ask("select count(*) from objects", 1), std::to_string(snapshot.graph.size()) + "\n");
}

TEST_F(HeapQuery, ShowsWhereAStatementIsWrong) {
  EXPECT_EQ(ask("select type from objects\nwhere sise > 1"),
            "error: no such column: sise\n  where sise > 1\n        ^");
  EXPECT_NE(ask("selec 1").find("syntax error"), std::string::npos);
  EXPECT_EQ(ask(""), "error: there is no statement");
  EXPECT_EQ(ask("select 1; select 2"), "error: one statement at a time: there is more after the first ';'");
  EXPECT_EQ(ask("select 1 ; "), "1\n");
}

TEST_F(HeapQuery, TakesAStatementWithACommentBehindIt) {
  // GIVEN statements with nothing but space and comments behind their ends THEN they are one
  for (const char* end : {"; -- done", ";; /* done */ ;\n-- really", " -- done", "; /* never closed"})
    EXPECT_EQ(ask(std::string("select 1") + end), "1\n") << end;
  // AND not those with more
  for (const char* more : {"; -- done\nselect 2", "; pragma database_list", "; what"})
    EXPECT_EQ(ask(std::string("select 1") + more), "error: one statement at a time: there is more after the first ';'");
  EXPECT_EQ(ask("-- nothing"), "error: there is no statement");
  // AND one that SQLite would read to its middle only is refused
  EXPECT_EQ(ask(std::string_view("select 1\0 + 1", 13)), "error: a statement cannot have a null character in it");
}

TEST_F(HeapQuery, ReachesNoFile) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("heap_query_test." + std::to_string(::getpid()));
  const std::string file = path.string();
  for (const std::string& statement :
       {"attach '" + file + "' as other", "vacuum into '" + file + "'", std::string("create table t(x)"),
        std::string("create temp table t(x)"), std::string("pragma temp_store_directory = '/'"),
        std::string("insert into objects(id) values (1)"), std::string("drop table objects"),
        std::string("delete from edges"), std::string("begin"), "select load_extension('" + file + "')",
        "select writefile('" + file + "', 'x')"})
    EXPECT_FALSE(database->ask(statement, 10).ok()) << statement;
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(ask("select value from meta where name = 'process'"), "1:a\n") << "and goes on";
}

}  // namespace
}  // namespace plimsoll::sql
