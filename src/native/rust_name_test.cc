#include "native/rust_name.h"

#include <gtest/gtest.h>

#include <string>

#include "native/symbols.h"

namespace plimsoll::native {
namespace {

// Empty for none.
std::string name_of(std::string_view mangled) { return rust_name(mangled).value_or(""); }

TEST(RustName, IsAPathThroughModulesAndTypes) {
  EXPECT_EQ(name_of("_RNvCs6GmmlP4bgsG_1r4main"), "r::main");
  EXPECT_EQ(name_of("_RNvNtCs6GmmlP4bgsG_1r6shapes4area.llvm.7016"), "r::shapes::area");
  EXPECT_EQ(name_of("_RNvMs3_NtCslNYArtu3iFV_5alloc7raw_vecINtB5_6RawVecNtNtB7_6string6StringE8grow_one"),
            "<alloc::raw_vec::RawVec<alloc::string::String>>::grow_one");
  EXPECT_EQ(name_of("_RNvXs_CsaC_4codeNtB4_4FileNtNtCsaD_3std2io4Read4read"), "<code::File as std::io::Read>::read");
}

TEST(RustName, HasTheArgumentsOfWhatIsGeneric) {
  EXPECT_EQ(name_of("_RINvCs6GmmlP4bgsG_1r5applyNCNvB2_4mains1_0EB2_"), "r::apply::<r::main::{closure#3}>");
  EXPECT_EQ(name_of("_RINvC1a1bRlQTxEAyj10_SbDNtC1c5ErrorNtC1c4SendEL_E"),
            "a::b::<&i32, &mut (i64,), [u64; 16], [bool], dyn c::Error + c::Send>");
  EXPECT_EQ(name_of("_RINvC1a1bFUKCPhEuE"), "a::b::<unsafe extern \"C\" fn(*const u8)>");
  EXPECT_EQ(name_of("_RINvC1a1bFG_RL0_eEBa_E"), "a::b::<for<'a> fn(&'a str) -> &'a str>");
  EXPECT_EQ(name_of("_RINvC1a1bDINtC1c2FnuEp6OutputeEL_E"), "a::b::<dyn c::Fn<(), Output = str>>");
  EXPECT_EQ(name_of("_RINvC1a1bKb1_Kc61_Kan5_KpKo80000000000000000000000000000000_E"),
            "a::b::<true, 'a', -5, _, 0x80000000000000000000000000000000>");
}

TEST(RustName, HasCharactersThatAreNotAscii) {
  EXPECT_EQ(name_of("_RNvC1au10gre_6ka8i"), "");  // the size is that of more than there is
  EXPECT_EQ(name_of("_RNvC1au9gre_6ka8i"), "a::größe");
  EXPECT_EQ(name_of("_RNvC1au6ldr85b"), "a::名前");
}

TEST(RustName, IsFoundInWhatLooksLikeCPlusPlus) {
  EXPECT_EQ(name_of("_ZN3std2io5stdio6_print17h0123456789abcdefE"), "std::io::stdio::_print");
  EXPECT_EQ(name_of("_ZN42_$LT$$RF$T$u20$as$u20$core..fmt..Debug$GT$3fmt17h4819d9ec2db1a450E"),
            "<&T as core::fmt::Debug>::fmt");
  EXPECT_EQ(name_of("_ZN4core3ops8function6FnOnce40call_once$u7b$$u7b$vtable.shim$u7d$$u7d$17h42e08618e5619cfaE"),
            "core::ops::function::FnOnce::call_once{{vtable.shim}}");
  EXPECT_EQ(name_of("_ZN1a1b17h0123456789abcdefE.llvm.12"), "a::b");
  EXPECT_EQ(name_of("_ZN3abc4workEi"), "");
  EXPECT_EQ(name_of("_ZN17h0123456789abcdefE"), "");
  EXPECT_EQ(name_of("_ZN99a17h0123456789abcdefE"), "");
}

TEST(RustName, IsWhatSymbolsAreShownAs) {
  EXPECT_EQ(demangled("_RNvCs6GmmlP4bgsG_1r4main"), "r::main");
  EXPECT_EQ(demangled("_RNvCs6GmmlP4bgsG_1r9"), "_RNvCs6GmmlP4bgsG_1r9");
}

TEST(RustName, IsNoneOfWhatIsDamagedOrUnknown) {
  for (const char* text :
       {"", "_R", "_RC", "_RNv", "_RNvC1a", "_RNvC1a9b", "_RNvC1a1b?", "_RB_", "_RNvB_1a", "_RNvC1a1bs", "_RINvC1a1b",
        "_RINvC1a1bKn_E", "_RINvC1a1bKe616263_E", "_RINvC1a1bRL0_eE", "_RNvCszzzzzzzzzzzzz_1a1b"})
    EXPECT_EQ(name_of(text), "") << text;
}

TEST(RustName, TakesNoLongerForNamesThatReferToThemselves) {
  // GIVEN pairs of the pair before: of twelve bytes more each time, twice as much comes
  const auto pairs_of = [](int times) {
    std::string name = "_RINvC1a1bTuuE";
    for (std::size_t last = 8; times > 0; --times) {
      const std::size_t here = name.size() - 2;
      std::string digits;
      for (std::size_t rest = last - 1;; rest /= 62) {
        digits.insert(digits.begin(), "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[rest % 62]);
        if (rest < 62) break;
      }
      name += "TB" + digits + "_B" + digits + "_E";
      last = here;
    }
    return name + "E";
  };
  EXPECT_EQ(name_of(pairs_of(1)), "a::b::<((), ()), (((), ()), ((), ()))>");
  // THEN one that would be too long is none
  EXPECT_EQ(name_of(pairs_of(60)), "");
  // AND neither is one waited for of which nothing would be written, or that is deep, or that binds lifetimes without
  // end
  EXPECT_EQ(name_of("_RNvM" + pairs_of(60).substr(2) + "u1c"), "<()>::c");
  EXPECT_EQ(name_of("_RINvC1a1b" + std::string(100000, 'R') + "uE"), "");
  EXPECT_EQ(name_of("_RINvC1a1bFGzzzzzzz_EuE"), "");
}

}  // namespace
}  // namespace plimsoll::native
