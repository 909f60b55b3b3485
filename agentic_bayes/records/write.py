"""Write conversations to files, completely or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from agentic_bayes.errors import InvalidArgument, Problem, RecordsError
from agentic_bayes.records.base import short
from agentic_bayes.whole_files import replacing

if TYPE_CHECKING:
    from agentic_bayes.records.model import Conversation
    from agentic_bayes.records.sources import PathLike

__all__ = ["write_conversations"]


def write_conversations(conversations: Iterable[Conversation], path: PathLike) -> int:
    """Write conversations so that `read_conversations` gives them back unchanged.

    Parameters
    ----------
    conversations : iterable of Conversation
        Taken one at a time.
    path : path
        ``.jsonl`` (one record per line) or ``.json`` (an array), with ``.gz`` after it to compress. An
        existing file is replaced.

    Returns
    -------
    int
        How many conversations were written.

    Raises
    ------
    InvalidArgument
        If the path has another ending or its folder does not exist, or if an item is not a `Conversation`.
    RecordsError
        If a conversation holds a Python value that JSON cannot represent.

    Notes
    -----
    The text goes to a temporary file that replaces `path` at the end, so `path` is never half written.
    The same conversations give the same bytes, gzipped or not.
    """
    # imported here, for `replacing` needs neither the model nor the readers
    from agentic_bayes.records.model import Conversation, check_conversations
    from agentic_bayes.records.sources import SUFFIXES

    if not isinstance(path, (str, os.PathLike)):
        raise InvalidArgument(f"path must be a file name, got {short(path)}")
    name = os.fspath(path)
    if not name.lower().endswith(SUFFIXES):
        raise InvalidArgument(f"path must end in {', '.join(SUFFIXES)}, got {name!r}")
    folder = os.path.dirname(os.path.abspath(name))
    if not os.path.isdir(folder) or os.path.isdir(name):
        wrong = "is a folder" if os.path.isdir(name) else f"the folder {folder!r} does not exist"
        raise InvalidArgument(f"path must be a file in a folder that exists, got {name!r} ({wrong})")
    check_conversations(conversations)
    array = name.lower().endswith((".json", ".json.gz"))
    opening, between, closing = ("[\n", ",\n", "\n]\n") if array else ("", "\n", "\n")
    written = 0
    with replacing(name) as stream:
        stream.write(opening.encode())
        for conversation in conversations:
            if not isinstance(conversation, Conversation):
                raise InvalidArgument(f"conversations[{written}] must be a Conversation, got {short(conversation)}")
            text = _text(conversation, name, written)
            stream.write(f"{between if written else ''}{text}".encode())
            written += 1
        stream.write(closing.encode() if written or array else b"")
    return written


def _text(conversation: Conversation, source: str, number: int) -> str:
    try:
        # write only fields that were set, to keep "not recorded" apart from a recorded null
        data = conversation.model_dump(mode="json", exclude_unset=True)
        return json.dumps(data, ensure_ascii=False, allow_nan=False)
    # pydantic's serialisation error is a ValueError, and so is json's
    except (ValueError, TypeError, RecursionError) as error:
        message = f"session {short(conversation.session_id)} holds a value that JSON cannot hold: {error}"
        raise RecordsError([Problem(source, f"conversations[{number}]", "", message)]) from error
