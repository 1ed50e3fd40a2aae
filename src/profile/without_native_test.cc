#include "profile/without_native.h"

#include <gtest/gtest.h>

#include "profile/testing.h"

namespace plimsoll::profile {
namespace {

// The stacks of a drawn profile, one a line, without native frames.
std::vector<std::string> without_native(std::string_view drawing) {
  Profile profile = testing::draw_profile(drawing);
  leave_out_native(profile);
  return testing::stacks_of(profile);
}

TEST(WithoutNative, TimeIsTheCallers) {
  EXPECT_EQ(without_native("!_start;main;!PyEval;work;!memcpy  1\n"
                           "!_start;main;!PyEval;work;inner  1\n"
                           "!_start  1\n"
                           "-  1"),
            (std::vector<std::string>{"main;work", "main;work;inner", "", ""}));
}

TEST(WithoutNative, LeavesOtherStacksAsTheyAre) {
  const std::string_view drawing = "main;work  1\nmain;[gc]  1";
  Profile profile = testing::draw_profile(drawing);
  const std::size_t stacks = profile.stacks.size();
  leave_out_native(profile);
  EXPECT_EQ(profile.stacks.size(), stacks);
  EXPECT_EQ(without_native(drawing), (std::vector<std::string>{"main;work", "main;[gc]"}));
}

// The stacks of a drawn profile, one a line, with native frames folded; Python itself is the file "python".
std::vector<std::string> folded(std::string_view drawing) {
  Profile profile = testing::draw_profile(drawing);
  fold_native(profile, "python");
  return testing::stacks_of(profile);
}

TEST(FoldNative, LeavesWhereALibraryWasEntered) {
  EXPECT_EQ(folded("main;!digest(hash.so:0);!update(hash.so:0);!sha256(crypto.so:0);!block(crypto.so:0)  1"),
            (std::vector<std::string>{"main;digest;sha256"}));
}

TEST(FoldNative, GivesTheInterpretersOwnToPython) {
  EXPECT_EQ(folded("main;!vectorcall(python:0);!sort(python:0);key  1\n"
                   "main;!vectorcall(python:0);!sort(python:0)  1\n"
                   "main;!vectorcall(python:0);!sort(python:0);!memcpy(libc.so:0)  1"),
            (std::vector<std::string>{"main;key", "main", "main;memcpy"}));
}

TEST(FoldNative, LeavesOutWhatCalledPythonFirst) {
  EXPECT_EQ(folded("!start(libc.so:0);!main(python:0);main;work  1"), (std::vector<std::string>{"main;work"}));
}

TEST(FoldNative, KeepsThreadsWithoutPython) {
  EXPECT_EQ(folded("!start_thread(libc.so:0);!worker(blas.so:0);!gemm(blas.so:0)  1"),
            (std::vector<std::string>{"start_thread;worker"}));
}

TEST(FoldNative, TellsTwoVisitsToALibraryApart) {
  EXPECT_EQ(folded("main;!qsort(libc.so:0);!closure(ffi.so:0);compare;!qsort(libc.so:0)  1"),
            (std::vector<std::string>{"main;qsort;closure;compare;qsort"}));
}

}  // namespace
}  // namespace plimsoll::profile
