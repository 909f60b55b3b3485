"""What tests run in worker processes; it imports little, because every worker imports it."""

import os
import threading
import time

from agentic_bayes.evidence.score import Score


class Odd:
    """A grader whose errors, details and awaits are those of people's own graders."""

    name, identity = "odd", "odd/1"

    async def grade(self, conversation, position):
        """Raise an error that cannot be pickled, or keep details that cannot."""
        if position:
            raise type("Local", (Exception,), {})("no grade here")
        return Score(0.5, "kept", {"lock": threading.Lock, "seen": {3, 1}})


class Deadly:
    """A grader that ends its process at a session's answer."""

    name, identity = "deadly", "deadly/1"

    def grade(self, conversation, position):
        """Die at the sixth conversation."""
        if conversation.session_id == "s5":
            os._exit(3)
        return Score(1.0)


def raise_local():
    """Raise an error that cannot be pickled."""
    raise type("Local", (Exception,), {})("no grade here")


def slow_square(number):
    """Square a number, in a time that depends on it."""
    time.sleep(0.003 * (number % 3))
    return number**2
