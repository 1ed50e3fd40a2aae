"""Lines and inlined functions of native frames, from debug information: in the file, beside it, or in a cache."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import shutil
import subprocess
from typing import Any, Callable

import pytest

import harness
import plimsoll
from native_programs import EXTENSIONS, built

#: What libraries say of themselves is no matter of Python's.
pytestmark = pytest.mark.any_version
Write = Callable[..., pathlib.Path]

#: The functions that were inlined into each other, outermost first.
CALLS = ["keel", "void hull::deck<long>(long)", "hull::plank(long)"]


def line_of(function: str) -> int:
    lines = (EXTENSIONS / "inlined.cc").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"// the line of {function}"))


LINES = [line_of("keel"), line_of("deck"), line_of("plank")]


def build_id(library: pathlib.Path) -> str:
    told = subprocess.run(["readelf", "-n", library], capture_output=True, text=True, check=True).stdout
    return next(line.rpartition(" ")[2] for line in told.splitlines() if "Build ID" in line)


def record(directory: pathlib.Path, program: Write, library: pathlib.Path) -> pathlib.Path:
    harness.record(directory, program(f"import ctypes\nctypes.CDLL({str(library)!r}).keel(400)\n"), options=["--native"])
    return directory / "recorded.plim"


def converted(path: pathlib.Path, name: str, **options: Any) -> pathlib.Path:
    harness.plimsoll_command("convert", path, "-o", path.with_name(name), **options).expect()
    return path.with_name(name)


def stacks_of(path: pathlib.Path) -> "list[list[Any]]":
    """The frames of the library's stacks, from keel on."""
    return [frames for _, frames in weighed(path)]


def weighed(path: pathlib.Path, outermost: str = "keel") -> "list[tuple[int, list[Any]]]":
    """Likewise, or from another function on, with the time of each."""
    found = []
    for stack in harness.stacks(plimsoll.Profile.open(path)):
        names = [frame.function.name for frame in stack.frames]
        if outermost in names:
            found.append((stack.weight_ns, list(stack.frames[names.index(outermost):])))
    return found


def share_of(path: pathlib.Path, lines: "list[int]") -> float:
    """The part of the library's time in stacks with these lines."""
    stacks = weighed(path)
    return sum(ns for ns, frames in stacks if [frame.line for frame in frames] == lines) / sum(ns for ns, _ in stacks)


@pytest.fixture
def recorded(tmp_path: pathlib.Path, program: Write) -> pathlib.Path:
    return record(tmp_path, program, built(tmp_path, "inlined.cc", "-g"))


def test_inlined_functions_are_frames_of_their_own(recorded: pathlib.Path) -> None:
    # GIVEN a recording of C++ functions that were inlined into each other, of which it knows nothing yet
    assert not any("hull" in frame.function.name for frames in stacks_of(recorded) for frame in frames)
    # WHEN it becomes a pprof file THEN each function is there, where it was called, with its line
    path = converted(recorded, "out.pb.gz")
    assert share_of(path, LINES) > 0.8
    working = [frames for frames in stacks_of(path) if frames[-1].function.name == CALLS[-1]]
    assert working and all([frame.function.name for frame in frames] == CALLS for frames in working)
    assert all(frame.function.file.endswith("inlined.cc") for frames in working for frame in frames)


@pytest.mark.parametrize("version", ["-gdwarf-4", "-gdwarf-5"])
def test_debug_information_in_files_of_its_own(tmp_path: pathlib.Path, program: Write, version: str) -> None:
    # GIVEN a library of two sources with the same functions, but for their names, whose debug information is split off
    flags = ["-g", version, "-gsplit-dwarf"]
    other = tmp_path / "other.cc"
    renamed = (EXTENSIONS / "inlined.cc").read_text()
    for old, new in (("keel", "rail"), ("hull", "mast"), ("deck", "boom"), ("plank", "stays")):
        renamed = renamed.replace(old, new)
    other.write_text(renamed)
    library = built(tmp_path, "inlined.cc", *flags, str(other))
    harness.record(tmp_path, program(f"import ctypes\nlibrary = ctypes.CDLL({str(library)!r})\n"
                                     "library.keel(300)\nlibrary.rail(300)\n"), options=["--native"])
    # THEN each has its own functions and lines
    path = converted(tmp_path / "recorded.plim", "out.pb.gz")
    for calls in (CALLS, ["rail", "void mast::boom<long>(long)", "mast::stays(long)"]):
        stacks = weighed(path, calls[0])
        right = sum(ns for ns, frames in stacks if [frame.line for frame in frames] == LINES
                    and [frame.function.name for frame in frames] == calls)
        assert right > 0.8 * sum(ns for ns, _ in stacks) > 0


