"""A toy agent: it adds the numbers in a prompt, and is sometimes wrong."""

import json
import random
import re
import sys


def answer(prompt: str, *, seed: int) -> str:
    """Return the sum, wrong in one of five cases; a trial always gets the same answer."""
    total = sum(map(int, re.findall(r"[0-9]+", prompt)))
    return f"The sum is {total + (random.Random(seed).random() < 0.2)}."


if __name__ == "__main__":  # as a command: the trial arrives as JSON on standard input
    trial = json.load(sys.stdin)
    print(answer(trial["prompt"], seed=trial["seed"]))
