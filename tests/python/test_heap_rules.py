"""Rules for classes in heap snapshots."""

from __future__ import annotations

import ctypes
import importlib
import io
import mmap
import pathlib
import sys
from typing import Any

import pytest

import harness
import plimsoll.heap
from heap_rules import take
from plimsoll.heap import Native, Rule

__all__ = ["take"]  # a fixture


class Session:
    def __init__(self, name: str) -> None:
        self.name = name
        self.secret = "hunter2"


class Admin(Session):
    pass


class Slotted:
    __slots__ = ("number",)


def test_buffers_outside_python_count_for_their_owners(take: Any) -> None:
    # GIVEN buffers of known size, and a view into one
    mapped = mmap.mmap(-1, 1_000_000)
    array = (ctypes.c_char * 500_000)()
    small, view = ctypes.c_int(5), (ctypes.c_char * 100_000).from_buffer(array)
    text = io.StringIO()
    text.write("x")
    text.seek(0)
    text.write("y" * 100_000)
    # WHEN
    heap = take()
    size = {name: heap.find(id(each)).size for name, each in
            (("mapped", mapped), ("array", array), ("small", small), ("view", view), ("text", text))}
    # THEN
    assert 1_000_000 < size["mapped"] < 1_010_000
    assert 500_000 < size["array"] < 510_000
    assert size["small"] < 1000 and size["view"] < 1000
    assert 400_000 < size["text"] < 500_000
    mapped.close()


def test_a_label_tells_objects_apart_and_nothing_else_is_shown(take: Any) -> None:
    # GIVEN
    user, admin, slotted = Session("ann"), Admin("bob"), Slotted()
    slotted.number = 7  # type: ignore[attr-defined]
    asked = Session("dict")
    assert vars(asked)
    # WHEN
    heap = take(rules=[Rule(Session, label="name"), Rule(f"{__name__}.Slot*", label="number")])
    # THEN
    assert [heap.find(id(each)).text for each in (user, admin, asked, slotted)] == ["ann", "bob", "dict", "7"]
    assert str(heap.find(id(admin))) == f"{__name__}.Admin bob"
    assert "hunter2" not in str([each.text for each in heap.objects("str")])


def test_the_most_derived_class_decides_and_then_the_last_rule(take: Any) -> None:
    user, admin = Session("ann"), Admin("bob")
    # WHEN
    heap = take(rules=[Rule(Admin, label="secret"), Rule(Session, label="secret"), Rule(Session, label="name")])
    assert [heap.find(id(each)).text for each in (user, admin)] == ["ann", "hunter2"]
    heap = take(rules=[Rule(Session, label="name", exactly=True)])
    assert [heap.find(id(each)).text for each in (user, admin)] == ["ann", ""]


def test_a_rule_cannot_make_us_read_outside_an_object(take: Any) -> None:
    # GIVEN offsets behind the end of objects, and a length that is none
    kept = Session("ann"), ctypes.c_int(5)
    rules = [Rule(Session, native=Native(pointer=10**9, length=8)), Rule("*", native=Native(pointer=0, length=2**62)),
             Rule("_ctypes._CData", native=Native(pointer=0, length=0, unit=2**40))]
    # WHEN / THEN
    heap = take(rules=rules)
    assert all(heap.find(id(each)).size < 1000 for each in kept)
    with pytest.raises(ValueError, match="less than 0"):
        plimsoll.heap.snapshot("never", rules=[Rule("x", native=Native(-8, 0))])


def test_a_rule_says_at_once_what_it_is_for() -> None:
    with pytest.raises(TypeError, match="a rule is for a class, its full name or a pattern of names, not for 5"):
        Rule(5)  # type: ignore[arg-type]
    # AND one attribute is one, not one for each of its letters
    assert str(Rule("app.Cache", parts="entries")) == "# app.Cache: entries"


def test_a_rule_is_a_text_too(take: Any) -> None:
    # GIVEN rules, and the same as people write them
    user, number = Session("ann"), ctypes.c_int(5)
    rules = [Rule(Session, label="name", exactly=True),
             Rule("_ctypes.*", native=Native(pointer=0, length=24, unit=2, owned=8))]
    # WHEN / THEN they say the same
    assert [str(rule) for rule in rules] == [f"{__name__}.Session: label name, exactly",
                                             "_ctypes.*: native 0 24 unit 2 owned 8"]
    for given in (rules, [str(rule) for rule in rules], "\n".join(map(str, rules))):
        heap = take(rules=given)
        assert heap.find(id(user)).text == "ann" and heap.find(id(number)).size < 1000
    # and what is for views only says nothing here
    assert str(Rule("app.Cache", parts=["entries"])) == "# app.Cache: entries"
    with pytest.raises(ValueError, match='a rule is CLASSES: label ATTRIBUTE.*not "app.Session: colour blue"'):
        plimsoll.heap.snapshot("never", rules=["app.Session: colour blue"])


