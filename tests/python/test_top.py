"""`plimsoll top`: what a process does now, on a terminal and into a pipe."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from typing import Callable, Iterator

import pytest

import harness
from known_shares import assert_shares
from terminal import Terminal

# (What a version of Python changes, the tests of attach find.)
pytestmark = [pytest.mark.any_version,
              pytest.mark.skipif(not harness.may_look_at_others(),
                                 reason="kernel.yama.ptrace_scope forbids looking at other processes; root may")]

Program = Callable[..., pathlib.Path]
SHARES = harness.TARGETS / "shares.py"
#: Of tests/targets/shares.py, in hundredths.
PARTS = {"tiny": 1, "small": 3, "medium": 6, "large": 10, "huge": 20}


def top(*words: harness.Word) -> "list[harness.Word]":
    return [harness.binary(), "top", "-i", "100ms", *words]


@contextlib.contextmanager
def running(*words: harness.Word) -> "Iterator[harness.Running]":
    """A program that has begun its work: it said so."""
    with harness.Running([sys.executable, harness.TARGETS / "on_command.py", *words]) as program:
        assert program.line() == "ready"
        program.say("go")
        yield program


@contextlib.contextmanager
def screen(*options: harness.Word, columns: int = 80, rows: int = 24) -> "Iterator[tuple[Terminal, harness.Running]]":
    """A screen about shares.py, which shows its functions already."""
    with running(SHARES, "1000") as program:
        with Terminal(top(str(program.process.pid), *options), columns=columns, rows=rows) as terminal:
            # (The last line is drawn last.)
            terminal.wait_for_text("huge", "shares.py")
            terminal.wait_for(lambda t: t.screen.lines[-1] != "")
            yield terminal, program


# ---- what is shown ----


def test_shows_functions_by_their_shares() -> None:
    # GIVEN a program whose functions have known shares of the time
    with running(SHARES, "1000") as program:
        out = harness.plimsoll_command("top", str(program.process.pid), "--json", "-w", "4s", "-r", "500").expect().out
    told = json.loads(out)
    measured = {row["function"]: row["self_ns"] for row in told["functions"] if row["function"] in PARTS}
    # (large has a comprehension in it, which is a function up to 3.11.)
    inner = [row["self_ns"] for row in told["functions"] if row["function"].endswith("<listcomp>")]
    measured["large"] += sum(inner)
    # THEN they are what it shows
    assert_shares(measured, PARTS, samples=max(100, told["samples"] // 10), slack=0.03)
    assert told["pid"] == program.process.pid
    assert told["resident_bytes"] > 1_000_000
    # and a program that only computes has the lock of the interpreter, if there is one
    if harness.FREE_THREADED:
        assert told["gil_looks"] == 0
    else:
        assert told["gil_held"] > 0.8 * told["gil_looks"]


def test_shows_what_threads_wait_for() -> None:
    # GIVEN threads that wait in one way each
    with running(harness.TARGETS / "waits.py", "1000") as program:
        out = harness.plimsoll_command("top", str(program.process.pid), "--json", "-w", "2s").expect().out
    innermost = {}
    told = json.loads(out)
    for thread in told["threads"]:
        activities = thread["activities"]
        innermost.setdefault(thread["state"], 0)
        innermost[thread["state"]] += 1
        # THEN each one's time goes there for the most part
        if thread["state"] in ("lock", "io"):
            assert activities[thread["state"]] > 0.9 * thread["sampled_ns"]
    assert innermost["lock"] >= 1
    assert innermost["io"] == 2
    assert innermost["sleep"] >= 1


def test_a_picture_of_a_moment_has_the_waits_that_go_on(program: Program) -> None:
    # GIVEN threads that wait for ever
    script = program("import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\n"
                     "print('there', flush=True)\ntime.sleep(1000)\n")
    # WHEN a picture is of less time than goes by until a recording tells of them THEN they have waited for all of it
    # (there were no samples, as the process had "no Python thread that could be looked at"; of 0.9 s they had 0.5)
    with running(script) as waits:
        assert waits.line() == "there"
        for window in (0.4, 0.9):
            words = ["--json", "-w", str(window), "--mode", "wall"]
            told = json.loads(harness.plimsoll_command("top", str(waits.process.pid), *words).expect().out)
            assert all(0.65 * window < thread["sampled_ns"] / 1e9 < 1.05 * window for thread in told["threads"])
            assert len(told["threads"]) == 2


def test_the_number_of_a_thread_is_its_process() -> None:
    # GIVEN a process whose second thread computes WHEN that thread's number is given, as some tools list them
    with running(harness.TARGETS / "waits.py", "1000") as program:
        pid = program.process.pid
        while (other := max(int(name) for name in os.listdir(f"/proc/{pid}/task"))) == pid:
            time.sleep(0.01)
        told = json.loads(harness.plimsoll_command("top", str(other), "--json", "-w", "1s").expect().out)
        dumped = harness.plimsoll_command("dump", str(other)).expect().out
    # THEN the process is looked at, with what it uses (which was 0 %)
    assert told["pid"] == pid
    assert told["process_cpu_ns"] > 0
    assert dumped.startswith(f"process {pid}: ")


def test_prints_one_picture_as_text() -> None:
    with running(SHARES, "1000") as program:
        done = harness.plimsoll_command("top", str(program.process.pid), "--once", "-w", "2s", "--limit", "3").expect()
    lines = done.out.splitlines()
    assert f"process {program.process.pid}" in lines[0]
    assert lines[1].startswith("CPU ")
    # (Which function is first is chance on a machine whose CPUs are lent to others while the program sizes its work.)
    shown = [line.split() for line in lines[4:]]
    assert len(shown) == 3 and all("shares.py" in words[-1] for words in shown)
    own = [float(words[0]) for words in shown]
    assert own == sorted(own, reverse=True) and 50 < sum(own) <= 100
    assert "\x1b" not in done.out


def test_the_first_picture_has_the_names_that_the_program_gives_its_threads() -> None:
    source = "import threading\nprint(flush=True)\nwhile True: sum(range(500))"
    with harness.Running([sys.executable, "-c", source]) as program:
        program.line()
        words = ["top", str(program.process.pid), "--once", "-w", "500ms", "--view", "threads"]
        assert "MainThread" in harness.plimsoll_command(*words).expect().out


def test_prints_pictures_into_a_pipe_until_nobody_reads() -> None:
    with running(SHARES, "1000") as program:
        with harness.Running(top(str(program.process.pid))) as pictures:
            heads = 0
            while heads < 3:
                heads += pictures.line().startswith("process ")
            assert pictures.process.stdout is not None
            pictures.process.stdout.close()
            assert pictures.process.wait(harness.DEADLINE) == 0


def test_every_key_does_what_it_says() -> None:
    with screen() as (terminal, _):
        terminal.wait_for_text("functions by self CPU time")
        terminal.type("t")
        terminal.wait_for_text("functions by total CPU time")
        terminal.type("sl")
        terminal.wait_for_text("lines by self CPU time", "for i in range(n):")
        terminal.type("f")
        terminal.wait_for_text("flame graph of CPU time", "│huge")
        terminal.type("T")
        terminal.wait_for_text("TID", "CPU %", str(_.process.pid))
        terminal.type("Tw")
        terminal.wait_for_text("functions by self time with waits")
        terminal.type("?")
        terminal.wait_for_text("Any key goes back")
        terminal.type("?w+")
        terminal.wait_for_text("functions by self CPU time")
        # A filter, typed, then taken back
        terminal.type("/HUG")
        terminal.wait_for_text("filter: HUG_")
        terminal.type("\r")
        terminal.wait_for(lambda t: "filter: HUG" in t.screen.text and "medium" not in t.screen.text)
        terminal.wait_for_text("huge")
        terminal.type("\x1b")
        terminal.wait_for(lambda t: "filter: HUG" not in t.screen.text and "medium" in t.screen.text)
        terminal.type("q")
        assert terminal.finish() == 0
        terminal.assert_given_back()


def test_a_pause_stands_still_and_goes_on() -> None:
    with screen() as (terminal, _):
        terminal.type("p")
        terminal.wait_for_text("PAUSED")
        # WHEN it is paused THEN another order is of the same picture
        head = terminal.screen.lines[1]
        terminal.type("t")
        terminal.wait_for_text("functions by total")
        assert terminal.screen.lines[1] == head
        terminal.type(" ")
        terminal.wait_for(lambda t: "PAUSED" not in t.screen.text)


def test_after_a_pause_the_cpu_is_that_of_the_last_seconds(program: Program) -> None:
    # GIVEN a program that computes while the picture is paused, and then rests for longer than the window
    path = program("import time\nprint('ready', flush=True)\ninput()\nend = time.process_time() + 1\n"
                   "while time.process_time() < end: pass\ntime.sleep(3)\nprint('rested', flush=True)\ninput()\n")
    with harness.Running([sys.executable, path]) as burning:
        assert burning.line() == "ready"
        with Terminal(top(str(burning.process.pid), "-w", "1s")) as terminal:
            terminal.wait_for_text("CPU ", "functions by self")
            terminal.type("p")
            terminal.wait_for_text("PAUSED")
            burning.say("go")
            assert burning.line() == "rested"
            # WHEN it goes on
            terminal.type("p")
            terminal.wait_for(lambda t: "PAUSED" not in t.screen.text and t.screen.lines[1].startswith("CPU "))
            # THEN the CPU is that of the last second, as all else
            # (As little as a clock tells is "<0.1".)
            assert float(terminal.screen.lines[1].split()[1].lstrip("<")) < 2


def test_follows_the_size_of_the_terminal() -> None:
    with screen() as (terminal, _):
        terminal.wait_for(lambda t: t.screen.lines[-1].startswith("q quit"))
        for columns, rows in ((40, 10), (20, 5), (132, 43), (3, 2)):
            terminal.resize(columns, rows)
            terminal.wait_for(lambda t: t.screen.lines[0].startswith("pro"[:t.screen.columns - 1]))
        terminal.resize(80, 24)
        terminal.wait_for_text("q quit", "huge")
        terminal.type("q")
        assert terminal.finish() == 0
        terminal.assert_given_back()


def test_names_cannot_drive_the_terminal(program: Program) -> None:
    # GIVEN a program whose functions have names that move the cursor, change the title, turn the direction, and are wide
    path = program('''
import os, sys
names = ["\\x1b[2J\\x1b[H\\x1b]0;owned\\x07", "\\u202eesrever", "\\u6f22\\u5b57" * 20, "e\\u0301" * 5000, "a\\r\\nb\\x9bz"]
work = []
for number, name in enumerate(names):
    code = compile("def f(n):\\n  while n: n -= 1\\n", "\\x1b[31m" + name + ".py", "exec")
    scope = {}
    exec(code, scope)
    made = scope["f"].__code__
    more = {"co_qualname": name} if sys.version_info >= (3, 11) else {}
    scope["f"].__code__ = made.replace(co_name=name, **more)
    work.append(scope["f"])
while True:
    for function in work:
        function(10000)
''')
    with Terminal(top(path)) as terminal:
        terminal.wait_for_text("␛[2J", "漢")
        for key, text in (("l", "lines by"), ("f", "flame graph"), ("T", "TID")):
            terminal.type(key)
            terminal.wait_for_text(text)
        terminal.type("q")
        terminal.finish()
        # THEN nothing reached the terminal but what draws
        terminal.assert_given_back()
        assert "]0;owned" not in terminal.raw.replace("␛]0;owned", "")
        assert "\x1b[31m\x1b" not in terminal.raw
        for bad in ("\x07", "\x9b", "\u202e"):
            assert bad not in terminal.raw


# ---- the terminal is given back ----


@pytest.mark.parametrize("how", ["q", "\x03", "\x1c"])
def test_keys_that_end_it_give_the_terminal_back(how: str) -> None:
    with screen() as (terminal, program):
        assert terminal.modes() != terminal.modes_before
        assert terminal.screen.is_other
        terminal.type(how)
        assert terminal.finish() == 0
        terminal.assert_given_back()
        # THEN the process goes on
        assert program.process.poll() is None


def bytes_written(pid: int) -> int:
    """What the process has given to write(2) and its kin."""
    return int(pathlib.Path(f"/proc/{pid}/io").read_text().partition("wchar: ")[2].split()[0])


@pytest.mark.parametrize("key", ["\x03", "\x1c"])
def test_what_is_on_its_way_when_a_key_ends_it_arrives(key: str) -> None:
    with screen() as (terminal, _):
        # GIVEN more pictures than a terminal has taken in (4095 bytes): the rest is the kernel's
        end = time.monotonic() + harness.DEADLINE / 4
        while bytes_written(terminal.process.pid) < terminal.received + 10_000:
            assert time.monotonic() < end, "too little is drawn"
            terminal.resize(160 - terminal.screen.columns, 24)
        # WHEN the key is pressed THEN all of them arrive, and none is cut off
        written = bytes_written(terminal.process.pid)
        terminal.type(key)
        assert terminal.finish() == 0
        assert terminal.received >= written
        terminal.assert_given_back()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_give_the_terminal_back(number: "signal.Signals") -> None:
    with screen() as (terminal, program):
        os.kill(terminal.process.pid, number)
        assert terminal.finish() == 0
        terminal.assert_given_back()
        assert program.process.poll() is None


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT])
def test_even_a_crash_gives_the_terminal_back(number: "signal.Signals") -> None:
    with screen() as (terminal, _):
        os.kill(terminal.process.pid, number)
        assert terminal.finish() == harness.death_by(number)
        terminal.assert_given_back(cuts=1)  # it may have been in the middle of one


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_death_of_the_process_gives_the_terminal_back(number: "signal.Signals") -> None:
    with screen() as (terminal, program):
        program.process.send_signal(number)
        program.process.wait()
        assert terminal.finish() == 0
        terminal.assert_given_back()
        # THEN the last picture is still there to read
        assert f"process {program.process.pid} has ended" in terminal.after
        assert "huge" in terminal.after


def test_a_terminal_that_takes_nothing_keeps_nobody() -> None:
    with screen("-w", "1s") as (terminal, _):
        # GIVEN a terminal that is as good as dead: much is drawn, and nobody reads it
        for columns in range(60, 160):
            terminal.resize(columns, 50)
            terminal.type("flT")
        # WHEN it is told to end THEN it does
        os.kill(terminal.process.pid, signal.SIGTERM)
        assert terminal.process.wait(harness.DEADLINE / 4) == 0
        assert terminal.modes() == terminal.modes_before


@pytest.mark.skipif(not shutil.which("bash"), reason="needs a shell with job control")
def test_ctrl_z_gives_the_terminal_back_and_takes_it_again() -> None:
    # GIVEN a shell in which it is a job
    script = '"$@"; echo "stopped: $?"; read line; echo "read: $line"; fg; echo "ended: $?"'
    with running(SHARES, "1000") as program:
        with Terminal(["bash", "-mc", script, "bash", *top(str(program.process.pid))]) as terminal:
            terminal.wait_for_text("huge")
            # WHEN it is suspended THEN the shell has the terminal as it was
            terminal.type("\x1a")
            terminal.wait_for(lambda t: f"stopped: {128 + signal.SIGTSTP}" in t.after)
            terminal.assert_given_back()
            # WHEN it goes on THEN it draws anew
            terminal.type("line\n")
            terminal.wait_for(lambda t: t.screen.is_other and "huge" in t.screen.text)
            assert terminal.modes() != terminal.modes_before
            terminal.type("q")
            assert terminal.finish() == 0
            terminal.assert_given_back()
            assert "read: line" in terminal.raw
            assert "ended: 0" in terminal.after


# ---- programs of its own ----


def test_starts_a_program_and_ends_it() -> None:
    with Terminal(top(SHARES, "1000")) as terminal:
        terminal.wait_for_text("huge")
        pid = int(terminal.screen.lines[0].split("process ")[1].split()[0])
        terminal.type("\x03")
        # THEN Ctrl-C has ended it, and it had no chance to write over the screen
        assert terminal.finish() == 0
        terminal.assert_given_back()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_program_ends_with_its_terminal() -> None:
    with Terminal(top(SHARES, "1000")) as terminal:
        terminal.wait_for_text("huge")
        pid = int(terminal.screen.lines[0].split("process ")[1].split()[0])
        # WHEN the terminal's window is closed
        terminal.hang_up()
        terminal.process.wait(harness.DEADLINE / 4)
        # THEN the program does not go on unseen
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        # nor does a file stay that nobody was told of
        assert terminal.process.returncode == 0


def test_keeps_what_the_program_writes(program: Program) -> None:
    # GIVEN a program that writes while it runs
    path = program("import sys\nprint('to be read', flush=True)\nprint('\\x1b[2Jtoo', file=sys.stderr, flush=True)\n"
                   "while True: sum(range(1000))\n")
    with Terminal(top(path)) as terminal:
        terminal.wait_for_text("<module>", "program.py")
        terminal.type("q")
        assert terminal.finish() == 0
        assert "to be read" not in terminal.raw
        # THEN where it is is told, and nobody else can read it
        file = pathlib.Path(terminal.after.split("its output is in ")[1].split()[0])
    assert file.read_text() == "to be read\n\x1b[2Jtoo\n"
    assert file.parent.stat().st_mode & 0o777 == 0o700
    file.unlink()
    file.parent.rmdir()


def test_a_program_has_its_own_exit_code(program: Program) -> None:
    path = program("import sys\nfor i in range(3000): sum(range(1000))\nsys.exit(7)\n")
    with Terminal(top("--discard-output", path)) as terminal:
        assert terminal.finish() == 7
        terminal.assert_given_back()
        assert "the program has ended with exit code 7" in terminal.after


@pytest.mark.parametrize("next_program", ["sys.executable, __file__, 'again'", "'/bin/sh', '-c', 'exit 7'"])
def test_a_program_that_calls_exec_goes_on(program: Program, next_program: str) -> None:
    path = program(f"""
