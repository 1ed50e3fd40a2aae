"""A pytest plugin: ``pytest --plimsoll`` records the session, with ``--plimsoll-per test`` every test by itself.

Profiles go into ``.plimsoll/`` (``--plimsoll-dir``): ``session.plim``, or one file per test, named after it. With
pytest-xdist each worker has files of its own. The plugin costs nothing unless it is asked for.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from typing import TYPE_CHECKING, Any, Generator, Optional

if TYPE_CHECKING:
    import pytest

_LONGEST_NAME = 120  # bytes


def file_name(nodeid: str) -> str:
    """A file's name for a test: ``tests/test_a.py::test_b`` is ``tests-test_a.py-test_b``.

    Two tests never share one: a name that says less than the test's own, as with parameters, ends with a checksum.
    """
    plain = re.sub(r"[^\w.\[\]=+-]+", "-", nodeid).strip("-.")
    if re.fullmatch(r"\w[\w./]*(::\w+)*", nodeid, re.ASCII) and len(plain) <= _LONGEST_NAME:
        return plain
    cut = plain.encode("utf-8", "replace")[:_LONGEST_NAME].decode("utf-8", "ignore")
    checksum = hashlib.sha256(nodeid.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{cut}-{checksum}"


def pytest_addoption(parser: "pytest.Parser") -> None:
    group = parser.getgroup("plimsoll", "profiling with Plimsoll")
    group.addoption("--plimsoll", action="store_true", help="record a profile of the tests")
    group.addoption("--plimsoll-per", default="session", choices=("session", "test"), help="for all, or each")
    group.addoption("--plimsoll-dir", default=".plimsoll", metavar="DIR", help="where profiles go (.plimsoll)")
    group.addoption("--plimsoll-mode", default="cpu", choices=("cpu", "wall", "gil"), help="which time is recorded")
    group.addoption("--plimsoll-rate", type=float, default=1000.0, metavar="HZ", help="samples per second (1000)")


def pytest_configure(config: "pytest.Config") -> None:
    if config.getoption("--plimsoll"):
        config.pluginmanager.register(Recorder(config), "plimsoll-recorder")


class Recorder:
    """Records while tests run. Registered only with ``--plimsoll``."""

    def __init__(self, config: "pytest.Config") -> None:
        self._per_test = config.getoption("--plimsoll-per") == "test"
        self._directory = str(config.getoption("--plimsoll-dir"))
        self._start = os.getcwd()  # tests may go elsewhere
        self._options: "dict[str, Any]" = dict(mode=config.getoption("--plimsoll-mode"),
                                               rate_hz=config.getoption("--plimsoll-rate"))
        self._worker: Optional[str] = os.environ.get("PYTEST_XDIST_WORKER")
        # The controller of pytest-xdist (-n, or --dist with --tx) runs no tests itself, and --collect-only runs none:
        # its empty profile would be written over the last one.
        is_controller = self._worker is None and getattr(config.option, "dist", "no") != "no"
        self._is_idle = is_controller or bool(getattr(config.option, "collectonly", False))
        self._written: "list[str]" = []
        self._error = ""

    def _record(self, name: str) -> "Generator[None, Any, None]":
        import plimsoll

        path = os.path.join(self._directory, f"{name}.plim")
        profiler = None
        try:
            os.makedirs(os.path.join(self._start, self._directory), exist_ok=True)
            profiler = plimsoll.Profiler(os.path.join(self._start, path), **self._options).start()
        except (OSError, ValueError, plimsoll.UnsupportedError) as error:
            self._error = str(error)  # the tests run all the same; said once, at the end
        process = os.getpid()
        yield
        if profiler is None or os.getpid() != process:  # the child of a test that forks has no part in it
            return
        if profiler.is_active:
            profiler._end()
            self._error = profiler.statistics.error or self._error  # a full disk, for example
        else:
            self._error = f"a test has ended the recording {path}: what came after that is not in it"
        self._written.append(path)

    def pytest_runtestloop(self) -> "Generator[None, Any, None]":
        if self._per_test or self._is_idle:
            yield
        else:
            yield from self._record("session" if self._worker is None else f"session-{self._worker}")

    def pytest_runtest_protocol(self, item: "pytest.Item") -> "Generator[None, Any, None]":
        if self._per_test:
            yield from self._record(file_name(item.nodeid))
        else:
            yield

    def pytest_sessionfinish(self, session: Any) -> None:
        """A worker of pytest-xdist tells its controller, which has the terminal."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["plimsoll_written"], output["plimsoll_error"] = self._written, self._error

    def pytest_testnodedown(self, node: Any) -> None:
        output = getattr(node, "workeroutput", {})  # none if the worker has crashed
        self._written += output.get("plimsoll_written", [])
        self._error = self._error or output.get("plimsoll_error", "")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._error:
            terminalreporter.write_line(f"plimsoll: not everything was profiled: {self._error}")
        if len(self._written) == 1:
            terminalreporter.write_line(f"plimsoll: wrote {self._written[0]}; next: plimsoll show "
                                        f"{shlex.quote(self._written[0])}")
        elif self._written:
            terminalreporter.write_line(f"plimsoll: wrote {len(self._written)} profiles into {self._directory}; "
                                        f"for example: plimsoll show {shlex.quote(self._written[0])}")


def _mark_wrappers() -> None:
    """pytest is imported by whoever loads this module as a plugin; nobody else needs it."""
    import pytest

    for hook in (Recorder.pytest_runtestloop, Recorder.pytest_runtest_protocol):
        pytest.hookimpl(hookwrapper=True)(hook)
    pytest.hookimpl(optionalhook=True)(Recorder.pytest_testnodedown)


_mark_wrappers()
