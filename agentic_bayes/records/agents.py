"""Which agent a file belongs to, if it does not say so itself: by a rule, its name or its folder."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.records.base import short

PLACES = ("stem", "parent", "grandparent")
"""What a rule may hold in braces: the file's name without its ending, its folder, and the folder around that."""

WAYS = 'agent="NAME", or by folder: agent="{parent}" or "{grandparent}" (--agent)'
MOST_ALONE = 2
"""So many files may hold one conversation each and be one agent each."""

_BRACES = re.compile(r"\{(\w*)\}")


def with_model(agent: str | None, model: str | None) -> str | None:
    """The name of an agent with its model: another model is another agent."""
    return f"{agent} ({model})" if agent and model else agent or model


@dataclass(frozen=True, slots=True)
class FileAgent:
    """The agent of a file that names none."""

    name: str  # the agent
    label: str  # what tells the file apart from the other files of this agent
    unclear: str = ""  # why `name` must not be used


def check_agent(agent: object) -> None:
    """Refuse anything but a name or a rule."""
    if agent is None:
        return
    if not isinstance(agent, str) or not agent.strip():
        raise InvalidArgument(f"agent must be text that is not blank, or None, got {agent!r}")
    if wrong := [name for name in _BRACES.findall(agent) if name not in PLACES]:
        allowed = ", ".join(f"{{{name}}}" for name in PLACES)
        raise InvalidArgument(f"agent may hold {allowed}, got {{{wrong[0]}}}")


def file_agents(names: Sequence[str], agent: str | None) -> list[FileAgent]:
    """The agents of these files: by the rule `agent`, else their names or, where these repeat, the nearest folders."""
    places = [_places(name) for name in names]
    if agent is not None:
        found = [FileAgent(_filled(agent, place), place[0]) for place in places]
    else:
        found = _told_apart(places)
    return _labelled(found, places)


def _places(name: str) -> list[str]:
    """The stem of a file, then its folders from inside to outside."""
    folders = os.path.dirname(os.path.abspath(name)).split(os.sep)
    return [stem(name), *filter(None, reversed(folders))]


def _filled(rule: str, places: list[str]) -> str:
    """The name that a rule gives to a file."""
    for level, name in enumerate(PLACES):
        if f"{{{name}}}" in rule and level >= len(places):
            raise InvalidArgument(f"agent must not hold {{{name}}}: {places[0]} has no such folder")
    return _BRACES.sub(lambda match: places[PLACES.index(match[1])], rule)


def _told_apart(places: list[list[str]]) -> list[FileAgent]:
    by_stem: defaultdict[str, list[list[str]]] = defaultdict(list)
    for place in places:
        by_stem[place[0]].append(place)
    repeated = [group for group in by_stem.values() if len(group) > 1]
    if not repeated:
        return [FileAgent(place[0], place[0]) for place in places]
    deepest = min(len(place) for group in repeated for place in group)
    levels = (n for n in range(1, deepest) if all(len({p[n] for p in group}) == len(group) for group in repeated))
    level = next(levels, None)
    if level is None:
        return [_unclear(place, by_stem[place[0]]) for place in places]
    folders = {tuple(place[level:]) for group in repeated for place in group}
    inside = [len(place) > level and tuple(place[level:]) in folders for place in places]
    return [FileAgent(place[level] if one else place[0], place[0]) for place, one in zip(places, inside, strict=True)]


def _unclear(place: list[str], same: list[list[str]]) -> FileAgent:
    if len(same) == 1:
        return FileAgent(place[0], place[0])
    shown = f"{len(same)} files are called {short(place[0])}, and no folder name alone tells them apart"
    return FileAgent(_suffix(place, same), place[0], f"{shown}; name the agent: {WAYS}")


def _suffix(place: list[str], places: list[list[str]]) -> str:
    """The end of a path that no other of these has."""
    length = next(n for n in range(1, len(place) + 1) if sum(other[:n] == place[:n] for other in places) == 1)
    return "/".join(reversed(place[:length]))


def _labelled(found: list[FileAgent], places: list[list[str]]) -> list[FileAgent]:
    """The same, with files of one agent told apart by folders where their stems are equal."""
    alike: defaultdict[tuple[str, str], list[list[str]]] = defaultdict(list)
    for one, place in zip(found, places, strict=True):
        alike[one.name, place[0]].append(place)
    return [
        replace(one, label=_suffix(place, same)) if len(same := alike[one.name, place[0]]) > 1 else one
        for one, place in zip(found, places, strict=True)
    ]


def stem(name: str) -> str:
    """A file's name without the endings of conversation files."""
    found = os.path.basename(name)
    for ending in (".gz", ".jsonl", ".json", ".eval", ".traj"):
        if found.lower().endswith(ending) and len(found) > len(ending):
            found = found[: -len(ending)]
    return found


def runs_apart(alone: Sequence[str]) -> tuple[bool, str] | None:
    """What to say of files that hold one conversation each and name no agent, and whether to refuse them."""
    if len(alone) <= MOST_ALONE:
        return None
    several = len({os.path.dirname(os.path.abspath(name)) for name in alone}) > 1
    message = (
        f"{len(alone):,} files hold one conversation each and name no agent, so each is taken as an agent of its own; "
        f'name the agent: {WAYS}; agent="{{stem}}" if each file is a different agent. If the records name it, '
        f"agentic-bayes describe finds the field"
    )
    return several, message
