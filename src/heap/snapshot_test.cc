// heap/snapshot_test.cc: what is written is read; damage, cuts and hostile bytes are survived.
#include "heap/snapshot_reader.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/chunk.h"
#include "heap/content_hash.h"
#include "heap/dominators.h"
#include "heap/snapshot_format.h"
#include "heap/snapshot_testing.h"
#include "heap/snapshot_writer.h"

namespace plimsoll::heap {
namespace {

// Two objects and a module root: root -> (cache) dict 'd' -> key str, value list -> list; a weakref back to the dict.
std::string small_file() {
  SnapshotWriter writer;
  const auto dict = writer.add_type("dict");
  const auto list = writer.add_type("list");
  const auto str = writer.add_type("str");
  const auto roots = writer.add_type("<modules>");
  const auto cache = writer.add_name("cache");
  writer.begin_node(dict, 232, 1, Address{0x1000});
  writer.edge(EdgeKind::kKey, 2);
  writer.edge(EdgeKind::kValue, 1);
  writer.end_node();
  writer.begin_node(list, 64, 1, Address{0x2008});
  writer.edge(EdgeKind::kElement, 2);
  writer.edge(EdgeKind::kWeak, 0);
  writer.end_node();
  writer.begin_node(str, 48, 2, Address{0x7f0000000000});
  writer.text("'key'");
  writer.end_node();
  writer.end_objects();
  writer.begin_node(roots, 0, 0, Address{0});
  writer.text("modules");
  writer.named_edge(0, cache);
  writer.end_node();
  writer.add_meta("python", "3.14.2");
  EXPECT_TRUE(writer.finish().ok());
  return writer.bytes();
}

TEST(Snapshot, IsReadAsItWasWritten) {
  const Snapshot snapshot = read_snapshot(small_file()).take();
  EXPECT_TRUE(snapshot.complete);
  EXPECT_EQ(snapshot.object_count, 3U);
  EXPECT_EQ(snapshot.meta_value("python"), "3.14.2");
  EXPECT_EQ(snapshot.type_name(0), "dict");
  EXPECT_EQ(snapshot.size.values(), (std::vector<std::uint64_t>{232, 64, 48, 0, 0, 0, 0}));
  EXPECT_EQ(snapshot.address[1], 0x2008U);
  EXPECT_EQ(snapshot.address[2], 0x7f0000000000U);
  EXPECT_EQ(snapshot.refcount[2], 2U);
  EXPECT_EQ(snapshot.text(2), "'key'");
  EXPECT_EQ(snapshot.text(1), "");
  EXPECT_EQ(snapshot.weak, (std::vector<std::pair<Node, Node>>{{1, 0}}));
  EXPECT_EQ(snapshot.type_name(snapshot.root()), "[root]");
}

TEST(Snapshot, NamesItsEdges) {
  const Snapshot snapshot = read_snapshot(small_file()).take();
  EXPECT_EQ(describe_edge(snapshot, 3, snapshot.graph.first[3]), ".cache");
  EXPECT_EQ(describe_edge(snapshot, 0, 1), "[str 'key']");
  EXPECT_EQ(describe_edge(snapshot, 1, 2), "[0]");
  EXPECT_EQ(describe(snapshot, 3), "modules");
}

TEST(Snapshot, CutAnywhereGivesWhatIsBeforeTheCut) {
  const std::string whole = small_file();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Result<Snapshot> cut = read_snapshot(std::string_view(whole).substr(0, size));
    if (size < file::kFileHeaderSize) {
      EXPECT_FALSE(cut.ok()) << size;
      continue;
    }
    ASSERT_TRUE(cut.ok()) << size;
    EXPECT_FALSE(cut.value().complete) << size;
    EXPECT_EQ(cut.value().graph.size(), cut.value().type.size());
  }
}

TEST(Snapshot, WithAnyByteChangedIsStillSound) {
  const std::string whole = small_file();
  for (std::size_t at = file::kFileHeaderSize; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x15);
    const Result<Snapshot> read = read_snapshot(damaged);
    ASSERT_TRUE(read.ok());
    EXPECT_FALSE(read.value().complete) << at;
    (void)dominator_tree(read.value().graph, read.value().root());
  }
}

