"""The web application: TensorFlow Serving's REST requests for models, and the search page."""

import asyncio
import contextlib
import ipaddress
import re
import socket
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tf_smoothclir.server.search_page import SearchPage
from tf_smoothclir.server.served_models import ServedModel
from tf_smoothclir.utils.errors import InputError

MAX_BODY_BYTES = 16 << 20
BODY_SECONDS = 60.0  # from the headers of a request to the last byte of its body
MAX_BODIES_BYTES = 128 << 20  # of all requests that are being read, or wait to be computed
_SMALL_BODY = 64 << 10  # is always read
_WORKERS = 4  # requests that are computed at the same time
_MODEL = "/v1/models/{model}"


def application(
    models: Mapping[str, ServedModel], page: SearchPage | None = None, names: Collection[str] = ()
) -> Starlette:
    """The application; `names` have a dot, and call the server besides the machine's own."""
    pool = ThreadPoolExecutor(_WORKERS)  # the event loop only reads and writes
    # Asked for once: the name with a domain may take a look-up, which can take seconds.
    names = (*names, socket.gethostname(), socket.getfqdn())

    async def computed(function: Callable, *arguments):
        return await asyncio.get_running_loop().run_in_executor(pool, function, *arguments)

    bodies = _Bodies()

    async def predict(request: Request) -> Response:
        model = _chosen(models, request)
        if (coding := request.headers.get("content-encoding", "identity")) != "identity":
            raise HTTPException(415, f"Content-Encoding {coding[:20]} is not read: send plain JSON")
        async with bodies.read(request) as body:
            answer = await computed(model.answer, body)
        return Response(answer, media_type="application/json")

    def status(request: Request) -> Response:
        if request.url.path.endswith(":predict"):  # of which a name of a model is a part
            raise HTTPException(405, headers={"Allow": "POST"})
        return JSONResponse(_chosen(models, request).status())

    routes = [
        Route(_MODEL + version + end, endpoint, methods=[method])
        for version in ("", "/versions/{version}")
        for end, endpoint, method in ((":predict", predict, "POST"), ("", status, "GET"))
    ]
    if page is not None:
        search = page.search

        async def searched(request: Request) -> Response:
            return JSONResponse(await computed(search, request.query_params))

        routes += [
            Route("/", lambda _: Response(page.html, headers=page.headers, media_type="text/html")),
            Route("/api/about", lambda _: JSONResponse(page.about())),
            Route("/api/search", searched),
        ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(_HostCheck, names=names)],
        exception_handlers={
            HTTPException: lambda _, error: _refusal(
                error.status_code, error.detail, error.headers
            ),
            # A field of a request has the name of a flag.
            InputError: lambda _, error: _refusal(400, str(error).removeprefix("--")),
            Exception: lambda _, error: _refusal(
                500, f"{type(error).__name__} in the server; see its log"
            ),
        },
    )


def host_is_served(header: str, names: Collection[str] = ()) -> bool:
    """Whether a Host header names this server, and not a domain that was pointed at it."""
    # A web page of another domain could otherwise have a browser ask a server that only its own
    # machine reaches (DNS rebinding). That takes a domain with a dot: addresses, names without a
    # dot and `names` are safe.
    host = re.sub(r":\d*$", "", header.strip()).strip("[]").rstrip(".").lower()
    if ("." not in host and ":" not in host) or host.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(host)
        return True
    except ValueError:
        return host in {name.lower() for name in names}


class _HostCheck:
    """Refuses requests whose Host header is not of this server, or that come too late for it."""

    def __init__(self, app: ASGIApp, names: Collection[str]):
        self._app, self._names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = Headers(scope=scope).get("host", "")
        if not host_is_served(host, self._names):
            message = f"{host[:80]!r} is no name of this server; see --allowed_hosts"
            await _refusal(403, message)(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            await _refusal(503, "The server stops")(scope, receive, send)


def _chosen(models: Mapping[str, ServedModel], request: Request) -> ServedModel:
    name, version = request.path_params["model"], request.path_params.get("version")
    model = models.get(name)
    if model is None or version not in (None, str(model.version)):
        asked = name[:80] if version is None else f"{name[:80]}, version {version[:20]}"
        served = ", ".join(f"{there.name}, version {there.version}" for there in models.values())
        raise HTTPException(404, f"There is no model {asked}; served are: {served}")
    return model


class _Bodies:
    """Reads the bodies of requests, which together take limited time and memory."""

    def __init__(self):
        self._bytes = 0

    @contextlib.asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """Yields a body, which counts as memory in use until the context ends."""
        pieces: list[bytes] = []
        size = 0
        _check_size(int(request.headers.get("content-length", 0)))  # h11 takes numbers alone
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for piece in request.stream():
                    pieces.append(piece)
                    size += len(piece)
                    self._bytes += len(piece)
                    _check_size(size)
                    if self._bytes > MAX_BODIES_BYTES and size > _SMALL_BODY:
                        message = "The server is reading large requests; try again later"
                        raise HTTPException(503, message, {"Connection": "close"})
            body = b"".join(pieces)
            pieces.clear()
        except (ClientDisconnect, TimeoutError):
            message = f"The body did not come within {BODY_SECONDS:g} seconds"
            raise HTTPException(408, message, {"Connection": "close"}) from None
        else:
            yield body
        finally:
            self._bytes -= size


def _check_size(size: int) -> None:
    # The connection stays: closed at once, it would break while a client still sends, which then
    # reads no answer.
    if size > MAX_BODY_BYTES:
        message = f"The body has over {MAX_BODY_BYTES >> 20} MiB; send several requests"
        raise HTTPException(413, message)


def _refusal(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"error": message}, status, headers)
