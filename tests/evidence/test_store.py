import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from scripted import ScriptedChatModel, by_answer, conversation, in_turn, turn, verdict
from strategies import reduced
from typer.testing import CliRunner

from agentic_bayes.cli.cache import commands as app
from agentic_bayes.errors import InvalidArgument, StoppedEarly, UnknownName
from agentic_bayes.evidence.assess import assess
from agentic_bayes.evidence.llm.judge import LLMJudge
from agentic_bayes.evidence.llm.repair import check_store, repair_store
from agentic_bayes.evidence.llm.store import ModelCall, Store, Usage
from agentic_bayes.evidence.score import Score, Unscored

GOOD = verdict(0.9, "right")
CALL = ModelCall(started=1.0, latency=0.5, input_tokens=100, output_tokens=10, cost=0.02)
LOST = ModelCall(started=2.0, latency=0.25, outcome="TimeoutError: no reply")


def many(count):
    return [conversation(turn(answer=f"a{i}"), session=f"s{i:04}", task_id=f"t{i:04}") for i in range(count)]


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store.db") as opened:
        yield opened


def test_what_is_added_is_found_again(tmp_path):
    """A verdict is there for the next process, with its details."""
    score = Score(0.1 + 0.2, "half a pair: \ud800", {"mode": "text"})
    with Store(tmp_path / "s.db") as store:
        assert store.add("k", "m", [CALL], score) == score
    with Store(tmp_path / "s.db") as store:
        assert store.get("k") == score
        assert store.get("other") is None
        assert (store.reused, store.session) == (1, Usage())


def test_a_lost_judgement_is_no_verdict(store):
    """Its calls are kept and paid for; nothing is found under its key."""
    assert store.add("k", "m", [LOST, LOST]) is None
    assert store.get("k") is None
    assert store.usage() == store.session == Usage(calls=2, failed=2, unmetered=2, unpriced=2, seconds=0.5)
    store.add("k", "m", [LOST, CALL], Score(0.5))
    assert store.get("k") == Score(0.5)
    assert (len(store), store.usage().calls) == (1, 4)


def test_the_first_verdict_stands(store):
    """Of two processes that paid for the same judgement, both go on with the verdict that came first."""
    first, second = Score(0.1, "first"), Score(0.9, "second")
    store.add("k", "m", [CALL], first)
    assert store.add("k", "m", [LOST, CALL], second) == first
    assert store.get("k") == first
    assert store.usage().calls == 3


@given(
    st.lists(
        st.builds(
            ModelCall,
            started=st.floats(0, 1e10),
            latency=st.floats(0, 1e6),
            input_tokens=st.none() | st.integers(0, 10**9),
            output_tokens=st.none() | st.integers(0, 10**9),
            cost=st.none() | st.floats(0, 1e6),
            outcome=st.sampled_from(["read", "ReplyError: no"]) | st.text(),
        ),
        min_size=1,
        max_size=5,
    )
)
@settings(max_examples=reduced(60), deadline=None)
def test_the_sums_in_the_file_are_those_of_the_session(calls):
    """Whatever the calls, what the file adds up is what was added."""
    with Store(":memory:") as store:
        for position, call in enumerate(calls):
            store.add(str(position), "m", [call], Score(1.0) if position % 2 else None)
        found, session = store.usage(), store.session
        assert (found.judgements, found.calls, found.failed) == (session.judgements, session.calls, session.failed)
        assert (found.input_tokens, found.output_tokens) == (session.input_tokens, session.output_tokens)
        assert (found.unmetered, found.unpriced) == (session.unmetered, session.unpriced)
        assert (found.cost, found.seconds) == (pytest.approx(session.cost), pytest.approx(session.seconds))
        assert store.models() == {"m": found}


def test_models_are_listed_and_cleared_apart(store):
    """Each model has its own totals, and can be forgotten alone."""
    for key, model in [("a", "big"), ("b", "big"), ("c", "small")]:
        store.add(key, model, [CALL], Score(1.0))
    assert list(store.models()) == ["big", "small"]
    assert store.models()["big"] == Usage(2, 2, 0, 200, 20, 0, 0.04, 0, 1.0)
    with pytest.raises(UnknownName, match=r"unknown model 'bigg': did you mean 'big'"):
        store.clear("bigg")
    assert store.clear("big") == 2
    assert (store.get("a"), store.get("c"), len(store)) == (None, Score(1.0), 1)
    assert store.clear() == 1
    assert store.models() == {}


