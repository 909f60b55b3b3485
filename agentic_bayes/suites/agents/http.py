"""Call an agent over HTTP: fill in a request template, and read the answer from the reply by JSONPath."""

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
from agentic_bayes.formatting import text_or_json
from agentic_bayes.records.base import Json, Record, Text, field_of, problem_at, short
from agentic_bayes.records.wire.strict_json import strict_json
from agentic_bayes.suites.agents import reply
from agentic_bayes.suites.agents.declared import MOST_OUTPUT, Bytes, TextMapping, digest, identity, without_secrets
from agentic_bayes.suites.reading.json_paths import compiled_path, values_at
from agentic_bayes.suites.trial import AgentReply, TrialAttempt

_PLACEHOLDER = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_NAMES = ("prompt", "messages", "system", "task_id", "trial", "seed", "params")
_DEFAULT_BODY = {"prompt": "{{prompt}}", "messages": "{{messages}}"}
_LAST_PORT = 65_535
_SHOWN = 200  # characters of a reply that cannot be used


def _json_path(value: str) -> str:
    try:
        compiled_path(value)
    except InvalidArgument as error:
        # the caller adds what came
        raise ValueError(str(error).rpartition(", got ")[0]) from None
    return value


def _url(value: str) -> str:
    import httpx

    try:
        url = httpx.URL(_PLACEHOLDER.sub("x", value))
    except (httpx.InvalidURL, ValueError) as error:
        raise ValueError(f"must be a URL ({error})") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("must begin with http:// or https:// and name a host")
    if url.port is not None and not 1 <= url.port <= _LAST_PORT:
        raise ValueError(f"must have a port from 1 to {_LAST_PORT}")
    return value


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


JsonPath = Annotated[Text, AfterValidator(_json_path)]


class UsagePaths(Record):
    """Where the reply reports its tokens."""

    input_tokens: JsonPath | None = None  # JSONPath to the number of input tokens
    output_tokens: JsonPath | None = None  # JSONPath to the number of output tokens


class HttpSettings(Record):
    """Declaration of an agent of type http."""

    # The URL. Here, in headers and in the body, ``{{prompt}}``, ``{{messages}}``, ``{{system}}``, ``{{task_id}}``,
    # ``{{trial}}``, ``{{seed}}``, ``{{params}}`` and ``{{params.name}}`` are replaced.
    url: Annotated[Text, AfterValidator(_url)]
    method: Annotated[Literal["GET", "POST", "PUT", "PATCH", "DELETE"], BeforeValidator(_upper)] = "POST"
    headers: TextMapping = Field(default_factory=dict)  # added to the usual ones
    # Any JSON value. Text that is just one placeholder becomes the value itself, which may be a list or a number. A
    # body that is text is sent unchanged. Without a body, prompt and messages are sent; with GET and DELETE, nothing.
    body: Json = None
    # JSONPath to the answer; default: the whole text of the reply. Several texts are joined; other values become JSON
    # text.
    answer: JsonPath | None = None
    # JSONPath to the calls, or to a list of them; if nothing is there, no calls were made
    tool_calls: JsonPath | None = None
    usage: UsagePaths = Field(default_factory=UsagePaths)  # JSONPaths to the tokens
    max_output: Bytes = MOST_OUTPUT  # most bytes of the reply

    @classmethod
    def _across_fields(cls, data: Any) -> list[InitErrorDetails]:
        problems: list[InitErrorDetails] = []
        for field in ("url", "headers", "body"):
            for name in _placeholders(field_of(data, field)):
                root, _, inside = name.partition(".")
                if root in _NAMES and (root == "params" or not inside):
                    continue
                hint = did_you_mean(name, [*_NAMES, "params.NAME"])
                message = f"holds the unknown placeholder {short('{{' + name + '}}')}: {hint}"
                problems.append(problem_at((field,), message, None))
        headers = field_of(data, "headers")
        for name, value in headers.items() if isinstance(headers, dict) else ():
            one_line = not {"\n", "\r"} & {*str(value)}
            if not one_line or not re.fullmatch(r"[!#$%&'*+.^`|~\w-]+", str(name), re.ASCII):
                problems.append(problem_at(("headers",), f"{short(name)} must be a header on one line", None))
        return problems


