"""pytest, notebooks and web frameworks."""

from __future__ import annotations

import asyncio
import os
import pathlib
import sys
from typing import Any, Iterator, Callable

import pytest

import harness
import plimsoll
from plimsoll import pytest_plugin
from plimsoll.middleware import ASGIProfiler, WSGIProfiler

pytestmark = pytest.mark.any_version

Write = Callable[..., pathlib.Path]

TESTS = """
import time
def busy(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: sum(range(500))
def test_one(): busy(0.15)
def test_two(): busy(0.05); assert False
"""


def run_pytest(directory: pathlib.Path, *options: str, tests: str = TESTS) -> harness.Finished:
    (directory / "test_it.py").write_text(tests)
    # The plugin may be there by its entry point already: installed packages have one, a source directory has not.
    loaded = harness.python("-c", "from importlib import metadata as m; import sys; e = m.entry_points(); "
                                  "e = e.select(group='pytest11') if hasattr(e, 'select') else e.get('pytest11', ()); "
                                  "sys.exit(any(p.name == 'plimsoll' for p in e))").code
    plugin = [] if loaded else ["-p", "plimsoll.pytest_plugin"]
    return harness.python("-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, *options, "test_it.py",
                          cwd=directory)


def test_pytest_that_is_recorded_from_its_start_has_nothing_to_warn_of(tmp_path: pathlib.Path) -> None:
    # GIVEN tests for which warnings are errors, and the plugin, whose package is imported before pytest
    (tmp_path / "test_fine.py").write_text("def test_fine(): pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    # WHEN they are run THEN they pass
    done = harness.plimsoll_run("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_fine.py",
                                options=["-q", "-o", "x.plim"], cwd=tmp_path)
    assert "1 passed" in done.expect().out and "warning" not in done.out


def test_a_session_of_tests_is_recorded(tmp_path: pathlib.Path) -> None:
    # GIVEN tests, one of which fails; WHEN they run with --plimsoll
    done = run_pytest(tmp_path, "--plimsoll")
    # THEN their outcome is theirs, and their time is in one profile
    assert done.code == 1 and "1 failed, 1 passed" in done.out
    assert "next: plimsoll show .plimsoll/session.plim" in done.out
    times = harness.total_seconds(plimsoll.Profile.open(tmp_path / ".plimsoll" / "session.plim"))
    assert times["busy"] == pytest.approx(0.2, rel=0.15)


def test_each_test_is_recorded_by_itself(tmp_path: pathlib.Path) -> None:
    done = run_pytest(tmp_path, "--plimsoll", "--plimsoll-per", "test", "--plimsoll-dir", "out")
    assert "wrote 2 profiles into out" in done.out
    profiles = {path.name: plimsoll.Profile.open(path) for path in (tmp_path / "out").iterdir()}
    assert harness.total_seconds(profiles["test_it.py-test_one.plim"])["busy"] == pytest.approx(0.15, rel=0.2)
    assert harness.total_seconds(profiles["test_it.py-test_two.plim"])["busy"] == pytest.approx(0.05, rel=0.3)


def test_without_the_option_nothing_is_recorded(tmp_path: pathlib.Path) -> None:
    done = run_pytest(tmp_path)
    assert "plimsoll" not in done.out and not (tmp_path / ".plimsoll").exists()


def test_tests_that_are_only_collected_leave_the_profile_of_those_that_ran(tmp_path: pathlib.Path) -> None:
    # GIVEN the profile of a session
    run_pytest(tmp_path, "--plimsoll")
    before = (tmp_path / ".plimsoll" / "session.plim").read_bytes()
    # WHEN the tests are listed THEN it is still there
    done = run_pytest(tmp_path, "--plimsoll", "--collect-only")
    assert "2 tests collected" in done.out and "wrote" not in done.out
    assert (tmp_path / ".plimsoll" / "session.plim").read_bytes() == before


def test_the_controller_of_distributed_tests_records_nothing(tmp_path: pathlib.Path) -> None:
    # GIVEN the options of pytest-xdist, which here distributes nothing; WHEN tests are distributed, however that was asked for
    (tmp_path / "conftest.py").write_text("def pytest_addoption(parser):\n    parser.addoption('--dist', default='no')\n")
    done = run_pytest(tmp_path, "--plimsoll", "-p", "no:xdist", "--dist", "load")
    # THEN this process records nothing; AND it does where they are not
    assert "1 failed, 1 passed" in done.out and not (tmp_path / ".plimsoll").exists()
    assert "session.plim" in run_pytest(tmp_path, "--plimsoll", "-p", "no:xdist", "--dist", "no").out


def test_tests_run_where_profiles_cannot_be_written(tmp_path: pathlib.Path) -> None:
    done = run_pytest(tmp_path, "--plimsoll", "--plimsoll-dir", "/proc/nowhere")
    assert "1 failed, 1 passed" in done.out and "not everything was profiled" in done.out


def test_tests_may_go_to_another_directory(tmp_path: pathlib.Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "test_away.py").write_text("import os\ndef test_go(): os.chdir('elsewhere')\n")
    done = run_pytest(tmp_path, "--plimsoll", "--plimsoll-per", "test", "test_away.py")
    assert "1 failed, 2 passed" in done.out and "wrote 3 profiles into .plimsoll" in done.out
    assert len(list((tmp_path / ".plimsoll").iterdir())) == 3 and not list((tmp_path / "elsewhere").iterdir())


def test_a_test_that_ends_the_recording_is_told_of(tmp_path: pathlib.Path) -> None:
    # GIVEN a test that ends whatever is recorded, in a directory whose name has to be quoted
    (tmp_path / "test_end.py").write_text("def test_end():\n from plimsoll import _recording\n _recording.stop()\n")
    # WHEN the session is recorded THEN its profile is told of, and that it ends there
    done = run_pytest(tmp_path, "--plimsoll", "--plimsoll-dir", "with space", "test_end.py")
    assert "not everything was profiled: a test has ended the recording with space/session.plim" in done.out
    assert "next: plimsoll show 'with space/session.plim'" in done.out


def test_names_of_profiles_are_file_names() -> None:
    assert pytest_plugin.file_name("tests/test_a.py::test_b") == "tests-test_a.py-test_b"
    odd = ["a.py::test[1/2]", "a.py::test[1-2]", "a.py::test[" + "x" * 500 + "]", "a.py::test[\u2603 \0]", "../../etc",
           "a.py::test_" + "\u65e5" * 100 + "a", "a.py::test_" + "\u65e5" * 100 + "b", "a.py::test[\udc80]"]
    names = [pytest_plugin.file_name(name) for name in odd]
    assert len(set(names)) == len(odd)
    assert all("/" not in name and "\0" not in name and len(name.encode()) < 200 and not name.startswith(".") for name in names)


def test_the_profiles_of_workers_are_told_of(tmp_path: pathlib.Path) -> None:
    # GIVEN a worker of pytest-xdist, which has no terminal, and its controller, which has one
    class Config:
        def __init__(self, **more: Any) -> None:
            self.__dict__.update(more)

        def getoption(self, name: str) -> Any:
            return {"--plimsoll": True, "--plimsoll-per": "session", "--plimsoll-dir": str(tmp_path),
                    "--plimsoll-mode": "cpu", "--plimsoll-rate": 100.0, "--plimsoll-alloc": None,
                    "--plimsoll-limits": False}[name]

    class Node:
        workeroutput: "dict[str, Any]" = {}

    class Terminal:
        lines: "list[str]" = []

        def write_line(self, line: str) -> None:
            self.lines.append(line)

    node = Node()
    worker = pytest_plugin.Recorder(Config(option=None))  # type: ignore[arg-type]
    controller = pytest_plugin.Recorder(Config(option=None))  # type: ignore[arg-type]
    # WHEN the worker has recorded, and is done
    for _ in worker._record("session-gw0"):
        pass

    class Session:
        config = Config(workeroutput=node.workeroutput)

    worker.pytest_sessionfinish(Session())
    controller.pytest_testnodedown(node)
    controller.pytest_testnodedown(object())  # a worker that has crashed
    # THEN the controller says where the profile is
    controller.pytest_terminal_summary(Terminal())
    assert any("session-gw0.plim" in line for line in Terminal.lines)


# ---- notebooks ----


class Shell:
    """What the magics use of IPython."""

    def __init__(self) -> None:
        self.user_ns: "dict[str, Any]" = {"total": 0}
        self.magics: "dict[str, Any]" = {}

    def register_magic_function(self, function: Any, kind: str, name: str) -> None:
        assert kind == "line_cell"
        self.magics[name] = function

    def run_line(self, name: str, line: str) -> Any:
        """As IPython's run_line_magic, which puts values in the place of braces."""
        magic = self.magics[name]
        is_as_it_is = getattr(magic, "_ipython_magic_no_var_expand", False)
        return magic(line if is_as_it_is else line.format(**self.user_ns))


WORK = "import time\nend = time.thread_time() + 0.2\nwhile time.thread_time() < end: total += sum(range(500))"


def test_a_cell_is_recorded(tmp_path: pathlib.Path, capsys: "pytest.CaptureFixture[str]",
                            monkeypatch: "pytest.MonkeyPatch") -> None:
    # GIVEN a shell that has loaded the extension
    shell = Shell()
    plimsoll.load_ipython_extension(shell)
    magic = shell.magics["plimsoll"]
    # WHEN a cell is run THEN it acts on the user's names, and its profile can be looked at
    profile = magic("", WORK)
    assert shell.user_ns["total"] > 0
    assert profile.sampled_cpu == pytest.approx(0.2, rel=0.2)
    assert "&lt;module&gt;" in profile._repr_html_()
    # AND begins with the cell, and not with how the shell came to run it
    first = profile.tree().root.children[0]
    assert first.function.file == "<plimsoll>" and first.total_time > 0.9 * profile.sampled_cpu
    # AND so is a statement, with options, and quotes of its own
    out = tmp_path / "with space.plim"
    kept = magic(f"-r 200 -m cpu -o '{out}' exec('x = \"-o\"')")
    assert shell.user_ns["x"] == "-o" and out.exists() and kept.meta["rate_hz"] == "200"
    # AND a path is what a shell would make of it
    monkeypatch.setenv("HOME", str(tmp_path))
    assert magic("-o ~/home.plim x = 2") is not None and (tmp_path / "home.plim").exists()
    # AND an option may have its value with it
    for line, rate in (("--rate=300 --mode cpu y = 3", "300"), ("-r400 y = 4", "400")):
        assert magic(line).meta["rate_hz"] == rate and shell.user_ns["y"] == int(rate) // 100
    # AND it may be shown as a flame graph, or, where a cell was too short for one, without
    assert "<iframe" in magic("--flame", WORK)._repr_html_() and magic("-r 1 --flame pass")._repr_html_()
    # AND what goes wrong is said, or raised
    assert magic("-m sideways x = 1") is None and "sideways" in capsys.readouterr().err
    assert magic("x = 1", "pass") is None and "options only" in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError):
        magic("1/0")
    assert not plimsoll.is_active()


