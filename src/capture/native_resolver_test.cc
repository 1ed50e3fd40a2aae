#include "capture/native_resolver.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "native/library_testing.h"

namespace plimsoll::capture {
namespace {

constexpr std::int64_t kLater = 1'000'000'000;

class NativeNames : public native::testing::ReloadedLibrary {
 protected:
  CodeId function_at(std::int64_t time_ns) {
    const std::optional<SampleFrame> frame = names_.frame_at(address(), time_ns);
    return frame ? frame->code : CodeId{};
  }

  const cpython::Layout layout_{};
  CodeRegistry registry_{layout_, CodeRegistry::Source::kTaught};
  native::Modules modules_{os::Pid{::getpid()}};
  NativeResolver names_{modules_, registry_};
};

TEST_F(NativeNames, OfALibraryThatIsLoadedAgainAreKnownAlready) {
  // GIVEN a library whose code has been met, and that was unloaded
  load('a');
  ASSERT_TRUE(modules_.refresh(kLater).ok());
  const CodeId function = function_at(kLater);
  unload();
  ASSERT_TRUE(modules_.refresh(2 * kLater).ok());
  // WHEN it is loaded again
  load('a');
  ASSERT_TRUE(modules_.refresh(3 * kLater).ok());
  // THEN its functions are the same
  EXPECT_FALSE(function.is_none());
  EXPECT_EQ(function_at(3 * kLater), function);
}

TEST_F(NativeNames, OfALibraryThatWasWrittenAnewAreItsOwn) {
  load('a');
  ASSERT_TRUE(modules_.refresh(kLater).ok());
  const CodeId function = function_at(kLater);
  load('b');
  ASSERT_TRUE(modules_.refresh(2 * kLater).ok());
  // (also if a sample from before comes late)
  EXPECT_EQ(function_at(kLater), function);
  EXPECT_NE(function_at(2 * kLater), function);
}

// Code that a JIT has made in memory that is shared, to which the kernel gives the name of a file, and what it is
// called.
class SharedCode {
 public:
  explicit SharedCode(const std::string& name) {
    std::ofstream(map_) << std::hex << raw(address()) << " 40 " << name << std::endl;
  }
  SharedCode(const SharedCode&) = delete;
  SharedCode& operator=(const SharedCode&) = delete;
  ~SharedCode() {
    ::unlink(map_.c_str());
    ::munmap(start_, kSize);
  }
  [[nodiscard]] Address address() const { return Address{reinterpret_cast<std::uint64_t>(start_)}; }

 private:
  static constexpr std::size_t kSize = native::testing::kPage;
  const std::string map_ = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  void* const start_ = ::mmap(nullptr, kSize, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
};

TEST_F(NativeNames, OfCodeThatIsMadeInSharedMemoryAreThoseOfItsMaker) {
  const SharedCode code("made at run time");
  ASSERT_TRUE(modules_.refresh(kLater).ok());
  const std::optional<SampleFrame> named = names_.frame_at(offset_by(code.address(), 0x10), kLater);
  const std::optional<SampleFrame> other = names_.frame_at(offset_by(code.address(), 0x50), kLater);
  ASSERT_TRUE(named && other);
  EXPECT_EQ(names_.function(named->code).name, "made at run time");
  EXPECT_EQ(names_.function(named->code).file, "[jit]");
  // What it has not told of is in that file, as ever.
  EXPECT_TRUE(names_.function(other->code).file.starts_with("/dev/zero")) << names_.function(other->code).file;
}

TEST(Trampolines, AreTheOnesThatCPythonNames) {
  for (const char* theirs : {"py::work:/app/a.py", "py::A.<locals>.f:<string>", "py::<module>:relative.py"})
    EXPECT_TRUE(is_trampoline(theirs)) << theirs;
  for (const char* others : {"py::work(long)", "py::detail::work(int)", "work:/app/a.py", "py::", ""})
    EXPECT_FALSE(is_trampoline(others)) << others;
}

}  // namespace
}  // namespace plimsoll::capture