def test_clearing_gives_the_space_back(store):
    """A cleared store is small again."""
    for position in range(2000):
        store.add(str(position), "m", [CALL], Score(1.0, "x" * 200))
    full = store.size
    store.clear()
    assert store.size < full / 10


def test_calls_are_rows_for_pandas(store):
    """One row per call, with missing tokens and costs missing."""
    store.add("k", "m", [LOST, CALL], Score(1.0))
    table = store.to_pandas()
    assert list(table["outcome"]) == ["TimeoutError: no reply", "read"]
    assert table["input_tokens"].isna().tolist() == [True, False]
    assert table["started"].dt.year.tolist() == [1970, 1970]
    assert table["latency"].sum() == 0.75
    with Store(":memory:") as empty:
        assert list(empty.to_pandas().columns) == list(table.columns)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not a database at all" * 100, r"cannot be opened as an evidence store"),
        (None, r"must be a file, is a folder"),
    ],
)
def test_something_else_is_not_a_store(tmp_path, content, message):
    """Another file or a folder is refused, and left as it is."""
    path = tmp_path / "x"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(InvalidArgument, match=message):
        Store(path)
    assert content is None or path.read_bytes() == content


def test_another_database_is_not_touched(tmp_path):
    """A SQLite file of something else is refused, and so is a store of a later version."""
    path = tmp_path / "x.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE people (name TEXT)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(InvalidArgument, match=r"is a SQLite file, but not an evidence store"):
        Store(path)
    assert path.read_bytes() == before
    Store(tmp_path / "later.db").close()
    later = sqlite3.connect(tmp_path / "later.db")
    later.execute("PRAGMA user_version = 99")
    later.close()
    with pytest.raises(InvalidArgument, match=r"later version"):
        Store(tmp_path / "later.db")
    with closing(sqlite3.connect(tmp_path / "later.db")) as lacking:
        lacking.execute("PRAGMA user_version = 2")
        lacking.execute("ALTER TABLE calls DROP COLUMN cost")
    with pytest.raises(InvalidArgument, match=r"is damaged \('no such column: cost'\)"):
        Store(tmp_path / "later.db")


@pytest.mark.parametrize("path", ["", 5, None, b""])
def test_a_path_is_needed(path):
    """What is no path is refused."""
    with pytest.raises(InvalidArgument, match=r"store must be a path or a Store, got"):
        Store(path)


def test_a_missing_folder_is_named(tmp_path):
    """The folder of the file must exist."""
    with pytest.raises(InvalidArgument, match=r"the folder does not exist"):
        Store(tmp_path / "no" / "s.db")


def test_threads_share_a_store(tmp_path):
    """Many threads that make, read and write stores on one file lose nothing."""

    def work(number):
        with Store(tmp_path / "s.db") as store:
            for position in range(20):
                store.add(f"{number} {position}", "m", [CALL], Score(1.0))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    with Store(tmp_path / "s.db") as store:
        assert len(store) == 160


def test_two_processes_share_a_store(tmp_path):
    """Two runs at once on one file: nothing is corrupted, each judgement is paid once, and both end with the same."""
    program = (
        "import sys, random, anyio\n"
        "from agentic_bayes import LLMJudge, assess\n"
        "from scripted import conversation, turn, verdict, ScriptedChatModel\n"
        "class Model(ScriptedChatModel):\n"
        "    async def _agenerate(self, messages, *a, **k):\n"
        "        print('paid')\n"
        "        await anyio.sleep(0.002)\n"
        "        return self._generate(messages)\n"
        "model = Model(script=lambda _: verdict(round(random.random(), 3), sys.argv[2]))\n"
        "turns = [conversation(turn(answer=f'a{i}'), session=f's{i:04}', task_id=f't{i}') for i in range(60)]\n"
        "assess(turns, judge=LLMJudge(model), store=sys.argv[1]).write(sys.argv[2])\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    path, names = tmp_path / "s.db", [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    running = [
        subprocess.Popen([sys.executable, "-c", program, path, name], env=environment, stdout=subprocess.PIPE)
        for name in names
    ]
    paid = sum(process.communicate(timeout=60)[0].count(b"paid") for process in running)
    assert ([process.returncode for process in running], paid) == ([0, 0], 60)
    assert names[0].read_bytes() == names[1].read_bytes()
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()
    with Store(path) as store:
        assert len(store) == 60