def test_a_cell_may_have_the_shell_s_own_syntax(capsys: "pytest.CaptureFixture[str]") -> None:
    # GIVEN a shell that makes Python of its own syntax, and keeps the text of cells for tracebacks
    class Compiler:
        texts: "list[str]" = []

        def cache(self, text: str) -> str:
            self.texts.append(text)
            return "<cell 1>"

    shell = Shell()
    shell.compile = Compiler()  # type: ignore[attr-defined]
    shell.transform_cell = lambda text: text.replace("!ls", "total = 7")  # type: ignore[attr-defined]
    shell.transform_ast = lambda tree: tree  # type: ignore[attr-defined]
    plimsoll.load_ipython_extension(shell)
    magic = shell.magics["plimsoll"]
    # WHEN a cell has it THEN it runs, and tracebacks know its lines
    assert magic("", "!ls") is not None and shell.user_ns["total"] == 7
    assert Compiler.texts == ["total = 7"]
    with pytest.raises(ZeroDivisionError) as caught:
        magic("1/0")
    assert str(caught.traceback[-1].path) == "<cell 1>"
    # AND what cannot be is said
    assert magic("", "import asyncio\nawait asyncio.sleep(0)") is None
    assert "cannot await" in capsys.readouterr().err and not plimsoll.is_active()


