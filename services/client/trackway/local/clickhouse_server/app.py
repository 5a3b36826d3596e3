"""The HTTP side: what clickhouse-connect, Grafana and curl speak to. Loopback only; any user and password will do."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Awaitable, Callable

from aiohttp import web

from trackway.local.clickhouse_server.encoding import decode, encode, encoding_for
from trackway.local.clickhouse_server.engine import Engine
from trackway.local.clickhouse_server.exchange import BAD_ARGUMENTS, Answer, EngineError
from trackway.local.clickhouse_server.http_request import (
    NOT_IMPLEMENTED,
    HttpRequest,
    Refused,
    engine_request,
    wants_compression,
)

log = logging.getLogger(__name__)

MAX_BODY_BYTES = 1 << 30
ENGINE = web.AppKey("engine", Engine)
_LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
_STATUS_BY_CODE = {
    36: 400,
    48: 501,
    60: 404,
    62: 400,
    81: 404,
    115: 400,
    159: 408,
    164: 403,
    456: 400,
    457: 400,
}
"""As ClickHouse's HTTPHandler maps the common ones; others are 500. None of them is a status that clients retry on."""


def make_app(engine: Engine) -> web.Application:
    """Return the application; it closes the engine when it ends."""
    app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[_refuse_browsers])
    app[ENGINE] = engine
    app.router.add_get("/ping", _ping)
    app.router.add_route("*", "/{tail:.*}", _statement)
    app.on_cleanup.append(_close)
    return app


async def _ping(_: web.Request) -> web.Response:
    return web.Response(text="Ok.\n")


async def _statement(request: web.Request) -> web.Response:
    headers = _base_headers(request)
    try:
        http = await _read(request)
        if request.method == "GET" and not request.query:
            return web.Response(text="Ok.\n", headers=headers)
        answer = await request.app[ENGINE].run(engine_request(http))
    except (EngineError, Refused) as error:
        log.info("statement failed", extra={"code": error.code, "error": error.message})
        return _failed(error, headers, request.app[ENGINE].version)
    return _answered(answer, http, headers)


async def _read(request: web.Request) -> HttpRequest:
    parameters = dict(request.query)
    body = b""
    if request.content_type in {"multipart/form-data", "application/x-www-form-urlencoded"}:
        parameters |= await _form(request)
    else:
        body = _decoded(await request.read(), request.headers.get("Content-Encoding", ""))
    return HttpRequest(method=request.method, parameters=parameters, headers=request.headers, body=body)


async def _form(request: web.Request) -> dict[str, str]:
    fields = {}
    for name, value in (await request.post()).items():
        if not isinstance(value, str):
            raise Refused(NOT_IMPLEMENTED, "external tables are not served here. (NOT_IMPLEMENTED)")
        fields[name] = value
    return fields


def _decoded(body: bytes, encoding: str) -> bytes:
    try:
        return decode(body, encoding)
    except ValueError as error:
        raise Refused(BAD_ARGUMENTS, f"{error}. (BAD_ARGUMENTS)") from error


def _base_headers(request: web.Request) -> dict[str, str]:
    return {
        "X-ClickHouse-Server-Display-Name": "chdb",
        "X-ClickHouse-Timezone": request.app[ENGINE].timezone,
        "X-ClickHouse-Query-Id": request.query.get("query_id") or str(uuid.uuid4()),
    }


def _answered(answer: Answer, http: HttpRequest, headers: dict[str, str]) -> web.Response:
    headers["X-ClickHouse-Summary"] = _summary(answer)
    headers["Content-Type"] = "application/octet-stream"
    if answer.format is not None:
        headers["X-ClickHouse-Format"] = answer.format
    body = answer.body
    encoding = encoding_for(http.headers.get("Accept-Encoding", ""), body) if wants_compression(http) else None
    if encoding is not None:
        headers["Content-Encoding"] = encoding
        body = encode(body, encoding)
    return web.Response(body=body, headers=headers)


def _failed(error: EngineError | Refused, headers: dict[str, str], version: str) -> web.Response:
    headers["X-ClickHouse-Exception-Code"] = str(error.code)
    message = error.message if "(version " in error.message else f"{error.message} (version {version})"
    return web.Response(status=_STATUS_BY_CODE.get(error.code, 500), text=message + "\n", headers=headers)


def _summary(answer: Answer) -> str:
    return json.dumps(
        {
            "read_rows": str(answer.read_rows),
            "read_bytes": str(answer.read_bytes),
            "written_rows": str(answer.written_rows),
            "written_bytes": str(answer.written_bytes),
            "total_rows_to_read": "0",
            "result_rows": str(answer.result_rows),
            "result_bytes": str(len(answer.body)),
            "elapsed_ns": str(answer.elapsed_ns),
        }
    )


@web.middleware
async def _refuse_browsers(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """A web page can reach a loopback port too (and by DNS rebinding under a name of its own)."""
    host = request.host.rpartition(":")[0] or request.host
    if host not in _LOCAL_HOSTS or "Origin" in request.headers:
        return web.Response(status=403, text="only programs on this machine are served\n")
    return await handler(request)


async def _close(app: web.Application) -> None:
    app[ENGINE].close()