TEST(Snapshot, OfVersion1IsReadAsEver) {
  // GIVEN a file of version 1.3 with all that there was
  const Snapshot snapshot = read_snapshot_file(std::string(PLIMSOLL_TEST_DATA) + "/heap/version-1.3.heap").take();
  // THEN: two sessions, their dict, two strs, the class, a weak reference, the modules; and the roots
  EXPECT_TRUE(snapshot.complete);
  ASSERT_EQ(snapshot.object_count, 7U);
  EXPECT_EQ(snapshot.size.values(), (std::vector<std::uint64_t>{48, 164, 232, 64, 64, 1064, 72, 0, 0, 0, 0}));
  EXPECT_EQ(snapshot.refcount, (std::vector<std::uint32_t>{1, 1, 2, 2, 3, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(snapshot.address[4], 0x7f0000000048U);
  EXPECT_EQ(snapshot.generation,
            (std::vector<Generation>{Generation::kOld, Generation::kYoung, Generation::kOld, Generation::kUntracked,
                                     Generation::kUntracked, Generation::kFrozen, Generation::kMiddle}));
  const auto from = snapshot.graph.from(1);
  EXPECT_EQ(std::vector<Node>(from.begin(), from.end()), (std::vector<Node>{4, 5, 2})) << "the class among them";
  EXPECT_EQ(describe_edge(snapshot, 1, snapshot.graph.first[1]), ".user");
  EXPECT_EQ(describe_edge(snapshot, 2, snapshot.graph.first[2] + 3), "[str 'otto']");
  EXPECT_EQ(describe(snapshot, 1), "app.Session otto's");
  EXPECT_EQ(describe(snapshot, 7), "modules");
  EXPECT_EQ(snapshot.weak, (std::vector<std::pair<Node, Node>>{{6, 0}}));
  EXPECT_EQ(snapshot.hashed, (std::vector<Node>{3, 4}));
  EXPECT_EQ(snapshot.hash[1], 0x0123456789abcdf0U);
  ASSERT_EQ(snapshot.allocated.of.size(), 7U);
  EXPECT_NE(snapshot.allocated.of[0], snapshot.allocated.of[1]);
  EXPECT_EQ(snapshot.allocated.of[2], AllocationStacks::kNone);
  EXPECT_EQ(snapshot.pools.at(0).capacity, 63U);
  EXPECT_EQ(snapshot.regions.at(1).name, "/lib/libc.so");
  EXPECT_EQ(snapshot.buffers.at(0).size, 4096U);
  EXPECT_EQ(snapshot.lost_edges, 1U);
  EXPECT_EQ(snapshot.meta_value("python"), "3.12.1");
}

TEST(Snapshot, OfAnotherKindOrVersionIsAnError) {
  EXPECT_EQ(read_snapshot("").error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(read_snapshot("\x89PLIM\r\n\x1a and more").error().kind, ErrorKind::kBadInput);
  std::string newer = small_file();
  newer[8] = 3;
  EXPECT_NE(read_snapshot(newer).error().message.find("version 3"), std::string::npos);
}

TEST(Snapshot, ABombIsNotUnpacked) {
  // GIVEN a small file with a chunk of 96 MiB of zeros
  std::string bomb = small_file().substr(0, file::kFileHeaderSize);
  bomb += make_chunk(std::string(std::size_t{96} << 20U, '\0'), file::kCompressionLevel);
  ASSERT_LT(bomb.size(), 200'000U);
  // WHEN / THEN
  EXPECT_FALSE(read_snapshot(bomb).value().complete);
  EXPECT_EQ(read_snapshot(bomb).value().object_count, 0U);
}

TEST(Snapshot, FileIsForItsOwnerOnly) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("heap_test." + std::to_string(::getpid()))).string();
  {
    Result<SnapshotWriter> writer = SnapshotWriter::create(path);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer.value().finish().ok());
  }
  struct stat facts {};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  EXPECT_TRUE(read_snapshot_file(path).value().complete);
  ::unlink(path.c_str());
  ASSERT_EQ(::symlink("/nowhere", path.c_str()), 0);
  EXPECT_EQ(SnapshotWriter::create(path).error().kind, ErrorKind::kPermission);
  ::unlink(path.c_str());
}

TEST(Snapshot, WriteErrorsAreTold) {
  Result<SnapshotWriter> writer = SnapshotWriter::create("/dev/full");
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  EXPECT_EQ(writer.value().finish().error().kind, ErrorKind::kSystem);
}

// Rows of several blocks, with names that turn up in the middle of them.
void write_many(SnapshotWriter& writer) {
  constexpr Node kObjects = 300'000;
  const auto type = writer.add_type("app.Node");
  for (Node i = 0; i < kObjects; ++i) {
    writer.begin_node(type, 48 + i % 7, i % 3, Address{0x10000 + i * std::uint64_t{32}});
    if (i % 10'000 == 0) writer.named_edge(kObjects - 1, writer.add_name("name " + std::to_string(i)));
    if (i > 0) writer.edge(EdgeKind::kElement, i - 1);
    if (i % 1000 == 0) writer.text("text " + std::to_string(i));
    if (i % 5 == 0) writer.content_hash(i * std::uint64_t{0x9e3779b97f4a7c15});
    if (i % 4 == 0) writer.generation(Generation::kOld);
    writer.end_node();
  }
  writer.end_objects();
}

TEST(Snapshot, AThreadBesideWritesTheSameFile) {
  // GIVEN the file that is written by who makes the rows
  SnapshotWriter alone;
  write_many(alone);
  ASSERT_TRUE(alone.finish().ok());
  ASSERT_TRUE(read_snapshot(alone.bytes()).value().complete);
  // WHEN a thread beside writes it THEN it is the same
  SnapshotWriter beside;
  beside.write_beside();
  write_many(beside);
  ASSERT_TRUE(beside.finish().ok());
  EXPECT_TRUE(beside.bytes() == alone.bytes());
  EXPECT_EQ(beside.file_bytes(), alone.file_bytes());
  // AND so it is with others that help it
  SnapshotWriter helped;
  helped.write_beside();
  std::atomic<bool> is_over = false;
  std::thread helper([&] {
    while (!is_over)
      if (!helped.help()) std::this_thread::yield();
  });
  write_many(helped);
  is_over = true;
  helper.join();
  ASSERT_TRUE(helped.finish().ok());
  EXPECT_FALSE(helped.help());
  EXPECT_TRUE(helped.bytes() == alone.bytes());
  // AND a file that is given up, or that cannot be written, ends as well
  {
    SnapshotWriter given_up;
    given_up.write_beside();
    write_many(given_up);
  }
  SnapshotWriter full = SnapshotWriter::create("/dev/full").take();
  full.write_beside();
  write_many(full);
  EXPECT_EQ(full.finish().error().kind, ErrorKind::kSystem);
}

TEST(Snapshot, ThatCannotBeWrittenToItsEndLeavesNoFile) {
  // GIVEN a limit that a file reaches before it is complete
  const std::string path = ::testing::TempDir() + "plimsoll_full.heap";
  SnapshotWriter writer = SnapshotWriter::create(path).take();
  writer.begin_node(writer.add_type("list"), 56, 1, Address{0x1000});
  writer.end_node();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{16, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  // WHEN
  const Status finished = writer.finish();
  ::signal(SIGXFSZ, handler);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  // THEN
  EXPECT_FALSE(finished.ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  // AND where there was one already, it is there until the new one is whole
  std::ofstream(path) << "old";
  SnapshotWriter second = SnapshotWriter::create(path).take();
  EXPECT_EQ(std::filesystem::file_size(path), 3U);
  second.discard();
  EXPECT_EQ(std::filesystem::file_size(path), 3U);
  ASSERT_TRUE(SnapshotWriter::create(path).take().finish().ok());
  EXPECT_TRUE(read_snapshot_file(path).value().complete);
  std::filesystem::remove(path);
  for (const auto& each : std::filesystem::directory_iterator(::testing::TempDir()))
    EXPECT_FALSE(each.path().string().starts_with(path)) << each.path();
  // AND another one's file, which has its name by now, stays
  SnapshotWriter given_up = SnapshotWriter::create(path).take();
  std::filesystem::remove(path);
  std::ofstream(path) << "another";
  given_up.discard();
  EXPECT_TRUE(std::filesystem::exists(path));
  std::filesystem::remove(path);
}

// Of this process's memory.
std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(Snapshot, OfALongListThereIsNeverAllInMemory) {
  // GIVEN a list of five million, which takes 15 MB of columns, between two other objects
  constexpr Node kLength = 5'000'000;
  SnapshotWriter writer;
  const auto list = writer.add_type("list");
  const auto item = writer.add_type("object");
  const std::size_t before = resident_bytes();
  for (const Node node : {0U, 1U, 2U}) {
    writer.begin_node(node == 1 ? list : item, 32, 1, Address{0x1000 + std::uint64_t{node} * 0x100});
    for (Node i = 0; i < (node == 1 ? kLength : 1); ++i) writer.edge(EdgeKind::kElement, i == kLength / 2 ? 2 : 0);
    // WHEN it is written THEN it takes a few pieces
    EXPECT_LT(resident_bytes(), before + (std::size_t{3} << 20U));
    writer.end_node();
  }
  writer.end_objects();
  ASSERT_TRUE(writer.finish().ok());
  // AND is read as it was
  const Snapshot snapshot = read_snapshot(writer.bytes()).take();
  ASSERT_TRUE(snapshot.complete);
  const std::uint64_t first = snapshot.graph.first[1];
  ASSERT_EQ(snapshot.graph.first[2] - first, kLength);
  EXPECT_EQ(snapshot.graph.targets[first + kLength / 2 - 1], 0U);
  EXPECT_EQ(snapshot.graph.targets[first + kLength / 2], 2U);
  EXPECT_EQ(snapshot.graph.targets[first + kLength / 2 + 1], 0U);
}

TEST(Snapshot, KeepsWhatIsKnownOfRowsAndOfMemory) {
  // GIVEN two objects, the second with a hash, of different generations; pools and regions
  SnapshotWriter writer;
  const auto type = writer.add_type("str");
  writer.begin_node(type, 48, 1, Address{0x10030});
  writer.generation(Generation::kOld);
  writer.end_node();
  writer.begin_node(type, 48, 1, Address{0x10060});
  writer.content_hash(0x0123456789abcdefU);
  writer.generation(Generation::kUntracked);
  writer.end_node();
  writer.end_objects();
  writer.add_pools(std::vector<Pool>{{0x10000, 48, 2, 340, 7}, {0x14000, 64, 0, 255, 7}});
  writer.add_regions(std::vector<Region>{{0x10000, 0x100000, 0x8000, true, false, ""},
                                         {0x7f0000000000, 0x2000, 0x1000, false, true, "/lib/libc.so"}});
  ASSERT_TRUE(writer.finish().ok());
  // WHEN
  const Snapshot snapshot = read_snapshot(writer.bytes()).take();
  // THEN
  EXPECT_TRUE(snapshot.complete);
  EXPECT_EQ(snapshot.generation, (std::vector<Generation>{Generation::kOld, Generation::kUntracked}));
  EXPECT_EQ(snapshot.hashed, std::vector<Node>{1});
  EXPECT_EQ(snapshot.hash, std::vector<std::uint64_t>{0x0123456789abcdefU});
  ASSERT_EQ(snapshot.pools.size(), 2U);
  EXPECT_EQ(snapshot.pools[1].address, 0x14000U);
  EXPECT_EQ(snapshot.pools[0].used, 2U);
  EXPECT_EQ(snapshot.pools[1].capacity, 255U);
  EXPECT_EQ(snapshot.pools[1].arena, 7U);
  ASSERT_EQ(snapshot.regions.size(), 2U);
  EXPECT_EQ(snapshot.regions[1].name, "/lib/libc.so");
  EXPECT_EQ(snapshot.regions[0].resident, 0x8000U);
  EXPECT_TRUE(snapshot.regions[0].is_writable && snapshot.regions[1].is_executable);
}

TEST(Snapshot, BuffersAreWrittenWithTheirOwners) {
  // GIVEN more objects than a block has rows, each of which owns as many bytes as its number says
  constexpr std::uint64_t kObjects = 150'000, kSeldom = 7;
  SnapshotWriter writer;
  const auto type = writer.add_type("list");
  for (std::uint64_t i = 0; i < kObjects; ++i) {
    writer.begin_node(type, 64, 1, Address{(i + 1) * 64});
    if (i % kSeldom == 0) writer.buffer(0x700000 + i * 8, i);
    writer.end_node();
  }
  writer.end_objects();
  ASSERT_TRUE(writer.finish().ok());
  // THEN all are read, in the order of their owners
  const Snapshot snapshot = read_snapshot(writer.bytes()).take();
  ASSERT_EQ(snapshot.buffers.size(), (kObjects + kSeldom - 1) / kSeldom);
  for (const Buffer& buffer : snapshot.buffers) {
    ASSERT_EQ(buffer.size, buffer.owner);
    ASSERT_EQ(buffer.start, 0x700000 + buffer.size * 8);
  }
}

TEST(Snapshot, KnowsWhatWasSaidOfObjectsAfterItsEnd) {
  // GIVEN a file with five objects, two of which have texts, and one with a buffer
  const std::string path = ::testing::TempDir() + "plimsoll_said.heap";
  {
    SnapshotWriter writer = SnapshotWriter::create(path).take();
    const auto type = writer.add_type("app.Session");
    for (std::uint64_t i = 0; i < 5; ++i) {
      writer.begin_node(type, 48, 1, Address{0x10000 + i * 48});
      if (i == 3) writer.buffer(0x700000, 1000);
      if (i == 1 || i == 3) writer.text("old " + std::to_string(i));
      writer.end_node();
    }
    ASSERT_TRUE(writer.finish().ok());
  }
  // WHEN it is said what some are called, before, between and behind these, and how large one is
  ASSERT_TRUE(append_said(path, std::vector<Said>{{0, 0, "zero"}, {2, 100, ""}, {3, 0, "three"}, {4, 7, "four"}}).ok());
  const Snapshot snapshot = read_snapshot_file(path).take();
  // THEN they are, and the others as before
  EXPECT_TRUE(snapshot.complete);
  std::vector<std::string> texts;
  for (Node node = 0; node < 5; ++node) texts.emplace_back(snapshot.text(node));
  EXPECT_EQ(texts, (std::vector<std::string>{"zero", "old 1", "", "three", "four"}));
  EXPECT_EQ(snapshot.size[2], 148U);
  EXPECT_EQ(snapshot.size[4], 55U);
  ASSERT_EQ(snapshot.buffers.size(), 1U);
  EXPECT_EQ(snapshot.buffers[0].owner, 3U);
  EXPECT_EQ(snapshot.buffers[0].size, 1000U);
  // AND what is said of an object that is not there is damage, before which all is sound
  ASSERT_TRUE(append_said(path, std::vector<Said>{{99, 1, "nobody"}}).ok());
  const Snapshot damaged = read_snapshot_file(path).take();
  EXPECT_FALSE(damaged.complete);
  EXPECT_EQ(damaged.text(4), "four");
  EXPECT_FALSE(append_said(path + ".missing", {}).ok());
}

TEST(Snapshot, APoolOrRegionThatCannotBeEndsIt) {
  for (const Pool& pool : {Pool{0x1000, 16, 5, 4, 0}, Pool{0x1000, 1U << 30U, 0, 4, 0}}) {
    SnapshotWriter writer;
    writer.add_pools(std::vector<Pool>{pool});
    ASSERT_TRUE(writer.finish().ok());
    EXPECT_FALSE(read_snapshot(writer.bytes()).value().complete) << "more blocks in use than there are, or too large";
  }
  SnapshotWriter writer;
  writer.add_regions(std::vector<Region>{{0x1000, 0x3000, 0, false, false, ""}, {0x2000, 0x1000, 0, false, false, ""}});
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_FALSE(read_snapshot(writer.bytes()).value().complete) << "overlap";
}

TEST(ContentHash, TellsContentsApart) {
  // GIVEN the key 0x00, 0x01, ... THEN equal contents have equal hashes, and others, or with other tags, have not
  const ContentHash hash({0x0706050403020100U, 0x0f0e0d0c0b0a0908U});
  EXPECT_EQ(hash.of("hello", 1), hash.of(std::string("hel") + "lo", 1));
  EXPECT_NE(hash.of("hello", 1), hash.of("hello", 2));
  EXPECT_NE(hash.of("hello", 1), hash.of(std::string_view("hello\0", 6), 1)) << "the length counts";
  EXPECT_NE(hash.of("", 1), ContentHash({1, 2}).of("", 1)) << "the key counts";
  std::set<std::uint64_t> different;
  for (int i = 0; i < 10'000; ++i) different.insert(hash.of("word " + std::to_string(i), 1));
  EXPECT_EQ(different.size(), 10'000U);
}

// Roots: what nobody of ours holds, by the number of references.
TEST(Snapshot, WhatIsHeldFromOutsideIsToldFromGarbage) {
  // GIVEN a cycle a <-> b, a cycle c <-> d of which c has one reference more, and c's e
  SnapshotWriter writer;
  const auto type = writer.add_type("list");
  const std::vector<std::pair<Node, std::vector<Node>>> rows{{1, {1}}, {1, {0}}, {2, {3, 4}}, {1, {2}}, {1, {}}};
  for (Node node = 0; node < rows.size(); ++node) {
    writer.begin_node(type, 16, rows[node].first, Address{0x1000 + 0x10 * std::uint64_t{node}});
    for (const Node target : rows[node].second) writer.edge(EdgeKind::kElement, target);
    writer.end_node();
  }
  writer.end_objects();
  ASSERT_TRUE(writer.finish().ok());
  // WHEN
  const Snapshot snapshot = read_snapshot(writer.bytes()).take();
  // THEN
  const auto held_by = [&](std::string_view name) {
    for (Node node = 0; node < snapshot.type.size(); ++node)
      if (snapshot.type_name(node) == name) {
        const auto held = snapshot.graph.from(node);
        return std::vector<Node>(held.begin(), held.end());
      }
    return std::vector<Node>{kNoNode};
  };
  EXPECT_EQ(held_by("[native code]"), std::vector<Node>{2});
  EXPECT_EQ(held_by("[garbage]"), std::vector<Node>{0});
  const DominatorTree tree = dominator_tree(snapshot.graph, snapshot.root());
  EXPECT_EQ(tree.order.size(), snapshot.type.size()) << "the root reaches everything";
}

TEST(Snapshot, WhatARootHoldsIsNoGarbageHoweverManyReferencesAwayItIs) {
  // GIVEN a list of objects each of which holds the one before, a cycle that nobody holds, and a module with the last
  constexpr Node kLength = 1000;
  SnapshotWriter writer;
  const auto type = writer.add_type("app.Node");
  for (Node node = 0; node < kLength + 2; ++node) {
    writer.begin_node(type, 16, 1, Address{0x1000 + 0x10 * std::uint64_t{node}});
    if (node > 0 && node < kLength) writer.edge(EdgeKind::kReference, node - 1);
    if (node >= kLength) writer.edge(EdgeKind::kReference, 2 * kLength + 1 - node);
    writer.end_node();
  }
  writer.end_objects();
  writer.begin_node(writer.add_type("[modules]"), 0, 0, Address{});
  writer.edge(EdgeKind::kReference, kLength - 1);
  writer.end_node();
  ASSERT_TRUE(writer.finish().ok());
  // WHEN
  const Snapshot snapshot = read_snapshot(writer.bytes()).take();
  // THEN the cycle alone is garbage
  const Node garbage = snapshot.root() - 1;
  ASSERT_EQ(snapshot.type_name(garbage), "[garbage]");
  const auto held = snapshot.graph.from(garbage);
  EXPECT_EQ(std::vector<Node>(held.begin(), held.end()), std::vector<Node>{kLength});
  EXPECT_TRUE(snapshot.graph.from(garbage - 1).empty()) << "held by native code";
}

TEST(Snapshot, GarbageHangsBelowTheGarbageThatHoldsItWhateverItsAddressIs) {
  // GIVEN a buffer that an object holds, which holds itself and nobody else does, and two that hold one another, one of
  // which holds a list with a str
  SnapshotWriter writer;
  const auto type = writer.add_type("app.Node");
  const std::vector<std::vector<Node>> rows{{}, {1, 0}, {}, {2}, {5, 3}, {4}};
  for (Node node = 0; node < rows.size(); ++node) {
    writer.begin_node(type, 16, 1, Address{0x1000 + 0x10 * std::uint64_t{node}});
    for (const Node target : rows[node]) writer.edge(EdgeKind::kElement, target);
    writer.end_node();
  }
  writer.end_objects();
  ASSERT_TRUE(writer.finish().ok());
  // WHEN
  const Snapshot snapshot = read_snapshot(writer.bytes()).take();
  // THEN of each cycle one hangs below [garbage], and nothing that they hold
  const auto held = snapshot.graph.from(snapshot.root() - 1);
  EXPECT_EQ(std::set<Node>(held.begin(), held.end()), (std::set<Node>{1, 4}));
  const DominatorTree tree = dominator_tree(snapshot.graph, snapshot.root());
  EXPECT_EQ(tree.parent[0], 1U);
  EXPECT_EQ(tree.parent[2], 3U);
}

TEST(Snapshot, PoolsAndRegionsAreInOrderHoweverManySectionsThereAre) {
  // GIVEN what was told of memory twice, the lower addresses later
  SnapshotWriter writer;
  writer.begin_node(writer.add_type("list"), 56, 1, Address{0x20000});
  writer.end_node();
  writer.add_pools(std::vector<Pool>{{0x20000, 64, 5, 255, 1}, {0x24000, 64, 6, 255, 1}});
  writer.add_pools(std::vector<Pool>{{0x10000, 64, 7, 255, 0}, {0x20000, 64, 8, 255, 1}});
  writer.add_regions(std::vector<Region>{{0x20000, 0x8000, 0x8000, true, false, "later"}});
  writer.add_regions(std::vector<Region>{{0x10000, 0x4000, 0x4000, true, false, "before"},
                                         {0x21000, 0x1000, 0x1000, true, false, "inside"}});
  ASSERT_TRUE(writer.finish().ok());
  // WHEN
  const Snapshot snapshot = read_snapshot(writer.bytes()).take();
  // THEN
  EXPECT_TRUE(snapshot.complete);
  ASSERT_EQ(snapshot.pools.size(), 3U);
  EXPECT_EQ(snapshot.pools[0].used, 7U);
  EXPECT_EQ(snapshot.pools[1].used, 5U);
  EXPECT_EQ(snapshot.pools[2].used, 6U);
  ASSERT_EQ(snapshot.regions.size(), 2U);
  EXPECT_EQ(snapshot.regions[0].name, "before");
  EXPECT_EQ(snapshot.regions[1].name, "later");
}

TEST(Snapshot, WhatWasSaidLastOfAnObjectIsItsText) {
  // GIVEN a file with many texts, and as many sections that say something of one object
  constexpr Node kObjects = 20'000;
  const std::string path = ::testing::TempDir() + "plimsoll_said_often.heap";
  {
    SnapshotWriter writer = SnapshotWriter::create(path).take();
    const auto type = writer.add_type("app.Session");
    for (Node i = 0; i < kObjects; ++i) {
      writer.begin_node(type, 48, 1, Address{0x10000 + std::uint64_t{i} * 48});
      writer.text("old " + std::to_string(i));
      writer.end_node();
    }
    ASSERT_TRUE(writer.finish().ok());
  }
  std::string raw;
  for (Node i = 0; i < kObjects; ++i) {
    std::string payload;
    put_varint(payload, 5);
    put_varint(payload, 0);
    put_bytes(payload, "new " + std::to_string(i));
    put_varint(raw, static_cast<std::uint64_t>(file::Section::kSaid));
    put_bytes(raw, payload);
  }
  std::ofstream(path, std::ios::binary | std::ios::app) << make_chunk(raw, file::kCompressionLevel);
  // WHEN
  const Snapshot snapshot = read_snapshot_file(path).take();
  // THEN (which took hours, when all texts were put together anew for each section)
  EXPECT_TRUE(snapshot.complete);
  EXPECT_EQ(snapshot.text(4), "old 4");
  EXPECT_EQ(snapshot.text(5), "new 19999");
  EXPECT_EQ(snapshot.text(6), "old 6");
}

TEST(EdgeWords, AreThoseOfEachEdgeInAnyOrder) {
  const testing::SnapshotDrawing drawing("a: str 50\nlist: list 72  a k=a a a\nm: [modules] 0  list=list");
  const Snapshot snapshot = drawing.snapshot();
  EdgeWords words(snapshot);
  const Node list = drawing["list"];
  for (const std::uint32_t place : {3U, 0U, 2U, 2U, 1U}) {
    const std::uint32_t edge = snapshot.graph.first[list] + place;
    EXPECT_EQ(words.of(list, edge), describe_edge(snapshot, list, edge)) << place;
  }
}

TEST(EdgeWords, CountOnWhatTheyHaveCounted) {
  // GIVEN a list of 500,000 elements; by the square of that it would take minutes
  constexpr std::uint32_t kElements = 500'000;
  std::string text = "a: str 50\nlist: list 72 ";
  for (std::uint32_t i = 0; i < kElements; ++i) text += " a";
  const testing::SnapshotDrawing drawing(text + "\nm: [modules] 0  list=list");
  const Snapshot snapshot = drawing.snapshot();
  EdgeWords words(snapshot);
  for (std::uint32_t i = 0; i < kElements; ++i)
    ASSERT_EQ(words.of(drawing["list"], snapshot.graph.first[drawing["list"]] + i), "[" + std::to_string(i) + "]");
}

}  // namespace
}  // namespace plimsoll::heap
