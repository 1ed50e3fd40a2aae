"""`python -m plimsoll.vmprof` and `python -m plimsoll.vmprof.show`: vmprof's command line."""

from __future__ import annotations

import json
import pathlib
import signal
from typing import Callable

import pytest

import harness
from plimsoll.compat import vmprof
from plimsoll.vmprof import __main__ as vmprof_main, show as vmprof_show
from vmprof_files import LINES, Drawing

pytestmark = pytest.mark.any_version

Write = Callable[..., pathlib.Path]

PROGRAM = """
import sys
def work():
    return sum(range(4000000))
work()
print(__name__, *sys.argv[1:], __file__)
sys.exit(7)
"""


def command(*words: harness.Word, **options: object) -> harness.Finished:
    return harness.python("-m", "plimsoll.vmprof", *words, **options)


def names(path: pathlib.Path) -> "set[str]":
    return {name.split(":")[1] for name, _ in vmprof.read_profile(path).top_profile()}


# ---- recording ----


def test_a_program_is_recorded_into_a_file(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program with options of its own; WHEN it is recorded with vmprof's options
    path = program(PROGRAM)
    done = command("-p", "0.0005", "-o", tmp_path / "app.prof", path, "--lines", "-o", "x").expect(7)
    # THEN it runs as by itself, and the file holds what was asked for and no more
    assert done.out == f"__main__ --lines -o x {path}\n"
    stats = vmprof.read_profile(tmp_path / "app.prof")
    assert not stats.profile_lines and not stats.profile_memory and stats.interp == "cpython"
    assert "work" in names(tmp_path / "app.prof") and stats.get_tree().name.startswith("py:<module>")


def test_modules_run_by_name_with_lines_and_memory(tmp_path: pathlib.Path, program: Write) -> None:
    program(PROGRAM, "package/tool.py")
    done = command("--lines", "--mem", "-n", "--output", "app.prof", "-m", "package.tool", "a", cwd=tmp_path).expect(7)
    assert done.out.startswith("__main__ a ") and done.err == ""
    stats = vmprof.read_profile(tmp_path / "app.prof")
    assert stats.profile_lines and stats.profile_memory and "work" in names(tmp_path / "app.prof")


def test_without_a_file_the_functions_are_shown(tmp_path: pathlib.Path, program: Write) -> None:
    done = command(program(PROGRAM), cwd=tmp_path).expect(7)
    assert "total %" in done.out and "work" in done.out and done.err == ""
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]


