"""``plimsoll upload``: sends a profile, and the jitlog beside it, to a vmprof server.

Four steps: a new entry, the profile, the jitlog if there is one, and the end, after which the entry cannot be changed.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import io
import json
import os
import subprocess
import sys
import tempfile
import urllib.parse
import zlib
from typing import Any, BinaryIO, Mapping, Optional, Union

from plimsoll import _program
from plimsoll.compat.vmprof import reader

_TIMEOUT_S = 60
_LONGEST_ARGV = 255
_MOST_ANSWER = 1 << 20
_VMS = {"cpython": "CPython", "pypy": "PyPy"}


class UploadError(Exception):
    """The profile is not on the server, or not whole; the words say why."""


class Server:
    """A vmprof server."""

    def __init__(self, url: str, token: Optional[str] = None) -> None:
        """UploadError for a text that is no address."""
        self.url = (url if "://" in url else "http://" + url).rstrip("/")
        self._token = token
        try:
            parts = urllib.parse.urlsplit(self.url)
            self._host, self._port = parts.hostname, parts.port
        except ValueError as error:
            raise UploadError(f"{url} is no address of a server: {error}") from None
        if parts.scheme not in ("http", "https") or not self._host:
            raise UploadError(f"{url} is no address of a server; for example http://profiles.example:8000")
        self._kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._path = parts.path

    def post(self, path: str, body: "Union[bytes, BinaryIO]", headers: "Mapping[str, str]") -> "dict[str, Any]":
        """What the server answers. UploadError if that is not a yes."""
        connection = self._kind(self._host or "", self._port, timeout=_TIMEOUT_S)
        sent = {"Content-Length": str(_size(body)), "Accept": "application/json", **headers}
        if self._token:
            sent["Authorization"] = f"Token {self._token}"
        try:
            connection.connect()
            try:
                connection.request("POST", self._path + path, body=body, headers=sent)
            except (BrokenPipeError, ConnectionResetError):
                pass  # a server that wants no more has mostly said why: too large, or a wrong token
            answer = connection.getresponse()
            text = answer.read(_MOST_ANSWER).decode("utf-8", "replace")
        except ValueError as error:  # a line end in the token or in the address
            raise UploadError(f"this cannot be sent: {error}") from None
        except (OSError, http.client.HTTPException) as error:
            raise UploadError(f"no vmprof server answers at {self.url}: {error or type(error).__name__}") from None
        finally:
            connection.close()
        if answer.status != 200:
            raise UploadError(self._refusal(path, answer, text))
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):  # json's own, of lists in lists
            values = None
        if not isinstance(values, dict):
            raise UploadError(f"{self.url} is no vmprof server: its answer to {path} is not a JSON object")
        return values

    def _refusal(self, path: str, answer: http.client.HTTPResponse, text: str) -> str:
        said = _printable(text)[:200]
        if answer.status in (401, 403):
            reason = "refuses the token" if self._token else "wants a token (--web-auth)"
            return f"{self.url} {reason}: {said or _printable(answer.reason)}"
        if 300 <= answer.status < 400:
            place = _printable(answer.getheader("Location", "an unknown place"))
            return f"{self.url} has moved to {place}: give that address"
        if answer.status in (404, 405) and path == _NEW:
            return f"{self.url} is no vmprof server: it has no {path}"
        return f"{self.url} answers {answer.status} to {path}: {said or _printable(answer.reason)}"


def _printable(text: str) -> str:
    """A server's words on one line, without what a terminal would take for commands."""
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))


_NEW = "/api/runtime/new"


def _size(body: "Union[bytes, BinaryIO]") -> int:
    return len(body) if isinstance(body, bytes) else os.fstat(body.fileno()).st_size


def _post_file(server: Server, kind: str, runtime: str, file: BinaryIO, name: str) -> "dict[str, Any]":
    """Sends a file as it is. Without a Content-Type, as vmprof does: a form would be unpacked there."""
    plain = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in os.path.basename(name))
    disposition = {"Content-Disposition": f"attachment; filename={plain.encode('ascii', 'replace').decode()}"}
    return server.post(f"/api/runtime/upload/{kind}/{runtime}/add", file, disposition)


