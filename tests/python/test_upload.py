"""`plimsoll upload`: the four steps of vmprof's server, spoken to a double that keeps what it is told."""

from __future__ import annotations

import gzip
import http.server
import json
import pathlib
import socket
import sys
import threading
from typing import Any, Callable, Iterator, Mapping

import pytest

import harness
from plimsoll import upload
from vmprof_files import Drawing

pytestmark = pytest.mark.any_version

PROFILE = bytes(Drawing(6).meta(b"argv", b"python app.py").stack(4, 2).name(2, "py:main:1:app.py")
                .name(4, "py:work:5:app.py").end(1))
DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
JITLOG = gzip.decompress((DATA / "jitlog" / "pypy-pystone.prof.jit.gz").read_bytes())
RUNTIME = "3f2a0c1e-0000-4000-8000-000000000001"
Upload = Callable[..., harness.Finished]


class Server:
    """A double of vmprof's server. `answers` replaces what it says to a path; to those in `unread` it says so at once."""

    def __init__(self) -> None:
        self.requests: "list[tuple[str, Mapping[str, str], bytes]]" = []
        self.answers: "dict[str, tuple[int, Mapping[str, str], bytes]]" = {}
        self.unread: "set[str]" = set()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = b"" if self.path in outer.unread else self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
                status, headers, answer = outer.answers.get(self.path) or outer.answer(self.path)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def answer(self, path: str) -> "tuple[int, Mapping[str, str], bytes]":
        known = {"/api/runtime/new": {"status": "ok", "runtime_id": RUNTIME},
                 f"/api/runtime/upload/cpu/{RUNTIME}/add": {"status": "ok"},
                 f"/api/runtime/upload/jit/{RUNTIME}/add": {"status": "ok", "jid": "a-jitlog"},
                 f"/api/runtime/{RUNTIME}/freeze/": {"status": "ok"}}
        if path not in known:
            return 404, {}, b'{"detail": "Not found."}'
        return 200, {"Content-Type": "application/json"}, json.dumps(known[path]).encode()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    double = Server()
    yield double
    double.close()


@pytest.fixture
def prof(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "app.prof").write_bytes(PROFILE)
    return tmp_path / "app.prof"


