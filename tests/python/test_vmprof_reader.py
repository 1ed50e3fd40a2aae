"""vmprof's Stats and Node, of files whose content is known."""

from __future__ import annotations

import datetime
import gzip
import io
import json
import pathlib
import random
from typing import Any

import pytest

import plimsoll
from plimsoll.compat import vmprof
from plimsoll.compat.vmprof.reader import AssemblerCode, JittedCode, NativeCode
from plimsoll.compat.vmprof.stats import EmptyProfileFile, Node, split_name
from vmprof_files import LINES, MEMORY, TAGGED, Drawing

pytestmark = pytest.mark.any_version

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "vmprof"
LAYOUTS = [(8, 8), (4, 4), (4, 8)]  # Unix with 64 and 32 bits; Windows with 64


def read(drawing: "Drawing | bytes") -> vmprof.Stats:
    return vmprof.read_profile(io.BytesIO(bytes(drawing)))


def small(version: int = 6, flags: int = 0, **layout: int) -> Drawing:
    """main calls work twice, and library once."""
    drawing = Drawing(version, flags, **layout)
    drawing.stack(4, 2).stack(4, 2).stack(6, 2)
    return drawing.name(2, "py:main:1:app.py").name(4, "py:work:5:app.py").name(6, "py:library:9:lib.py")


# ---- files ----


@pytest.mark.parametrize("word, address", LAYOUTS)
@pytest.mark.parametrize("version", range(1, 7))
def test_every_version_and_size_of_words_is_read(version: int, word: int, address: int) -> None:
    stats = read(small(version, word=word, address=address).end())
    assert [trace for trace, *_ in stats.profiles] == [[2, 4], [2, 4], [2, 6]]
    assert stats.functions == {2: 3, 4: 2, 6: 1} and stats.interp == "cpython" and stats.profile_version == version


def test_version_0_has_the_stacks_that_have_names() -> None:
    stats = read(Drawing(0).stack(0x5359C0, 0x5359C0, 0x10, 0x41B590, 0x20).name(0x10, "py:work:5:app.py")
                 .name(0x20, "py:main:1:app.py").end().raw(b"00400000-00401000 r-xp 00000000 00:00 0 /bin/python\n"))
    assert stats.profiles == [([0x20, 0x10], 1, 0, 0)] and stats.profile_version == 0


def test_lines_are_negative_numbers_behind_their_function() -> None:
    stats = read(small(6, LINES).stack(6, 4, 2, 2).end())
    assert stats.profile_lines
    assert stats.profiles[-1][0] == [2, -2, 4, -6]


def test_memory_and_thread_come_with_the_sample() -> None:
    stats = read(Drawing(6, MEMORY).stack(4, 2, thread=9, memory=1234).end())
    assert stats.profile_memory and stats.profiles == [([2, 4], 1, 9, 1234)]


def test_pypys_entries_are_of_their_kinds() -> None:
    # GIVEN interpreted code that calls machine code, which calls a native function; and the garbage collector
    drawing = Drawing(6, TAGGED, interpreter=b"pypy").stack(7, 5, 6, 0x1000, 3, 4, 1, 2).stack(5, 0, 1, 2)
    trace, collecting = (trace for trace, *_ in read(drawing.end()).profiles)
    assert trace == [2, 4, 0x1000, 5]
    assert [type(entry) for entry in trace] == [int, JittedCode, AssemblerCode, NativeCode]
    assert collecting == [2]


def test_start_end_and_facts() -> None:
    stats = read(small().start(100, 250000).meta(b"os", b"linux").meta(b"os", b"twice").meta(b"argv", b"app.py x")
                 .end(102, 500000))
    assert stats.get_runtime_in_microseconds() == 2250000
    assert stats.start_time == datetime.datetime.fromtimestamp(100) + datetime.timedelta(microseconds=250000)
    assert stats.getargv() == "app.py x" and stats.getmeta("os", "") == "linux" and stats.getmeta("arch", "?") == "?"
    assert read(small()).get_runtime_in_microseconds() == 0


def test_of_two_names_python_has_the_last_word() -> None:
    assert read(small().name(4, "n:PyEval:0:-", b"\x08").end()).get_name(4) == "work"


