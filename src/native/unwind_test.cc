#include "native/unwind.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "memory/fake.h"
#include "memory/local.h"
#include "native/modules.h"
#include "native/testing.h"

namespace plimsoll::native {
namespace {

using testing::functions;
using testing::Section;

constexpr std::uint64_t kStack = 0x7000;

// A program of one drawn module, and a stack.
class Drawing {
 public:
  explicit Drawing(const Section& section) {
    auto module = std::make_shared<Module>();
    module->first.start = Section::kCode;
    module->end = Section::kCode + Section::kCodeSize;
    module->table = section.compile(pool_);
    modules_ = std::make_unique<ModuleMap>(
        std::vector<CodeRange>{{module->first.start, module->end, module}, {0x900000, 0x901000, nullptr}}, pool_);
  }
  // A word at an offset of the stack.
  Drawing& word(std::uint64_t offset, std::uint64_t value) {
    memory_.put(Address{kStack + offset}, value);
    return *this;
  }
  Drawing& code(std::uint64_t offset, std::uint64_t value) { return word(offset, Section::kCode + value); }

  // Unwinds from an offset of the code, with rsp at the stack's beginning.
  Unwind from(std::uint64_t offset, std::uint64_t frame_pointer = 0) {
    Registers registers;
    registers.pc = Section::kCode + offset;
    registers.value[kStackPointer] = kStack;
    registers.value[kFramePointer] = frame_pointer;
    const Unwind result = unwind(memory_, *modules_, registers, std::span(out_).first(limit), known);
    frames.clear();
    for (const NativeFrame& frame : std::span(out_).first(result.count))
      frames.emplace_back(raw(frame.instruction) - Section::kCode, is_null(frame.cfa) ? 0 : raw(frame.cfa) - kStack);
    return result;
  }

  std::size_t limit = 8;
  Known known = Known::kAll;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> frames;  // offsets of code, of the stack

