"""`plimsoll firefox`: the profile is served, to who knows the address, until Ctrl-C, or bundled for another machine."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import os
import pathlib
import signal
import socket
import urllib.error
import urllib.parse
import urllib.request
import zipfile

import pytest

import harness

pytestmark = pytest.mark.any_version

PROGRAM = """
import time
def steep():
    end = time.thread_time() + 0.1
    while time.thread_time() < end: pass
steep()
"""


@pytest.fixture
def recorded(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "tea.py").write_text(PROGRAM)
    harness.record(tmp_path, tmp_path / "tea.py")
    return tmp_path / "recorded.plim"


def read(url: str, **request: object) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, **request), timeout=30) as response:  # type: ignore[arg-type]
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        body: bytes = response.read()
        return body


def test_the_page_gets_the_profile_and_ctrl_c_ends(recorded: pathlib.Path) -> None:
    words = [harness.binary(), "firefox", "--no-browser", "--viewer", "https://viewer.example", recorded]
    with harness.Running(words) as running:
        # GIVEN the address for the browser, which says where the profile is
        address = urllib.parse.urlsplit(running.line())
        assert (address.scheme, address.netloc) == ("https", "viewer.example")
        url = urllib.parse.unquote(address.path.split("/")[2])
        server = urllib.parse.parse_qs(address.query)["symbolServer"][0]
        assert url == f"{server}/profile.json"
        # THEN it is the profile, with the program's text
        profile = json.loads(gzip.decompress(read(url)))
        assert "steep" in profile["shared"]["stringArray"]
        asked = json.dumps({"file": str(recorded.parent / "tea.py")}).encode()
        assert json.loads(read(f"{server}/source/v1", data=asked))["source"] == PROGRAM
        # and nothing without the secret
        for wrong in (url.replace(server[-8:], "00000000"), f"http://{urllib.parse.urlsplit(url).netloc}/profile.json"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(wrong, timeout=30)
        # nor from another address of this machine than the loopback
        assert urllib.parse.urlsplit(url).hostname == "127.0.0.1"
        running.process.send_signal(signal.SIGINT)
        assert running.finish().expect(0).err.endswith("Ctrl-C ends\n")


def test_a_client_that_sends_garbage_or_goes_away_harms_nobody(recorded: pathlib.Path) -> None:
    with harness.Running([harness.binary(), "firefox", "--no-browser", recorded]) as running:
        url = urllib.parse.unquote(urllib.parse.urlsplit(running.line()).path.split("/")[2])
        port = urllib.parse.urlsplit(url).port
        for garbage in (b"", b"\0" * 100_000, b"GET", b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 10_000):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
                try:
                    client.sendall(garbage)
                except OSError:
                    pass  # it has hung up already
        assert read(url)[:2] == b"\x1f\x8b"
        running.process.send_signal(signal.SIGTERM)
        running.finish().expect(0)


def test_connections_beyond_what_anybody_needs_are_closed(recorded: pathlib.Path) -> None:
    with harness.Running([harness.binary(), "firefox", "--no-browser", recorded]) as running, \
            contextlib.ExitStack() as opened:
        url = urllib.parse.unquote(urllib.parse.urlsplit(running.line()).path.split("/")[2])
        address = ("127.0.0.1", urllib.parse.urlsplit(url).port)
        # GIVEN as many connections as there may be
        held = [opened.enter_context(socket.create_connection(address, timeout=30)) for _ in range(64)]
        # WHEN one more comes THEN it is closed, and those that there are go on
        assert opened.enter_context(socket.create_connection(address, timeout=30)).recv(1) == b""
        path = urllib.parse.urlsplit(url).path
        held[0].sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{address[1]}\r\n\r\n".encode())
        assert held[0].recv(15) == b"HTTP/1.1 200 OK"
        running.process.send_signal(signal.SIGTERM)
        running.finish().expect(0)


def test_a_port_that_is_taken_is_a_clear_error(recorded: pathlib.Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        finished = harness.plimsoll_command("firefox", "--no-browser", "--port", port, recorded).expect(1)
        assert f"cannot listen on 127.0.0.1:{port}" in finished.err


def test_the_browser_is_the_person_s_own(recorded: pathlib.Path, tmp_path: pathlib.Path) -> None:
    # GIVEN a browser that tells which page it was to open
    pipe, browser = tmp_path / "pipe", tmp_path / "browser"
    os.mkfifo(pipe)
    browser.write_text(f'#!/bin/sh\necho "$1" > {pipe}\n')
    browser.chmod(0o755)
    with harness.Running([harness.binary(), "firefox", recorded], env={"BROWSER": str(browser)}) as running:
        ticket, address = pipe.read_text().strip(), urllib.parse.urlsplit(running.line())
        # THEN it is an address that leads to the page, once: everybody can read a browser's command line
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(ticket).netloc, timeout=30)
        answers = []
        for _ in range(2):
            connection.request("GET", urllib.parse.urlsplit(ticket).path)
            answer = connection.getresponse()
            answer.read()
            answers.append((answer.status, answer.getheader("Location")))
        assert answers == [(302, address.geturl()), (404, None)]
        assert ticket.rpartition("/")[2] not in address.geturl()
        running.process.send_signal(signal.SIGINT)
        running.finish().expect(0)
    # and without any, the address is enough
    env = {"BROWSER": "/nowhere/browser"}
    with harness.Running([harness.binary(), "firefox", recorded], env=env) as running:
        assert running.line().startswith("https://profiler.firefox.com/from-url/http%3A%2F%2F127.0.0.1%3A")
        running.process.send_signal(signal.SIGINT)
        assert "cannot start the browser '/nowhere/browser'" in running.finish().expect(0).err


def test_a_bundle_has_all_that_another_machine_needs(recorded: pathlib.Path, tmp_path: pathlib.Path) -> None:
    # WHEN the profile is bundled THEN any program that knows zip finds it whole, and nothing was served
    bundle = tmp_path / "bundle.zip"
    finished = harness.plimsoll_command("firefox", recorded, "--zip", bundle).expect(0)
    assert finished.out == "" and f"wrote {bundle}" in finished.err
    with zipfile.ZipFile(bundle) as archive:
        assert archive.testzip() is None
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert "profiler.firefox.com" in texts["README.txt"]
    assert texts["sources" + str(recorded.parent / "tea.py")] == PROGRAM
    assert PROGRAM in json.loads(texts["profile.json"])["shared"]["sources"]["content"]
    # and Plimsoll itself reads what was unpacked
    (tmp_path / "profile.json").write_text(texts["profile.json"])
    assert "steep" in harness.plimsoll_command("show", tmp_path / "profile.json").expect(0).out
    harness.plimsoll_command("firefox", recorded, "--zip", recorded).expect(2)


def test_run_can_show_what_it_recorded(tmp_path: pathlib.Path) -> None:
    # GIVEN a program that fails WHEN it is run with --firefox THEN its profile is served, and its exit code stays
    (tmp_path / "tea.py").write_text(PROGRAM + "print('poured', flush=True)\nraise SystemExit(7)\n")
    words = [harness.binary(), "run", "--firefox", "-o", tmp_path / "tea.plim", tmp_path / "tea.py"]
    with harness.Running(words, env={"BROWSER": "/nowhere/browser"}) as running:
        assert running.line() == "poured"
        url = urllib.parse.unquote(urllib.parse.urlsplit(running.line()).path.split("/")[2])
        assert "steep" in json.loads(gzip.decompress(read(url)))["shared"]["stringArray"]
        running.process.send_signal(signal.SIGINT)
        assert "Ctrl-C ends" in running.finish().expect(7).err
    harness.plimsoll_command("run", "--firefox", "-f", "pprof", tmp_path / "tea.py").expect(2)