def upload(path: str, *, url: str, token: Optional[str] = None, argv: str = "", jitlog: Optional[str] = None) -> str:
    """Sends a profile in vmprof's format, and a jitlog (by default the file beside it with .jit behind its name).

    Prints where they can be looked at, and returns the address. UploadError or OSError if it could not be done.
    """
    server = Server(url, token)
    log = path + ".jit" if jitlog is None and os.path.exists(path + ".jit") else jitlog
    packed = _packed_jitlog(log) if log else b""  # before anything is sent: an entry without its log is not closed
    with open(path, "rb") as file:
        state = _state(file)
        entry = {"argv": (argv or state.meta.get("argv") or f"plimsoll upload {path}")[:_LONGEST_ARGV],
                 "VM": _VMS.get(state.interp_name or "", state.interp_name or "unknown")[:32]}
        answer = server.post(_NEW, json.dumps(entry).encode(), {"Content-Type": "application/json"})
        runtime = urllib.parse.quote(str(answer.get("runtime_id") or ""), safe="")
        if not runtime:
            raise UploadError(f"{server.url} is no vmprof server: it has given no runtime_id")
        _post_file(server, "cpu", runtime, file, path)
    address = f"{server.url}/#/{runtime}"
    print(f"profile: {address}")
    if log:
        traces = _upload_jitlog(server, runtime, packed, log)
        print(f"jitlog:  {server.url}/#/{traces}/traces")
    server.post(f"/api/runtime/{runtime}/freeze/", b"", {})
    return address


def _state(file: BinaryIO) -> reader.LogReaderState:
    """What is said at the beginning of a profile, plain or gzipped."""
    start = file.read(2)
    file.seek(0)
    head = gzip.open(file).read(1 << 16) if start == b"\x1f\x8b" else file.read(1 << 16)
    file.seek(0)
    return reader.read(head)


def _packed_jitlog(path: str) -> bytes:
    """A jitlog, gzipped. OSError if it cannot be read, or is none."""
    with open(path, "rb") as file:
        data = file.read()
    is_packed = data[:2] == b"\x1f\x8b"
    try:
        start = gzip.GzipFile(fileobj=io.BytesIO(data)).read(4) if is_packed else data[:4]
    except (EOFError, zlib.error):
        start = b""
    # The mark of a header, its version, and whether it is of a machine of 32 bits.
    if len(start) < 4 or start[0] != 0x1E or start[3] > 1:
        raise OSError(f"{path} is no jitlog")
    return data if is_packed else gzip.compress(data)


def _upload_jitlog(server: Server, runtime: str, packed: bytes, path: str) -> str:
    """The server wants it gzipped, under a name that ends in .zip."""
    with tempfile.TemporaryFile() as file:
        file.write(packed)
        file.seek(0)
        answer = _post_file(server, "jit", runtime, file, os.path.basename(path) + ".zip")
    return urllib.parse.quote(str(answer.get("jid") or runtime), safe="")


def _as_vmprof(path: str, directory: str) -> str:
    """The path of the profile in vmprof's format: itself, if it is in that. CalledProcessError if it is no profile."""
    with open(path, "rb") as file:
        try:
            _state(file)
            return path
        except (reader.FileReadError, OSError, EOFError, zlib.error):
            pass
    prof = os.path.join(directory, os.path.basename(path) + ".prof")
    subprocess.run([_program.find(), "convert", path, "-f", "vmprof", "-o", prof], check=True, stderr=subprocess.PIPE,
                   text=True)
    return prof


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="plimsoll upload", description="Sends a profile, of any format, to a vmprof server.",
        epilog="example: plimsoll upload app.plim --web-url http://profiles.example:8000 --web-auth TOKEN")
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--web-url", required=True, metavar="URL", help="the server")
    parser.add_argument("--web-auth", metavar="TOKEN", help="your token there; without one the upload is anonymous")
    parser.add_argument("--jitlog", metavar="FILE", help="a log of PyPy's JIT; by default FILE.jit, if it is there")
    options = parser.parse_args()
    log = options.jitlog or (options.file + ".jit" if os.path.exists(options.file + ".jit") else None)
    try:
        with tempfile.TemporaryDirectory(prefix="plimsoll-") as directory:
            upload(_as_vmprof(options.file, directory), url=options.web_url, token=options.web_auth, jitlog=log)
    except subprocess.CalledProcessError as error:
        print(error.stderr.rstrip(), file=sys.stderr)
        return 5
    except UploadError as error:
        print(f"plimsoll: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"plimsoll: {error}", file=sys.stderr)
        return 5
    return 0


if __name__ == "__main__":
    _program.end_with(main)
