"""Middlewares that record a request on demand: :class:`WSGIProfiler` (Django, Flask) and :class:`ASGIProfiler`
(FastAPI, Starlette, Django).

::

    app.wsgi_app = WSGIProfiler(app.wsgi_app, directory="profiles")     # Flask
    application = WSGIProfiler(get_wsgi_application())                   # Django's wsgi.py
    app.add_middleware(ASGIProfiler, directory="profiles", mode="wall")  # FastAPI

A request from this machine with ``plimsoll`` in its query string (``/search?q=tea&plimsoll``) is recorded into a file
in `directory`; the response's header ``x-plimsoll-profile`` names it. What comes by a Unix socket, or a proxy has
passed on with a header that says so (``Via``, ``Forwarded``, ``X-Forwarded-For`` and the like), is anybody's, and is
not recorded. A proxy on this machine that sets none, as nginx does without a ``proxy_set_header``, looks like somebody
on this machine: behind one, pass `when`, to decide for example by a secret header. Waitress takes most of these headers
away before an application could see them, so under it nothing is recorded without `when`. Whoever may ask for profiles
can slow the server down and fill its disk, and profiles hold source text.

One request is recorded at a time, and with it whatever else the process does meanwhile. Requests that ask during a
recording are served as usual, with ``x-plimsoll-profile: busy``.
"""

from __future__ import annotations

import itertools
import os
import time
from typing import Any, Awaitable, Callable, Iterable, Iterator, MutableMapping, Optional
from urllib.parse import parse_qs

HEADER = "x-plimsoll-profile"
# The last one is the first, of a server that listens to IPv4 and IPv6 on one socket. A Unix socket is none of them:
# behind it there is a proxy.
_LOOPBACK = ("127.0.0.1", "::1", "::ffff:127.0.0.1")
#: Beginnings of headers that say that somebody else asks.
_PROXIES = ("forwarded", "via", "x-forwarded-", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip")


def _asks(query: str, client: str, headers: "Iterable[str]") -> bool:
    """Whether a request is from this machine, and for a profile. `headers` are the lower-case names of its headers."""
    return (client in _LOOPBACK and not any(name.startswith(_PROXIES) for name in headers)
            and "plimsoll" in parse_qs(query, keep_blank_values=True))


_numbers = itertools.count(1)  # of the profiles of this process, whichever middleware makes them


class _Recorder:
    """Files and options of a middleware's recordings."""

    def __init__(self, directory: str, options: "dict[str, Any]") -> None:
        self._directory = os.path.abspath(directory)
        self._options = options
        import plimsoll

        # An error here, of options that there are not, and of a path, rather than in each request.
        plimsoll.Profiler(os.path.join(self._directory, "request.plim"), **options)

    def start(self) -> "tuple[Optional[Any], str]":
        """A started profiler, or None, and the header's value."""
        import plimsoll

        name = f"request-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{next(_numbers)}.plim"
        try:
            if plimsoll.is_active():
                return None, "busy"
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            profiler = plimsoll.Profiler(os.path.join(self._directory, name), **self._options)
            return profiler.start(), name
        except (OSError, ValueError, plimsoll.UnsupportedError) as error:
            if isinstance(error, ValueError) and plimsoll.is_active():  # another thread was faster
                return None, "busy"
            return None, f"failed: {str(error).splitlines()[0]}".encode("ascii", "replace").decode()

    @staticmethod
    def stop(profiler: "Optional[Any]") -> None:
        if profiler is not None:
            try:
                profiler._end()
            except ValueError:  # it ended before, by whatever the request does
                pass


class _RecordedBody:
    """A WSGI response whose recording ends with it."""

    def __init__(self, body: "Iterable[bytes]", profiler: Any) -> None:
        self._body = body
        self._profiler = profiler

    def __iter__(self) -> "Iterator[bytes]":
        yield from self._body

    def close(self) -> None:
        try:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()
        finally:
            _Recorder.stop(self._profiler)


class WSGIProfiler:
    """Wraps a WSGI application. `when` takes the environ; other options are those of :class:`plimsoll.Profiler`."""

    def __init__(self, app: "Callable[..., Iterable[bytes]]", directory: str = "profiles",
                 when: "Optional[Callable[[dict[str, Any]], bool]]" = None, **options: Any) -> None:
        self._app = app
        self._when = when or self._asks
        self._recorder = _Recorder(directory, options)

    @staticmethod
    def _asks(environ: "dict[str, Any]") -> bool:
        if "waitress.client_disconnected" in environ:  # its key: X-Forwarded-For is gone, unless it trusts the proxy
            return False
        headers = (name[len("HTTP_"):].lower().replace("_", "-") for name in environ if name.startswith("HTTP_"))
        return _asks(environ.get("QUERY_STRING", ""), environ.get("REMOTE_ADDR", ""), headers)

    def __call__(self, environ: "dict[str, Any]", start_response: "Callable[..., Any]") -> "Iterable[bytes]":
        if not self._when(environ):
            return self._app(environ, start_response)
        profiler, told = self._recorder.start()

        def start(status: str, headers: "list[tuple[str, str]]", *more: Any) -> Any:
            return start_response(status, [*headers, (HEADER, told)], *more)

        try:
            body = self._app(environ, start)
        except BaseException:
            self._recorder.stop(profiler)
            raise
        return _RecordedBody(body, profiler)


Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class ASGIProfiler:
    """Wraps an ASGI application. `when` takes the scope; other options are those of :class:`plimsoll.Profiler`."""

    def __init__(self, app: "Callable[[Scope, Receive, Send], Awaitable[None]]", directory: str = "profiles",
                 when: "Optional[Callable[[Scope], bool]]" = None, **options: Any) -> None:
        self._app = app
        self._when = when or self._asks
        self._recorder = _Recorder(directory, options)

    @staticmethod
    def _asks(scope: Scope) -> bool:
        client = scope.get("client")
        headers = (bytes(name).decode("latin-1").lower() for name, _ in scope.get("headers", ()))
        return _asks(bytes(scope.get("query_string", b"")).decode("latin-1"), client[0] if client else "", headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._when(scope):
            await self._app(scope, receive, send)
            return
        profiler, told = self._recorder.start()

        async def send_with_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), (HEADER.encode(), told.encode())]}
            await send(message)

        try:
            await self._app(scope, receive, send_with_header)
        finally:
            self._recorder.stop(profiler)
