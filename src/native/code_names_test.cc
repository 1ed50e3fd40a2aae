// native/code_names_test.cc: what JITs write for perf, whole and cut.
#include "native/code_names.h"

#include <gtest/gtest.h>

#include <cstring>

namespace plimsoll::native {
namespace {

std::string name_at(const CodeNames& names, std::uint64_t address) {
  const auto* found = names.find(address);
  return found != nullptr ? found->second.name : "?";
}

TEST(CodeNames, AreThoseOfTheStretchesThatAddressesAreIn) {
  CodeNames names;
  EXPECT_EQ(read_perf_map("7f00 10 first\n0x7f20 8 py::run:/app.py\n", names), 39U);
  EXPECT_EQ(name_at(names, 0x7eff), "?");
  EXPECT_EQ(name_at(names, 0x7f0f), "first");
  EXPECT_EQ(name_at(names, 0x7f10), "?");
  EXPECT_EQ(name_at(names, 0x7f27), "py::run:/app.py");
}

TEST(CodeNames, AreTakenOverByWhatIsWrittenLater) {
  CodeNames names;
  read_perf_map("100 10 a\n110 10 b\n120 10 c\n108 10 new\n", names);
  EXPECT_EQ(name_at(names, 0x100), "?");  // whoever wrote over a part of it has taken all of it
  EXPECT_EQ(name_at(names, 0x108), "new");
  EXPECT_EQ(name_at(names, 0x11f), "?");
  EXPECT_EQ(name_at(names, 0x120), "c");
}

TEST(CodeNames, AreKeptUpToSoManyBytes) {
  // GIVEN as many long names as there is room for
  CodeNames names;
  const std::string name(CodeNames::kLongestName, 'x');
  constexpr std::uint64_t kMost = CodeNames::kMostBytes / CodeNames::kLongestName;
  for (std::uint64_t i = 0; i < kMost; ++i) names.add(i * 16, 16, name);
  ASSERT_EQ(names.size(), kMost);
  // WHEN there is one more THEN it is not kept, unless another has gone
  names.add(kMost * 16, 16, "more");
  EXPECT_EQ(names.size(), kMost);
  names.add(0, 16, "shorter");
  names.add(kMost * 16, 16, "more");
  EXPECT_EQ(name_at(names, kMost * 16), "more");
}

TEST(CodeNames, OfLinesThatAreCutOrDamagedAreLeftOut) {
  CodeNames names;
  const std::string text =
      "nonsense\n100\n100 \n 100 10 x\n100 0 empty\nffffffffffffffff 10 over\n200 10 a name\n300 10 cu";
  EXPECT_EQ(read_perf_map(text, names), text.size() - std::strlen("300 10 cu"));
  EXPECT_EQ(names.size(), 1U);
  EXPECT_EQ(name_at(names, 0x200), "a name");
}

// A jitdump, drawn record by record.
class Dump {
 public:
  Dump() { word(0x4a695444).word(1).word(40).word(62).word(0).word(1).wide(0).wide(0); }
  Dump& load(std::uint64_t address, std::uint64_t size, const std::string& name) {
    const std::string code(4, '\xc3');
    begin(0, 56 + name.size() + 1 + code.size()).wide(address).wide(address).wide(size).wide(1);
    bytes += name + '\0' + code;
    return *this;
  }
  Dump& move(std::uint64_t from, std::uint64_t to, std::uint64_t size) {
    return begin(1, 64).wide(to).wide(from).wide(to).wide(size).wide(1);
  }
  Dump& close() { return word(3).word(16).wide(0); }
  Dump& word(std::uint32_t value) { return put(&value, sizeof value); }

  std::string bytes;

 private:
  Dump& begin(std::uint32_t kind, std::size_t size) {
    return word(kind).word(static_cast<std::uint32_t>(size)).wide(0).word(1).word(1);
  }
  Dump& wide(std::uint64_t value) { return put(&value, sizeof value); }
  Dump& put(const void* value, std::size_t size) {
    bytes.append(static_cast<const char*>(value), size);
    return *this;
  }
};

TEST(Jitdump, HasTheNamesOfWhatWasLoadedAndMoved) {
  const Dump dump = Dump().load(0x1000, 0x20, "add").load(0x2000, 0x20, "sub").move(0x1000, 0x3000, 0x20).close();
  CodeNames names;
  bool is_begun = false;
  EXPECT_EQ(read_jitdump(dump.bytes, is_begun, names), dump.bytes.size());
  EXPECT_EQ(name_at(names, 0x1000), "?");
  EXPECT_EQ(name_at(names, 0x2010), "sub");
  EXPECT_EQ(name_at(names, 0x3010), "add");
}

TEST(Jitdump, IsReadOnWhereverItWasCut) {
  const Dump dump = Dump().load(0x1000, 0x20, "add").load(0x2000, 0x20, "sub");
  for (std::size_t cut = 0; cut <= dump.bytes.size(); ++cut) {
    CodeNames names;
    bool is_begun = false;
    const std::size_t done = read_jitdump(std::string_view(dump.bytes).substr(0, cut), is_begun, names);
    ASSERT_LE(done, cut);
    EXPECT_EQ(done + read_jitdump(std::string_view(dump.bytes).substr(done), is_begun, names), dump.bytes.size());
    EXPECT_EQ(name_at(names, 0x1000), "add");
    EXPECT_EQ(name_at(names, 0x2000), "sub");
  }
}

TEST(Jitdump, ThatIsNoneOrDamagedIsPassedOver) {
  CodeNames names;
  bool is_begun = false;
  const std::string none(100, 'x');
  EXPECT_EQ(read_jitdump(none, is_begun, names), none.size());
  EXPECT_FALSE(is_begun);
  const Dump damaged = Dump().load(0x1000, 0x20, "add").word(0).word(3).word(0).word(0).load(0x2000, 0x20, "lost");
  EXPECT_EQ(read_jitdump(damaged.bytes, is_begun, names), damaged.bytes.size());
  EXPECT_EQ(name_at(names, 0x1000), "add");
  EXPECT_EQ(names.size(), 1U);
}

}  // namespace
}  // namespace plimsoll::native
