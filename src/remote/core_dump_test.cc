// remote/core_dump_test.cc: stacks of a core file that is drawn byte by byte, of a Python 3.11.
#include "remote/core_dump.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/directory_testing.h"
#include "remote/core_testing.h"

namespace plimsoll::remote {
namespace {

constexpr std::uint64_t kBase = 0x10000, kRuntime = 0x200, kVersion = 0x180, kCodeType = 0x400, kInterpreter = 0x800,
                        kThread = 0x1000, kFrame = 0x1400, kCode = 0x1600, kText = 0x1800, kTable = 0x1900;
constexpr std::int32_t kPid = 77;

// The interpreter's memory: a thread in one frame.
class DrawnMemory {
 public:
  DrawnMemory() {
    const cpython::Layout layout = cpython::layout_from_table({3, 11, 7}).value();
    put(kVersion, std::uint32_t{0x030b07f0});
    put(kRuntime + layout.runtime.interpreters, kBase + kInterpreter);
    put(kInterpreter + layout.runtime.threads, kBase + kThread);
    put(kThread + layout.tstate.native_thread_id, std::uint64_t{kPid});
    put(kThread + layout.tstate.current_frame, kBase + kThread + layout.tstate.root_entry);
    put(kThread + layout.tstate.root_entry + layout.cframe.current_frame, kBase + kFrame);
    put(kFrame + layout.frame.executable, kBase + kCode);
    put(kFrame + layout.frame.position, kBase + kCode + layout.code.bytecode);
    put(kCode + layout.object.type, kBase + kCodeType);
    put(kCode + layout.object.var_size, std::uint64_t{4});
    put(kCode + layout.code.first_line, std::uint32_t{12});
    for (const std::uint32_t field : {layout.code.filename, layout.code.qualname}) put(kCode + field, kBase + kText);
    put(kCode + layout.code.line_table, kBase + kTable);
    constexpr std::uint32_t kAscii = (1U | 8U | 16U);  // one byte, compact, ASCII
    put(kText + layout.unicode.length, std::uint64_t{3});
    put(kText + layout.unicode.state, kAscii << layout.unicode.kind_shift);
    bytes_.replace(kText + layout.unicode.ascii_size, 3, "tea");
  }
  template <typename Word>
  void put(std::uint64_t at, Word word) {
    std::memcpy(bytes_.data() + at, &word, sizeof word);
  }
  [[nodiscard]] std::string with_headers_of(const std::string& program) const {
    std::string out = bytes_;
    return out.replace(0, sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr), program, 0, sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr));
  }

 private:
  std::string bytes_ = std::string(0x2000, '\0');
};

// A core file and the program that it names, of which `here` is what is found at its path.
Result<CoreFile> open(const DrawnMemory& memory, const std::string& ran, const std::string& here,
                      std::size_t cut_off = 0) {
  std::string core = testing::drawn_core("/opt/python", kBase, memory.with_headers_of(ran), kPid, 11);
  core.resize(core.size() - cut_off);
  const UniqueFd file = testing::hidden_file(core);
  return open_core_file(testing::path_of(file), "", [&](const std::string& path) {
    return path == "/opt/python" && !here.empty() ? testing::hidden_file(here) : UniqueFd();
  });
}

std::string interpreter() {
  return testing::drawn_program({{"_PyRuntime", kRuntime}, {"PyCode_Type", kCodeType}, {"Py_Version", kVersion}});
}

TEST(CoreDump, HasTheFramesOfItsThreadsAndTheSignal) {
  // GIVEN a core file of a thread in a function
  const Result<CoreFile> core = open(DrawnMemory(), interpreter(), interpreter());
  ASSERT_TRUE(core.ok()) << core.error().message;
  // WHEN it is looked at
  const Result<Dump> dump = take_core_dump(core.value(), {NativeFrames::kNo, cpython::ValueLimits()});
  // THEN it is known which Python it is, where its thread stood, and what ended it
  ASSERT_TRUE(dump.ok());
  EXPECT_EQ(dump.value().version.text(), "3.11.7");
  EXPECT_EQ(dump.value().command, "python app.py");
  ASSERT_EQ(dump.value().threads.size(), 1U);
  const DumpedThread& thread = dump.value().threads[0];
  EXPECT_EQ(thread.task.tid, Tid{kPid});
  EXPECT_EQ(thread.signal, 11);
  EXPECT_TRUE(thread.has_python);
  ASSERT_EQ(thread.frames.size(), 1U);
  EXPECT_EQ(thread.frames[0].function, "tea");
  EXPECT_TRUE(thread.frames[0].locals.variables.empty());
}

