// cli/render_dump_test.cc: stacks of a process as they are shown.
#include "cli/render_dump.h"

#include <gtest/gtest.h>

namespace plimsoll::cli {
namespace {

using remote::DumpedThread;

remote::Dump sample() {
  remote::Dump dump{os::Pid{42}, {3, 13, 2}, "python app.py", "/home/me", {}};
  DumpedThread main;
  main.task = {Tid{42}, Tid{42}, "python", 'R'};
  main.activity = Activity::kRunning;
  main.has_python = main.holds_gil = true;
  main.frames = {{"parse", "/home/me/app.py", {2, 5}}, {"<module>", "/home/me/app.py", {9, 1}}};
  DumpedThread lost = main;
  lost.task = {Tid{43}, Tid{43}, "wor\x1bker", 'T'};
  lost.state = DumpedThread::State::kStopped;
  lost.frames.clear();
  lost.holds_gil = false;
  lost.problem = "it runs on too fast for its stack to be read";
  DumpedThread native;
  native.task = {Tid{44}, Tid{44}, "io", 'S'};
  native.activity = Activity::kIo;
  dump.threads = {main, lost, native};
  return dump;
}

const SourceText& source(std::string_view file) {
  static const SourceText text{SourceOrigin::kDisk, {"def parse():", "    return 1"}};
  static const SourceText none;
  return file == "/home/me/app.py" ? text : none;
}

TEST(RenderDump, ShowsEveryThreadWithItsFramesAndTheirLines) {
  EXPECT_EQ("\n" + render_dump(sample(), source, Page{100, Paint(false), "/home/me"}), R"(
process 42: python app.py
Python 3.13.2, 3 threads; innermost frames first

thread 42 "python": running, holds the GIL
    parse  app.py:2
        return 1
    <module>  app.py:9

thread 43 "wor␛ker": stopped
    it runs on too fast for its stack to be read

thread 44 "io": waiting for input or output
    no Python thread
)");
}

TEST(RenderDump, CountsAThreadOfSeveralInterpretersOnce) {
  // GIVEN a thread that has come into a subinterpreter
  remote::Dump dump = sample();
  dump.threads.push_back(dump.threads[0]);
  dump.threads.back().interpreter = 1;
  // WHEN it is shown THEN it is there with both, and one of three
  const std::string text = render_dump(dump, source, Page{100, Paint(false), "/home/me"});
  EXPECT_NE(text.find("3 threads"), std::string::npos) << text;
  EXPECT_NE(text.find("holds the GIL, interpreter 1"), std::string::npos) << text;
}

TEST(RenderDump, SaysTheSameAsJson) {
  EXPECT_EQ(dump_json(sample(), source),
            R"({"schema":1,"plimsoll":")" PLIMSOLL_VERSION
            R"(","pid":42,"python":"3.13.2","command":"python app.py","threads":[)"
            R"({"tid":42,"name":"python","state":"running","python":true,"holds_gil":true,"truncated":false,"frames":[)"
            R"({"function":"parse","file":"/home/me/app.py","line":2,"column":5,"source":"return 1"},)"
            R"({"function":"<module>","file":"/home/me/app.py","line":9,"column":1}]},)"
            R"({"tid":43,"name":"wor\u001bker","state":"stopped","python":true,"holds_gil":false,)"
            R"("problem":"it runs on too fast for its stack to be read","truncated":false,"frames":[]},)"
            R"({"tid":44,"name":"io","state":"io","python":false,"holds_gil":false,"truncated":false,"frames":[]}]})"
            "\n");
}

// A thread that runs a hub: two of its greenlets wait at one place, one has not begun.
remote::Dump greenlets_sample() {
  using State = remote::DumpedGreenlet::State;
  remote::Dump dump = sample();
  dump.threads.resize(1);
  const std::vector<remote::DumpedFrame> main = {{"<module>", "/home/me/app.py", {9, 1}}};
  const std::vector<remote::DumpedFrame> parse = {{"parse", "/home/me/app.py", {2, 5}}};
  const std::string worker = "app.Worker";
  dump.greenlets.emplace();
  dump.greenlets->greenlets = {{Address{0x7f10}, "greenlet.greenlet", "", State::kSuspended, true, Tid{42}, {}, main},
                               {Address{0x7f20}, "gevent.hub.Hub", "", State::kRunning, false, Tid{42}, 0, {}},
                               {Address{0x7f30}, worker, "a\x1b", State::kSuspended, false, Tid{42}, 1, parse},
                               {Address{0x7f40}, worker, "", State::kSuspended, false, Tid{42}, 1, {}},
                               {Address{0x7f50}, worker, "c", State::kSuspended, false, Tid{42}, 1, parse},
                               {Address{0x7f60}, worker, "", State::kNew, false, {}, {}, {}}};
  dump.greenlets->problem = "1 greenlet left out: they ran on while they were read";
  return dump;
}

TEST(RenderDump, ShowsGreenletsThatWaitAtOnePlaceTogether) {
  const std::string text = render_dump(greenlets_sample(), source, Page{100, Paint(false), "/home/me"});
  EXPECT_NE(text.find("1 thread, 6 greenlets; innermost frames first\n"), std::string::npos);
  EXPECT_EQ(text.substr(text.find("\nmain greenlet")), R"(
main greenlet 0x7f10: suspended, of thread 42
    <module>  app.py:9

greenlet Hub 0x7f20: runs in thread 42, child of greenlet 0x7f10

2 greenlets: suspended, of thread 42, children of Hub 0x7f20
    Worker 0x7f30 "a␛", Worker 0x7f50 "c"
    parse  app.py:2
        return 1

greenlet Worker 0x7f40: suspended, of thread 42, child of Hub 0x7f20
    no Python code

greenlet Worker 0x7f60: not begun

1 greenlet left out: they ran on while they were read
)");
}

TEST(RenderDump, HasEachGreenletByItselfInJson) {
  const std::string json = dump_json(greenlets_sample(), source);
  EXPECT_EQ(
      json.substr(json.find(R"({"address":"0x7f50")")),
      R"({"address":"0x7f50","type":"app.Worker","name":"c","state":"suspended","main":false,"tid":42,"parent":1,)"
      R"("truncated":false,"frames":[{"function":"parse","file":"/home/me/app.py","line":2,"column":5,)"
      R"("source":"return 1"}]},)"
      R"({"address":"0x7f60","type":"app.Worker","state":"new","main":false,"truncated":false,"frames":[]}],)"
      R"("greenlets_problem":"1 greenlet left out: they ran on while they were read"})"
      "\n");
}

// The first thread with native frames, and one whose frames could not be put into one order.
remote::Dump native_sample() {
  using Kind = remote::DumpedFrame::Kind;
  remote::Dump dump = sample();
  dump.threads.pop_back();
  dump.longest_stop_ns = 81'000;
  DumpedThread& main = dump.threads[0];
  main.frames.insert(main.frames.begin(), {"read", "/lib/libc.so.6", {}, Kind::kNative});
  main.native_problem = "native frames further out are missing: register not known";
  DumpedThread& old = dump.threads[1];
  old.problem.clear();
  old.frames = {{"parse", "/home/me/app.py", {2, 5}}};
  old.native_frames = {{"qsort\x1b", "/lib/libc.so.6", {}, Kind::kNative}};
  return dump;
}

TEST(RenderDump, ShowsNativeFramesBetweenThoseOfPythonOrBelowThem) {
  EXPECT_EQ("\n" + render_dump(native_sample(), source, Page{100, Paint(false), "/home/me"}), R"(
process 42: python app.py
Python 3.13.2, 2 threads; innermost frames first

thread 42 "python": running, holds the GIL
    read  libc.so.6
    parse  app.py:2
        return 1
    <module>  app.py:9
    native frames further out are missing: register not known

thread 43 "wor␛ker": stopped
    parse  app.py:2
        return 1
    native frames:
    qsort␛  libc.so.6

no thread was stopped for longer than 81.0 µs
)");
}

TEST(RenderDump, SaysTheSameOfNativeFramesAsJson) {
  const std::string json = dump_json(native_sample(), source);
  for (const char* part :
       {R"("longest_stop_ns":81000,)", R"("frames":[{"function":"read","file":"/lib/libc.so.6","kind":"native"},{)",
        R"(],"native_problem":"native frames further out are missing: register not known"})",
        R"("native_frames":[{"function":"qsort\u001b","file":"/lib/libc.so.6","kind":"native"}]})"})
    EXPECT_NE(json.find(part), std::string::npos) << part << " in " << json;
}

// A core file with variables, which is cut short.
remote::Dump core_sample() {
  remote::Dump dump = sample();
  dump.source = remote::Dump::Source::kCoreFile;
  dump.missing_bytes = 3'000'000;
  dump.threads.resize(1);
  DumpedThread& main = dump.threads[0];
  main.state = DumpedThread::State::kUnknown;
  main.signal = 6;
  main.frames[0].locals = {{{"text", {"str", "'a\x1b'"}, true}, {"n", {"int", "1"}, false}}, 7};
  main.locals_problem = "no variables: they could not be read";
  return dump;
}

TEST(RenderDump, ShowsVariablesAndWhatACoreFileKnows) {
  EXPECT_EQ("\n" + render_dump(core_sample(), source, Page{100, Paint(false), "/home/me"}), R"(
core file of process 42: python app.py
Python 3.13.2, 1 thread; innermost frames first
the core file is cut short: 3.00 MB of memory are missing

thread 42 "python": got signal 6 (Aborted), held the GIL
    parse  app.py:2
        return 1
            text = 'a␛'
            n = 1
            ... 7 more variables
    <module>  app.py:9
    no variables: they could not be read
)");
}

TEST(RenderDump, SaysVariablesAsJson) {
  const std::string json = dump_json(core_sample(), source);
  for (const std::string_view part : {R"("missing_bytes":3000000)", R"("state":"unknown")", R"("signal":6)",
                                      R"("locals":[{"name":"text","type":"str","value":"'a\u001b'","argument":true},)"
                                      R"({"name":"n","type":"int","value":"1","argument":false}],"more_locals":7)",
                                      R"("locals_problem":"no variables: they could not be read")"})
    EXPECT_NE(json.find(part), std::string::npos) << part << " in " << json;
}

}  // namespace
}  // namespace plimsoll::cli
