"""Whatever is wrong with the output or the command line: a clear error, and the program still runs to its end."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from typing import Callable, Iterator

import pytest

import harness

pytestmark = pytest.mark.any_version

Write = Callable[..., pathlib.Path]

PROGRAM = """
import sys, time
start = time.thread_time()
while time.thread_time() - start < 0.2: sum(range(1000))
print("to the end")
sys.exit(6)
"""


def assert_ran_unprofiled(finished: harness.Finished, *words: str) -> None:
    assert finished.expect(6).out == "to the end\n"
    assert finished.notices, "nothing was said"
    for word in words:
        assert word in finished.err, finished.err
    assert "Traceback" not in finished.err


@pytest.mark.parametrize("place", ["missing/out.plim", "file/out.plim", "directory"])
def test_a_file_that_cannot_be_created(tmp_path: pathlib.Path, program: Write, place: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "directory").mkdir()
    finished = harness.plimsoll_run(program(PROGRAM), options=["-o", tmp_path / place])
    assert_ran_unprofiled(finished, "cannot write", place, "runs unprofiled", "nothing was recorded")
    assert len(finished.notices) == 3, "what was not written is not read"


def test_a_read_only_directory(tmp_path: pathlib.Path, program: Write) -> None:
    if os.geteuid() == 0:
        place = pathlib.Path("/proc/out.plim")  # root may write anywhere but where the kernel says no
    else:
        place = tmp_path / "locked" / "out.plim"
        place.parent.mkdir(mode=0o500)
    assert_ran_unprofiled(harness.plimsoll_run(program(PROGRAM), options=["-o", place]), "cannot write", str(place))


def test_a_full_device(program: Write) -> None:
    assert_ran_unprofiled(harness.plimsoll_run(program(PROGRAM), options=["-o", "/dev/full"]), "No space left on device")


@pytest.fixture
def small_disk(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A file system of 128 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount, umount = (shutil.which(name, path="/bin:/usr/bin:/sbin:/usr/sbin") for name in ("mount", "umount"))
    if mount is None or umount is None:
        pytest.skip("there is no mount command here")
    mounted = subprocess.run([mount, "-t", "tmpfs", "-o", "size=128k", "none", str(place)], stderr=subprocess.PIPE)
    if mounted.returncode != 0:
        pytest.skip(f"mounting is not allowed here: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run([umount, str(place)], check=True)


def test_a_disk_that_fills_up(small_disk: pathlib.Path, program: Write) -> None:
    # GIVEN a disk with room for the first chunks only, and a program with endlessly many different stacks
    (small_disk / "ballast").write_bytes(b"x" * 100_000)
    script = program("""
import random, sys, time
def make(i): exec(f"def f_{i}_{'x' * 200}(g): g()", globals())
for i in range(300): make(i)
functions = [value for name, value in globals().items() if name.startswith("f_")]
def call(depth):
    if depth == 0: sum(range(3000))
    else: random.choice(functions)(lambda: call(depth - 1))
start = time.thread_time()
while time.thread_time() - start < 3.0: call(12)
print("to the end")
sys.exit(6)
""")
    # WHEN it fills THEN the program runs on, the error says so, and what was written is a profile
    finished = harness.plimsoll_run(script, options=["-o", small_disk / "out.plim", "-r", "400"])
    assert_ran_unprofiled(finished, "No space left on device")
    import plimsoll

    profile = plimsoll.Profile.open(small_disk / "out.plim")
    assert not profile.complete and len(profile.samples) > 0


def test_a_symbolic_link_is_not_followed(tmp_path: pathlib.Path, program: Write) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "out.plim").symlink_to(tmp_path / "precious")
    finished = harness.plimsoll_run(program(PROGRAM), options=["-o", tmp_path / "out.plim"])
    assert_ran_unprofiled(finished, "symbolic link")
    assert (tmp_path / "precious").read_text() == "precious"


def test_profiles_are_for_their_owner_only(tmp_path: pathlib.Path, program: Write) -> None:
    harness.plimsoll_run(program(PROGRAM), options=["-o", tmp_path / "out.plim"]).expect(6)
    harness.plimsoll_command("convert", tmp_path / "out.plim", "-o", tmp_path / "out.collapsed").expect(0)
    assert (tmp_path / "out.plim").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "out.collapsed").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("words", [["run"], ["run", "-r", "0", "x.py"], ["run", "-r", "fast", "x.py"],
                                   ["run", "--engine", "steam", "x.py"], ["run", "-d", "-1", "x.py"],
                                   ["run", "-f", "nonsense", "x.py"], ["run", "--no-such-option", "x.py"],
                                   ["run", "--python", "/no/such/python", "x.py"], ["show"], ["frobnicate"],
                                   ["convert", "x.plim"]])
def test_usage_errors_end_with_2_before_anything_runs(tmp_path: pathlib.Path, words: "list[str]") -> None:
    (tmp_path / "x.py").write_text("print('ran')")
    finished = harness.plimsoll_command(*words, cwd=tmp_path)
    assert finished.code == 2
    assert finished.out == "" and finished.err.startswith("plimsoll")


@pytest.mark.parametrize("content", [None, b"", b"not a profile", b"\x89PLIM\r\n\x1a\x63\0\0\0"])
@pytest.mark.parametrize("verb", ["show", "info", "convert"])
def test_files_that_are_no_profiles_end_with_5(tmp_path: pathlib.Path, verb: str, content: "bytes | None") -> None:
    path = tmp_path / "bad.plim"
    if content is not None:
        path.write_bytes(content)
    more = ["-o", str(tmp_path / "out.collapsed")] if verb == "convert" else []
    finished = harness.plimsoll_command(verb, path, *more)
    assert finished.code == 5, finished.err
    assert "bad.plim" in finished.err
    assert not (tmp_path / "out.collapsed").exists()


def test_a_python_without_plimsoll_is_told_of(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN an interpreter in which plimsoll is not installed
    venv = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    # WHEN a program is to run with it THEN the error says what to install where
    finished = harness.plimsoll_command("run", "--python", venv / "bin" / "python", program(PROGRAM),
                                        env={"PYTHONPATH": None})
    assert finished.code == 1
    assert "pip install plimsoll" in finished.err and str(venv) in finished.err


def test_a_broken_pipe_is_silent(tmp_path: pathlib.Path, program: Write) -> None:
    harness.plimsoll_run(program(PROGRAM), options=["-o", tmp_path / "out.plim"]).expect(6)
    command = f"'{harness.binary()}' show '{tmp_path / 'out.plim'}' flat | head -1"
    finished = harness.run(["sh", "-c", command])
    assert finished.err == "" and len(finished.out.splitlines()) == 1