# Damage


def filled(path, count):
    with Store(path) as store:
        store.add_all([(f"key {i:04}", "m", [CALL], Score(0.5, "because " * 20)) for i in range(count)])
    return path


def test_a_damaged_page_is_one_clear_error_and_the_rest_is_saved(tmp_path):
    """Whichever page is overwritten, the store is refused when it is opened; a repair keeps all other rows."""
    whole = filled(tmp_path / "whole.db", 200).read_bytes()
    noise, saved = random.Random(0), []
    for page in range(len(whole) // 4096):
        path = tmp_path / f"{page}.db"
        path.write_bytes(whole[: page * 4096] + noise.randbytes(4096) + whole[(page + 1) * 4096 :])
        with pytest.raises(InvalidArgument, match=r"the evidence store is damaged|file is not a database"):
            Store(path)
        if page < 2:  # the schema, and the root of the table
            continue
        assert check_store(path).damaged
        after, damaged = repair_store(path)
        saved.append(after.judgements)
        assert not after.damaged
        assert Path(damaged).exists()
        with Store(path) as store:
            assert len(store) == after.judgements
    assert min(saved) > 170
    with pytest.raises(InvalidArgument, match=r"exists: move it away first"):
        repair_store(path)


def test_a_full_disk_ends_clear_and_repair_with_the_file_and_the_cause(tmp_path, small_files):
    """What was there stays, and no half of a repaired store is left."""
    path = filled(tmp_path / "s.db", 200)
    with small_files(40_000):
        with Store(path) as store, pytest.raises(OSError, match=r"cannot be written: .*s\.db'"):
            store.clear()
        with pytest.raises(OSError, match=r"cannot be written: .*s\.db\.repaired'"):
            repair_store(path)
    assert [file.name for file in tmp_path.iterdir()] == ["s.db"]
    assert check_store(path).judgements == 200


def test_a_damaged_store_is_refused_before_anything_is_asked(tmp_path):
    """The run costs nothing, and the message says what to do."""
    path = filled(tmp_path / "s.db", 200)
    with path.open("r+b") as file:
        file.seek(3 * 4096)
        file.write(b"x" * 4096)
    model = in_turn(GOOD)
    with pytest.raises(InvalidArgument, match=r"cache check .* says what can be read, .*cache repair"):
        assess(many(3), judge=LLMJudge(model), store=path)
    assert model.calls == []


def test_the_commands_check_and_repair_a_store(tmp_path):
    """`cache check` exits with 1 if the store is damaged; after `cache repair` with 0."""
    path = filled(tmp_path / "s.db", 200)
    assert CliRunner().invoke(app, ["cache", "check", str(path)]).exit_code == 0
    with path.open("r+b") as file:
        file.seek(4 * 4096)
        file.write(b"x" * 4096)
    checked = CliRunner().invoke(app, ["cache", "check", str(path), "--to", "json"])
    assert (checked.exit_code, json.loads(checked.stdout)["damaged"]) == (1, True)
    assert "saved; the damaged file is kept as" in CliRunner().invoke(app, ["cache", "repair", str(path)]).output
    assert CliRunner().invoke(app, ["cache", "check", str(path)]).exit_code == 0


@pytest.mark.parametrize(
    "damage",
    [
        *("grade = replace(grade, '0.9', '0.8')", "grade = substr(grade, 1, 9)", "grade = '[0.5, \"r\", {}]'"),
        *("grade = 'null'", "grade = CAST(x'5B302E352CFF' AS TEXT)"),
    ],
)
def test_a_stored_grade_that_is_not_what_was_written_is_asked_for_again(tmp_path, damage):
    """Were it one digit, or cannot be read as text: `cache check` counts it, and a new one takes its place."""
    assess(many(1), judge=LLMJudge(in_turn(GOOD)), store=tmp_path / "s.db")
    with closing(sqlite3.connect(tmp_path / "s.db")) as database, database:
        assert database.execute(f"UPDATE calls SET {damage}").rowcount == 1
    assert (check_store(tmp_path / "s.db").invalid, check_store(tmp_path / "s.db").judgements) == (1, 0)
    model = in_turn(verdict(0.3))
    (row,) = assess(many(1), judge=LLMJudge(model), store=tmp_path / "s.db")
    (again,) = assess(many(1), judge=LLMJudge(in_turn(RuntimeError("asked"))), store=tmp_path / "s.db")
    assert (row.answer_score, again.answer_score, len(model.calls)) == (0.3, 0.3, 1)


@pytest.mark.parametrize("tokens", [2**63, 2**64, 10**30])
def test_impossible_numbers_of_tokens_are_left_out(tmp_path, tokens):
    """A reply that reports 2^63 tokens is stored without them; nobody waits for ever."""
    usage = {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1}
    model = in_turn(AIMessage(GOOD, usage_metadata=usage))
    with Store(tmp_path / "s.db") as store:
        (row,) = assess(many(1), judge=LLMJudge(model, price=(1, 1)), store=store)
        assert (row.answer_score, len(store), store.usage().unmetered) == (0.9, 1, 1)


@pytest.mark.parametrize("error", [OverflowError("too large"), ValueError("?"), sqlite3.OperationalError("disk full")])
def test_whatever_fails_when_writing_nobody_waits(tmp_path, error):
    """Every exception of a write stops the run with a reason and resolves all who wait."""

    class Broken(Store):
        def add_all(self, judgements):
            raise error

    with Broken(tmp_path / "s.db") as store, pytest.warns(StoppedEarly, match=r"store .* cannot be written"):
        found = assess(many(20), judge=LLMJudge(in_turn(GOOD)), store=store, concurrency=4)
    assert (found.scored, found.unscored) == (0, 20)


# Claims


def test_what_one_asks_for_nobody_else_asks_for(tmp_path):
    """A claim stands until it is answered, given up, or its lease is over."""
    with Store(tmp_path / "s.db") as one, Store(tmp_path / "s.db") as two:
        assert one.claim(["a", "b"]) == [True, True]
        assert two.claim(["a", "b", "c"]) == [False, False, True]
        one.add("a", "m", [CALL], Score(0.5))
        one.release(["b"])
        assert two.claim(["a", "b"]) == [Score(0.5), True]
        two._db.execute("UPDATE claims SET until = 0 WHERE key = 'b'")
        assert one.claim(["b", "c"]) == [True, False]
        two.renew()
        assert one.claim(["c"]) == [False]
        two._db.execute("UPDATE claims SET until = 1e12 WHERE key = 'c'")  # by a clock that was wrong
        assert one.claim(["c"]) == [True]
        two._db.execute("UPDATE claims SET owner = 'damaged'")
        assert two.claim(["b"]) == [True]


def test_a_claim_is_renewed_while_the_model_takes_its_time(tmp_path, monkeypatch):
    """A judgement that takes longer than the lease stays claimed."""
    monkeypatch.setattr("agentic_bayes.evidence.llm.store._LEASE_SECONDS", 0.1)
    monkeypatch.setattr("agentic_bayes.evidence.llm.calls._BEAT_SECONDS", 0.02)
    claimed = []

    class Slow(ScriptedChatModel):
        async def _agenerate(self, messages, *args, **kwargs):
            await anyio.sleep(0.4)
            with Store(tmp_path / "s.db") as other:
                ((key,),) = other._db.execute("SELECT key FROM claims").fetchall()
                claimed.append(other.claim([key]))
            return self._generate(messages)

    assess(many(1), judge=LLMJudge(Slow(script=lambda _: GOOD)), store=tmp_path / "s.db")
    assert claimed == [[False]]
    with closing(sqlite3.connect(tmp_path / "s.db")) as database:
        assert database.execute("SELECT count(*) FROM claims").fetchone() == (0,)


def test_the_claims_of_a_process_that_is_gone_lapse_at_once(tmp_path):
    """A process that was killed gives nothing up itself."""
    program = (
        "import os, signal, sys; from agentic_bayes.evidence.llm.store import Store; "
        "Store(sys.argv[1]).claim(['a']); os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program, tmp_path / "s.db"], env=environment, check=False)
    with Store(tmp_path / "s.db") as store:
        assert store.claim(["a"]) == [True]


PAYING = """
import sys, anyio
from agentic_bayes import LLMJudge, assess
from scripted import conversation, turn, verdict, ScriptedChatModel
class Model(ScriptedChatModel):
    async def _agenerate(self, messages, *a, **k):
        with open(sys.argv[2], "a") as log:
            log.write("x")
        await anyio.sleep(0.005)
        return self._generate(messages)
turns = [conversation(turn(answer=f"a{i}"), session=f"s{i:04}", task_id=f"t{i}") for i in range(int(sys.argv[3]))]
evidence = assess(turns, judge=LLMJudge(Model(script=lambda _: verdict(0.5))), store=sys.argv[1])
assert evidence.scored == len(turns)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kills", [0, 6])
@pytest.mark.parametrize("processes", [2, 4, 8])
def test_several_processes_on_one_store_pay_once(tmp_path, processes, kills):
    """Every judgement is paid once, but for those in flight when a process is killed."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    count = 400
    log, moments = tmp_path / "log", random.Random(processes)
    log.touch()

    def started():
        return subprocess.Popen([sys.executable, "-c", PAYING, tmp_path / "s.db", log, str(count)], env=environment)

    running = [started() for _ in range(processes)]
    for kill in range(kills):
        until = count * (kill + moments.random()) / (kills + 1)
        while log.stat().st_size < until:
            time.sleep(0.002)
        victim = running[kill % processes]
        victim.kill()
        victim.wait()
        running[kill % processes] = started()
    assert [process.wait(200) for process in running] == [0] * processes
    assert count <= log.stat().st_size <= count + 8 * kills
    with Store(tmp_path / "s.db") as store:
        assert len(store) == count


# What assess does with it


def test_a_second_run_pays_nothing(tmp_path):
    """The same call again asks the model nothing and gives the same bytes."""
    model = by_answer({f"a{i}": verdict(i / 10, f"reason {i}") for i in range(10)})
    first = assess(many(10), judge=LLMJudge(model), store=tmp_path / "s.db")
    again = assess(many(10), judge=LLMJudge(in_turn(RuntimeError("asked"))), store=str(tmp_path / "s.db"))
    first.write(tmp_path / "1.jsonl")
    again.write(tmp_path / "2.jsonl")
    assert len(model.calls) == 10
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()


def test_the_evidence_is_that_of_a_run_without_a_store(tmp_path):
    """A store changes nothing in the evidence."""
    model = by_answer({f"a{i}": verdict(i / 10, f"reason {i}") for i in range(10)})
    assert assess(many(10), judge=LLMJudge(model), store=":memory:") == assess(many(10), judge=LLMJudge(model))


class Named(ScriptedChatModel):
    """A model with a parameter."""

    temperature: float = 0.0

    @property
    def _identifying_params(self):
        return {"temperature": self.temperature, "callback": self.script}


def named(**fields):
    return Named(script=lambda _: GOOD, **fields)


CHANGES = {
    "nothing": (LLMJudge(named()), turn(), 0),
    "session and context that the judge does not see": (LLMJudge(named()), turn("q9"), 0),
    "attempts and waits": (LLMJudge(named(), attempts=9, backoff=3, timeout=9), turn(), 0),
    "answer": (LLMJudge(named()), turn(answer="9"), 1),
    "query": (LLMJudge(named()), turn(query="?"), 1),
    "reference": (LLMJudge(named()), turn(ground_truth_assistant="9"), 1),
    "model": (LLMJudge(named(model_name="other")), turn(), 1),
    "temperature": (LLMJudge(named(temperature=1)), turn(), 1),
    "rubric": (LLMJudge(named(), rubric="Be kind."), turn(), 1),
    "choices": (LLMJudge(named(), choices={"right": 0.9, "wrong": 0}), turn(), 1),
    "context": (LLMJudge(named(), context=True), turn(), 1),
    "kind of reply": (LLMJudge(named(tools=True)), turn(), 1),
    "another repetition": (LLMJudge(named(), n_judgements=3), turn(), 2),
}


@pytest.mark.parametrize(("judge", "changed", "paid"), CHANGES.values(), ids=CHANGES.keys())
def test_what_differs_is_judged_anew_and_what_agrees_is_not(judge, changed, paid, store):
    """Model, parameters, prompt, texts and repetition are the content of a call; nothing else is."""
    assess([conversation(turn())], judge=LLMJudge(named()), store=store)
    assess([conversation(changed, session="another")], judge=judge, store=store)
    assert store.session.judgements == 1 + paid


def test_repetitions_are_never_one_judgement(tmp_path):
    """Three repetitions are three verdicts, in this run and in the next."""
    replies = [verdict(score, "r") for score in (0.2, 0.9, 0.4)]
    model = in_turn(*replies)
    (row,) = assess(many(1), judge=LLMJudge(model, n_judgements=3), store=tmp_path / "s.db")
    assert (row.answer_score, len(model.calls)) == (0.4, 3)
    (again,) = assess(many(1), judge=LLMJudge(in_turn(GOOD), n_judgements=3), store=tmp_path / "s.db")
    assert again == row


@pytest.mark.parametrize("reply", [RuntimeError("429"), "no verdict"])
def test_failures_are_tried_again_in_the_next_run(reply, store):
    """Neither a failure of transport nor a reply that could not be read is a verdict."""
    (lost,) = assess(many(1), judge=LLMJudge(in_turn(reply), attempts=2, backoff=0), store=store)
    assert lost.answer_score is None
    (found,) = assess(many(1), judge=LLMJudge(in_turn(GOOD)), store=store)
    assert found.answer_score == 0.9
    assert (store.session.calls, store.session.failed, len(store)) == (3, 2, 1)


def test_equal_interactions_are_paid_once(store):
    """The same texts at the same time wait for one judgement; when it fails, the next one is asked for."""

    class Slow(ScriptedChatModel):
        async def _agenerate(self, messages, *args, **kwargs):
            await anyio.sleep(0.01)
            return self._generate(messages)

    waiting = [RuntimeError("lost"), GOOD]
    model = Slow(script=lambda _: waiting.pop(0))
    convs = [conversation(turn(), session=f"s{i}") for i in range(20)]
    found = assess(convs, judge=LLMJudge(model, attempts=1), store=store, concurrency=20)
    assert (found.scored, found.unscored, len(model.calls)) == (19, 1, 2)


def test_a_provider_without_structured_output_is_remembered(tmp_path):
    """A run from the store alone says what the paid run found out, so that both give the same bytes."""

    class Refusing(ScriptedChatModel):
        async def _agenerate(self, messages, *args, **kwargs):
            if "tools" in kwargs:
                raise RuntimeError("this model does not support tools")
            return self._generate(messages)

    def judge():
        return LLMJudge(Refusing(script=lambda _: GOOD, tools=True))

    first = assess(many(3), judge=judge(), store=tmp_path / "s.db")
    assert first.rows[0].judge.endswith(" text")
    assert assess(many(3), judge=judge(), store=tmp_path / "s.db") == first


def test_on_a_full_disk_no_verdict_is_handed_out_that_is_not_stored(tmp_path):
    """The run ends before more is paid for, and what it lost is asked for again."""
    path = tmp_path / "s.db"
    judge = LLMJudge(in_turn(verdict(0.5, "r" * 300)))
    with Store(path) as store:
        store._db.execute(f"PRAGMA max_page_count = {store.size // 4096 + 12}")
        with pytest.warns(StoppedEarly, match=r"disk is full"):
            found = assess(many(200), judge=judge, store=store, concurrency=16)
        assert 0 < found.scored == len(store) < 200
    reasons = {row.unscored_reason for row in found if row.answer_score is None}
    assert reasons == {f"stopped: the evidence store {path} cannot be written: database or disk is full"}
    again = in_turn(verdict(0.5, "r" * 300))
    assert assess(many(200), judge=LLMJudge(again), store=path).scored == 200
    assert len(again.calls) == 200 - found.scored


def test_a_run_that_is_refused_makes_no_file(tmp_path):
    """Arguments are checked before the store is made."""
    with pytest.raises(InvalidArgument, match=r"max_cost must be a number > 0"):
        assess(many(1), judge=LLMJudge(in_turn(GOOD)), store=tmp_path / "s.db", max_cost=0)
    assert list(tmp_path.iterdir()) == []


def test_a_run_in_a_thread_uses_the_callers_store(store):
    """One open store serves several runs at once."""
    results = []
    model = by_answer({f"a{i}": GOOD for i in range(30)})

    def run():
        results.append(assess(many(30), judge=LLMJudge(model), store=store))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [results[0]] * 4
    assert len(store) == 30


def test_unscored_without_a_call_leaves_no_trace(store):
    """An interaction without a reference is not asked about and not in the store."""
    (row,) = assess([conversation(turn(ground_truth_assistant=None))], judge=LLMJudge(in_turn(GOOD)), store=store)
    assert row.unscored_reason == Unscored("no reference answer").reason
    assert (len(store), store.usage()) == (0, Usage())