def test_a_statement_has_the_braces_that_were_typed() -> None:
    # GIVEN a shell that puts values of variables into lines, and a statement with a set
    shell = Shell()
    shell.user_ns["x"] = 5
    plimsoll.load_ipython_extension(shell)
    # WHEN it is recorded THEN it is the same statement
    shell.run_line("plimsoll", "y = {x}")
    shell.run_line("plimsoll", "z = '{x}'")
    assert shell.user_ns["y"] == {5} and shell.user_ns["z"] == "{x}"


# ---- web ----


def burn(seconds: float) -> None:
    import time

    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(500))


def wsgi_app(environ: "dict[str, Any]", start_response: Any) -> Any:
    start_response("200 OK", [("content-type", "text/plain")])
    burn(0.05)
    yield b"first "
    burn(0.05)
    yield b"second"


def wsgi(app: Any, query: str, client: str = "127.0.0.1", **environ: str) -> "tuple[bytes, dict[str, str]]":
    headers: "dict[str, str]" = {}
    body = app({"QUERY_STRING": query, "REMOTE_ADDR": client, **environ}, lambda status, fields, *more: headers.update(fields))
    text = b"".join(body)
    if hasattr(body, "close"):
        body.close()
    return text, headers


def test_a_wsgi_request_is_recorded_on_demand(tmp_path: pathlib.Path) -> None:
    app = WSGIProfiler(wsgi_app, str(tmp_path / "profiles"), rate_hz=500)
    # GIVEN requests that do not ask, or come from elsewhere THEN nothing is recorded
    for query, client in (("q=plimsoll", "127.0.0.1"), ("plimsoll", "203.0.113.9")):
        assert wsgi(app, query, client) == (b"first second", {"content-type": "text/plain"})
    # not even if a proxy on this machine, or behind a Unix socket, passes them on
    for client, more in (("", {}), ("127.0.0.1", {"HTTP_X_FORWARDED_FOR": "203.0.113.9"}), ("::1", {"HTTP_VIA": "1.1 cache"}),
                         ("127.0.0.1", {"HTTP_X_FORWARDED_HOST": "example.org"})):
        assert "x-plimsoll-profile" not in wsgi(app, "plimsoll", client, **more)[1]
    assert not (tmp_path / "profiles").exists()
    # WHEN one asks THEN its response is the same, and names a profile of all of it
    text, headers = wsgi(app, "q=1&plimsoll")
    assert text == b"first second"
    profile = plimsoll.Profile.open(tmp_path / "profiles" / headers["x-plimsoll-profile"])
    assert harness.total_seconds(profile)["burn"] == pytest.approx(0.1, rel=0.25)
    assert not plimsoll.is_active()
    # AND during another recording it is served all the same
    with plimsoll.profile(tmp_path / "other.plim"):
        assert wsgi(app, "plimsoll")[1]["x-plimsoll-profile"] == "busy"


