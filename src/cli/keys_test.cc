// cli/keys_test.cc: bytes of a terminal -> keys.
#include "cli/keys.h"

#include <gtest/gtest.h>

namespace plimsoll::cli {
namespace {

using Kind = Key::Kind;
using Keys = std::vector<Key>;

Key letter(const char* text) { return {Kind::kText, text}; }

TEST(KeyDecoder, KnowsLettersAndTheKeysThatAreNone) {
  KeyDecoder decoder;
  EXPECT_EQ(decoder.feed("qé\r\x7f\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[F"), (Keys{letter("q"),
                                                                                  letter("é"),
                                                                                  {Kind::kEnter},
                                                                                  {Kind::kBackspace},
                                                                                  {Kind::kUp},
                                                                                  {Kind::kDown},
                                                                                  {Kind::kPageUp},
                                                                                  {Kind::kPageDown},
                                                                                  {Kind::kHome},
                                                                                  {Kind::kEnd}}));
  EXPECT_FALSE(decoder.is_waiting());
}

TEST(KeyDecoder, PutsPiecesTogether) {
  KeyDecoder decoder;
  EXPECT_EQ(decoder.feed("\x1b"), Keys{});
  EXPECT_EQ(decoder.feed("["), Keys{});
  EXPECT_TRUE(decoder.is_waiting());
  EXPECT_EQ(decoder.feed("B\xc3"), (Keys{{Kind::kDown}}));
  EXPECT_EQ(decoder.feed("\xa9"), (Keys{letter("é")}));
}

TEST(KeyDecoder, TakesALoneEscapeForTheKey) {
  KeyDecoder decoder;
  EXPECT_EQ(decoder.feed("\x1b"), Keys{});
  EXPECT_EQ(decoder.finish(), (Keys{{Kind::kEscape}}));
  EXPECT_EQ(decoder.finish(), Keys{});
  EXPECT_EQ(decoder.feed("\x1bq"), (Keys{{Kind::kEscape}, letter("q")}));
}

TEST(KeyDecoder, SurvivesWhatNoKeySends) {
  KeyDecoder decoder;
  // GIVEN an unknown sequence, a control character, invalid UTF-8, and a sequence that does not end
  EXPECT_EQ(decoder.feed("\x1b[99~\x01\xffq"), (Keys{{}, {}, {}, letter("q")}));
  EXPECT_EQ(decoder.feed("\x1b[" + std::string(100, '1')).front(), Key{});
  (void)decoder.finish();
  // THEN the next key is known
  EXPECT_EQ(decoder.feed("q"), (Keys{letter("q")}));
}

}  // namespace
}  // namespace plimsoll::cli
