#include "native/symbols.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "base/unique_fd.h"
#include "native/modules.h"

namespace plimsoll::native {

// Not in a nameless namespace, and not inlined: to be found under this name.
[[gnu::noinline, gnu::used]] int function_with_a_name(int value) { return value + 1; }

namespace {

TEST(Symbols, KnowTheFunctionsOfThisProgram) {
  Modules modules;
  ASSERT_TRUE(modules.refresh(1).ok());
  const auto address = reinterpret_cast<std::uint64_t>(&function_with_a_name);
  const std::shared_ptr<const Module> module = modules.find(Address{address}, 1);
  ASSERT_NE(module, nullptr);
  const UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const SymbolTable table = SymbolTable::of_file(file.get());
  std::uint64_t start = 0;
  const std::string_view name = table.find(address + 1 - module->slide, start);
  EXPECT_EQ(demangled(name), "plimsoll::native::function_with_a_name(int)");
  EXPECT_EQ(start + module->slide, address);
}

TEST(Symbols, AreNoneWhereThereIsNoElfFile) {
  std::uint64_t start = 0;
  EXPECT_EQ(SymbolTable::of_file(-1).size(), 0U);
  EXPECT_EQ(SymbolTable::of_image("\177ELF and nothing behind it").size(), 0U);
  EXPECT_TRUE(SymbolTable().find(1, start).empty());
}

TEST(Symbols, AreShownAsTheirProgrammersWroteThem) {
  EXPECT_EQ(demangled("memcpy"), "memcpy");
  EXPECT_EQ(demangled("_ZN3abc4workEi"), "abc::work(int)");
  EXPECT_EQ(demangled("_ZN3abc4workEi.cold"), "abc::work(int)");
  EXPECT_EQ(demangled("_ZN3std2io5stdio6_print17h0123456789abcdefE"), "std::io::stdio::_print");
  EXPECT_EQ(demangled("_Z"), "_Z");
}

TEST(Symbols, AreShownAsTheyAreWhereTheyWouldBecomeVeryLong) {
  // GIVEN names that refer back to their own parts: of as many bytes more each time, twice as much comes
  const auto name_of = [](int times) {
    std::string name = "_Z1f1AIiiE";
    for (int i = 0; i < times; ++i) {
      const std::string before = std::string("S") + "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i] + "_";
      name += "S_I" + before + before + "E";
    }
    return name;
  };
  EXPECT_EQ(
      demangled(name_of(2)),
      "f(A<int, int>, A<A<int, int>, A<int, int> >, A<A<A<int, int>, A<int, int> >, A<A<int, int>, A<int, int> > >)");
  // THEN those that would be too long are not tried
  for (const int times : {20, 36}) EXPECT_EQ(demangled(name_of(times)), name_of(times));
}

}  // namespace
}  // namespace plimsoll::native
