// formats/firefox/jit_symbols_test.cc: frames of machine code as the page can ask for it.
#include "formats/firefox/jit_symbols.h"

#include "formats/firefox/writer.h"
#include "formats/testing.h"
#include "jitlog/testing.h"
#include "profile/testing.h"

namespace plimsoll::formats::firefox {
namespace {

using testing::json_at;
using testing::text_at;

// A profile of three frames: two of one loop's code at 0x1000, the last of code that no log knows.
profile::Profile with_traces() {
  profile::Profile profile = profile::testing::draw_profile("main  1");
  for (const auto& [line, trace] :
       {std::pair<std::uint32_t, const char*>{3, "0x1000"}, {4, "0x1000"}, {5, "0x99"}, {6, "jit"}}) {
    const FrameId frame = profile.frames.intern({FunctionId{0}, line, 0, profile.strings.intern(trace)});
    profile.samples.push_back(0, ThreadId{0}, profile.stacks.intern({StackId{}, frame}), 1);
  }
  return profile;
}

TEST(JitSymbols, AreThoseOfTheAttachedLog) {
  // GIVEN a profile with the log of its JIT WHEN it is written THEN frames of a trace have its symbol and address
  profile::Profile profile = with_traces();
  profile.attachments.push_back({"jitlog", jitlog::testing::loop_and_bridge(4, false)});
  const boost::json::value file = testing::parse_json(write(profile));
  EXPECT_EQ(json_at(file, "/shared/frameTable/nativeSymbol"), "[null,0,0,null,null]");
  EXPECT_EQ(json_at(file, "/shared/frameTable/address"), "[-1,4096,4096,-1,-1]");
  EXPECT_EQ(json_at(file, "/shared/nativeSymbols/libIndex"), "[0]");
  EXPECT_EQ(json_at(file, "/shared/nativeSymbols/address"), "[4096]");
  EXPECT_EQ(json_at(file, "/shared/nativeSymbols/functionSize"), "[256]");
  EXPECT_EQ(text_at(file, "/libs/0/debugName"), "jit@0x0");
  EXPECT_EQ(text_at(file, "/libs/0/arch"), "x86_64");
  const std::int64_t name = testing::int_at(file, "/shared/nativeSymbols/name/0");
  EXPECT_EQ(text_at(file, "/shared/stringArray/" + std::to_string(name)), "loop 7: schedule (lib/app.py:3)");
}

TEST(JitSymbols, AreNoneWithoutALog) {
  const boost::json::value file = testing::parse_json(write(with_traces()));
  EXPECT_EQ(json_at(file, "/shared/frameTable/nativeSymbol"), "[null,null,null,null,null]");
  EXPECT_EQ(json_at(file, "/libs"), "[]");
}

TEST(JitSymbols, HaveAddressesOf32Bits) {
  // GIVEN what the page asks with, of code far up in memory WHEN it is read THEN it is the code's address
  EXPECT_EQ(jit_code_address("jit@0x7ff300000000", "0x19a2cf0"), 0x7ff3019a2cf0U);
  for (const auto& [library, offset] : {std::pair("libc.so.6", "0x10"),
                                        {"jit@", "0x10"},
                                        {"jit@0x1", "10"},
                                        {"jit@0x1", "0x40000000"},
                                        {"jit@0xg", "0x1"}})
    EXPECT_EQ(jit_code_address(library, offset), std::nullopt) << library;
}

}  // namespace
}  // namespace plimsoll::formats::firefox