 private:
  RulePool pool_;
  std::unique_ptr<ModuleMap> modules_;
  memory::FakeMemory memory_;
  std::array<NativeFrame, 8> out_;
};

using Frames = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

TEST(Unwind, GoesFromAFrameToItsCallerToTheThreadsBeginning) {
  Drawing drawing(functions());
  // GIVEN a leaf, called by a function with 32 bytes of its own, called by one with a frame pointer at 96
  drawing.code(0, 0x108).code(40, 0x208).code(104, 0x305).word(96, 0);
  // WHEN it is unwound THEN each frame is there, with the call that it is in, and with where its part of the stack ends
  EXPECT_EQ(drawing.from(0x4, kStack + 96).stop, UnwindStop::kComplete);
  EXPECT_EQ(drawing.frames, (Frames{{0x4, 8}, {0x107, 48}, {0x207, 112}, {0x304, 0}}));
}

TEST(Unwind, BelievesAReturnAddressToBeOfTheCallBeforeIt) {
  Drawing drawing(functions());
  // GIVEN a call that is the last instruction of its function: it would return to where the next one begins
  drawing.code(0, 0x310);
  EXPECT_EQ(drawing.from(0x4).stop, UnwindStop::kComplete);
  EXPECT_EQ(drawing.frames, (Frames{{0x4, 8}, {0x30f, 0}}));
}

TEST(Unwind, FindsASavedFramePointerBesideTheStackPointer) {
  Drawing drawing(functions());
  // GIVEN a function that keeps rbp at rsp + 16, whose caller needs it
  drawing.word(16, kStack + 96).code(24, 0x208).code(104, 0x305).word(96, 0);
  EXPECT_EQ(drawing.from(0x604, 1).stop, UnwindStop::kComplete);
  EXPECT_EQ(drawing.frames, (Frames{{0x604, 32}, {0x207, 112}, {0x304, 0}}));
}

TEST(Unwind, DoesWithThePlaceAloneUntilAFramePointerIsNeededThatNobodySaved) {
  // GIVEN a function with a frame pointer, called by a thread's first
  Drawing saved(functions());
  saved.known = Known::kPlaceOnly;
  saved.word(16, kStack + 96).code(24, 0x208).code(104, 0x305).word(96, 0);
  // WHEN what it has called saved the frame pointer THEN the way out is known
  EXPECT_EQ(saved.from(0x604, 1).stop, UnwindStop::kComplete);
  EXPECT_EQ(saved.frames, (Frames{{0x604, 32}, {0x207, 112}, {0x304, 0}}));
  // AND if it did not, what happens to be in the register is not believed
  Drawing lost(functions());
  lost.known = Known::kPlaceOnly;
  lost.code(0, 0x208).code(104, 0x305).word(96, 0);
  EXPECT_EQ(lost.from(0x4, kStack + 96).stop, UnwindStop::kRegister);
  EXPECT_EQ(lost.frames, (Frames{{0x4, 8}, {0x207, 0}}));
  EXPECT_EQ(lost.from(0x504).stop, UnwindStop::kRegister);
}

TEST(Unwind, SaysWhereNoRuleIs) {
  Drawing drawing(functions());
  drawing.code(0, 0x408);
  EXPECT_EQ(drawing.from(0x4).stop, UnwindStop::kNoRule);
  EXPECT_EQ(drawing.frames, (Frames{{0x4, 8}, {0x407, 0}}));
}

TEST(Unwind, MakesNoFrameOfAnAddressThatIsNoCode) {
  Drawing drawing(functions());
  drawing.word(0, 0xdead0000);
  EXPECT_EQ(drawing.from(0x4).stop, UnwindStop::kNoModule);
  EXPECT_EQ(drawing.frames, (Frames{{0x4, 8}}));
}

TEST(Unwind, KeepsAFrameOfCodeThatIsOfNoFile) {
  Drawing drawing(functions());
  drawing.word(0, 0x900010);
  EXPECT_EQ(drawing.from(0x4).stop, UnwindStop::kNoTable);
  EXPECT_EQ(drawing.frames, (Frames{{0x4, 8}, {0x90000f - Section::kCode, 0}}));
}

TEST(Unwind, NeedsARegisterThatOnlyTheInnermostFrameHas) {
  Drawing drawing(functions());
  drawing.code(0, 0x508);
  EXPECT_EQ(drawing.from(0x4).stop, UnwindStop::kRegister);
}

TEST(Unwind, EndsWhereTheStackCannotBeRead) {
  Drawing drawing(functions());
  EXPECT_EQ(drawing.from(0x4).stop, UnwindStop::kUnreadable);
  EXPECT_EQ(drawing.frames, (Frames{{0x4, 0}}));
}

TEST(Unwind, EndsWhereFramesDoNotLeadOutwards) {
  Drawing drawing(functions());
  // GIVEN a frame pointer that points below the stack pointer
  drawing.code(0, 0x208);
  EXPECT_EQ(drawing.from(0x4, kStack - 64).stop, UnwindStop::kStuck);
}

TEST(Unwind, EndsWhenThereIsNoMoreRoom) {
  Drawing drawing(functions());
  for (std::uint64_t offset = 0; offset < 64; offset += 8) drawing.code(offset, 0x4);
  drawing.limit = 3;
  EXPECT_EQ(drawing.from(0x4).stop, UnwindStop::kTruncated);
  EXPECT_EQ(drawing.frames.size(), 3U);
}

// ---- the machine's own stack ----

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
    if (!kCanUnwind) GTEST_SKIP() << "machine code is unwound on x86-64 only";
    ASSERT_TRUE(memory::FaultGuard::ensure_installed().ok());
    ASSERT_TRUE(modules_.refresh(1).ok());
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

TEST(PlainStep, IsTheSameAsItsRuleWhereItIsPlain) {
  int plain = 0;
  for (const std::uint8_t base : {kStackPointer, kFramePointer, std::uint8_t{3}})
    for (const std::int32_t offset : {-8, 0, 4, 8, 16, 4096, 65528, 65536})
      for (const auto saved :
           {Rule::Saved::kSame, Rule::Saved::kAtCfa, Rule::Saved::kAtStackPointer, Rule::Saved::kLost})
        for (const std::int32_t place : {-16, -8, -12, 8, -65528, -65536, 0}) {
          Rule rule;
          rule.kind = Rule::Kind::kRegister;
          rule.base = base;
          rule.offset = offset;
          rule.frame_pointer = saved;
          rule.frame_pointer_offset = place;
          const PlainStep step(rule, 77);
          EXPECT_FALSE(step.is_none());
          EXPECT_LT(step.bits(), 1U << PlainStep::kBits);
          if (!step.is_plain()) continue;
          ++plain;
          EXPECT_EQ(step.is_by_frame_pointer(), base == kFramePointer);
          EXPECT_EQ(step.offset(), static_cast<std::uint64_t>(offset));
          EXPECT_EQ(step.saved(), saved == Rule::Saved::kSame ? 0U : static_cast<std::uint64_t>(-place));
        }
  // By two registers, at four distances, and the frame pointer in its register (7 rows) or at one of three places.
  EXPECT_EQ(plain, 2 * 4 * (7 + 3));
}

TEST(PlainStep, NamesTheRuleWhereItIsNot) {
  const PlainStep step(Rule::cannot(UnwindStop::kNoRule), 65535);
  EXPECT_FALSE(step.is_plain() || step.is_none());
  EXPECT_FALSE(PlainStep(Rule::cannot(UnwindStop::kNoModule), 0).is_none());
  EXPECT_TRUE(PlainStep().is_none());
}

}  // namespace
}  // namespace plimsoll::native
