"""`plimsoll serve`: a directory of profiles for browsers, and for what vmprof's clients send."""

from __future__ import annotations

import contextlib
import http.client
import os
import pathlib
import re
import signal
import socket
import time
import urllib.parse
from typing import Callable, Iterator

import pytest

import harness

pytestmark = pytest.mark.any_version

PROGRAM = "def steep(): return sum(range(2000))\nimport time\nwhile time.thread_time() < 0.2: steep()\n"


@pytest.fixture
def directory(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "tea.py").write_text(PROGRAM)
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    harness.plimsoll_command("run", "-q", "-o", profiles / "tea.plim", tmp_path / "tea.py").expect(0)
    return profiles


class Site:
    """A server that runs."""

    def __init__(self, running: harness.Running) -> None:
        self.running = running
        self.url = running.line()
        parts = urllib.parse.urlsplit(self.url)
        self.host, self.port, self.path = str(parts.hostname), int(parts.port or 0), parts.path

    def ask(self, path: str, method: str = "GET", body: "bytes | None" = None) -> "tuple[int, bytes]":
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, self.path + path, body)
            answer = connection.getresponse()
            return answer.status, answer.read()


@contextlib.contextmanager
def serving(directory: pathlib.Path, *options: str) -> Iterator[Site]:
    words = [harness.binary(), "serve", directory, "--port", "0", "--no-browser", *options]
    with harness.Running(words) as running:
        yield Site(running)
        running.process.send_signal(signal.SIGINT)
        assert "Ctrl-C ends" in running.finish().expect(0).err


def await_that(condition: "Callable[[], bool]") -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        os.sched_yield()


def names(directory: pathlib.Path) -> "list[str]":
    return sorted(path.name for path in directory.iterdir() if path.name != ".plimsoll-serve")


def test_profiles_are_listed_and_shown(directory: pathlib.Path) -> None:
    with serving(directory) as site:
        status, page = site.ask("")
        assert status == 200 and b'<a href="graph/tea.plim">tea.plim</a>' in page
        assert b"steep" in site.ask("graph/tea.plim")[1]
        assert site.ask("file/tea.plim") == (200, (directory / "tea.plim").read_bytes())
        assert site.ask("../")[0] == site.ask("graph/%2e%2e%2ftea.py")[0] == 404
        # a file that comes meanwhile is there, and one that is no profile says so
        (directory / "bad.plim").write_text("no profile")
        status, said = site.ask("graph/bad.plim")
        assert status == 422 and b"bad.plim" in said and b"bad.plim" in site.ask("")[1]


def test_the_address_stays_the_same_and_is_a_secret(directory: pathlib.Path) -> None:
    with serving(directory) as first:
        assert re.fullmatch("/[0-9a-f]{48}/", first.path)
        assert oct((directory / ".plimsoll-serve").stat().st_mode & 0o777) == "0o600"
        path, first.path = first.path, "/"
        assert [first.ask(wrong)[0] for wrong in ("", "graph/tea.plim", path[1:-2] + "/")] == [404, 404, 404]
    with serving(directory) as second:
        assert second.path == path


def test_uploads_are_kept(directory: pathlib.Path) -> None:
    with serving(directory) as site:
        # WHEN a profile is sent THEN it is there by the name of its program, and the address that is told leads to it
        done = harness.plimsoll_command("upload", directory / "tea.plim", "--web-url", site.url).expect(0)
        told = re.fullmatch(rf"profile: {site.url.rstrip('/')}/#/([0-9a-f-]{{36}})\n", done.out)
        assert told and names(directory) == ["tea.plim", f"tea.py-{told[1]}.prof"]
        assert b"steep" in site.ask(f"graph/tea.py-{told[1]}.prof")[1]
        assert f'"graph/tea.py-{told[1]}.prof"'.encode() in site.ask("")[1]
        # AND who knows no secret is refused
        url = site.url.replace(site.path, "/0000/")
        assert "no vmprof server" in harness.plimsoll_command("upload", directory / "tea.plim", "--web-url", url).expect(1).err


def test_an_upload_that_breaks_off_leaves_nothing(directory: pathlib.Path) -> None:
    with serving(directory) as site:
        status, answer = site.ask("api/runtime/new", "POST", b'{"argv": "tea.py", "VM": "CPython"}')
        entry = re.search(r"[0-9a-f-]{36}", answer.decode())
        assert status == 200 and entry
        path = f"{site.path}api/runtime/upload/cpu/{entry[0]}/add"
        # GIVEN a client of which half a profile has come
        with socket.create_connection((site.host, site.port), timeout=30) as client:
            client.sendall(f"POST {path} HTTP/1.1\r\nHost: {site.host}:{site.port}\r\nContent-Length: 20\r\n\r\nmain;".encode())
            await_that(lambda: len(names(directory)) == 2)
        # WHEN it goes away THEN nothing is left of it, and others are served; what is no profile is refused
        await_that(lambda: names(directory) == ["tea.plim"])
        assert site.ask(path[len(site.path):], "POST", b"\x7fELF") == (400, b'["what was sent is no profile"]')
        assert names(directory) == ["tea.plim"]


def test_an_upload_may_be_larger_than_other_questions(directory: pathlib.Path) -> None:
    with serving(directory) as site:
        status, answer = site.ask("api/runtime/new", "POST", b'{"argv": "tea.py"}')
        entry = re.search(r"[0-9a-f-]{36}", answer.decode())
        assert status == 200 and entry
        # WHEN a question is as large as an upload may be THEN it is refused, and the upload is not
        large = b"main;work 1\n" * 400_000
        assert site.ask("api/runtime/new", "POST", large)[0] == 413
        assert site.ask(f"api/runtime/upload/cpu/{entry[0]}/add", "POST", large) == (200, b'{"status":"ok"}')


@pytest.mark.parametrize("options, code, said", [
    (["/nowhere"], 2, "/nowhere is no directory"),
    (["--host", "profiles.example"], 2, "is no address of this machine"),
    (["--port", "70000"], 2, "--port"),
])
def test_what_cannot_be_served_is_told(options: "list[str]", code: int, said: str, tmp_path: pathlib.Path) -> None:
    assert said in harness.plimsoll_command("serve", "--no-browser", *options, cwd=tmp_path).expect(code).err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_takes_no_files_is_told_of(tmp_path: pathlib.Path) -> None:
    tmp_path.chmod(0o500)
    assert ".plimsoll-serve" in harness.plimsoll_command("serve", "--no-browser", tmp_path).expect(3).err
