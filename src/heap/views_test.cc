// heap/views_test.cc: several objects as one, in graphs drawn in text whose answers can be counted by hand.
#include "heap/views.h"

#include <gtest/gtest.h>

#include "heap/analysis.h"
#include "heap/snapshot_testing.h"

namespace plimsoll::heap {
namespace {

using testing::place;
using testing::SnapshotDrawing;

View view_of(std::initializer_list<const char*> words) {
  View view;
  for (const char* each : words) view = add_view(std::move(view), each).take();
  return view;
}

// A drawing, seen some way.
struct Seen {
  Seen(const char* text, const View& view)
      : drawing(text), snapshot(seen_as(drawing.snapshot(), view)), found(dominance(snapshot)) {}
  [[nodiscard]] Node operator[](const char* name) const { return place(snapshot, drawing, name); }
  [[nodiscard]] std::uint64_t size(const char* name) const { return snapshot.size[(*this)[name]]; }
  [[nodiscard]] std::uint64_t retained(const char* name) const { return found.retained[(*this)[name]]; }
  [[nodiscard]] std::uint64_t all() const { return found.retained[snapshot.root()]; }
  // ".cache list" for each edge, in order.
  [[nodiscard]] std::vector<std::string> edges(const char* name) const {
    std::vector<std::string> words;
    const Node node = (*this)[name];
    for (std::uint32_t edge = snapshot.graph.first[node]; edge < snapshot.graph.first[node + 1]; ++edge)
      words.push_back(describe_edge(snapshot, node, edge) + " " + snapshot.type_name(snapshot.graph.targets[edge]));
    return words;
  }
  SnapshotDrawing drawing;
  Snapshot snapshot;
  Dominance found;
};

const char* const kModule = R"(
  module: module 48  __dict__=ns
  ns: dict 200  key>data
  key: str 50
  data: list 1000
  function: function 100  __globals__=ns +code
  code: code 300  co_consts=consts
  consts: tuple 56
  modules: [modules] 0  app=module f=function
)";

TEST(HeapViews, RawIsAsObjectsAre) {
  const Seen seen(kModule, view_of({"raw"}));
  EXPECT_EQ(seen.retained("module"), 48U) << "the dict belongs to neither the module nor the function";
  EXPECT_EQ(seen.snapshot.object_count, 7U);
}

TEST(HeapViews, PartsAreOneWithTheirOwner) {
  const Seen seen(kModule, view_of({"parts"}));
  EXPECT_EQ(seen.size("module"), 48U + 200);
  EXPECT_EQ(seen["ns"], seen["module"]) << "a part is found by its address";
  EXPECT_EQ(seen.size("function"), 100U + 300 + 56) << "code, and what only the code holds";
  EXPECT_EQ(seen.retained("module"), 48U + 200 + 50 + 1000) << "the function holds the module now, not its dict";
  EXPECT_EQ(seen.all(), 48U + 200 + 50 + 1000 + 100 + 300 + 56) << "nothing is lost or counted twice";
  EXPECT_EQ(seen.edges("function"), std::vector<std::string>{".__globals__ module"});
}

TEST(HeapViews, KeysAndElementsOfAGroupAreThoseOfItsMembers) {
  // GIVEN owners whose dict and list hold some things more than once, and a part of their own
  const Seen seen(R"(
    table: app.D 48  x>y z>y y>marker __dict__=ns
    ns: dict 200
    row: app.L 48  y y y marker __dict__=rest
    rest: dict 200
    mixed: app.D 48  x>own own>marker z>marker __dict__=own
    own: dict 200
    x: str 50  "x
    y: str 50  "y
    z: str 50  "z
    marker: app.Marker 16
    m: [modules] 0  table row mixed
  )",
                  view_of({"parts"}));
  // THEN each is what it is under the key, or at the index, where it is
  EXPECT_EQ(seen.edges("table"), (std::vector<std::string>{" key str", "[str x] str", " key str", "[str z] str",
                                                           " key str", "[str y] app.Marker"}));
  EXPECT_EQ(seen.edges("row"), (std::vector<std::string>{"[0] str", "[1] str", "[2] str", "[3] app.Marker"}));
  // AND what has no key any more does not get another one's
  EXPECT_EQ(seen.edges("mixed"),
            (std::vector<std::string>{" key str", " app.Marker", " key str", "[str z] app.Marker"}));
}

TEST(HeapViews, ASharedDictIsPartOfItsFirstOwner) {
  const Seen seen("a: app.A 48 __dict__=ns\n b: app.B 48 __dict__=ns\n ns: dict 200\n m: [modules] 0 a b",
                  view_of({"parts"}));
  EXPECT_EQ(seen.size("a"), 248U);
  EXPECT_EQ(seen.size("b"), 48U);
  EXPECT_EQ(seen.all(), 296U);
}

TEST(HeapViews, ACodeObjectThatTwoFunctionsShareStaysItself) {
  const Seen seen("f: function 100 +code\n g: function 100 +code\n code: code 300\n m: [modules] 0 f g",
                  view_of({"parts"}));
  EXPECT_EQ(seen.size("f"), 100U);
  EXPECT_EQ(seen.size("code"), 300U);
}

TEST(HeapViews, CirclesOfPartsDoNotHang) {
  const Seen seen("a: dict 10 __dict__=b\n b: dict 20 __dict__=a\n c: dict 30 __dict__=c\n m: [modules] 0 a c",
                  view_of({"parts", "module", "dict: *"}));
  EXPECT_EQ(seen.all(), 60U);
}