@pytest.mark.parametrize("period, is_said", [("0.000001", True), ("0.00001", False)])
def test_a_period_that_is_too_short_is_said(period: str, is_said: bool, tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program that knows how much CPU time its one thread has used: the process has that of the recorder too
    path = program("import time\nwhile time.thread_time() < 0.2: pass\n")
    # WHEN it is recorded as often as can be, or oftener
    done = command("-p", period, "-n", "-o", tmp_path / "app.prof", path).expect(0)
    # THEN it is recorded as often as can be, and that is said where it is not what was asked for
    said = "plimsoll: a period of 0.000001 s is too short: it is 0.000010 s\n"
    assert done.err == (said if is_said else "")
    # AND the periods of the file are so long
    shown = json.loads(harness.plimsoll_command("show", tmp_path / "app.prof", "--json").expect().out)
    samples, sampled_ns = shown["session"]["samples"], shown["session"]["sampled_ns"]
    assert sampled_ns == 10_000 * samples and 0.15e9 < sampled_ns < 0.25e9


def test_a_program_that_is_killed_is_told_by_the_exit_code(tmp_path: pathlib.Path, program: Write) -> None:
    path = program("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert command("-o", tmp_path / "app.prof", path).code == 128 + signal.SIGKILL


# ---- options ----


def test_options_come_from_a_file_too(tmp_path: pathlib.Path) -> None:
    # GIVEN a file that says something else than the command line
    ini = tmp_path / "app.ini"
    ini.write_text("[global]\nperiod = 0.01\nmem = yes\noutput = ini.prof\nweb-url = x.example\nno-native = off\n")
    options = vmprof_main.parse(["--config", str(ini), "--period", "0.002", "app.py", "--mem", "no"])
    # THEN the command line wins where it does not say the default, and the rest is the file's
    assert (options.period, options.mem, options.output, options.web_url) == (0.002, True, "ini.prof", "x.example")
    assert (options.no_native, options.web, options.lines, options.args) == (False, False, False, ["--mem", "no"])
    ini.write_text("[global]\nweb = always\nweb-url = x.example\n")
    assert vmprof_main.parse(["--config", str(ini), "app.py"]).web is True


@pytest.mark.parametrize("ini, words", [("period = 0.001", "app.ini"), ("[global]\nperiod = soon", "app.ini"),
                                        ("[global]\nperiod = 2", "app.ini"), ("[global]\nmem = perhaps", "app.ini"),
                                        ("[other]\n", "no section [global]"), ("[global]\nweb = 1", "--web: which"),
                                        ("[global]\nweb = 1\noutput = x", "exclude each other")])
def test_a_file_that_makes_no_sense_is_refused(ini: str, words: str, tmp_path: pathlib.Path,
                                               capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "app.ini").write_text(ini)
    with pytest.raises(SystemExit) as ended:
        vmprof_main.parse(["--config", str(tmp_path / "app.ini"), "app.py"])
    assert ended.value.code == 2 and words in capsys.readouterr().err


@pytest.mark.parametrize("options", [["-p", "1"], ["-p", "0"], ["-p", "soon"], ["--web", "-o", "x"], ["--web"],
                                     ["--config", "/nowhere"], ["--what"]])
def test_options_that_make_no_sense_are_refused(options: "list[str]", capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        vmprof_main.parse([*options, "app.py"])
    assert ended.value.code == 2 and capsys.readouterr().err.startswith("usage: python -m plimsoll.vmprof")


def test_a_program_that_does_not_start_leaves_the_profile_that_was_there(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "out.prof"
    path.write_bytes(b"of yesterday")
    done = harness.python("-m", "plimsoll.vmprof", "-o", path, tmp_path / "none.py")
    assert done.code != 0
    assert path.read_bytes() == b"of yesterday"


def test_a_file_that_cannot_be_written_is_told_before_the_program_runs() -> None:
    done = command("-o", "/nowhere/app.prof", "app.py").expect(2)
    assert "/nowhere/app.prof" in done.err and "Traceback" not in done.err


# ---- showing ----


@pytest.fixture
def prof(tmp_path: pathlib.Path) -> pathlib.Path:
    """main calls work, which calls a native function; a tenth of the time is in <b>."""
    (tmp_path / "lib.py").write_text("\n".join(f"line {number}" for number in range(1, 30)))
    drawing = Drawing(6, LINES).name(2, "py:main:1:app.py").name(4, f"py:work:5:{tmp_path}/lib.py")
    drawing.name(7, "n:memcpy:0:libc.so").name(6, "py:<b>:9:app.py")
    for _ in range(9):
        drawing.stack(0, 7, 6, 4, 2, 2)
    (tmp_path / "app.prof").write_bytes(bytes(drawing.stack(10, 6, 3, 2).start(100).end(101)))
    return tmp_path / "app.prof"


Show = Callable[..., str]


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Show:
    """What `python -m plimsoll.vmprof.show words...` prints."""

    def run(*words: harness.Word, code: int = 0) -> str:
        monkeypatch.setattr("sys.argv", ["show", *map(str, words)])
        assert vmprof_show.main() == code
        return capfd.readouterr().out

    return run


def test_a_tree_is_pruned(prof: pathlib.Path, show: Show) -> None:
    assert all(name in show(prof, "tree") for name in ("main", "work", "memcpy", "<b>"))
    assert "<b>" not in show(prof, "tree", "--prune_percent", "20")
    flat = show(prof, "tree", "--prune_level", "1", "--indent", "0")
    assert "work" in flat and "memcpy" not in flat


def test_a_tree_as_a_page(prof: pathlib.Path, show: Show) -> None:
    page = show(prof, "tree", "--html")
    assert page.startswith("<!doctype html>") and page.count("<details") == page.count("</details>") == 4
    assert "90.0% <b>work</b>" in page and "&lt;b&gt;" in page and "<b><b>" not in page


def test_functions_with_and_without_callees(prof: pathlib.Path, show: Show) -> None:
    def first(*options: str) -> str:
        row = next(line for line in show(prof, "flat", *options).splitlines() if line.strip()[:1].isdigit())
        return row.strip()

    assert first().startswith("90.0") and "memcpy" in first()
    assert first("--include-callees").startswith("100.0") and "main" in first("--include-callees")
    assert first("--no-native").startswith("90.0") and "work" in first("--no-native")
    assert "<b>" in show(prof, "flat") and "<b>" not in show(prof, "flat", "--percent-cutoff", "20")


def test_lines_of_functions_and_of_files(prof: pathlib.Path, show: Show) -> None:
    assert "line 6" in show(prof, "lines")
    assert "line 6" in show(prof, "lines", "--filter", "WORK")
    assert "line 6" in show(prof, "lines", "--filter", "lib.py")
    assert show(prof, "lines", "--filter", "nothing", code=4) == ""


def test_what_cannot_be_shown(tmp_path: pathlib.Path, show: Show) -> None:
    for view in (["tree"], ["tree", "--html"], ["flat"], ["lines"], ["lines", "--filter", "x"]):
        assert show(tmp_path / "none.prof", *view, code=5) == ""
    for words in ([], ["x"], ["x", "tree", "--prune_percent", "101"], ["x", "tree", "--indent", "9"]):
        with pytest.raises(SystemExit):
            show(*words)