def test_objects_are_asked_after_the_walk(take: Any) -> None:
    # GIVEN functions that say what objects are called, or what more they have
    users = [Session(f"user {number}") for number in range(300)]
    slotted, admin, other = Slotted(), Admin("bob"), Session("who says nothing")
    asked = []

    def ask(session: Any) -> "str | None":
        asked.append(session)
        return None if session is other else f"{session.name} of {len(users)}"

    # WHEN
    heap = take(rules=[Rule(Session, label="secret", ask=ask), Rule(Slotted, ask=lambda _: 5_000_000),
                       Rule(Admin, ask=lambda admin: admin.name.upper())])
    # THEN each was asked, once, by the most derived rule, and is called so; who says nothing is called by his label
    assert all(heap.find(id(user)).text == f"{user.name} of 300" for user in users)
    assert heap.find(id(admin)).text == "BOB" and heap.find(id(other)).text == "hunter2"
    assert heap.find(id(slotted)).size == 5_000_000 + take().find(id(slotted)).size
    assert len({id(each) for each in asked}) == len(asked) == 301
    # and nothing else was lost
    assert heap.find(id(Session)).text == f"{__name__}.Session"
    assert Rule(Session, ask=ask)._classes() in str(Rule(Session, ask=ask))


def test_a_function_that_fails_costs_its_words_only(take: Any, tmp_path: pathlib.Path) -> None:
    # GIVEN
    good, bad, none, huge = Session("good"), Session("bad"), Session("none"), Session("huge")
    said = {"good": "fine \ud800", "none": object(), "huge": 10**30}
    # WHEN
    with pytest.warns(RuntimeWarning, match=r"the rule for .*Session could not ask all of them: (Key|Type|Value)Error"):
        heap = take(rules=[Rule(Session, ask=lambda session: said[session.name])])
    # THEN
    assert heap.complete
    assert [heap.find(id(each)).text for each in (good, bad, none, huge)] == ["fine ?", "", "", ""]
    # and a child, in which nothing of the program may run, does not ask
    plimsoll.heap.fork_snapshot(tmp_path / "child.heap", rules=[Rule(Session, ask=lambda _: "never")]).wait()
    assert plimsoll.heap.open(tmp_path / "child.heap").find(id(good)).text == ""


def test_libraries_bring_rules_through_entry_points(take: Any, tmp_path: pathlib.Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a library in use with a rule, one whose rules are broken, and one that is not in use
    for name in ("plim_lib_used", "plim_lib_broken", "plim_lib_unused"):
        facts = tmp_path / f"{name}-1.0.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (facts / "entry_points.txt").write_text(f"[plimsoll.heap_rules]\n{name} = {name}:RULES\n")
    (tmp_path / "plim_lib_used.py").write_text(
        "from plimsoll.heap import Rule\n"
        "class Thing:\n    def __init__(self, name): self.name = name\n"
        "RULES = [Rule('plim_lib_used.Thing', label='name')]\n")
    (tmp_path / "plim_lib_broken.py").write_text("")
    (tmp_path / "plim_lib_unused.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    library = importlib.import_module("plim_lib_used")
    importlib.import_module("plim_lib_broken")
    thing = library.Thing("the name of the thing")
    # WHEN
    with pytest.warns(RuntimeWarning, match="plim_lib_broken"):
        found = take().find(id(thing))
    # THEN the rule is used, the broken one is told of, and nothing was imported
    assert found.text == "the name of the thing"
    assert "plim_lib_unused" not in sys.modules


@pytest.mark.parametrize("has_metadata", [False, True])
def test_a_path_that_is_none_costs_no_snapshot(has_metadata: bool, tmp_path: pathlib.Path) -> None:
    # GIVEN a program that has put into sys.path what import leaves out
    text = f"""
import sys, warnings
if {has_metadata}: import importlib.metadata
import plimsoll.heap
warnings.simplefilter("ignore")
for odd in (b"/tmp", None, 5, "a\\0b"):
    sys.path.append(odd)
    print(plimsoll.heap.snapshot({str(tmp_path / "x.heap")!r}).objects > 0)
"""
    # WHEN it takes snapshots THEN it gets them
    assert harness.python("-c", text).expect().out == "True\n" * 4
