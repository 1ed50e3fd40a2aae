// Unwinds the stack of this very program, of which the compiler knows the truth. On every machine.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "memory/local.h"
#include "native/modules.h"
#include "native/unwind.h"

namespace plimsoll::native {
namespace {

// What a function says of itself: where it returns to, and where its frame ends. The compiler knows both.
struct Known {
  std::uint64_t returns_to = 0;
  std::uint64_t cfa = 0;
};
#define NOTE_MYSELF(into)                                                         \
  (into).push_back({reinterpret_cast<std::uint64_t>(__builtin_return_address(0)), \
                    reinterpret_cast<std::uint64_t>(__builtin_dwarf_cfa())})

struct Truth {
  std::vector<Known> known;  // outermost first
  std::array<NativeFrame, 256> frames;
  Unwind found;
};
Truth* truth = nullptr;
const ModuleMap* everything = nullptr;

void on_signal(int, siginfo_t*, void* context) {
  truth->found =
      unwind(memory::LocalReader{}, *everything, registers_of(*static_cast<ucontext_t*>(context)), truth->frames);
}

[[gnu::noinline]] void innermost() {
  NOTE_MYSELF(truth->known);
  ::raise(SIGUSR1);
  asm volatile("" ::: "memory");
}
[[gnu::noinline]] void with_alloca(std::size_t size) {
  NOTE_MYSELF(truth->known);
  auto* room = static_cast<volatile char*>(__builtin_alloca(size));
  room[0] = 1;
  innermost();
  room[size - 1] = 1;
}
[[gnu::noinline]] void with_aligned_frame(int depth) {
  NOTE_MYSELF(truth->known);
  alignas(128) volatile char room[256];
  room[depth] = 1;
  if (depth > 0)
    with_aligned_frame(depth - 1);
  else
    with_alloca(1000 + static_cast<std::size_t>(room[depth]));
  room[depth] = 2;
}
int compare_once(const void*, const void*) {
  if (truth->found.count == 0 && truth->known.size() < 100) {
    NOTE_MYSELF(truth->known);
    with_aligned_frame(3);
  }
  return 0;
}
[[gnu::noinline]] void through_the_c_library() {
  NOTE_MYSELF(truth->known);
  int two[2] = {1, 2};
  ::qsort(two, 2, sizeof two[0], compare_once);
  asm volatile("" ::: "memory");
}

class OwnStack : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kCanUnwind) GTEST_SKIP() << "machine code is not unwound here";
    ASSERT_TRUE(memory::FaultGuard::ensure_installed().ok());
    ASSERT_TRUE(modules_.refresh(1).ok());
    truth_.known.reserve(64);  // handlers add to it
    truth = &truth_;
    everything = modules_.current();
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO;
    ASSERT_EQ(::sigaction(SIGUSR1, &action, &before_), 0);
  }
  void TearDown() override { ::sigaction(SIGUSR1, &before_, nullptr); }

  // Each known frame is among those found, with the same end, and called from where it says.
  void expect_all_known() const {
    EXPECT_EQ(truth_.found.stop, UnwindStop::kComplete) << text(truth_.found.stop);
    std::size_t at = 0;
    for (auto known = truth_.known.rbegin(); known != truth_.known.rend(); ++known) {
      while (at < truth_.found.count && raw(truth_.frames[at].cfa) != known->cfa) ++at;
      ASSERT_LT(at + 1, truth_.found.count) << "a frame is missing";
      EXPECT_EQ(raw(truth_.frames[at + 1].instruction), known->returns_to - 1);
    }
  }

  Modules modules_;
  Truth truth_;

 private:
  struct sigaction before_ {};
};

TEST_F(OwnStack, HasTheFramesThatTheCompilerMade) {
  through_the_c_library();
  ASSERT_EQ(truth_.known.size(), 8U);
  expect_all_known();
}

TEST_F(OwnStack, IsUnwoundToWhereAThreadBegan) {
  pthread_t thread{};
  ASSERT_EQ(::pthread_create(
                &thread, nullptr, [](void*) -> void* { return through_the_c_library(), nullptr; }, nullptr),
            0);
  ::pthread_join(thread, nullptr);
  expect_all_known();
}

// A handler of the program's own, in which the tick comes.
void on_outer_signal(int) { innermost(); }

TEST_F(OwnStack, GoesThroughTheFramesOfSignals) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer calls handlers itself, with signals as it wants them";
#endif
  struct sigaction before {};
  struct sigaction action {};
  action.sa_handler = on_outer_signal;
  ASSERT_EQ(::sigaction(SIGUSR2, &action, &before), 0);
  NOTE_MYSELF(truth_.known);
  ::raise(SIGUSR2);
  ::sigaction(SIGUSR2, &before, nullptr);
  expect_all_known();
}

TEST_F(OwnStack, NoticesWhatIsLoadedLater) {
  // GIVEN a library that was not there, and whose functions have no rule
  void* library = ::dlopen("libcrypt.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) GTEST_SKIP() << "no libcrypt here";
  const auto function = reinterpret_cast<std::uint64_t>(::dlsym(library, "crypt"));
  const std::size_t ranges = modules_.current()->ranges().size();
  EXPECT_EQ(modules_.current()->rule_at(function), Rule::cannot(UnwindStop::kNoModule));
  // WHEN the dynamic linker's list is looked at THEN they have, and when it is unloaded they have none
  ASSERT_TRUE(modules_.refresh(2).ok());
  EXPECT_EQ(modules_.current()->rule_at(function).kind, Rule::Kind::kRegister);
  EXPECT_GT(modules_.current()->ranges().size(), ranges);
  EXPECT_EQ(::dlclose(library), 0);
  ASSERT_TRUE(modules_.refresh(3).ok());
  EXPECT_EQ(modules_.current()->rule_at(function), Rule::cannot(UnwindStop::kNoModule));
  // AND what was sampled before still has its file
  ASSERT_NE(modules_.find(Address{function}, 2), nullptr);
  EXPECT_TRUE(modules_.has_retired());
  modules_.free_retired();
  EXPECT_FALSE(modules_.has_retired());
}

}  // namespace
}  // namespace plimsoll::native