def test_sampled_allocations() -> None:
    stats = read(Drawing(7).stack(4, 2, at=1.5).stack(6, 2, at=2.0, marker=b"\x09")
                 .raw(b"\x0a" + bytes(8) + Drawing().words(2, 8, 5)).name(2, "py:main:1:app.py").end())
    assert [trace for trace, *_ in stats.gc_profiles] == [[2, 6]] and stats.gc_obj_info == [(0.0, [5, 8])]
    assert stats.get_tree(kind="gc").name == "py:main:1:app.py" and len(stats.profiles) == 1


def test_both_layouts_of_version_7() -> None:
    fork = read(Drawing(7).stack(4, 2, at=1.5).stack(4, 2, at=1.6).end())
    newer = read(Drawing(7).stack(4, 2).raw(bytes(8)).stack(4, 2).raw(bytes(8)).end())
    assert fork.profiles == newer.profiles == [([2, 4], 1, 7, 0)] * 2


def test_macos_has_a_word_too_many() -> None:
    assert len(read(Drawing(6).stack(4, 2).raw(bytes(8)).stack(4, 2).end()).profiles) == 2


def test_a_file_that_is_cut_anywhere_is_read_up_to_there() -> None:
    data = bytes(small().start(1).meta(b"os", b"linux").end(2))
    header = 40
    counts = [len(read(data[:size]).profiles) for size in range(header, len(data) + 1)]
    assert counts == sorted(counts) and set(counts) == {0, 1, 2, 3}


def test_damage_is_survived() -> None:
    # GIVEN files with random bytes changed, always the same ones; THEN each is read or refused, and no more
    rng = random.Random(6)
    data = bytes(small(6, LINES | MEMORY).start(1).meta(b"os", b"linux").end(2))
    for _ in range(2000):
        changed = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            changed[rng.randrange(len(data))] = rng.choice((0, 1, 2, 3, 0x7F, 0xFF, rng.randrange(256)))
        try:
            assert len(read(bytes(changed)).profiles) <= len(data)
        except ValueError:
            pass


@pytest.mark.parametrize("data, words", [(b"", "empty"), (b"root:x:0:0", "not"), (b"\x1f\x8bnothing", "gzip"),
                                         (b"\0\0\0\0\0\0\0\3" + bytes(12), "big-endian")])
def test_what_is_no_profile_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read(data)


def test_gzipped_files_by_path(tmp_path: pathlib.Path) -> None:
    (tmp_path / "app.prof.gz").write_bytes(gzip.compress(bytes(small().end())))
    assert len(vmprof.read_profile(tmp_path / "app.prof.gz").profiles) == 3


def test_other_formats_are_read_too(tmp_path: pathlib.Path) -> None:
    # GIVEN the same profile as .plim
    (tmp_path / "app.prof").write_bytes(bytes(small().end()))
    plimsoll.Profile.open(tmp_path / "app.prof").save(tmp_path / "app.plim")
    # THEN its tree is the same, but for addresses
    tree = vmprof.read_profile(str(tmp_path / "app.plim")).get_tree()
    assert repr(tree) == repr(read(small().end()).get_tree())


# ---- recorded by vmprof itself ----


def test_a_windows_profile() -> None:
    stats = vmprof.read_profile(DATA / "example.prof.gz")
    tree = stats.get_tree()
    assert (len(stats.profiles), tree.count, tree._rec_count()) == (2535, 2518, 3)
    assert stats.get_runtime_in_microseconds() == 494000
    assert tree["function_b"].count == 2518


def test_pypys_profiles() -> None:
    tree = vmprof.read_profile(DATA / "pypy-pystone.prof.gz").get_tree()
    assert (tree.count, tree._rec_count(), tree.cumulative_meta()) == (375, 16, {"jit": 355})
    oldest = vmprof.read_profile(DATA / "richards.pypy.prof.gz")
    assert len(oldest.profiles) == 69 and oldest.get_tree()


# ---- statistics ----

NAMES = {2: "py:main:1:app.py", 4: "py:work:5:app.py", 6: "n:f(std::pair<int>):0:lib.so", 9: "py:<module>:1:app.py"}


def stats_of(*traces: Any) -> vmprof.Stats:
    return vmprof.Stats([(trace, 1, 7, 0) for trace in traces], NAMES)


