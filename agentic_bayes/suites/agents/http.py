"""Agents behind an address: a templated request, and paths to the answer in what comes back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import InitErrorDetails

from agentic_bayes.errors import AgentError, InvalidArgument, did_you_mean
from agentic_bayes.records.base import Json, Record, Text, problem_at, short
from agentic_bayes.records.wire.strict_json import strict_json
from agentic_bayes.suites.agents.declared import MOST_OUTPUT, Bytes, Texts, digest, identity, without_secrets
from agentic_bayes.suites.agents.reply import Messages, Turn, calls_of, converse, told, turn_of, usage_of
from agentic_bayes.suites.json_paths import compiled_path, values_at
from agentic_bayes.suites.trial import Attempt, Reply

__all__ = ["HttpAgent", "HttpSettings"]

_PLACE = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_NAMES = ("prompt", "messages", "system", "task_id", "trial", "seed", "params")
_DEFAULT_BODY = {"prompt": "{{prompt}}", "messages": "{{messages}}"}
_LAST_PORT = 65_535
_SHOWN = 200  # characters of a reply that cannot be used


def _json_path(value: str) -> str:
    try:
        compiled_path(value)
    except InvalidArgument as error:
        # what came is said for all problems in the same way
        raise ValueError(str(error).rpartition(", got ")[0]) from None
    return value


def _url(value: str) -> str:
    import httpx

    try:
        url = httpx.URL(_PLACE.sub("x", value))
    except (httpx.InvalidURL, ValueError) as error:
        raise ValueError(f"must be an address ({error})") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("must begin with http:// or https:// and name a host")
    if url.port is not None and not 1 <= url.port <= _LAST_PORT:
        raise ValueError(f"must have a port from 1 to {_LAST_PORT}")
    return value


def _method(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


JsonPath = Annotated[Text, AfterValidator(_json_path)]


class UsagePaths(Record):
    """Where tokens are reported."""

    input_tokens: JsonPath | None = None  # JSONPath to each
    output_tokens: JsonPath | None = None


class HttpSettings(Record):
    """Declaration of an agent of type http."""

    # Address. Here, in headers and in the body, ``{{prompt}}``, ``{{messages}}``, ``{{system}}``, ``{{task_id}}``,
    # ``{{trial}}``, ``{{seed}}``, ``{{params}}`` and ``{{params.name}}`` are replaced.
    url: Annotated[Text, AfterValidator(_url)]
    # POST unless given
    method: Annotated[Literal["GET", "POST", "PUT", "PATCH", "DELETE"], BeforeValidator(_method)] = "POST"
    headers: Texts = Field(default_factory=dict)  # beside the usual ones
    # Any JSON value. Text that is one placeholder becomes the value itself, a list or a number perhaps. A body that is
    # text is sent as it is. Without one, prompt and messages are sent; with GET and DELETE, nothing.
    body: Json = None
    # JSONPath to the answer; the whole text of the reply unless given. Several texts are joined; what is no text
    # becomes JSON text.
    answer: JsonPath | None = None
    # JSONPath to the calls, or to a list of them; where it leads nowhere, no calls were made
    tool_calls: JsonPath | None = None
    usage: UsagePaths = Field(default_factory=UsagePaths)  # JSONPaths to the tokens
    max_output: Bytes = MOST_OUTPUT  # bytes of the reply at most

    @classmethod
    def _across_fields(cls, data: Any) -> list[InitErrorDetails]:
        get = data.get if isinstance(data, dict) else lambda name, default=None: getattr(data, name, default)
        found: list[InitErrorDetails] = []
        for field in ("url", "headers", "body"):
            for name in _placeholders(get(field)):
                root, _, inside = name.partition(".")
                if root in _NAMES and (root == "params" or not inside):
                    continue
                hint = did_you_mean(name, [*_NAMES, "params.NAME"])
                found.append(
                    problem_at((field,), f"holds the unknown placeholder {short('{{' + name + '}}')}: {hint}", None)
                )
        headers = get("headers")
        for name, value in headers.items() if isinstance(headers, dict) else ():
            if (
                not re.fullmatch(r"[!#$%&'*+.^`|~\w-]+", str(name), re.ASCII)
                or "\n" in str(value)
                or "\r" in str(value)
            ):
                found.append(problem_at(("headers",), f"{short(name)} must be a header on one line", None))
        return found


class HttpAgent:
    """Sends a request per message. Nothing is kept between trials: no cookies, and redirects are not followed."""

    def __init__(self, settings: HttpSettings) -> None:
        import httpx

        self._settings = settings
        self._paths = _paths_of(settings)
        self._client = httpx.AsyncClient(
            timeout=None,  # the time of a trial is for the suite to say
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )

    @property
    def identity(self) -> str:
        """Address and what is sent, without headers; of the body only a hash, since it may hold a key."""
        given = self._settings
        return identity(
            "http",
            url=without_secrets(given.url),
            method=given.method,
            body=digest(given.body) if "body" in given.model_fields_set else None,
            **_paths_of(given),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def attempt(self, attempt: Attempt) -> Reply:
        """Send the request, once per message."""

        async def say(prompt: str, messages: Messages) -> Turn:
            return self._turn(await self._ask(told(attempt, prompt, messages)), prompt)

        return await converse(attempt, say)

    async def _ask(self, values: Mapping[str, Any]) -> str:
        given = self._settings
        headers = [(name, _in_text(value, values).encode()) for name, value in given.headers.items()]
        request = self._client.build_request(
            given.method,
            _in_text(given.url, values, lambda text: quote(text, safe="")),
            headers=headers,  # type: ignore[arg-type]
            **self._body(values),
        )
        response = await self._client.send(request, stream=True)
        try:
            content = bytearray()
            async for piece in response.aiter_bytes():
                content += piece
                if len(content) > given.max_output:
                    raise AgentError(f"the reply is longer than {given.max_output:,} bytes (max_output)")
        finally:
            await response.aclose()
        text = _decoded(content, response.charset_encoding)
        if not response.is_success:
            raise AgentError(f"the reply has status {response.status_code}: {_shown(text)}")
        return text

    def _body(self, values: Mapping[str, Any]) -> dict[str, Any]:
        given = self._settings
        if "body" in given.model_fields_set:
            body = _filled(given.body, values)
        elif given.method in ("GET", "DELETE"):
            return {}
        else:
            body = _filled(_DEFAULT_BODY, values)
        return {"content": body} if isinstance(body, str) else {"json": body}

    def _turn(self, text: str, prompt: str) -> Turn:
        """The answer in a reply, its calls and its tokens."""
        if not self._paths:
            return turn_of(text, prompt=prompt)
        try:
            value = strict_json(text, unique=False)
        except ValueError:
            raise AgentError(f"the reply must be JSON, got {_shown(text)}") from None
        found = {name: values_at(path, value) for name, path in self._paths.items()}
        calls = _calls(found["tool_calls"]) if "tool_calls" in found else None
        answer: str | None = text
        if "answer" in found:
            answer = _answer(found["answer"])
            if answer is None and not calls:
                path = self._settings.answer
                raise AgentError(f"the reply holds no answer at {path} (answer): {_shown(text)}")
        usage = {name: found[name][0] for name in ("input_tokens", "output_tokens") if found.get(name)}
        turn = turn_of(answer or "", prompt=prompt)
        return Turn(turn.answer, calls, *usage_of(usage))


def _decoded(content: bytes | bytearray, charset: str | None) -> str:
    try:
        return content.decode(charset or "utf-8", "replace")
    except LookupError:  # the server names a charset that there is not
        return content.decode("utf-8", "replace")


def _paths_of(settings: HttpSettings) -> dict[str, str]:
    paths = {"answer": settings.answer, "tool_calls": settings.tool_calls, **settings.usage.model_dump()}
    return {name: path for name, path in paths.items() if path is not None}


def _answer(found: list[Any]) -> str | None:
    values = [value for value in found if value is not None]
    if not values:
        return None
    if all(isinstance(value, str) for value in values):
        return "".join(values)
    return json.dumps(values[0] if len(values) == 1 else values, ensure_ascii=False)


def _calls(found: list[Any]) -> list[dict[str, Any]]:
    flat: list[Any] = []
    for value in found:
        flat += value if isinstance(value, list) else [] if value is None else [value]
    return calls_of(flat) or []


def _placeholders(template: object) -> list[str]:
    """The names in all placeholders of a template."""
    if isinstance(template, str):
        return _PLACE.findall(template)
    inside = template.values() if isinstance(template, dict) else template if isinstance(template, list) else ()
    return [name for item in inside for name in _placeholders(item)]


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    """The template with its placeholders replaced, by values where nothing stands around them."""
    if isinstance(template, dict):
        return {key: _filled(item, values) for key, item in template.items()}
    if isinstance(template, list):
        return [_filled(item, values) for item in template]
    if not isinstance(template, str):
        return template
    alone = _PLACE.fullmatch(template)
    if alone and "}}" not in alone[1]:
        return _value(alone[1], values)
    return _in_text(template, values)


def _in_text(template: str, values: Mapping[str, Any], quoted: Callable[[str], str] = str) -> str:
    def written(found: re.Match[str]) -> str:
        value = _value(found[1], values)
        return quoted(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))

    return _PLACE.sub(written, template)


def _value(name: str, values: Mapping[str, Any]) -> Any:
    found: Any = values
    for part in name.split("."):
        if not isinstance(found, Mapping) or part not in found:
            raise AgentError(f"{{{{{name}}}}} stands in the request, and task {values['task_id']!r} has no such param")
        found = found[part]
    return found


def _shown(text: str) -> str:
    shown = " ".join(text.split())
    return (shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…") or "(empty)"