def test_who_comes_by_ipv4_to_a_socket_of_both_families_is_on_this_machine(tmp_path: pathlib.Path) -> None:
    # GIVEN a server that listens on [::], to which 127.0.0.1 has an address of IPv6
    app = WSGIProfiler(wsgi_app, str(tmp_path))
    # WHEN one from this machine asks THEN it is recorded; one from elsewhere is not
    assert "x-plimsoll-profile" in wsgi(app, "plimsoll", "::ffff:127.0.0.1")[1]
    assert "x-plimsoll-profile" not in wsgi(app, "plimsoll", "::ffff:203.0.113.9")[1]


def test_waitress_does_not_tell_who_asks(tmp_path: pathlib.Path) -> None:
    # GIVEN what Waitress makes of a request that a proxy on this machine has passed on with X-Forwarded-For
    environ: "dict[str, Any]" = {"waitress.client_disconnected": lambda: False}
    # WHEN somebody elsewhere asks THEN nothing is recorded; AND the program may decide otherwise
    assert "x-plimsoll-profile" not in wsgi(WSGIProfiler(wsgi_app, str(tmp_path)), "plimsoll", **environ)[1]
    decided = WSGIProfiler(wsgi_app, str(tmp_path), when=lambda environ: True)
    assert "x-plimsoll-profile" in wsgi(decided, "plimsoll", **environ)[1]


