#include "capture/held_records.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace plimsoll::capture {
namespace {

void add(HeldRecords& held, std::string_view text) { held.add(std::as_bytes(std::span(text))); }

std::string all(HeldRecords& held) {
  std::string text;
  std::move(held).take_all([&](std::span<const std::byte> record) {
    text.append(reinterpret_cast<const char*>(record.data()), record.size()) += ';';
  });
  return text;
}

TEST(HeldRecords, ComeInTheOrderInWhichTheyWereAdded) {
  // GIVEN records whose originals are gone
  HeldRecords held;
  for (const int i : {1, 22, 333}) add(held, std::to_string(i));
  EXPECT_EQ(held.bytes(), 6U);
  // WHEN they are taken THEN each is what it was, and nothing is left
  EXPECT_EQ(all(held), "1;22;333;");
  EXPECT_TRUE(held.is_empty());
  EXPECT_EQ(held.bytes(), 0U);
  add(held, "next");
  EXPECT_EQ(all(held), "next;");
}

}  // namespace
}  // namespace plimsoll::capture