TEST(HeapViews, AModuleIsOneNodeAndItsDataAreNot) {
  // GIVEN a function in a module, a constant that only the function holds, one that another module holds, too; and data
  const Seen seen(R"(
    app: module 48  "app __dict__=ns
    ns: dict 200  function=function session=session cache=cache other=shared
    function: function 100  __globals__=ns +own +shared
    session: type 400  "app.Session
    own: str 60
    shared: str 70
    cache: list 1000  item
    item: app.Session 64
    web: module 48  "web __dict__=wns
    wns: dict 100  shared=shared session=session
    modules: [modules] 0  app=app web=web
  )",
                  view_of({"module"}));
  EXPECT_EQ(seen.size("app"), 48U + 200 + 100 + 60 + 400) << "the class, too, whoever else holds it";
  EXPECT_EQ(seen.size("web"), 148U);
  EXPECT_EQ(seen.size("shared"), 70U);
  EXPECT_EQ(seen.retained("app"), 48U + 200 + 100 + 60 + 400 + 1000 + 64);
  EXPECT_EQ(seen.edges("app"), (std::vector<std::string>{".cache list", ".other str"}));
  EXPECT_EQ(seen.edges("web"), (std::vector<std::string>{".shared str", ".session module"}));
}

const char* const kCache = R"(
  cache: app.Cache 64  entries=entries index=index name=name
  entries: dict 1000  k1>row k2>row2
  index: list 500  row
  name: str 50
  k1: str 10
  k2: str 20
  row: app.Row 48  data=data
  row2: app.Row 48
  data: bytes 4000
  modules: [modules] 0  c=cache n=name
)";

TEST(HeapViews, RulesFoldAttributes) {
  const Seen seen(kCache, view_of({"app.Cache: entries, index"}));
  EXPECT_EQ(seen.size("cache"), 64U + 1000 + 500);
  EXPECT_EQ(seen["entries"], seen["cache"]);
  EXPECT_EQ(seen.edges("cache"),
            (std::vector<std::string>{".name str", " key str", "[str] app.Row", " key str", "[str] app.Row"}))
      << "a row that both parts hold is held once";
}

TEST(HeapViews, RulesFoldAllThatOnlyItKeepsAlive) {
  const Seen seen(kCache, view_of({"app.C*: *"}));
  EXPECT_EQ(seen.size("cache"), 64U + 1000 + 500 + 10 + 20 + 48 + 48 + 4000);
  EXPECT_EQ(seen.size("name"), 50U) << "somebody else holds it";
  EXPECT_EQ(seen["data"], seen["cache"]);
  EXPECT_EQ(seen.snapshot.object_count, 2U);
}

TEST(HeapViews, StackEachOnTheOneBefore) {
  const Seen seen(kCache, view_of({"parts", "app.Row: data", "app.Cache: entries; app.Nothing: x"}));
  EXPECT_EQ(seen.size("row"), 4048U);
  EXPECT_EQ(seen.size("cache"), 1064U);
  EXPECT_EQ(seen.all(), dominance(SnapshotDrawing(kCache).snapshot()).retained.back());
}

TEST(HeapViews, SubclassesAreMeantToo) {
  const Seen seen(R"(
    base: type 100  "app.Base
    derived: type 100  "app.Derived __mro__=mro
    first: app.Base 48
    mro: tuple 64  derived base
    one: app.Derived 48  data=d1
    d1: list 10
    modules: [modules] 0  base derived one first
  )",
                  view_of({"app.Base: data"}));
  EXPECT_EQ(seen.size("one"), 58U);
}

TEST(HeapViews, AClassIsNotDerivedFromThoseThatItsAttributesHold) {
  // GIVEN a class with another one in a tuple that is an attribute, and in parts holds that by itself; both of a module
  const char* const text = R"(
    app: module 48  "app
    base: type 100  "app.Base
    derived: type 100  "app.Derived __mro__=mro
    other: type 100  "app.Other __dict__=ns
    ns: dict 64  key>kinds
    key: str 50
    kinds: tuple 48  base derived
    mro: tuple 64  derived base
    one: app.Derived 48  data=d1
    two: app.Other 48  data=d2
    first: app.Base 48  data=d3
    d1: list 10
    d2: list 20
    d3: list 30
    modules: [modules] 0  app base derived other one two first
  )";
  // WHEN a rule is for that other one, in parts, and where its module has taken all of its classes
  for (const View& view : {view_of({"app.Base: data"}), view_of({"module", "app.Base: data"}),
                           view_of({"app.Nothing: x", "module", "app.Base: data"})}) {
    const Seen seen(text, view);
    // THEN it holds for the class that is derived from it, and not for the one that refers to it
    EXPECT_EQ(seen.size("one"), 58U);
    EXPECT_EQ(seen.size("first"), 78U);
    EXPECT_EQ(seen.size("two"), 48U);
  }
}

TEST(HeapViews, WordsThatAreNoViewAreToldSo) {
  EXPECT_FALSE(add_view({}, "modul").ok());
  EXPECT_FALSE(add_view({}, "app.Cache:").ok());
  EXPECT_FALSE(add_view({}, ": entries").ok());
  EXPECT_EQ(add_view({}, "raw").value().size(), 0U);
  EXPECT_EQ(add_view({}, "module").value().size(), 2U) << "modules are of parts";
  EXPECT_EQ(add_view({}, "# mine\napp.Cache: entries\n\napp.Row : *").value()[1].rules.size(), 2U);
}

}  // namespace
}  // namespace plimsoll::heap