import os, sys
for i in range(3000): sum(range(1000))
words = [{next_program}]
if len(sys.argv) == 1: os.execv(words[0], words)
sys.exit(7)
""")
    with Terminal(top("--discard-output", path)) as terminal:
        assert terminal.finish() == 7
        terminal.assert_given_back()
        assert "the program has ended with exit code 7" in terminal.after


def test_a_program_without_a_command_line_keeps_nobody(program: Program) -> None:
    # GIVEN a program that becomes one without any words, which waits for a line that never comes
    path = program("""
import ctypes, os
for i in range(3000): sum(range(1000))
reading, writing = os.pipe()
os.dup2(reading, 0)
os.set_inheritable(writing, True)
ctypes.CDLL(None).execv(b"/bin/cat", (ctypes.c_char_p * 2)(b"", None))
""")
    with Terminal(top("--discard-output", path)) as terminal:
        terminal.wait_for(lambda t: "waiting for its end" in t.raw)
        # WHEN somebody has waited long enough THEN it ends
        terminal.type("\x03")
        assert terminal.finish() == 0


def test_a_program_that_ends_at_once_shows_why(program: Program) -> None:
    path = program("import nothing_of_that_name\n")
    done = harness.plimsoll_command("top", "--python", sys.executable, path)
    assert done.code == 1
    assert "No module named 'nothing_of_that_name'" in done.err
    file = pathlib.Path(done.err.split("its output is in ")[1].split()[0])
    file.unlink()
    file.parent.rmdir()


def test_nothing_of_ours_is_in_the_program(program: Program, tmp_path: pathlib.Path) -> None:
    path = program("import os, sys\nopen(sys.argv[1], 'w').write(repr(sorted(sys.modules)) + repr(dict(os.environ)))\n")
    harness.plimsoll_command("top", "--python", sys.executable, path, tmp_path / "told")
    assert "plimsoll._" not in (tmp_path / "told").read_text()
    assert "PLIMSOLL" not in (tmp_path / "told").read_text()


# ---- what it refuses ----


@pytest.mark.parametrize("words, complaint", [
    ([], "which process or program?"),
    (["1", "-r", "0"], "a rate of 0 Hz is not possible"),
    (["1", "--view", "flames"], "there is no view"),
    (["1", "--mode", "gil"], "there is no mode"),
    (["1", "-w", "2min"], "--window: choose 100 ms to 60 s"),
    (["1", "-i", "1ms"], "--interval: choose 100 ms or more"),
    (["1", "--limit", "-1"], "--limit: -1 is less than 0"),
    (["1", "2"], "one argument too many"),
    (["--python", "no-such-python", "x.py"], "no Python interpreter 'no-such-python'"),
])
def test_says_what_is_wrong_with_its_words(words: "list[str]", complaint: str) -> None:
    assert complaint in harness.plimsoll_command("top", *words).expect(2).err


def test_says_that_there_is_no_such_process() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    done = harness.plimsoll_command("top", str(ended.pid)).expect(5)
    assert done.notices == [f"plimsoll: there is no process {ended.pid}"]