def test_a_function_counts_once_in_a_sample() -> None:
    stats = stats_of([2, 4, 2, 4], [2])
    assert stats.functions == {2: 2, 4: 1}
    assert dict(stats.top_profile()) == {NAMES[2]: 2, NAMES[4]: 1}


def test_what_a_function_calls() -> None:
    assert stats_of([2, 4, 6, 6], [2, 4], [4]).function_profile(2) == ([(6, 1), (4, 2)], 2)


def test_names() -> None:
    stats = stats_of([2, 11])
    assert stats.display(0) == [NAMES[2], "<unknown code>"]
    assert (stats.get_name(4), stats.get_name(11)) == ("work", "unknown")
    assert stats.get_addr_info(6) == ("n", "f(std::pair<int>)", "0", "lib.so") and stats.get_addr_info(11) is None
    assert list(stats.find_addrs_containing_name("or")) == [4]
    assert vmprof.Stats([([5], 1, 0, 0)]).display(0) == [5]


@pytest.mark.parametrize("name, parts", [("py:f:12:C:\\app.py", ("py", "f", "12", "C:\\app.py")),
                                         ("n:std::a::b:0:-", ("n", "std::a::b", "0", "-")),
                                         ("py:odd", ("py", "odd", "0", "-")), ("odd", ("", "odd", "0", "-"))])
def test_names_with_too_many_colons_or_too_few(name: str, parts: Any) -> None:
    assert split_name(name) == parts


def test_the_tree() -> None:
    # GIVEN direct recursion, which is one node, and lines
    tree = stats_of([2, -1, 4, -5, 4, -6], [2, -1, 6, 0], [2, -2]).get_tree()
    assert repr(tree) == "<Node: py:main:1:app.py (3) [(1, py:work:5:app.py), (1, n:f(std::pair<int>):0:lib.so)]>"
    assert tree.lines == {1: 2, 2: 1} and tree["work"].lines == {5: 1, 6: 1}
    assert tree.self_count == tree.get_self_count() == 1
    assert tree[4] is tree["work"]
    with pytest.raises(KeyError):
        tree["nothing"]


def test_the_root_is_the_module_that_was_run() -> None:
    NAMES_OF_RUNNER = {10: "py:<module>:1:/lib/vmprof/__main__.py", 12: "py:run_path:3:runpy.py", **NAMES}
    stats = vmprof.Stats([([10, 12, 9, 2], 1, 0, 0), ([10], 1, 0, 0)], NAMES_OF_RUNNER)
    assert stats.get_tree().addr == 9
    assert stats_of([2, 4]).get_tree().addr == 2


def test_states_of_the_leaf() -> None:
    tree = stats_of([2, JittedCode(4), AssemblerCode(99)], [2, NativeCode(6)], [2]).get_tree()
    assert (tree.meta, tree[4].meta, tree[6].meta) == ({}, {"jit": 1}, {"native": 1})
    assert tree.cumulative_meta() == {"jit": 1, "native": 1}


def test_a_tree_as_json() -> None:
    tree = stats_of([2, 4], [2]).get_tree()
    assert json.loads(tree.as_json()) == ["py:main:1:app.py", "2", 2, {}, [["py:work:5:app.py", "4", 1, {}, []]]]


def test_nodes_are_equal_with_all_below() -> None:
    assert vmprof.Node is Node
    one, two = stats_of([2, 4], [2]).get_tree(), stats_of([2], [2, 4]).get_tree()
    assert one == two and not one != two and one != "text"
    two.add_child(6, "more")
    assert one != two and two._rec_count() == 3
    seen: "list[str]" = []
    two.walk(lambda node: seen.append(node.name))
    assert seen == ["py:main:1:app.py", "py:work:5:app.py", "more"]


def test_a_tree_may_be_deeper_than_pythons_stack() -> None:
    trace = [2 * number for number in range(1, 5001)]
    tree, twin = stats_of(trace).get_tree(), stats_of(trace).get_tree()
    assert tree == twin and tree._rec_count() == 5000 and tree._serialize()[1] == "2"


def test_no_samples_make_no_tree() -> None:
    with pytest.raises(EmptyProfileFile):
        stats_of([]).get_tree()
    assert Node(1, "alone").self_count == 1
