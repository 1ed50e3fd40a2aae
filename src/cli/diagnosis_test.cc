// cli/diagnosis_test.cc: what machines that we made up allow.
#include "cli/diagnosis.h"

#include <gtest/gtest.h>

namespace plimsoll::cli {
namespace {

Machine good() {
  Machine machine;
  machine.perf_event_paranoid = 1;
  machine.has_traps = machine.has_wait_files = machine.has_schedstat = true;
  machine.scheduler_hz = 250;
  machine.open_files = 1024;
  machine.interpreter = "/usr/bin/python3";
  machine.python = "CPython 3.13.2";
  machine.plimsoll = "0.1.0";
  machine.engine = "perf task-clock";
  machine.coverage = 0.998;
  return machine;
}

// "verdict what -> remedy" of each finding that is not good.
std::string troubles(const Machine& machine) {
  std::string text;
  for (const Finding& finding : diagnose(machine)) {
    if (finding.verdict == Verdict::kGood) continue;
    text += finding.verdict == Verdict::kMissing ? "missing: " : "limited: ";
    text += finding.what + (finding.remedy.empty() ? "" : " -> " + finding.remedy) + "\n";
  }
  return text;
}

TEST(Diagnosis, AGoodMachineHasNoTroubles) {
  EXPECT_EQ(troubles(good()), "");
  EXPECT_EQ(diagnose(good()).size(), 6U);
}

TEST(Diagnosis, SaysHowToAllowPerfEvents) {
  Machine machine = good();
  machine.perf_error = "perf_event_open (task-clock): Permission denied";
  machine.perf_event_paranoid = 3;
  machine.has_traps = false;
  const std::string text = troubles(machine);
  EXPECT_NE(text.find("kernel.perf_event_paranoid is 3"), std::string::npos) << text;
  EXPECT_NE(text.find("exactly up to 250 Hz -> sudo sysctl kernel.perf_event_paranoid=1"), std::string::npos) << text;
  machine.perf_event_paranoid = 1;
  EXPECT_NE(troubles(machine).find("--cap-add PERFMON"), std::string::npos) << "then a container forbids it";
}

TEST(Diagnosis, SaysHowToInstallThePackage) {
  Machine machine = good();
  machine.python_error = "plimsoll is not installed for it";
  EXPECT_EQ(troubles(machine),
            "missing: CPython 3.13.2 (/usr/bin/python3): plimsoll is not installed for it -> /usr/bin/python3 -m pip "
            "install plimsoll\n");
}

TEST(Diagnosis, SaysThatThereIsNoPython) {
  Machine machine = good();
  machine.interpreter = "";
  machine.python_error = "no python3 on PATH";
  EXPECT_EQ(troubles(machine), "missing: no python3 on PATH -> name one with --python PYTHON\n");
}

TEST(Diagnosis, ARecordingThatMissedTimeIsATrouble) {
  Machine machine = good();
  machine.coverage = 0.6;
  EXPECT_NE(troubles(machine).find("covered 60.0 %"), std::string::npos);
}

TEST(Diagnosis, PyPyIsRecordedByItsOwnSamplerWhateverTheKernelHas) {
  // GIVEN PyPy, with which no test recording is made, on a machine without perf events
  Machine machine = good();
  machine.python = "PyPy 3.11.17";
  machine.engine = "";
  machine.coverage = 0;
  machine.perf_error = "perf_event_open (task-clock): Permission denied";
  // WHEN the findings are told THEN it can be recorded, and how
  EXPECT_EQ(troubles(machine), "");
  ASSERT_EQ(diagnose(machine).size(), 2U);
  EXPECT_NE(diagnose(machine)[1].what.find("PyPy's own sampler: CPU time up to 250 Hz"), std::string::npos);
  machine.python_error = "plimsoll is not installed for it";
  EXPECT_NE(troubles(machine).find("missing: PyPy 3.11.17"), std::string::npos);
}

TEST(Diagnosis, EachMissingFileOfTheKernelIsALimit) {
  Machine machine = good();
  machine.has_schedstat = false;
  EXPECT_NE(troubles(machine).find("schedstat"), std::string::npos);
  machine.has_wait_files = false;
  EXPECT_NE(troubles(machine).find("shows waits as \"other\""), std::string::npos);
  machine = good();
  machine.open_files = 256;
  EXPECT_NE(troubles(machine).find("256 files open"), std::string::npos);
}

TEST(Diagnosis, ExaminesThisMachineWithoutPython) {
  const Machine machine = examine("", "no python3 on PATH");
  EXPECT_FALSE(machine.kernel.empty());
  EXPECT_GT(machine.scheduler_hz, 0U);
  EXPECT_EQ(diagnose(machine)[0].verdict, Verdict::kMissing);
}

TEST(Diagnosis, AnInterpreterThatIsNoneIsATrouble) {
  EXPECT_EQ(diagnose(examine("/bin/true", ""))[0].verdict, Verdict::kMissing);
}

}  // namespace
}  // namespace plimsoll::cli