def test_options_of_a_middleware_that_there_are_not_are_no_recording_that_goes_on(tmp_path: pathlib.Path) -> None:
    with pytest.raises(TypeError, match="speed"):
        WSGIProfiler(wsgi_app, str(tmp_path), speed=3)
    with pytest.raises(TypeError, match="path"):  # (each request that asked failed: the middleware names the files)
        WSGIProfiler(wsgi_app, str(tmp_path), path="app.plim")
    with pytest.raises(ValueError, match="walltime"):
        WSGIProfiler(wsgi_app, str(tmp_path), mode="walltime")
    with pytest.raises(TypeError, match="native is True or False, not 'no'"):  # (each request failed)
        WSGIProfiler(wsgi_app, str(tmp_path), native="no")
    for wrong in ({"rate_hz": 0}, {"rate_hz": 1e6}, {"rate_hz": float("nan")}, {"engine": "reader", "native": True},
                  {"engine": "reader", "mode": "gil"}):
        with pytest.raises(ValueError):
            WSGIProfiler(wsgi_app, str(tmp_path), **wrong)
    # AND a recording that cannot be is told of, and disturbs nobody
    (tmp_path / "file").write_text("no directory")
    text, headers = wsgi(WSGIProfiler(wsgi_app, str(tmp_path / "file")), "plimsoll")
    assert text == b"first second" and "failed: " in headers["x-plimsoll-profile"]
    assert not plimsoll.is_active()


def test_middlewares_of_one_process_do_not_write_over_each_other(tmp_path: pathlib.Path) -> None:
    one, other = (WSGIProfiler(wsgi_app, str(tmp_path)) for _ in range(2))
    names = {wsgi(app, "plimsoll")[1]["x-plimsoll-profile"] for app in (one, other, one)}
    assert {path.name for path in tmp_path.iterdir()} == names and len(names) == 3


def test_a_profile_that_is_removed_while_it_is_recorded_disturbs_nobody(tmp_path: pathlib.Path) -> None:
    def cleaner(environ: Any, start_response: Any) -> Iterator[bytes]:
        for path in tmp_path.iterdir():
            path.unlink()
        return wsgi_app(environ, start_response)

    assert wsgi(WSGIProfiler(cleaner, str(tmp_path)), "plimsoll")[0] == b"first second"
    assert not plimsoll.is_active()


def test_a_failing_wsgi_application_does_not_leave_a_recording(tmp_path: pathlib.Path) -> None:
    def broken(environ: Any, start_response: Any) -> Any:
        raise LookupError("no such page")

    with pytest.raises(LookupError):
        wsgi(WSGIProfiler(broken, str(tmp_path)), "plimsoll")
    assert not plimsoll.is_active()


def test_an_asgi_request_is_recorded_on_demand(tmp_path: pathlib.Path) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
        burn(0.1)
        await asyncio.sleep(0.05)
        await send({"type": "http.response.body", "body": b"done"})

    def ask(query: bytes, wrapped: Any, *headers: "tuple[bytes, bytes]") -> "list[Any]":
        sent: "list[Any]" = []

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "query_string": query, "client": ("127.0.0.1", 5), "headers": headers}
        asyncio.run(wrapped(scope, None, send))
        return sent

    wrapped = ASGIProfiler(app, str(tmp_path), mode="wall")
    asyncio.run(wrapped({"type": "lifespan"}, None, None))
    assert ask(b"x=1", wrapped)[0]["headers"] == [(b"a", b"b")]
    assert ask(b"plimsoll", wrapped, (b"X-Real-IP", b"203.0.113.9"))[0]["headers"] == [(b"a", b"b")]
    start, body = ask(b"plimsoll", wrapped)
    name, value = start["headers"][-1]
    assert name == b"x-plimsoll-profile" and body["body"] == b"done"
    profile = plimsoll.Profile.open(tmp_path / value.decode())
    assert harness.total_seconds(profile)["burn"] >= 0.08
    assert profile.meta["mode"] == "wall"
    assert (os.stat(tmp_path / value.decode()).st_mode & 0o777) == 0o600
    assert sys.modules["plimsoll"].is_active() is False