@pytest.fixture
def plimsoll_upload(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Upload:
    """`plimsoll upload words...`, in this process."""

    def run(*words: harness.Word) -> harness.Finished:
        monkeypatch.setattr("sys.argv", ["upload", *map(str, words)])
        code = upload.main()
        out, err = capfd.readouterr()
        return harness.Finished(code, out, err)

    return run


def test_a_profile_goes_up_in_four_steps(server: Server, prof: pathlib.Path) -> None:
    # GIVEN a profile with a jitlog beside it; WHEN it is uploaded
    prof.with_name("app.prof.jit").write_bytes(JITLOG)
    done = harness.plimsoll_command("upload", prof, "--python", sys.executable, "--web-url", server.url,
                                    "--web-auth", "secret").expect(0)
    # THEN the server was told of it, got the profile as it is and the log gzipped, and was told that this is all
    new, cpu, jit, freeze = server.requests
    assert new[0] == "/api/runtime/new" and new[1]["content-type"] == "application/json"
    assert json.loads(new[2]) == {"argv": "python app.py", "VM": "CPython"}
    assert cpu[0] == f"/api/runtime/upload/cpu/{RUNTIME}/add" and cpu[2] == PROFILE
    assert cpu[1]["content-disposition"] == "attachment; filename=app.prof" and "content-type" not in cpu[1]
    assert jit[0] == f"/api/runtime/upload/jit/{RUNTIME}/add" and gzip.decompress(jit[2]) == JITLOG
    assert jit[1]["content-disposition"] == "attachment; filename=app.prof.jit.zip"
    assert freeze[0] == f"/api/runtime/{RUNTIME}/freeze/" and freeze[2] == b""
    assert all(headers["authorization"] == "Token secret" for _, headers, _ in server.requests)
    # and the user is told where to look
    assert done.out == f"profile: {server.url}/#/{RUNTIME}\njitlog:  {server.url}/#/a-jitlog/traces\n"


def test_an_upload_may_be_anonymous_and_without_a_jitlog(server: Server, prof: pathlib.Path, plimsoll_upload: Upload) -> None:
    plimsoll_upload(prof, "--web-url", server.url[len("http://"):] + "/").expect(0)
    assert len(server.requests) == 3 and all("authorization" not in headers for _, headers, _ in server.requests)


def test_profiles_of_other_formats_are_converted(server: Server, tmp_path: pathlib.Path, plimsoll_upload: Upload) -> None:
    (tmp_path / "app.collapsed").write_text("main;work 5000\n")
    plimsoll_upload(tmp_path / "app.collapsed", "--web-url", server.url).expect(0)
    assert b"py:work:" in server.requests[1][2]
    assert server.requests[1][1]["content-disposition"] == "attachment; filename=app.collapsed.prof"


def test_a_recording_goes_up_when_the_program_has_ended(server: Server, program: Callable[..., pathlib.Path]) -> None:
    path = program("import sys\ndef work(): sum(range(4000000))\nwork()\nsys.exit(3)")
    harness.python("-m", "plimsoll.vmprof", "--web", "--web-url", server.url, path, "a").expect(3)
    assert [request[0].split("/")[3] for request in server.requests] == ["new", "upload", RUNTIME]
    assert json.loads(server.requests[0][2])["argv"] == f"{path} a" and b"py:work:" in server.requests[1][2]


# ---- errors ----


def test_long_command_lines_are_cut(server: Server, prof: pathlib.Path) -> None:
    upload.upload(str(prof), url=server.url, argv="x" * 1000)
    assert len(json.loads(server.requests[0][2])["argv"]) == 255


def test_nobody_answers(prof: pathlib.Path, plimsoll_upload: Upload) -> None:
    with socket.socket() as free:  # bound, and not listening: nobody else can take the port
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        done = plimsoll_upload(prof, "--web-url", url).expect(1)
    assert done.err.startswith(f"plimsoll: no vmprof server answers at {url}: ") and done.out == ""


@pytest.mark.parametrize("url", ["ftp://profiles.example", "http://", "http://host:port", "http://[", "file:///etc"])
def test_an_address_that_is_none(url: str, prof: pathlib.Path, plimsoll_upload: Upload) -> None:
    assert "is no address of a server" in plimsoll_upload(prof, "--web-url", url).expect(1).err


@pytest.mark.parametrize("status, headers, body, words", [
    (404, {}, b"<html>", "is no vmprof server: it has no /api/runtime/new"),
    (200, {}, b"<html>", "is no vmprof server: its answer to /api/runtime/new is not a JSON object"),
    (200, {}, b'{"status": "ok"}', "is no vmprof server: it has given no runtime_id"),
    (301, {"Location": "https://elsewhere.example/"}, b"", "has moved to https://elsewhere.example/: give that address"),
    (401, {}, b'{"detail":"Invalid token."}', 'refuses the token: {"detail":"Invalid token."}'),
    (500, {}, b"out of\norder", "answers 500 to /api/runtime/new: out of order"),
])
def test_a_server_that_says_no(status: int, headers: "Mapping[str, str]", body: bytes, words: str, server: Server,
                               prof: pathlib.Path, plimsoll_upload: Upload) -> None:
    server.answers["/api/runtime/new"] = (status, headers, body)
    done = plimsoll_upload(prof, "--web-url", server.url, "--web-auth", "old").expect(1)
    assert done.err == f"plimsoll: {server.url} {words}\n" and len(server.requests) == 1


def test_a_server_that_wants_a_token(server: Server, prof: pathlib.Path, plimsoll_upload: Upload) -> None:
    server.answers["/api/runtime/new"] = (403, {}, b"")
    assert "wants a token (--web-auth)" in plimsoll_upload(prof, "--web-url", server.url).expect(1).err


def test_a_profile_that_the_server_does_not_take(server: Server, prof: pathlib.Path, plimsoll_upload: Upload) -> None:
    server.answers[f"/api/runtime/upload/cpu/{RUNTIME}/add"] = (400, {}, b'["frozen"]')
    done = plimsoll_upload(prof, "--web-url", server.url).expect(1)
    assert 'answers 400' in done.err and '["frozen"]' in done.err and done.out == ""


def test_a_server_that_does_not_read_what_is_too_large(server: Server, prof: pathlib.Path,
                                                       plimsoll_upload: Upload) -> None:
    # GIVEN a profile that no connection can hold, and a server that closes it after its answer
    with open(prof, "r+b") as file:
        file.truncate(64 << 20)
    path = f"/api/runtime/upload/cpu/{RUNTIME}/add"
    server.unread.add(path)
    server.answers[path] = (413, {}, b"at most 1 MB")
    # WHEN it is sent THEN the answer is told, not that nobody answers
    done = plimsoll_upload(prof, "--web-url", server.url).expect(1)
    assert done.err == f"plimsoll: {server.url} answers 413 to {path}: at most 1 MB\n"


def test_an_answer_that_is_lists_in_lists(server: Server, prof: pathlib.Path, plimsoll_upload: Upload) -> None:
    server.answers["/api/runtime/new"] = (200, {}, b"[" * 100_000)
    assert "is no vmprof server" in plimsoll_upload(prof, "--web-url", server.url).expect(1).err


@pytest.mark.parametrize("name, content", [("missing", None), ("text", b"root:x:0:0"), ("empty", b""),
                                           ("cut.gz", gzip.compress(JITLOG)[:12]), ("text.gz", gzip.compress(b"text"))])
def test_nothing_is_sent_with_a_jitlog_that_is_none(name: str, content: "bytes | None", server: Server,
                                                    prof: pathlib.Path, plimsoll_upload: Upload) -> None:
    log = prof.with_name(name)
    if content is not None:
        log.write_bytes(content)
    done = plimsoll_upload(prof, "--web-url", server.url, "--jitlog", log).expect(5)
    assert done.err.startswith("plimsoll: ") and str(log) in done.err and done.out == ""
    assert server.requests == []


def test_a_token_that_would_be_another_header(server: Server, prof: pathlib.Path) -> None:
    with pytest.raises(upload.UploadError, match="cannot be sent"):
        upload.upload(str(prof), url=server.url, token="x\r\nHost: elsewhere")
    assert server.requests == []


def test_a_file_that_is_no_profile(server: Server, tmp_path: pathlib.Path, plimsoll_upload: Upload) -> None:
    (tmp_path / "text").write_text("no profile at all {")
    for name in ("text", "missing"):
        done = plimsoll_upload(tmp_path / name, "--web-url", server.url).expect(5)
        assert done.err.startswith("plimsoll: ") and name in done.err
    assert server.requests == []
