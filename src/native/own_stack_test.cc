// Unwinds the stack of this very program, of which the compiler knows the truth. On every machine.
#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "memory/local.h"
#include "native/modules.h"
#include "native/testing.h"
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

#if defined(__x86_64__)

// Code that is made at run time, and shown to debuggers if somebody asks for that. It calls what it is given, and
// computes on after that, so that nothing but its table says where its caller is.
class MadeFunction {
 public:
  using Callback = void (*)();
  MadeFunction() {
    std::memcpy(at(0), kCode.data(), kCode.size());
    const std::string frames = section_.bytes();
    std::memcpy(at(kFrames), frames.data(), frames.size());
    sections_[1].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    sections_[1].sh_addr = address();
    sections_[1].sh_size = kCode.size();
    sections_[2].sh_name = 1;  // of kNames
    sections_[2].sh_addr = address() + kFrames;
    sections_[2].sh_size = frames.size();
    sections_[3].sh_offset = sizeof(Image::header) + sizeof(Image::sections);
    sections_[3].sh_size = sizeof kNames;
    std::memcpy(image_.header.e_ident, ELFMAG, SELFMAG);
    image_.header.e_ident[EI_CLASS] = ELFCLASS64;
    image_.header.e_ident[EI_DATA] = ELFDATA2LSB;
    image_.header.e_shentsize = sizeof(Elf64_Shdr);
    image_.header.e_shnum = 4;
    image_.header.e_shstrndx = 3;
    image_.header.e_shoff = sizeof(Image::header);
  }
  MadeFunction(const MadeFunction&) = delete;
  MadeFunction& operator=(const MadeFunction&) = delete;
  ~MadeFunction() { ::munmap(memory_, kSize); }

  void call(Callback callback) const { reinterpret_cast<void (*)(Callback)>(memory_)(callback); }
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(memory_); }
  void show();
  void hide();

 private:
  // An ELF file without bytes of its own: only what its sections are called.
  static constexpr char kNames[] = "\0.eh_frame";
  struct Image {
    Elf64_Ehdr header{};
    std::array<Elf64_Shdr, 4> sections{};
    char names[sizeof kNames] = {};
  };
  // push rbx; sub rsp, 48; call rdi; xor ebx, ebx; add rsp, 48; pop rbx; ret
  static constexpr std::array<unsigned char, 15> kCode{0x53, 0x48, 0x83, 0xec, 0x30, 0xff, 0xd7, 0x31,
                                                       0xdb, 0x48, 0x83, 0xc4, 0x30, 0x5b, 0xc3};
  static constexpr std::size_t kFrames = testing::Section::kAddress - testing::Section::kCode;
  static constexpr std::size_t kSize = kFrames + 4096;

  [[nodiscard]] char* at(std::size_t offset) const { return static_cast<char*>(memory_) + offset; }

  void* memory_ = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const testing::Section section_ =
      testing::Section()
          .common("def_cfa rsp 8; offset rip -8")
          .function(0, kCode.size(), "advance 1; cfa_offset 16; advance 4; cfa_offset 64");
  Image image_;
  std::array<Elf64_Shdr, 4>& sections_ = image_.sections;
  std::array<std::uint64_t, 4> entry_{};  // struct jit_code_entry
};

}  // namespace
}  // namespace plimsoll::native

// As any program that makes code has it.
__attribute__((used)) JitDescriptor __jit_debug_descriptor{1, 0, nullptr, nullptr};

namespace plimsoll::native {
namespace {

void MadeFunction::show() {
  std::memcpy(image_.names, kNames, sizeof kNames);
  entry_ = {0, 0, reinterpret_cast<std::uint64_t>(&image_), sizeof image_};
  __jit_debug_descriptor.first = __jit_debug_descriptor.relevant = entry_.data();
}
void MadeFunction::hide() { __jit_debug_descriptor.first = nullptr; }

TEST_F(OwnStack, GoesThroughCodeThatIsMadeAtRunTimeAsLongAsItIsShownToDebuggers) {
  // GIVEN code of no file, of which nothing is known
  MadeFunction made;
  std::int64_t now_ns = 1;
  const auto look = [&] {
    constexpr std::int64_t kLater = 1'000'000'000;
    ASSERT_TRUE(modules_.refresh(now_ns += kLater).ok());
    everything = modules_.current();
    made.call(innermost);
  };
  look();  // that there is more memory is noticed as it is met
  look();
  EXPECT_EQ(truth_.found.stop, UnwindStop::kNoTable);
  // WHEN it is shown THEN stacks lead through it
  made.show();
  look();
  EXPECT_EQ(truth_.found.stop, UnwindStop::kComplete) << text(truth_.found.stop);
  const std::uint32_t unloads = modules_.unloads();
  // AND no more when it is not
  made.hide();
  look();
  EXPECT_EQ(truth_.found.stop, UnwindStop::kNoTable);
  EXPECT_GT(modules_.unloads(), unloads);
}

#endif

}  // namespace
}  // namespace plimsoll::native