TEST(CoreDump, AStackThatIsDamagedIsSaidToBe) {
  // GIVEN a frame that leads nowhere
  DrawnMemory memory;
  memory.put(kFrame + cpython::layout_from_table({3, 11, 7}).value().frame.executable, std::uint64_t{0xdead0000});
  const Result<CoreFile> core = open(memory, interpreter(), interpreter());
  ASSERT_TRUE(core.ok());
  // THEN there is a problem, and no frame
  const DumpedThread thread = take_core_dump(core.value()).value().threads[0];
  EXPECT_EQ(thread.problem, "its innermost frame is missing: it was not made yet, or is damaged");
  EXPECT_TRUE(thread.frames.empty());
}

TEST(CoreDump, WhatACutFileLacksIsNotKnown) {
  // GIVEN a core file that ends in front of the interpreter's list of threads
  const Result<CoreFile> core = open(DrawnMemory(), interpreter(), interpreter(), 0x2000 - kInterpreter);
  ASSERT_TRUE(core.ok());
  // WHEN it is looked at
  const Dump dump = take_core_dump(core.value()).value();
  // THEN it is said how much is missing, and not that the thread runs no Python
  EXPECT_EQ(dump.missing_bytes, 0x2000 - kInterpreter);
  ASSERT_EQ(dump.threads.size(), 1U);
  EXPECT_NE(dump.threads[0].problem.find("is not known"), std::string::npos);
}

// Files in a directory that anybody may enter, of which others may read only some.
class FilesOfACore : public plimsoll::testing::DirectoryTest {
 protected:
  void SetUp() override {
    DirectoryTest::SetUp();
    if (::geteuid() != 0) GTEST_SKIP() << "only root may read what others may not";
    ASSERT_EQ(::chmod(directory_.c_str(), 0755), 0);
    std::ofstream(path("python")) << interpreter();
    for (const char* name : {"secret.py", "public.py"}) std::ofstream(path(name)) << name;
    ASSERT_EQ(::chmod(path("secret.py").c_str(), 0600), 0);
  }
  // The core file is its owner's, and says that the process was that user's.
  [[nodiscard]] bool shows(const char* name, unsigned owner, unsigned user) const {
    const std::string bytes =
        testing::drawn_core(path("python"), kBase, DrawnMemory().with_headers_of(interpreter()), kPid, 11, user);
    const UniqueFd file = testing::hidden_file(bytes);
    EXPECT_EQ(::fchown(file.get(), owner, owner), 0);
    const Result<CoreFile> core = open_core_file(testing::path_of(file), "");
    EXPECT_TRUE(core.ok()) << core.error().message;
    return core.ok() && core.value().open(path(name)).is_open();
  }
};

TEST_F(FilesOfACore, AreThoseThatItsProcessAndItsOwnerMayRead) {
  constexpr unsigned kStranger = 65534;
  EXPECT_TRUE(shows("secret.py", 0, 0));
  EXPECT_FALSE(shows("secret.py", 0, kStranger));
  EXPECT_FALSE(shows("secret.py", kStranger, 0));
  EXPECT_TRUE(shows("public.py", kStranger, kStranger));
  EXPECT_FALSE(shows("no_such.py", 0, 0));
}

TEST(CoreDump, AnotherBuildOfTheProgramIsNotTakenForIt) {
  const std::string other = testing::drawn_program({{"_PyRuntime", kRuntime}, {"x", 1}});
  const Result<CoreFile> core = open(DrawnMemory(), interpreter(), other);
  ASSERT_FALSE(core.ok());
  EXPECT_EQ(core.error().message,
            "/opt/python is not the file that ran, but another build: --exe PYTHON says where that one is");
}

TEST(CoreDump, AProgramThatIsGoneIsNamed) {
  const Result<CoreFile> core = open(DrawnMemory(), interpreter(), "");
  ASSERT_FALSE(core.ok());
  EXPECT_NE(core.error().message.find("is not where it was, /opt/python: --exe PYTHON"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::remote
