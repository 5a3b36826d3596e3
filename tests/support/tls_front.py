"""Ends TLS before a plain server, byte by byte, as a proxy or the server itself would."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from tests.support.certificates import Identity

START_S = 10.0


@contextmanager
def tls_in_front(url: str, identity: Identity) -> Iterator[str]:
    """Serve ``http://host:port`` as ``https://…`` until the block ends."""
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(url, identity, started)))
    thread.start()
    loop, stop, port = started.result(START_S)
    try:
        yield f"https://127.0.0.1:{port}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


async def _serve(
    url: str, identity: Identity, started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]]
) -> None:
    host, _, port = url.removeprefix("http://").partition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(host, int(port))
        try:
            await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))
        except ConnectionError:
            pass
        finally:
            inner_writer.close()
            writer.close()

    server = await asyncio.start_server(pass_on, "127.0.0.1", 0, ssl=context)
    stop = asyncio.Event()
    started.set_result((asyncio.get_running_loop(), stop, server.sockets[0].getsockname()[1]))
    async with server:
        await stop.wait()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()
