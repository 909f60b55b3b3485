"""Logs of chat messages: split a file into conversations, whatever its messages look like.

A file is one list of messages, messages one per line, or conversations (lists of messages, or objects that hold one) in
a list or one per line. A `Dialect` says what a message looks like; each one becomes a `Message` as it is read, so only
the text and the calls of a large file are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from dataclasses import replace as changed
from io import BufferedReader
from itertools import chain, islice, takewhile
from typing import Any, Literal

from agentic_bayes.records.base import field_path, short
from agentic_bayes.records.wire.chat import NO_ANSWER, ChatCall, Message, Role, doubts_of, opening, said_by, turns
from agentic_bayes.records.wire.fields import Faults, Fields, fitting
from agentic_bayes.records.wire.json_text import NO_VALUE, JsonPart, Parsed, joined, parts
from agentic_bayes.records.wire.layout import STREAMED, Origin, Shape
from agentic_bayes.records.wire.offered import AVAILABLE_TOOLS, offered_tools
from agentic_bayes.records.wire.options import NO_OPTIONS, ReadOptions
from agentic_bayes.records.wire.scores import NOT_SCORED, chosen_score, named_scores, rated

FieldPath = tuple[str | int, ...]

NO_USER = "must hold at least one user message"
EARLY = "calls and results before the user's first message were left out"
NOT_FINITE = "some call arguments are NaN or Infinity; they were read as null"
LONGEST_ERROR = 500
REPLIES = ("response", "reply", "output", "outputs", "completion", "answer", "result", "choices", "candidates")
"""Members of a record that may hold an answer."""

SESSIONS = ("session_id", "conversation_id", "thread_id", "custom_id", "id")

JOIN = (
    "give both files, or join them by custom_id, "
    "pd.read_json('requests.jsonl', lines=True).merge(pd.read_json('results.jsonl', lines=True), on='custom_id')"
    ".to_json('joined.jsonl', orient='records', lines=True)"
)
"""How the two files of a batch become one that can be read."""

# members that show that an object is not a log of messages, even if it holds some
FOREIGN = frozenset({"conversation", "simulations", "traj", "reward_info", "termination_reason", "epoch"})


@dataclass(slots=True)
class MessageLog:
    """The messages of a conversation, collected as they are read."""

    messages: list[Message] = field(default_factory=list)  # in order
    faults: Faults = field(default_factory=Faults)  # their problems
    # (path, message) of warnings, in order
    doubts: dict[tuple[str, str], None] = field(default_factory=dict)
    model: str | None = None  # the model that wrote them, if they say so
    tools: list[Any] = field(default_factory=list)  # the tools that they say were offered
    users: set[str] = field(default_factory=set)  # who speaks for the user, where speakers have names
    waiting: bool = False  # whether the last message makes calls that have no result yet
    piece: tuple[str, str | None] | None = None  # kind and id of the last message, if it is a piece of a stream

    def add(self, message: Message, path: FieldPath) -> None:
        """Add one message."""
        fitting(message.text, path, self.faults)
        fitting(list(message.reasoning), path, self.faults)
        if message.result is not None:
            message = changed(message, result=fitting(message.result, path, self.faults))
        if message.calls:
            message = changed(message, calls=[self._fitting(call, path) for call in message.calls])
        self.messages.append(message)
        self.waiting = bool(message.calls)

    def add_call(self, call: ChatCall, path: FieldPath) -> None:
        """Add one call, to the previous message if that is also the agent's."""
        if self.messages and self.messages[-1].role == "assistant":
            last = self.messages[-1]
            self.waiting = self.waiting or not last.calls
            # append to the list that `add` made: there may be thousands of calls in a row
            calls = last.calls if isinstance(last.calls, list) else list(last.calls)
            calls.append(self._fitting(call, path))
            self.messages[-1] = changed(last, calls=calls)
        else:
            self.add(Message("assistant", calls=[call]), path)

    def add_text(self, text: str, path: FieldPath) -> None:
        """Add text of the agent: to the calls before it if they have no text and no results yet."""
        if self.waiting and not self.messages[-1].text:
            fitting(text, path, self.faults)
            self.messages[-1] = changed(self.messages[-1], text=text)
        else:
            self.add(Message("assistant", text), path)

    def add_reply(
        self, messages: Iterable[Any], path: FieldPath, take: Callable[[Any, FieldPath, MessageLog], None]
    ) -> None:
        """Add the messages of a reply, unless they were also appended to the messages of its request."""
        before = len(self.messages)
        for message in messages:
            take(message, path, self)
        added = self.messages[before:]
        if added == self.messages[before - len(added) : before]:
            del self.messages[before:]

    def add_tokens(self, tokens: tuple[int, int], *, since: int) -> None:
        """Count tokens for the first of the agent's messages at or after this place."""
        for place in range(since, len(self.messages)):
            if self.messages[place].role == "assistant":
                self.messages[place] = changed(self.messages[place], tokens=tokens)
                return

    def add_thoughts(self, thoughts: Iterable[str], path: FieldPath) -> None:
        """Add what the agent thought, to the previous message if that is also the agent's."""
        texts = [thought for thought in thoughts if thought.strip()]
        for thought in texts:
            fitting(thought, path, self.faults)
        if texts and self.messages and self.messages[-1].role in ("assistant", "thought"):
            last = self.messages[-1]
            known = last.reasoning if isinstance(last.reasoning, list) else list(last.reasoning)
            known += texts
            self.messages[-1] = changed(last, reasoning=known)
        elif texts:
            self.messages.append(Message("thought", reasoning=texts))

    def doubt(self, path: FieldPath, message: str) -> None:
        """Note a warning once."""
        self.doubts.setdefault((field_path(path), message))

    def _fitting(self, call: ChatCall, path: FieldPath) -> ChatCall:
        fitting(call.name, path, self.faults)
        arguments = fitting(call.arguments, path, self.faults)
        if arguments != call.arguments and not self.faults:
            self.doubt(path, NOT_FINITE)
        return call if arguments == call.arguments else changed(call, arguments=arguments or {})


