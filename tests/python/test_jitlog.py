"""The traces of PyPy's JIT, in Python."""

from __future__ import annotations

import gzip
import pathlib

import pytest

from plimsoll.jitlog import STAGES, Forest

pytestmark = pytest.mark.any_version

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "jitlog"


def test_a_whole_log() -> None:
    # GIVEN a log of which the numbers are known WHEN it is read THEN all of it is there
    forest = Forest.open(DATA / "pypy-pystone.prof.jit.gz")
    assert (forest.version, forest.bits, forest.machine, forest.problem) == (4, 64, "x86_64", "")
    assert [trace.kind for trace in forest.traces].count("loop") == 6 and len(forest.traces) == 27
    stages = [trace.stages[name] for trace in forest.traces for name in STAGES]
    assert sum(len(stage.operations) for stage in stages) == 18307
    assert sum(len(stage.merge_points) for stage in stages) == 3058
    assert [trace.runs for trace in forest.traces] == sorted((trace.runs for trace in forest.traces), reverse=True)


def test_traces_are_linked() -> None:
    forest = Forest.open(DATA / "pypy-pystone.prof.jit.gz")
    # GIVEN a guard that has a bridge WHEN one follows it THEN its stitch is where the bridge's machine code begins
    trace = forest.trace(47)
    assert trace.place is not None and (trace.place.function, trace.place.line) == ("Proc8", 226)
    guard = next(one for one in trace.stages["asm"].operations if one.bridge is not None)
    assert guard.is_guard and guard.bridge == 51 and guard.arguments == ["i63"] and len(guard.code) == 6
    bridge = forest.trace(51)
    assert bridge.kind == "bridge" and forest.stitches[guard.descriptor_id] == bridge.code_start
    assert forest.trace_at(bridge.code_start) is bridge and forest.trace_at(1) is None
    with pytest.raises(KeyError):
        forest.trace(1)


def test_traces_are_picked_by_queries() -> None:
    forest = Forest.open(DATA / "pypy-pystone.prof.jit.gz")
    assert {trace.kind for trace in forest.query("loops")} == {"loop"}
    assert len(forest.query("loops() | bridges()")) == 27 and forest.query('func("nowhere")') == []
    with pytest.raises(ValueError, match="column 8: expected a number"):
        forest.query("count >")


def test_what_is_no_log_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "app.jit").write_text("hello")
    for path in (tmp_path / "app.jit", tmp_path / "missing.jit"):
        with pytest.raises(ValueError, match=path.name):
            Forest.open(path)


def test_a_log_that_is_cut_is_read_up_to_there(tmp_path: pathlib.Path) -> None:
    whole = gzip.decompress((DATA / "pypy-pystone.prof.jit.gz").read_bytes())
    (tmp_path / "-cut.jit").write_bytes(whole[:700_000])
    forest = Forest.open(tmp_path / "-cut.jit")
    assert 0 < len(forest.traces) < 27 and forest.problem != ""
