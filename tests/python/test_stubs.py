"""The type stubs of the extension module agree with the module, and the package is typed."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest

import plimsoll
from plimsoll import _core

PACKAGE = pathlib.Path(plimsoll.__file__).parent
STUB = ast.parse((PACKAGE / "_core.pyi").read_text())


def public(names: Any) -> "set[str]":
    return {name for name in names if not name.startswith("_")}


def classes() -> "dict[str, ast.ClassDef]":
    return {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}


def functions(body: "list[ast.stmt]") -> "dict[str, ast.FunctionDef]":
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def parameters(text: str) -> "list[str]":
    """The names of the parameters in a signature, with their markers: `self, path: str, /` is self, path, /."""
    arguments = ast.parse(f"def f{text}: ...").body[0].args  # type: ignore[attr-defined]
    names = [argument.arg for argument in arguments.posonlyargs] + (["/"] if arguments.posonlyargs else [])
    names += [argument.arg for argument in arguments.args]
    names += [f"*{arguments.vararg.arg}"] if arguments.vararg else ["*"] if arguments.kwonlyargs else []
    names += [argument.arg for argument in arguments.kwonlyargs]
    return names + ([f"**{arguments.kwarg.arg}"] if arguments.kwarg else [])


def in_stub(node: ast.FunctionDef) -> "list[str]":
    return parameters(f"({ast.unparse(node.args)})")


def in_module(function: Any) -> "list[str]":
    """From the first line of the docstring, where nanobind writes the signature."""
    signature = (function.__doc__ or "").splitlines()[0]
    match = re.search(r"\((.*)\)", signature)
    assert match, f"{function} has no signature"
    # Types of C++ that have no Python name are quoted oddly; only names count here.
    plain, nested = match[1], 1
    while nested:
        plain, nested = re.subn(r"\[[^\[\]]*\]", "", plain)
    plain = re.sub(r":\s*[^,()=*/]*", "", plain)
    return parameters(f"({plain})")


def same(one: "list[str]", other: "list[str]") -> bool:
    """Whether two signatures may be called alike. nanobind calls unnamed parameters arg, arg0, arg1."""
    def anonymous(names: "list[str]") -> "list[str]":
        if "/" not in names:
            return list(names)
        cut = names.index("/")
        return ["_"] * cut + names[cut:]
    return anonymous(one) == anonymous(other)


def test_the_stub_names_what_there_is() -> None:
    top = {*classes(), *functions(STUB.body),
           *(node.target.id for node in STUB.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name))}
    assert top == public(vars(_core))


@pytest.mark.parametrize("name", sorted(classes()))
def test_the_stub_has_the_members_of_each_class(name: str) -> None:
    actual = public(vars(getattr(_core, name)))
    assert public(functions(classes()[name].body)) == actual - {"args"}


@pytest.mark.parametrize("name", sorted(classes()))
def test_the_stub_has_the_signatures_of_each_class(name: str) -> None:
    for method, node in functions(classes()[name].body).items():
        decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
        actual = inspect.getattr_static(getattr(_core, name), method)
        if "property" in decorators:
            assert not callable(actual) and len(node.args.args) == 1, method
            continue
        expected = in_module(getattr(getattr(_core, name), method))
        stub = in_stub(node)
        # nanobind's methods take self by position
        if stub[:1] == ["self"] and "/" not in stub and len(stub) == 1:
            expected = [word for word in expected if word != "/"]
        if expected[:1] == ["self"] and stub[:1] == ["self"]:
            expected, stub = expected[1:], stub[1:]
            expected = expected[1:] if expected[:1] == ["/"] else expected
        assert same(stub, expected), f"{name}.{method}: stub {stub}, module {expected}"


def test_the_stub_has_the_signatures_of_functions() -> None:
    for name, node in functions(STUB.body).items():
        assert same(in_stub(node), in_module(getattr(_core, name))), name


def test_the_package_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


SAMPLE = '''
import plimsoll
from typing import Iterator

@plimsoll.profile(rate_hz=100)
def double(n: int) -> int:
    return 2 * n

with plimsoll.profile("x.plim", engine="auto") as session:
    four: int = double(2)
profile: plimsoll.Profile = session.profile
samples: plimsoll.Samples = profile.samples
column: memoryview = samples.weight_ns
rows: list[tuple[str, float]] = [(row.function.name, row.self_time) for row in profile.flat()]
root_time: float = profile.tree().root.total_time
plimsoll.start("y.plim", rate_hz=1000).stop().save("y.json", format="speedscope")
active: bool = plimsoll.is_active()
statistics: plimsoll.Statistics = plimsoll.stats()
try:
    plimsoll.Profile.open("z.plim").filter(thread="Main", start=1.0)
except plimsoll.ProfileError as error:
    print(error)
'''


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_a_typed_program_passes_mypy_strict(tmp_path: pathlib.Path) -> None:
    (tmp_path / "sample.py").write_text(SAMPLE)
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "sample.py"], cwd=tmp_path, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
