#include "alloc/imports.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

namespace plimsoll::alloc {
namespace {

std::atomic<int> calls{0};

void* counted_malloc(std::size_t size) {
  ++calls;
  return std::malloc(size);
}

// Lets the C++ library, a module that imports malloc, call it.
int calls_of_library() {
  calls = 0;
  ::operator delete(::operator new(100));
  return calls;
}

class Imports : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer's operator new does not turn to malloc";
#endif
  }
};

TEST_F(Imports, AreReplacedAndPutBack) {
  const Import imports[] = {{"malloc", reinterpret_cast<void*>(&counted_malloc), imported_function("malloc")},
                            {"no_such_function_at_all", reinterpret_cast<void*>(&counted_malloc), nullptr}};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(calls_of_library(), 0);
    const PatchCounts patched = patch_imports(imports, modules_loaded());
    EXPECT_GE(patched.words, 1U);
    EXPECT_EQ(patched.failures, 0U);
    // WHEN the library allocates THEN it is by ours, once
    EXPECT_EQ(calls_of_library(), 1);
    // WHEN it is done again THEN there is nothing left to do
    EXPECT_EQ(patch_imports(imports, modules_loaded()).words, 0U);
    // AND what was replaced is put back
    EXPECT_EQ(restore_imports(imports).words, patched.words);
    EXPECT_EQ(restore_imports(imports).words, 0U);
  }
  EXPECT_EQ(calls_of_library(), 0);
}

TEST_F(Imports, OfAModuleWithAnotherFunctionOfThatNameAreLeftAlone) {
  // GIVEN a library that has called malloc (what has not cannot be told from others), and that the program's malloc is
  // thought to be another
  EXPECT_EQ(calls_of_library(), 0);
  const Import imports[] = {{"malloc", reinterpret_cast<void*>(&counted_malloc), imported_function("qsort")}};
  // WHEN it is replaced THEN not where it would be called with another's blocks
  patch_imports(imports, modules_loaded());
  EXPECT_EQ(calls_of_library(), 0);
}

TEST_F(Imports, AreLeftAloneIfAModuleHasComeThatTheLinkerMayBeBusyWith) {
  const Import imports[] = {{"malloc", reinterpret_cast<void*>(&counted_malloc), imported_function("malloc")}};
  const PatchCounts patched = patch_imports(imports, modules_loaded() - 1);
  EXPECT_FALSE(patched.is_whole);
  EXPECT_EQ(patched.words, 0U);
  EXPECT_EQ(calls_of_library(), 0);
}

TEST_F(Imports, OurOwnModuleIsLeftAlone) {
  const Import imports[] = {{"malloc", reinterpret_cast<void*>(&counted_malloc), imported_function("malloc")}};
  patch_imports(imports, modules_loaded());
  calls = 0;
  std::free(std::malloc(100));
  restore_imports(imports);
  EXPECT_EQ(calls, 0);
}

TEST_F(Imports, AreReplacedWhileAnotherThreadLoadsModules) {
  // GIVEN a thread that loads a module of the C library's and unloads it, over and over
  constexpr unsigned kHangSeconds = 120;
  ::alarm(kHangSeconds);  // two threads that wait for each other's locks end the test
  std::atomic<bool> is_over{false};
  std::atomic<int> loads{0};
  std::thread loader([&] {
    for (; !is_over; ++loads)
      if (void* module = ::dlopen("libanl.so.1", RTLD_NOW)) ::dlclose(module);
  });
  // WHEN imports are replaced and put back meanwhile THEN neither waits for the other for ever
  const Import imports[] = {{"malloc", reinterpret_cast<void*>(&counted_malloc), imported_function("malloc")}};
  for (int i = 0; i < 3000 || loads < 10; ++i) {
    patch_imports(imports, modules_loaded());
    restore_imports(imports);
    std::this_thread::yield();  // the linker's lock goes to whoever comes first, and the other thread may have no CPU
  }
  is_over = true;
  loader.join();
  ::alarm(0);
  EXPECT_EQ(calls_of_library(), 0);
}

}  // namespace
}  // namespace plimsoll::alloc
