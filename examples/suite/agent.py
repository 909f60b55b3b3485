"""An agent for trying things out: it adds the numbers in a prompt, and slips now and then."""

import json
import random
import re
import sys


def answer(prompt: str, *, seed: int) -> str:
    """The sum, wrong in one of five cases; the same trial always gives the same answer."""
    total = sum(map(int, re.findall(r"[0-9]+", prompt)))
    return f"The sum is {total + (random.Random(seed).random() < 0.2)}."


if __name__ == "__main__":  # as a command: a trial comes as JSON
    trial = json.load(sys.stdin)
    print(answer(trial["prompt"], seed=trial["seed"]))