class HttpAgent:
    """Sends a request per message; keeps no cookies between trials and follows no redirects."""

    def __init__(self, settings: HttpSettings) -> None:
        import httpx

        self._settings = settings
        self._paths = _paths_of(settings)
        self._client = httpx.AsyncClient(
            timeout=None,  # the suite limits the time of a trial
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )

    @property
    def identity(self) -> str:
        """The URL and what is sent, without headers; a hash stands for the body, which may hold a key."""
        settings = self._settings
        return identity(
            "http",
            url=without_secrets(settings.url),
            method=settings.method,
            body=digest(settings.body) if "body" in settings.model_fields_set else None,
            **_paths_of(settings),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def attempt(self, attempt: TrialAttempt) -> AgentReply:
        """Send the request, once per message."""

        async def say(prompt: str, messages: reply.ChatMessages) -> reply.AgentTurn:
            return self._turn(await self._ask(reply.attempt_as_json(attempt, prompt, messages)), prompt)

        return await reply.converse(attempt, say)

    async def _ask(self, values: Mapping[str, Any]) -> str:
        settings = self._settings
        headers = [(name, _in_text(value, values).encode()) for name, value in settings.headers.items()]
        request = self._client.build_request(
            settings.method,
            _in_text(settings.url, values, lambda text: quote(text, safe="")),
            headers=headers,  # type: ignore[arg-type]
            **self._body(values),
        )
        response = await self._client.send(request, stream=True)
        try:
            content = bytearray()
            async for piece in response.aiter_bytes():
                content += piece
                if len(content) > settings.max_output:
                    raise AgentError(f"the reply is longer than {settings.max_output:,} bytes (max_output)")
        finally:
            await response.aclose()
        text = _decoded(content, response.charset_encoding)
        if not response.is_success:
            raise AgentError(f"the reply has status {response.status_code}: {_shown(text)}")
        return text

    def _body(self, values: Mapping[str, Any]) -> dict[str, Any]:
        settings = self._settings
        if "body" in settings.model_fields_set:
            body = _filled(settings.body, values)
        elif settings.method in ("GET", "DELETE"):
            return {}
        else:
            body = _filled(_DEFAULT_BODY, values)
        return {"content": body} if isinstance(body, str) else {"json": body}

    def _turn(self, text: str, prompt: str) -> reply.AgentTurn:
        """Read the answer, the calls and the tokens from a reply."""
        if not self._paths:
            _raise_reported(text)
            return reply.turn_of(text, prompt=prompt)
        try:
            value = strict_json(text, unique=False)
        except ValueError:
            raise AgentError(f"the reply must be JSON, got {_shown(text)}") from None
        parts = {name: values_at(path, value) for name, path in self._paths.items()}
        calls = _calls(parts["tool_calls"]) if "tool_calls" in parts else None
        answer: str | None = text
        if "answer" in parts:
            answer = _answer(parts["answer"])
            if answer is None and not calls:
                _raise_reported(text)
                path = self._settings.answer
                raise AgentError(f"the reply holds no answer at {path} (answer): {_shown(text)}")
        usage = {name: parts[name][0] for name in ("input_tokens", "output_tokens") if parts.get(name)}
        turn = reply.turn_of(answer or "", prompt=prompt)
        return reply.AgentTurn(turn.answer, calls, *reply.usage_of(usage))


def _raise_reported(text: str) -> None:
    """Raise the error that a server reports in place of an answer, though with a status of success."""
    if not text.lstrip().startswith("{"):
        return
    try:
        value = strict_json(text, unique=False)
    except ValueError:
        return  # an answer may look like JSON
    if value.get("error") and "answer" not in value:
        raise AgentError(f"the agent reports an error: {reply.error_text(value['error'])}")


def _decoded(content: bytes | bytearray, charset: str | None) -> str:
    try:
        return content.decode(charset or "utf-8", "replace")
    except LookupError:  # the server names an unknown charset
        return content.decode("utf-8", "replace")


def _paths_of(settings: HttpSettings) -> dict[str, str]:
    paths = {"answer": settings.answer, "tool_calls": settings.tool_calls, **settings.usage.model_dump()}
    return {name: path for name, path in paths.items() if path is not None}


def _answer(at_path: list[Any]) -> str | None:
    values = [value for value in at_path if value is not None]
    if not values:
        return None
    if all(isinstance(value, str) for value in values):
        return "".join(values)
    return json.dumps(values[0] if len(values) == 1 else values, ensure_ascii=False)


def _calls(at_path: list[Any]) -> list[dict[str, Any]]:
    flat: list[Any] = []
    for value in at_path:
        flat += value if isinstance(value, list) else [] if value is None else [value]
    return reply.calls_of(flat) or []


def _placeholders(template: object) -> list[str]:
    """The names in all placeholders of a template."""
    if isinstance(template, str):
        return _PLACEHOLDER.findall(template)
    inside = template.values() if isinstance(template, dict) else template if isinstance(template, list) else ()
    return [name for item in inside for name in _placeholders(item)]


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    """Fill in a template; text that is just one placeholder becomes the value itself."""
    if isinstance(template, dict):
        return {key: _filled(item, values) for key, item in template.items()}
    if isinstance(template, list):
        return [_filled(item, values) for item in template]
    if not isinstance(template, str):
        return template
    alone = _PLACEHOLDER.fullmatch(template)
    if alone and "}}" not in alone[1]:
        return _value(alone[1], values)
    return _in_text(template, values)


def _in_text(template: str, values: Mapping[str, Any], quoted: Callable[[str], str] = str) -> str:
    def written(placeholder: re.Match[str]) -> str:
        value = _value(placeholder[1], values)
        return quoted(text_or_json(value))

    return _PLACEHOLDER.sub(written, template)


def _value(name: str, values: Mapping[str, Any]) -> Any:
    value: Any = values
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise AgentError(f"the request uses {{{{{name}}}}}, but task {values['task_id']!r} has no such param")
        value = value[part]
    return value


def _shown(text: str) -> str:
    shown = " ".join(text.split())
    return (shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…") or "(empty)"
