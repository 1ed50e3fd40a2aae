"""The page with a flame graph: what it computes, from a real recording. Its script runs under node, without a page."""

from __future__ import annotations

import html
import json
import pathlib
import re
import shutil
import subprocess
from typing import Any, Callable

import pytest

import harness

Write = Callable[[str], pathlib.Path]
NODE = shutil.which("node")
PROGRAM = """
import time
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: sum(range(1000))
def left(): burn(0.3)
def right(): burn(0.1)
left(); right()
kept = [bytearray(100_000) for _ in range(200)]
"""


def page_of(tmp_path: pathlib.Path, program: Write, *options: str) -> str:
    page = tmp_path / "app.html"
    recorded = harness.record(tmp_path, program(PROGRAM), options=[*options])
    recorded.profile.save(page)
    return page.read_text()


def profile_in(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="profile">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def by_script(page: str, work: str) -> Any:
    """What `work` prints as JSON, JavaScript that has the page's functions, and `profile`."""
    if NODE is None:
        pytest.skip("there is no node here to run the page's script")
    script = page[page.rindex("<script>") + len("<script>"):page.rindex("</script>")]
    whole = f"{script}\nconst profile = {json.dumps(profile_in(page))};\nconsole.log(JSON.stringify((() => {{ {work} }})()));"
    ran = subprocess.run([NODE, "-"], input=whole, capture_output=True, text=True, timeout=harness.DEADLINE)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_the_page_has_what_was_recorded(tmp_path: pathlib.Path, program: Write) -> None:
    page = profile_in(page_of(tmp_path, program, "--alloc=64K"))
    assert [view["name"] for view in page["views"]] == ["CPU time", "Allocated", "Alive at the end", "Alive at the peak"]
    # time: of functions as they are known to be
    time, names = page["views"][0], [function[0] for function in page["functions"]]
    total = {names[function]: total for function, _, total in time["flat"]}
    assert total["left"] / total["right"] == pytest.approx(3, rel=0.2)
    assert total["burn"] == pytest.approx(total["left"] + total["right"], rel=0.05)
    # memory: what is alive is what is kept
    alive = page["views"][2]
    assert alive["unit"] == "bytes" and alive["total"][0] == pytest.approx(20_000_000, rel=0.15)


def test_the_script_computes_from_the_columns(tmp_path: pathlib.Path, program: Write) -> None:
    page = page_of(tmp_path, program)
    told = by_script(page, """
        const {depth, function: func, total, self, count} = profile.views[0];
        const tree = treeOf(depth, func, total, self, count), turned = inverted(tree);
        const named = (tree, name) => find(tree, (func) => profile.functions[func][0] === name);
        const burn = named(turned, "burn").found.findIndex((found, node) => found && turned.depth[node] === 1);
        const callers = [];
        for (let node = burn + 1; node < turned.end[burn]; node = turned.end[node])
            callers.push(profile.functions[turned.func[node]][0]);
        return {all: tree.total[0], turned: turned.total[0], burn: named(tree, "burn").weight,
                callers, boxes: layout(tree, 0, 1000), overlap: layout(tree, 0, 1000).length};
    """)
    # Turned round, nothing is lost, and callers stand below whom they call, the heaviest first.
    assert told["turned"] == told["all"] > 0
    assert told["callers"] == ["left", "right"]
    assert told["burn"] == pytest.approx(0.4e9, rel=0.1) and told["burn"] <= told["all"]
    # All boxes lie within the page, the root's as wide as it.
    assert told["boxes"][0]["width"] == pytest.approx(1000)
    assert all(0 <= box["x"] and box["x"] + box["width"] <= 1000.001 for box in told["boxes"])


def test_the_script_knows_trees(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN   all 10 > a 7 > b 4 > a 1   and   all > c 3
    told = by_script(page_of(tmp_path, program), """
        const tree = treeOf([0, 1, 2, 3, 1], [-1, 0, 1, 0, 2], [10, 7, 4, 1, 3], [0, 3, 3, 1, 3], [10, 7, 4, 1, 3]);
        const turned = inverted(tree), arrows = {};
        for (const key of ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"])
            arrows[key] = [0, 1, 2, 3, 4].map((node) => neighbour(tree, node, key));
        return {parent: [...tree.parent], start: [...tree.start], end: [...tree.end],
                found: find(tree, (func) => func === 0), arrows,
                turned: {depth: turned.depth, func: turned.func, total: turned.total, count: turned.count},
                widened: layout(tree, 1, 70), units: [[999, "ns"], [1.5e9, "ns"], [123456, "bytes"], [0, "bytes"]].map(
                    ([value, unit]) => withUnit(value, unit)), half: percent(1, 2), none: percent(0, 0)};
    """)
    assert told["parent"] == [-1, 0, 1, 2, 0]
    assert told["start"] == [0, 0, 0, 0, 7] and told["end"] == [5, 4, 4, 4, 5]
    # THEN recursion is found, and counted once
    assert told["found"] == {"found": {"0": 0, "1": 1, "2": 0, "3": 1, "4": 0}, "weight": 7}
    assert told["arrows"] == {"ArrowUp": [0, 0, 1, 2, 0], "ArrowDown": [1, 2, 3, 3, 4],
                              "ArrowLeft": [0, 1, 2, 3, 1], "ArrowRight": [0, 4, 2, 3, 4]}
    # AND turned round it is   all 10 > a 4 > b 1 > a 1   and   all > b 3 > a 3   and   all > c 3
    assert told["turned"]["func"] == [-1, 0, 1, 0, 1, 0, 2]
    assert told["turned"]["depth"] == [0, 1, 2, 3, 1, 2, 1]
    assert told["turned"]["total"] == told["turned"]["count"] == [10, 4, 1, 1, 3, 3, 3]
    # AND what is widened fills the page below its callers
    assert [(box["node"], box["x"], box["width"]) for box in told["widened"]] == [
        (0, 0, 70), (1, 0, 70), (2, 0, 40), (3, 0, 10)]
    assert told["units"] == ["999 ns", "1.50 s", "123 kB", "0 B"]
    assert told["half"] == "50.0 %" and told["none"] == "0.0 %"


def test_a_notebook_shows_it_in_a_frame_of_its_own(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a profile
    profile = harness.record(tmp_path, program(PROGRAM)).profile
    # WHEN a notebook shows its flame graph
    shown = profile.flamegraph(height=321)._repr_html_()
    # THEN that is the page, in a frame that can do nothing to the notebook
    frame, = re.findall(r'<iframe srcdoc="([^"]*)" sandbox="allow-scripts" [^<>]*321px[^<>]*></iframe>', shown)
    profile.save(tmp_path / "app.html")
    assert html.unescape(frame) == (tmp_path / "app.html").read_text() == profile.flamegraph().page
    # AND of nothing there is none
    with pytest.raises(ValueError, match="nothing to write"):
        profile.filter(function="no such function").flamegraph()
