// remote/elf_symbols_test.cc: names in the tables of a file that is drawn byte by byte.
#include "remote/elf_symbols.h"

#include <gtest/gtest.h>

#include "remote/core_testing.h"

namespace plimsoll::remote {
namespace {

constexpr std::string_view kNames[] = {"_PyRuntime", "Py_Version"};

std::optional<ElfSymbols> read(const std::string& bytes) {
  return read_elf_symbols(testing::hidden_file(bytes).get(), kNames);
}

TEST(ElfSymbols, AreFoundByTheirWholeNames) {
  const auto found = read(testing::drawn_program({{"_PyRuntimeState", 1}, {"_PyRun", 2}, {"_PyRuntime", 3}}));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->symbols[0], 3U);
  EXPECT_FALSE(found->symbols[1].has_value());
}

TEST(ElfSymbols, WhoseTextsDoNotEndHaveNoNames) {
  // GIVEN a file whose last text goes on to the end of the table, and so has no end
  std::string bytes = testing::drawn_program({{"_PyRuntime", 3}});
  const std::size_t end = bytes.find("_PyRuntime") + std::string_view("_PyRuntime").size();
  ASSERT_EQ(bytes[end], '\0');
  bytes[end] = 'x';
  const auto found = read(bytes);
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(found->symbols[0].has_value());
}

}  // namespace
}  // namespace plimsoll::remote
