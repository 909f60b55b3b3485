"""Compare this library with its peers and write ``docs/peers.md`` and ``docs/peers/results.json``.

Each peer runs in its own environment, made with pip in ``--cache`` the first time; what cannot be installed is named on
the page with the reason. ``python benchmarks/peers.py`` runs everything; ``--only intervals`` runs one part again and
keeps the others' results. Times are CPU seconds in one run, so their ratios carry over between machines.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from functools import partial
from pathlib import Path
from typing import Any

from peer_study import environments, growth, heldout, intervals, judging, page

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("peers", "intervals", "judged", "held_out", "replies", "growth")


def main(arguments: list[str] | None = None) -> None:
    """Run the parts that are asked for, and write the page from the results of all parts."""
    options = parsed(arguments)
    path = options.docs / "peers" / "results.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    for part in options.only if options.only is not None else PARTS:
        found = run(part, options)
        results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        results[part] = found
        path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    results = json.loads(path.read_text(encoding="utf-8"))
    if set(PARTS) <= set(results):
        (options.docs / "peers.md").write_text(page.page(results), encoding="utf-8")


def run(part: str, options: argparse.Namespace) -> dict[str, Any]:
    """One part's results, with the sizes that they were made with."""
    report = partial(print, file=sys.stderr, flush=True)
    peers = partial(environments.environments, cache=options.cache)
    sets, seed = options.sets, options.seed
    match part:
        case "peers":
            return {"python": platform.python_version(), "rows": environments.installed(options.cache)}
        case "intervals":
            return intervals.study(peers("intervals"), sets, seed, report)
        case "judged":
            sets = max(2, sets // 2)
            return {"sets": sets, "seed": seed, "rows": judging.judge_errors(peers("judged"), sets, seed)}
        case "held_out":
            return {"splits": sets, "seed": seed, "rows": heldout.study(peers("predicted"), sets, seed)}
        case "replies":
            judges = peers("judge")
            return {"malformed": judging.malformed(judges), "long_run": judging.long_run(judges)}
        case _:
            return growth.study(options.megabytes, report)


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=200, help="simulated data sets per kind of truth and design")
    parser.add_argument("--megabytes", type=int, default=growth.LARGE, help="size of the largest file that is assessed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=PARTS, help="parts to run again; the others keep their results")
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "agentic-bayes-peers"
    parser.add_argument("--cache", type=Path, default=cache, help="folder for the peers' environments")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder for the page and its results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
