"""A program without threads has none when it forks: Python counts them, and warns."""

from __future__ import annotations

import pathlib
import signal
import sys
from typing import Callable

import pytest

import harness

pytestmark = [
    pytest.mark.most_versions,
    pytest.mark.skipif(sys.version_info < (3, 12), reason="Python counts threads from 3.12 on"),
]

Write = Callable[..., pathlib.Path]

FORKS = harness.BURN + """
def after(): burn(0.3)
def fork_some():
    for fork in [os.fork, os.fork, lambda: os.forkpty()[0]]:
        child = fork()
        if child == 0: os._exit(0)
        os.waitpid(child, 0)
"""
WARNINGS = {"PYTHONWARNINGS": "always"}


@pytest.mark.parametrize("options", [[], ["--mode", "wall"], ["--engine", "reader"], ["--alloc"], ["--alloc=exact"],
                                     ["--native"], ["--children"]], ids=lambda options: "-".join(options) or "plain")
def test_a_program_without_threads_forks_unwarned(tmp_path: pathlib.Path, program: Write, options: "list[str]") -> None:
    # GIVEN a program that forks, and whose warnings are shown
    forks = program(FORKS + """
fork_some()
after()
""")
    # WHEN it is recorded
    recorded = harness.record(tmp_path, forks, options=options, env=WARNINGS)
    # THEN there is nothing to be warned of, and the recording has what comes after
    assert recorded.finished.own_err == ""
    assert harness.total_seconds(recorded.profile)["after"] == pytest.approx(0.3, rel=0.1)
    assert recorded.profile.complete
    # AND the threads of the recording are not in it, whichever they are by then
    assert {thread.name for thread in recorded.profile.threads} == {"MainThread"}


def test_warnings_that_are_errors_do_not_break_a_fork(tmp_path: pathlib.Path, program: Write) -> None:
    # (From 3.15 on such a warning is raised where os.fork returns to the parent.)
    recorded = harness.record(tmp_path, program(FORKS + """
fork_some()
"""), env={"PYTHONWARNINGS": "error"})
    assert recorded.finished.own_err == ""


def test_a_program_with_threads_is_warned_as_ever(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program with two threads
    forks = program(FORKS + """
import threading
over = threading.Event()
other = threading.Thread(target=over.wait)
other.start()
fork_some()
over.set()
other.join()
""")
    # WHEN it forks THEN it is warned as without a recording
    plain = harness.python(forks, env=WARNINGS).expect()
    recorded = harness.record(tmp_path, forks, env=WARNINGS)
    assert recorded.finished.own_err.count("is multi-threaded") == plain.err.count("is multi-threaded") > 0


def test_a_child_that_is_recorded_forks_unwarned(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a child with a recording of its own, which forks
    recorded = harness.record(tmp_path, program(FORKS + """
child = os.fork()
if child == 0:
    fork_some()
    after()
    sys.exit(0)
os.waitpid(child, 0)
"""), options=["--children"], env=WARNINGS)
    # THEN it is not warned either
    assert recorded.finished.own_err == ""
    assert any(harness.total_seconds(profile).get("after", 0) > 0.25 for profile in harness.profiles_in(tmp_path))


@pytest.mark.parametrize("moment", ["before", "after_in_parent"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_recording_may_be_stopped_by_what_a_fork_calls(tmp_path: pathlib.Path, program: Write, moment: str,
                                                         is_first: bool) -> None:
    # GIVEN a hook of the program's that ends the recording, while that is held for the fork or when it is not
    begin = ['plimsoll.start("stopped.plim", mode="wall")', f"os.register_at_fork({moment}=end)"]
    recorded = harness.python(program(FORKS + f"""
import plimsoll
profiles = []
def end():
    if not profiles: profiles.append(plimsoll.stop())
{chr(10).join(reversed(begin) if is_first else begin)}
after()
fork_some()
print(profiles[0].complete, len(os.listdir("/proc/self/task")))
"""), cwd=tmp_path, env=WARNINGS).expect()
    # WHEN it forks THEN the recording is complete, and no thread of it comes back
    assert recorded.out.split() == ["True", "1"]
    assert recorded.err == ""


def test_a_signal_ends_a_program_that_is_about_to_fork(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program that ends by a signal while no thread of the recording is there
    path = tmp_path / "recorded.plim"
    ended = harness.plimsoll_run(program(FORKS + """
import signal
os.register_at_fork(before=lambda: os.kill(os.getpid(), signal.SIGTERM))
after()
fork_some()
"""), options=["-o", path])
    # THEN it does, and the recording is complete
    assert ended.code == harness.death_by(signal.SIGTERM)
    import plimsoll

    assert plimsoll.Profile.open(path).complete