def test_one_location_of_pprof_has_all_that_was_inlined_there(recorded: pathlib.Path) -> None:
    # THEN a location has three lines: its bytes have three messages of field 4
    data = gzip.decompress(converted(recorded, "out.pb.gz").read_bytes())
    lines = [len([1 for number, _ in fields(message) if number == 4]) for field, message in fields(data) if field == 4]
    assert 3 in lines


def fields(data: bytes) -> "list[tuple[int, Any]]":
    """The fields of a protobuf message: varints and bytes."""
    found: "list[tuple[int, Any]]" = []
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            found.append((key >> 3, varint()))
        else:
            size = varint()
            found.append((key >> 3, data[at:at + size]))
            at += size
    return found


def test_the_firefox_profiler_is_told_how_deep_they_are_inlined(recorded: pathlib.Path) -> None:
    document = json.loads(gzip.decompress(converted(recorded, "out.firefox.json.gz").read_bytes()))
    tables = document["shared"]
    names = [tables["stringArray"][name] for name in tables["funcTable"]["name"]]
    depths = {}
    for func, depth, line in zip(tables["frameTable"]["func"], tables["frameTable"]["inlineDepth"],
                                 tables["frameTable"]["line"]):
        if names[func] in CALLS and line in LINES:
            depths[names[func]] = depth
    assert depths == {name: depth for depth, name in enumerate(CALLS)}


def test_show_has_their_places(recorded: pathlib.Path) -> None:
    shown = harness.plimsoll_command("show", recorded, "--native", "--no-fold").expect().out
    plank = next(line for line in shown.splitlines() if "hull::plank(long)" in line)
    assert "inlined.cc" in plank
    # AND of lines the one that took the time has it
    lines = json.loads(harness.plimsoll_command("show", recorded, "lines", "--json").expect().out)["lines"]
    of_file = [row for row in lines if row["file"].endswith("inlined.cc")]
    heaviest = max(of_file, key=lambda row: row["self_ns"])
    assert (heaviest["line"], heaviest["function"]) == (LINES[2], CALLS[2])
    # AND without native frames none of it is there
    assert "hull" not in harness.plimsoll_command("show", recorded, "--no-native").expect().out


@pytest.mark.parametrize("place", ["link", "cache"])
def test_debug_information_that_is_kept_apart(tmp_path: pathlib.Path, program: Write, place: str) -> None:
    if not shutil.which("objcopy"):
        pytest.skip("there are no binutils here")
    # GIVEN a library whose debug information stands in another file: beside it, or in debuginfod's cache
    library = built(tmp_path, "inlined.cc", "-g", "-Wl,--build-id")
    cache = tmp_path / "cache"
    apart = library.with_suffix(".debug") if place == "link" else cache / build_id(library) / "debuginfo"
    apart.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["objcopy", "--only-keep-debug", library, apart], check=True)
    link = [f"--add-gnu-debuglink={apart}"] if place == "link" else []
    subprocess.run(["objcopy", "--strip-all", *link, library], check=True)
    recorded = record(tmp_path, program, library)
    environment = {**os.environ, "DEBUGINFOD_CACHE_PATH": str(cache)}
    # THEN it is found
    assert share_of(converted(recorded, "out.pb.gz", env=environment), LINES) > 0.8
    # AND of another build's it is not believed
    other = built(tmp_path, "inlined.cc", "-g", "-O1", "-Wl,--build-id")
    subprocess.run(["objcopy", "--only-keep-debug", other, apart], check=True)
    assert share_of(converted(recorded, "again.pb.gz", env=environment), LINES) == 0


def test_a_file_that_has_changed_since_is_not_believed(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a library that was built anew after the recording
    recorded = record(tmp_path, program, built(tmp_path, "inlined.cc", "-g", "-Wl,--build-id"))
    (tmp_path / "libinlined.so").unlink()
    built(tmp_path, "inlined.cc", "-g", "-O1", "-Wl,--build-id")
    # THEN its frames stay what they were
    stacks = stacks_of(converted(recorded, "out.pb.gz"))
    assert stacks and all(frames[0].line == 0 for frames in stacks)