@dataclass(frozen=True, slots=True)
class Dialect:
    """How messages of one format are read."""

    name: str  # the format
    take: Callable[[Any, FieldPath, MessageLog], None]  # adds the raw message at this path to a `MessageLog`
    is_message: Callable[[Mapping[str, Any]], bool]  # whether an object is a message, not a conversation
    # members of a conversation that hold messages, in order, with the role of plain text in place of a list (None if
    # only a list is allowed); if ``messages`` is present, those in `instead` are ignored
    sections: Mapping[str, Role | None]
    instead: frozenset[str] = frozenset()  # members that replace ``messages``
    # why the agent did not finish, for a conversation with a member of `instead`; None if it did
    failure: Callable[[Fields], str | None] = lambda about: None
    # adds the answer to ``messages`` if another member of the conversation holds it
    reply: Callable[[Fields, MessageLog], None] = lambda about, log: None
    # where and why this is only a request or only a reply, judging by its other members and the names of its
    # sections; None if it may be a conversation
    half: Callable[[Mapping[str, Any], Set[str]], tuple[FieldPath, str] | None] = lambda about, found: None
    # the members of the conversation that other members wrap: a request and its reply
    unwrap: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda about: {}
    # what must be done to the parts of a file before its messages are read
    prepare: Callable[[Iterator[JsonPart], Origin], Iterator[JsonPart]] = lambda pieces, origin: pieces

    def read(self, stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
        """The conversations of a file."""
        remaining = _MessageFile(self, origin.options).read(self.prepare(parts(stream, STREAMED), origin))
        first = list(islice(remaining, 2))  # a file's only conversation is named after the file
        for parsed in chain(first, remaining):
            yield _named(parsed, origin, f"{origin.stem}, {parsed.where}" if len(first) > 1 else origin.stem)


def has_role(value: Mapping[str, Any]) -> bool:
    """Whether an object is a message: it names its speaker and holds no messages."""
    return "messages" not in value and "role" in value


def looks_like(shape: Shape, is_message: Callable[[Any], bool], members: Iterable[str]) -> bool:
    """Whether a file of this shape holds messages that `is_message` recognises."""
    if shape.record_keys & FOREIGN:
        return False
    if not shape.is_list:
        return is_message(shape.values) or any(is_message(shape.first.get(member)) for member in members)
    item = shape.item
    lists = [item.get(member) for member in members] if isinstance(item, dict) else [item]
    return is_message(item) or any(isinstance(one, list) and bool(one) and is_message(one[0]) for one in lists)


def one_conversation(messages: Iterable[Any], dialect: Dialect) -> Parsed:
    """Build one conversation from messages that are not in a file."""
    record = _ConversationInProgress(dialect)
    record.found.add("messages")
    for index, message in enumerate(messages):
        record.message(index, message)
    return record.finish("")


def _named(parsed: Parsed, origin: Origin, name: str) -> Parsed:
    if parsed.value is NO_VALUE:
        return parsed
    session = parsed.value["session_id"] or name
    agent = parsed.value["assistant_id"] or origin.agent
    task = parsed.value["task_id"] or session
    return changed(parsed, value={**parsed.value, "session_id": session, "assistant_id": agent, "task_id": task})


class _ConversationInProgress:
    """One conversation while it is being read."""

    def __init__(self, dialect: Dialect, options: ReadOptions = NO_OPTIONS) -> None:
        self.dialect = dialect
        self.options = options
        self.raw: dict[str, Any] = {}
        self.about: dict[str, Any] = {}
        self.logs = {name: MessageLog() for name in dialect.sections}
        self.found: set[str] = set()

    @property
    def is_message(self) -> bool:
        """Whether the members read so far are those of a message."""
        return not self.found and self.dialect.is_message(self.about)

    def message(self, index: int, value: Any) -> None:
        """Take an item of a list that is the conversation."""
        self.found.add("messages")
        self.keep("messages", value)
        self._take(value, (index,), self.logs["messages"])

    def item(self, key: str, index: int, value: Any) -> None:
        """Take an item of a list that is a member."""
        if key in self.logs and (key == "messages" or not self.is_message):
            self.keep(key, value)
            self._take(value, (key, index), self.logs[key])
        else:
            self.about.setdefault(key, []).append(value)

    def keep(self, key: str, value: Any) -> None:
        """Keep a raw message if the caller wants to find something in it."""
        if self.options.fields:
            self.raw.setdefault(key, []).append(value)

    def _raw(self) -> tuple[Any, ...]:
        """What `fields` look into: the conversation; its messages one by one, if they are all there is."""
        return (self.raw | self.about, *(() if self.about else self.raw.get("messages", ())))

    def _take(self, value: Any, path: FieldPath, log: MessageLog) -> None:
        if isinstance(value, dict):
            self.dialect.take(value, path, log)
        else:
            log.faults.add(path, f"must be an object, got {short(value)}")

    def member(self, key: str, value: Any) -> None:
        """Take a whole member, or the beginning of a list whose items follow."""
        if isinstance(value, list) and key in self.logs and (key == "messages" or not self.is_message):
            self.found.add(key)
        else:
            self.about[key] = [] if isinstance(value, list) else value
        for index, item in enumerate(value) if isinstance(value, list) else ():
            self.item(key, index, item)

    def _take_plain(self) -> None:
        """Take members that are text in place of a list of messages."""
        for key, role in self.dialect.sections.items():
            value, log = self.about.pop(key, None), self.logs[key]
            if value is None:
                continue
            self.found.add(key)
            if isinstance(value, str) and role:
                log.add(Message(role, value), (key,))
            else:
                log.faults.add((key,), f"must be a list of messages{' or text' if role else ''}, got {short(value)}")

    def finish(self, where: str) -> Parsed:
        """The conversation in the native format, still without the defaults that come from the file's name."""
        faults = Faults()
        for key, value in self.dialect.unwrap(self.about).items():
            if self.about.get(key) is None and key not in self.found:
                self.member(key, value)
        about = Fields(self.about, (), faults)
        got = "null" if "messages" in self.about else "nothing"
        self._take_plain()
        replied = self._take_reply(about)
        ignored = self.dialect.instead & self.found if "messages" in self.found else frozenset()
        logs = [log for name, log in self.logs.items() if name not in ignored]
        messages = [message for log in logs for message in log.messages]
        half = self.dialect.half(self.about, self.found)
        if half is not None and not any(message.role == "user" for message in messages):
            faults.add(*half)
        elif not self._asked:
            faults.add(("messages",), f"must be given, got {got}")
        failure = self.dialect.failure(about) if "messages" not in self.found else None
        model = next((log.model for log in logs if log.model), None)
        record = _record(messages, about, self.dialect.name, failure, model, self.options)
        if tools := _offered(about, [tool for log in logs for tool in log.tools]):
            record["metadata"].setdefault(AVAILABLE_TOOLS, tools)
        doubts = [doubt for log in logs for doubt in log.doubts]
        doubts += [
            (name, f"{name} was ignored because the record has messages") for name in self.logs if name in ignored
        ]
        doubts += doubts_of(record["conversation"])
        doubts += early_calls(messages)
        doubts += [] if replied else _unread(about, record["conversation"])
        wrong = (*(fault for log in logs for fault in log.faults), *faults)
        if not wrong and not record["conversation"]:
            wrong = (("", NO_USER),)
        return Parsed(where, NO_VALUE if wrong else record, wrong, tuple(doubts), raw=self._raw())

    @property
    def _asked(self) -> list[MessageLog]:
        """The logs of the sections that may hold the user's messages, of those that are given."""
        return [log for name, log in self.logs.items() if name in self.found & {*self.dialect.instead, "messages"}]

    def _take_reply(self, about: Fields) -> bool:
        """Add the answer if another member than those with messages holds it; whether there is one."""
        if not (asked := self._asked):
            return False
        before = len(asked[0].messages)
        self.dialect.reply(about, asked[0])
        return len(asked[0].messages) > before


def _record(
    messages: list[Message], about: Fields, name: str, failure: str | None, model: str | None, options: ReadOptions
) -> dict[str, Any]:
    """Build a conversation in the native format from its messages and its other members."""
    places = (about, _parsed_texts(about.mapping("metadata")))
    error = _error(places) or failure
    conversation = turns(messages)
    if error and conversation:
        conversation[-1] |= {"error": error[:LONGEST_ERROR], "assistant": conversation[-1]["assistant"] or None}
    usage = [about.mapping("usage")]
    taken = _first(usage, ("input_tokens", "prompt_tokens"), Fields.whole)
    given = _first(usage, ("output_tokens", "completion_tokens"), Fields.whole)
    tokens = {side: number for side, number in (("input", taken), ("output", given)) if number is not None}
    score, unscored = _score(places, options)
    known = {
        "format": name,
        NOT_SCORED: unscored,
        "model": about.text("model") or model,
        "opening": opening(messages),
        "tokens": tokens,
        "cost": about.number("cost"),
        "stop_reason": about.raw("stop_reason") if isinstance(about.raw("stop_reason"), str) else None,
    }
    return {
        "session_id": _first(places, SESSIONS, Fields.name),
        "assistant_id": _first(places, ("assistant_id", "agent", "agent_id"), Fields.name),
        "task_id": _first(places, ("task_id",), Fields.name),
        "trial": _first(places, ("trial",), Fields.whole),
        "context": said_by("system", messages),
        "conversation": conversation,
        "recorded_score": score,
        "metadata": {
            **about.mapping("metadata").value,
            **{key: content for key, content in known.items() if content not in (None, "", {})},
        },
    }


def early_calls(messages: Iterable[Message]) -> list[tuple[str, str]]:
    """A warning if something was called before the user spoke."""
    before = takewhile(lambda message: message.role != "user", messages)
    return [("", EARLY)] if any(message.calls or message.role == "tool" for message in before) else []


def _unread(about: Fields, conversation: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Members that may hold the answer, of a record that has none."""
    if not conversation or not str(conversation[-1].get("error")).startswith(NO_ANSWER):
        return []
    named = [key for key in REPLIES if about.raw(key) not in (None, "", [], {})]
    return [(key, f"{key} may hold the answer, but it was not read: append it to the messages") for key in named]


def _offered(about: Fields, tools: list[Any]) -> list[Any]:
    """The tools that the agent could call, if the record or its messages say so."""
    listed = [about.raw(key) for key in ("tools", "functions", "toolConfig", "tool_config")]
    named = next((value for value in listed if value is not None), None)
    kept: list[Any] = fitting(offered_tools(named) or offered_tools(tools), ("tools",), about.faults)
    return kept


def _score(places: Sequence[Fields], options: ReadOptions) -> tuple[float | None, str | None]:
    """The score of a record, or the one that the caller named; and why there is none."""
    if options.scorer is not None:
        name, chosen = "scores", chosen_score(named_scores([places[0].value], options.scorer), options)
    else:
        keys = ("recorded_score", "score", "reward")
        given = {field_path((*place.path, key)): place.rating(key) for key in keys for place in places if key in place}
        known = {name: value for name, value in given.items() if value is not None}
        if not known:
            return None, None
        name, value = next(iter(known.items()))
        chosen = rated(value, "", options) if len(set(known.values())) == 1 else chosen_score(known, options)
    if chosen.fault:
        places[0].faults.add((name,), chosen.fault)
    return chosen.value, chosen.reason


def _parsed_texts(metadata: Fields) -> Fields:
    """Metadata with numbers parsed from text: some services store only text."""
    value = dict(metadata.value)
    for key in ("trial", "recorded_score", "score", "reward"):
        text = value.get(key)
        if isinstance(text, str):
            try:
                value[key] = float(text)
            except ValueError:
                continue
    return Fields(value, metadata.path, metadata.faults)


def _first(places: Iterable[Fields], keys: Iterable[str], read: Callable[[Fields, str], Any]) -> Any:
    """The first of these keys that is given, in the record or in its metadata."""
    return next((read(place, key) for key in keys for place in places if key in place), None)


def _error(places: Iterable[Fields]) -> str | None:
    """The error of a record: text, or an object with a code and a message."""
    for place in places:
        error = place.raw("error")
        if not error:
            continue
        if isinstance(error, dict):
            details = place.mapping("error")
            text = ": ".join(filter(None, (details.name(key) for key in ("code", "message")))) or short(error)
        else:
            text = place.text("error") or ""
        fitting(text, (*place.path, "error"), place.faults)
        if text.strip().lower() not in ("", "null", "none", "nan", "false"):
            return text.strip()
    return None


class _MessageFile:
    """The conversations of one file while it is being read."""

    def __init__(self, dialect: Dialect, options: ReadOptions = NO_OPTIONS) -> None:
        self.dialect = dialect
        self.options = options
        # whether each line of the file, and each item of the list in a line, is a message or a conversation
        self.lines: Literal["message", "conversation"] | None = None
        self.items: Literal["message", "conversation"] | None = None
        self.loose = _ConversationInProgress(dialect, options)
        self.spoiled = False
        self._begin()

    def _begin(self) -> None:
        """Start on the next line."""
        self.record = _ConversationInProgress(self.dialect, self.options)
        self.items = None
        self.is_list = self.broken = False
        self.problems: list[tuple[str, str]] = []

    def read(self, pieces: Iterator[JsonPart]) -> Iterator[Parsed]:
        """Yield all conversations, and every problem outside of them."""
        for part in pieces:
            match part.path:
                case ():
                    yield from self._end(part)
                    self._begin()
                case (int(index),):
                    yield from self._item(index, part)
                case (str(key), *rest):
                    self.problems += part.inner_faults
                    if part.value is NO_VALUE:
                        continue
                    if rest and isinstance(rest[0], int):
                        self.record.item(key, rest[0], part.value)
                    else:
                        self.record.member(key, part.value)
        if self.lines == "message" and not self.spoiled:
            yield self.loose.finish("line 1")

    def _item(self, index: int, part: JsonPart) -> Iterator[Parsed]:
        """Take an item of a list: a message of one conversation, or a whole conversation."""
        self.is_list = True
        value = part.value
        where = joined(part.where, f"index {index}")
        if not isinstance(value, (dict, list)):
            self.broken = True
            yield Parsed(where, faults=(("", f"must be an object or a list, got {short(value)}"), *part.faults))
            return
        if self.items is None:
            self.items = "conversation" if isinstance(value, list) or self._is_conversation(value) else "message"
        if part.faults:
            self.broken = True
            yield Parsed(where, faults=part.faults)
        elif self.items == "message":
            self.record.message(index, value)
        else:
            record = _ConversationInProgress(self.dialect, self.options)
            for key, content in value.items() if isinstance(value, dict) else ():
                record.member(key, content)
            for position, message in enumerate(value) if isinstance(value, list) else ():
                record.message(position, message)
            if isinstance(value, list):
                record.found.add("messages")
            yield record.finish(where)

    def _is_conversation(self, value: Mapping[str, Any]) -> bool:
        holds = any(section in value for section in self.dialect.sections)
        holds = holds or bool(self.dialect.half(value, set()) or self.dialect.unwrap(value))
        return not self.dialect.is_message(value) and bool(holds)

    def _end(self, part: JsonPart) -> Iterator[Parsed]:
        """Finish an object or list at the top of the file, or a part that could not be read."""
        where = part.where or "line 1"
        faults = (*self.problems, *part.faults)
        if part.faults or (faults and not self.is_list):
            self.spoiled = True
            yield Parsed(part.where if part.faults else where, faults=faults)
            return
        kind: Literal["message", "conversation"] = "message" if self.record.is_message else "conversation"
        self.lines = self.lines or kind
        if kind != self.lines:
            self.spoiled = True
            yield Parsed(where, faults=(("", f"must be a {self.lines} like the lines before it, got a {kind}"),))
        elif kind == "message":
            log = self.loose.logs["messages"]
            log.faults = Faults()
            self.loose.found.add("messages")
            self.loose.keep("messages", self.record.about)
            self.dialect.take(self.record.about, (), log)
            if log.faults:
                self.spoiled = True
                yield Parsed(where, faults=tuple(log.faults))
        elif self.items != "conversation":
            if not self.record.about and not self.record.found:
                self.record.found.add("messages")  # [] and {} only mean that nobody spoke
            found = self.record.finish(where)
            if not self.broken:
                yield found
            elif found.faults != (("", NO_USER),) and found.faults:
                yield Parsed(where, faults=found.faults)
