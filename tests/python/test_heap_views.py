"""Several objects seen as one: parts, modules, and rules of the user's."""

from __future__ import annotations

import json
import pathlib
import warnings
from typing import Any

import pytest

import harness
import plimsoll.heap
from heap_rules import run, take

pytestmark = pytest.mark.most_versions

__all__ = ["take"]  # a fixture


class Cache:
    def __init__(self) -> None:
        self.entries = {number: bytes(1000) for number in range(100)}
        self.name = "a cache"


class Special(Cache):
    pass


def total(heap: plimsoll.heap.Heap) -> int:
    return sum(heap.size)


def test_views_move_sizes_and_lose_none(take: Any) -> None:
    # GIVEN
    keep = Cache()
    raw = take()
    # WHEN
    for stages in ["parts"], ["module"], [f"{__name__}.Cache: *"], ["module", plimsoll.heap.Rule(Cache, parts=["*"])]:
        seen = raw.view(*stages)
        # THEN
        assert total(seen) == total(raw), stages
        assert seen.root.retained == raw.root.retained, stages
        assert len(seen) < len(raw), stages
        assert list(seen.address) == sorted(seen.address)
    assert keep.entries


def test_an_instance_in_parts_has_its_dict(take: Any) -> None:
    # GIVEN an instance whose attributes are in a dict
    keep = Cache()
    place = id(keep.__dict__)
    raw = take()
    # WHEN
    seen = raw.view("parts")
    # THEN
    assert seen.find(place) == seen.find(id(keep))
    assert seen.find(id(keep)).size == raw.find(id(keep)).size + raw.find(place).size
    assert ".entries" in [edge for edge, _ in seen.find(id(keep)).referents()]
    assert raw.find(place).type == "dict"


def test_rules_take_subclasses_and_all_that_they_keep_alive(take: Any) -> None:
    keep = Special()
    raw = take()
    whole = raw.find(id(keep)).retained
    # WHEN a rule is for a base class
    seen = raw.view(plimsoll.heap.Rule(Cache, parts=["*"]))
    # THEN its size is what was retained, and what is inside is found there
    assert seen.find(id(keep)).size == seen.find(id(keep)).retained == whole > 100_000
    assert seen.find(id(keep.entries)) == seen.find(id(keep))
    by_name = raw.view(f"{__name__}.Cache: entries")
    assert by_name.find(id(keep.entries)) == by_name.find(id(keep))
    assert by_name.find(id(keep.entries[7])) != by_name.find(id(keep)), "entries are not the dict"


def test_a_module_is_one_node_with_its_classes_and_functions(take: Any) -> None:
    import statistics

    raw = take()
    seen = raw.view("module")
    module = seen.find(id(statistics))
    for each in statistics.mean, statistics.NormalDist, statistics.__dict__, statistics.NormalDist.pdf:
        assert seen.find(id(each)) == module, each
    assert module.size > 5 * raw.find(id(statistics)).size
    assert not any(row.type == "function" and row.count > sum(1 for _ in raw.objects("function")) / 2
                   for row in seen.types()), "most functions are in their modules"


def test_wrong_views_are_told_so(take: Any) -> None:
    heap = take()
    for wrong in "modul", "app.Cache:", "":
        with pytest.raises(ValueError, match="view"):
            heap.view(wrong)


def test_rules_for_nobody_are_warned_of(take: Any) -> None:
    # GIVEN a heap with an object of a class, and none of another
    keep = Cache()
    heap = take()
    # WHEN a view has a rule for a class that is not there THEN that is said, with what may have been meant
    with pytest.warns(UserWarning, match=f"no object of class '{__name__}.Cach' .did you mean '{__name__}.Cache'.*nothing"):
        heap.view(f"{__name__}.Cach: entries")
    with pytest.warns(UserWarning, match="no object of class 'nowhere.*'"):
        heap.view("module", f"{__name__}.Cache: entries; nowhere.*: *")
    # AND nothing of one that is
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        heap.view(f"{__name__}.Cache: entries")
        heap.view(plimsoll.heap.Rule(Cache, parts=["*"]))
    assert keep.entries


def test_classes_of_one_name_are_told_apart_by_where_they_are(tmp_path: pathlib.Path) -> None:
    # GIVEN two classes of one name, as a function makes one each time that it is called
    def made(count: int) -> "list[Any]":
        class Twin:
            __slots__ = ("number",)
        return [Twin() for _ in range(count)]

    kept = made(100), made(200)
    path = tmp_path / "a.heap"
    plimsoll.heap.snapshot(path)
    # WHEN classes are shown THEN each row says which one it is
    addresses = [f"{id(type(each[0])):#x}" for each in kept]
    rows = [row for row in json.loads(harness.plimsoll_command("heap", "show", path, "--json").out)["types"] if row["type"].endswith(".Twin")]
    assert {row["class_address"]: row["count"] for row in rows} == dict(zip(addresses, (100, 200)))
    shown = harness.plimsoll_command("heap", "show", path, "--limit", "0").out
    assert all(f".Twin (class at {address})" in shown for address in addresses)
    assert "class at" not in next(line for line in shown.splitlines() if line.endswith(" dict"))


def test_the_shell_shows_views_and_rules_of_a_file(tmp_path: pathlib.Path) -> None:
    # GIVEN
    path = tmp_path / "a.heap"
    rules = tmp_path / "rules.txt"
    rules.write_text("# mine\n__main__.Cache: entries\n")
    run(f"""
        import plimsoll.heap
        class Cache:
            pass
        cache = Cache()
        cache.entries = [bytes(5000) for _ in range(10)]
        plimsoll.heap.snapshot({str(path)!r})
        print(0)
    """)

    def size(*options: str) -> int:
        shown = harness.plimsoll_command("heap", "show", path, "--limit", "0", "--json", *options)
        assert shown.code == 0, shown.err
        return {row["type"]: row["bytes"] for row in json.loads(shown.out)["types"]}["__main__.Cache"]

    # THEN
    assert size() < size("--view", str(rules)) < size("--view", "module", "--view", "__main__.Cache: *")
    assert size("--view", "__main__.Cache: *") > 50_000
    asked = harness.plimsoll_command("heap", "query", path, "--view", "__main__.Cache: *",
                                     "select size = retained from objects where type = '__main__.Cache'")
    assert asked.code == 0, asked.err
    assert asked.out.split()[-1] == "1"
    wrong = harness.plimsoll_command("heap", "show", path, "--view", "modul")
    assert wrong.code == 2
    assert "choose raw, memory, parts or module" in wrong.err


class Team:
    pass


class User:
    def __init__(self, team: Team) -> None:
        self.team = team


USERS = [User(Team())] * 0


def test_all_ways_to_an_object_are_told_with_counts(take: Any) -> None:
    # GIVEN a team that three users have, and a cache
    team = Team()
    USERS[:] = [User(team) for _ in range(3)]
    cache = {"x": team}
    heap = take().view("parts")
    # WHEN
    patterns = heap.find(id(team)).path_patterns()
    # THEN
    words = [[(step.holders, step.holder.type, step.edge) for step in pattern.steps] for pattern in patterns]
    by_users = [steps for steps in words if steps[-1] == (3, f"{__name__}.User", ".team")]
    assert any(steps[-2] == (1, "list", "[]") or steps[-2][1] == "list" for steps in by_users), words
    assert any(steps[-1][1] == "dict" for steps in words), words
    assert len(words) == len({str(pattern) for pattern in patterns}), "all differ"
    assert cache
    USERS.clear()
