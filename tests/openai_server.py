"""A server on this machine that speaks the OpenAI chat protocol, and fails in every way that a provider does."""

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True)
class Reply:
    """What the server does with one request.

    `content` goes into the message (as the arguments of the tool, where the request names one); `raw` replaces the
    whole body; `wire` gives the pieces of head and body, sent with `pause` seconds between them, and the connection
    stays open if `hangs`; `drop` closes the connection instead of replying.
    """

    content: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    drop: bool = False
    raw: bytes | None = None
    wire: Callable[[], Iterable[bytes]] | None = None
    pause: float = 0.0
    hangs: bool = False
    refusal: str | None = None
    finish_reason: str = "stop"


@dataclass(frozen=True)
class Request:
    """One request: its number from 0, when it arrived, and its body."""

    number: int
    arrived: float
    body: dict[str, Any]

    @property
    def answer(self) -> str:
        """The text under judgement."""
        found = re.search(r"\[answer (\w{16})\]\n(.*)\n\[end of answer \1\]", self.body["messages"][1]["content"], re.S)
        return found[2] if found else ""


class ChatServer:
    """Replies to every request as `respond` says, in a thread of its own; a context manager.

    `requests` keeps what arrived, `peak` how many were answered at the same time. Without `keep_alive` the connection
    is closed after each reply, so that no client is left with one when its event loop ends.
    """

    def __init__(self, respond: Callable[[Request], Reply], *, keep_alive: bool = False) -> None:
        self.respond, self.keep_alive = respond, keep_alive
        self.requests: list[Request] = []
        self.running = self.peak = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    @property
    def url(self) -> str:
        """What a client takes as its base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *exception: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=512)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its reply; whether the connection stays open."""
        head = await reader.readuntil(b"\r\n\r\n")
        length = int((re.search(rb"(?i)content-length: *(\d+)", head) or [0, 0])[1])
        request = Request(len(self.requests), time.monotonic(), json.loads(await reader.readexactly(length)))
        self.requests.append(request)
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            reply = self.respond(request)
            await asyncio.sleep(reply.delay)
        finally:
            self.running -= 1
        if reply.drop:
            writer.transport.abort()
            return False
        if reply.wire is not None:
            for piece in reply.wire():
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(reply.pause)
            await asyncio.sleep(600 * reply.hangs)
            return False
        body = _body(request, reply) if reply.raw is None else reply.raw
        headers = {"content-type": "application/json", "content-length": str(len(body)), **reply.headers}
        if not self.keep_alive:
            headers["connection"] = "close"
        lines = [f"HTTP/1.1 {reply.status} x", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        writer.write("\r\n".join(lines).encode() + body)
        await writer.drain()
        return self.keep_alive


def _body(request: Request, reply: Reply) -> bytes:
    if reply.status != 200:
        return json.dumps({"error": {"message": reply.content or "no", "type": "x", "code": "x"}}).encode()
    message: dict[str, Any] = {"role": "assistant", "content": reply.content or None, "refusal": reply.refusal}
    tools = request.body.get("tools")
    if tools and reply.refusal is None:
        call = {"name": tools[0]["function"]["name"], "arguments": reply.content}
        message |= {"content": None, "tool_calls": [{"id": "1", "type": "function", "function": call}]}
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
    usage = {"prompt_tokens": 500, "completion_tokens": 20, "total_tokens": 520}
    completion = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    return json.dumps(completion | {"usage": usage}).encode()


def rate_of(requests: list[Request]) -> int:
    """The most arrivals in any window of one second."""
    times = sorted(request.arrived for request in requests)
    return max(sum(1 for other in times if start <= other < start + 1) for start in times)
