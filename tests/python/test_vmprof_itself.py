"""What vmprof's own reader says of files, and what ours says. Where vmprof installs: CPython 3.9 to 3.11."""

from __future__ import annotations

import gzip
import pathlib
import sys
import threading
from typing import Any

import pytest

import harness
from plimsoll.compat import vmprof as ours
from vmprof_files import LINES, MEMORY, TAGGED, Drawing

if sys.version_info >= (3, 12):
    pytest.skip("vmprof has no packages for CPython 3.12 and later", allow_module_level=True)
theirs: Any = pytest.importorskip("vmprof", reason="vmprof is not installed: pip install vmprof")

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "vmprof"
RECORDED = ("example.prof.gz", "pypy-pystone.prof.gz")  # vmprof does not read version 0


def assert_alike(path: pathlib.Path) -> None:
    """Both readers say the same of a file, in all that vmprof's says."""
    one, two = ours.read_profile(path), theirs.read_profile(path)
    for name in ("profiles", "adr_dict", "functions", "interp", "meta", "start_time", "end_time", "profile_lines",
                 "profile_memory"):
        assert getattr(one, name) == getattr(two, name), name
    assert [[type(entry).__name__ for entry in trace] for trace, *_ in one.profiles[:50]] == \
           [[type(entry).__name__ for entry in trace] for trace, *_ in two.profiles[:50]]
    assert one.get_runtime_in_microseconds() == two.get_runtime_in_microseconds()
    assert sorted(one.top_profile()) == sorted(two.top_profile())
    tree, their_tree = one.get_tree(), two.get_tree()
    assert tree.as_json() == their_tree.as_json()
    assert (repr(tree), tree._rec_count(), tree.self_count) == \
           (repr(their_tree), their_tree._rec_count(), their_tree.self_count)
    assert tree.cumulative_meta() == their_tree.cumulative_meta()
    address = tree.addr
    assert one.function_profile(address) == two.function_profile(address)
    assert one.get_addr_info(address) == two.get_addr_info(address)
    assert list(one.find_addrs_containing_name("a")) == list(two.find_addrs_containing_name("a"))
    nodes: "list[list[Any]]" = [[], []]
    tree.walk(lambda node: nodes[0].append((node.name, node.lines, node.self_count)))
    their_tree.walk(lambda node: nodes[1].append((node.name, node.lines, node.self_count)))
    assert nodes[0] == nodes[1]


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_files(name: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "recorded").write_bytes(gzip.decompress((DATA / name).read_bytes()))
    assert_alike(tmp_path / "recorded")


@pytest.mark.parametrize("word, address", [(8, 8), (4, 4), (4, 8)])
@pytest.mark.parametrize("version, flags", [(1, 0), (2, 0), (3, 0), (4, MEMORY), (5, LINES), (6, LINES | MEMORY)])
def test_drawn_files(version: int, flags: int, word: int, address: int, tmp_path: pathlib.Path) -> None:
    pairs = bool(flags & LINES)
    stacks = [(4, 2), (4, 4, 2), (6, 2, 2), (9, 2)]
    drawing = Drawing(version, flags, word=word, address=address).meta(b"os", b"linux").start(100, 5)
    for number, stack in enumerate(stacks):
        entries = [part for entry in stack for part in ((number + 1, entry) if pairs else (entry,))]
        drawing.stack(*entries, thread=number, memory=number * 100)
    drawing.name(2, "py:main:1:app.py").name(4, "py:work:5:app.py").name(9, "n:native:0:lib.so", b"\x08").end(101, 7)
    (tmp_path / "drawn").write_bytes(bytes(drawing))
    assert_alike(tmp_path / "drawn")


def test_a_drawn_file_of_pypy(tmp_path: pathlib.Path) -> None:
    drawing = Drawing(6, TAGGED, interpreter=b"pypy").stack(7, 5, 6, 0x1000, 3, 4, 1, 2).stack(3, 4, 6, 16, 1, 2)
    (tmp_path / "drawn").write_bytes(bytes(drawing.name(2, "py:main:1:app.py").name(4, "py:work:5:app.py").end(1)))
    assert_alike(tmp_path / "drawn")


@pytest.mark.parametrize("options", [{}, {"lines": True}, {"memory": True}, {"lines": True, "memory": True},
                                     {"real_time": True}])
def test_what_we_record(options: "dict[str, Any]", tmp_path: pathlib.Path) -> None:
    # GIVEN a recording by the same call in both
    def record(module: Any, path: pathlib.Path) -> None:
        with open(path, "w+b") as file:
            module.enable(file.fileno(), 0.001, native=False, **options)
            thread = threading.Thread(target=harness.burn, args=(0.05,))
            thread.start()
            harness.burn(0.1)
            thread.join()
            module.disable()

    record(ours, tmp_path / "ours")
    record(theirs, tmp_path / "theirs")
    # THEN vmprof reads ours as we do, and ours has the same flags and facts
    assert_alike(tmp_path / "ours")
    one, two = theirs.read_profile(tmp_path / "ours"), theirs.read_profile(tmp_path / "theirs")
    assert (one.profile_lines, one.profile_memory, one.interp) == (two.profile_lines, two.profile_memory, two.interp)
    assert {name: one.meta[name] for name in ("os", "bits")} == {name: two.meta[name] for name in ("os", "bits")}


@pytest.mark.parametrize("period", [1, 0.0, 5e-7, 1.0, "1", None])
@pytest.mark.parametrize("mode", ["r", "w", "a+"])
def test_what_is_refused(period: Any, mode: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    with open(tmp_path / "file", mode) as file:
        said = []
        for module in (ours, theirs):
            with pytest.raises(ValueError) as error:
                module.enable(file.fileno(), period)
            said.append(str(error.value))
    assert said[0] == said[1]
