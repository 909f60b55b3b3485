"""Repetitions, choices, examples, models by name, and the limits of a run."""

import time
import types

import anyio
import pytest
from langchain_core.messages import AIMessage
from scripted import ScriptedChatModel, conversation, in_turn, turn, verdict

from agentic_bayes.errors import InvalidArgument, MissingPackage, StoppedEarly, UnknownName
from agentic_bayes.evidence.assess import assess
from agentic_bayes.evidence.llm import models
from agentic_bayes.evidence.llm.judge import LLMJudge
from agentic_bayes.evidence.llm.store import Store
from agentic_bayes.evidence.score import Score, Unscored

GOOD = verdict(0.9, "right")


def grade(judge, *turns):
    return anyio.run(judge.grade, conversation(*turns), 0)


def many(count):
    return [conversation(turn(answer=f"a{i}"), session=f"s{i:04}", task_id=f"t{i:04}") for i in range(count)]


def scores(*values):
    return in_turn(*[verdict(value, f"reason for {value}") for value in values])


# Repetitions


def test_the_median_of_several_judgements_is_the_score():
    """Scores, spread and number are kept; the reason is that of the judgement nearest to the score."""
    judge = LLMJudge(scores(0.2, 1.0, 0.7), n_judgements=3)
    assert grade(judge) == Score(
        0.7,
        "median of 0.2, 1, 0.7: reason for 0.7",
        {"scores": [0.2, 1.0, 0.7], "spread": 0.8, "judgements": 3},
    )
    assert judge.identity.endswith(" text n=3 median")


@pytest.mark.parametrize(
    ("values", "most_frequent"), [((1, 0, 1), 1.0), ((0.5, 0, 0, 0.5), 0.0), ((0.9, 0.3, 0.4), 0.3)]
)
def test_the_majority_is_the_most_frequent_score(values, most_frequent):
    """Of equally frequent scores the lowest is taken."""
    judge = LLMJudge(scores(*values), n_judgements=len(values), combine="majority")
    assert grade(judge).value == most_frequent


def test_most_of_the_judgements_must_be_there():
    """Two of three are enough and say so; one of three, or two of four, is none."""
    bad = "no verdict"
    found = grade(LLMJudge(in_turn(GOOD, bad, GOOD), n_judgements=3, attempts=1))
    assert found.value == 0.9
    assert found.reason.startswith("median of 0.9, 0.9 (1 of 3 unscored): ")
    for replies in ([GOOD, bad, bad], [GOOD, GOOD, bad, bad]):
        lost = grade(LLMJudge(in_turn(*replies), n_judgements=len(replies), attempts=1))
        assert isinstance(lost, Unscored)


def test_every_repetition_is_the_same_question():
    """No repetition sees another one's verdict."""
    model = scores(0.1, 0.2, 0.3)
    grade(LLMJudge(model, n_judgements=3))
    assert model.calls[0] == model.calls[1] == model.calls[2]


# Choices and examples

CHOICES = {"right": 1, "partly right": 1 / 3, "wrong": 0}


def test_a_choice_is_a_score_and_its_label():
    """Only the scores of the choices count; the label is in the details, the exact score is restored."""
    model = in_turn(verdict(0.5), verdict(0.333333, "half of it"))
    found = grade(LLMJudge(model, choices=CHOICES))
    assert found == Score(1 / 3, "half of it", {"choice": "partly right"})
    assert "correctness_score must be one of 1, 0.333333, 0, got 0.5" in model.calls[1][-1].content
    system = model.calls[0][0].content
    assert "- 1: right\n- 0.333333: partly right\n- 0: wrong" in system


def test_the_schema_lists_the_choices():
    """Structured output is held to the choices by the provider, too."""
    bound = []

    class Binding(ScriptedChatModel):
        def bind_tools(self, tools, **kwargs):
            bound.extend(tools)
            return super().bind_tools(tools, **kwargs)

    LLMJudge(Binding(script=lambda _: GOOD, tools=True), choices=CHOICES)
    properties = (bound[0].get("parameters") or bound[0])["properties"]
    assert properties["correctness_score"]["enum"] == list(CHOICES.values())


EXAMPLE = {"query": "2 + 2?", "reference": "4", "answer": "5", "reasoning": "4 is right.", "score": 0.1}


def test_examples_stand_before_the_question():
    """Each example is a question in the same form and the verdict that it should get."""
    model = in_turn(GOOD)
    judge = LLMJudge(model, examples=[EXAMPLE, EXAMPLE | {"answer": "4", "score": 1}])
    assert grade(judge).value == 0.9
    (call,) = model.calls
    assert [message.type for message in call] == ["system", "human", "ai", "human", "ai", "human"]
    assert "\n5\n[end of answer" in call[1].content
    assert call[2].content == '{"reasoning": "4 is right.", "correctness_score": 0.1}'
    assert judge.identity != LLMJudge(model).identity


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"choices": {"right": 1}}, r"choices must map two or more labels"),
        ({"choices": ["right", "wrong"]}, r"choices must map two or more labels"),
        ({"choices": {"right": 1, "good": 1}}, r"choices must have different scores"),
        ({"choices": {"right": 95, "wrong": 0}}, r"choices\['right'\] must be a number in \[0, 1\], got 95"),
        ({"choices": {"right": True, "wrong": 0}}, r"choices\['right'\] must be a number"),
        ({"choices": {" ": 1, "wrong": 0}}, r"choices must have labels of one line"),
        ({"examples": EXAMPLE}, r"examples must be a list"),
        ({"examples": ["5"]}, r"examples\[0\] must be an object"),
        ({"examples": [EXAMPLE | {"anser": "5"}]}, r"unknown key 'anser': did you mean 'answer'"),
        ({"examples": [{"query": "2 + 2?"}]}, r"examples\[0\] lacks 'reference'"),
        ({"examples": [EXAMPLE | {"answer": None}]}, r"examples\[0\]\.answer must be text"),
        ({"examples": [EXAMPLE | {"score": 2}]}, r"examples\[0\]\.score must be a plain number from 0 to 1, got 2"),
        ({"examples": [EXAMPLE], "choices": CHOICES}, r"examples\[0\]\.score must be one of 1, 0\.333333, 0, got 0\.1"),
        ({"n_judgements": 0}, r"n_judgements must be an integer ≥ 1"),
        ({"combine": "mean"}, r"unknown combine 'mean'"),
        ({"structured_method": "json"}, r"unknown structured_method 'json': did you mean 'json_"),
        ({"price": 5}, r"price must be \(per million input tokens, per million output tokens\), got 5"),
        ({"price": (1, -1)}, r"price per million tokens must be a number ≥ 0, got -1"),
        ({"price": (1, float("nan"))}, r"price per million tokens must be a number ≥ 0"),
        ({"model_arguments": {"seed": 1}}, r"model_arguments must be a mapping, for a model given by name"),
        ({"structured_method": "json_mode"}, r"structured_method 'json_mode' is not supported by scripted"),
    ],
)
def test_options_are_checked_when_the_judge_is_made(arguments, message):
    """A bad option is an error before any call."""
    with pytest.raises(InvalidArgument, match=message):
        LLMJudge(in_turn(GOOD), **arguments)


# Models by name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("groq:llama-3.3-70b", r"langchain-groq: pip install langchain-groq"),
        ("groq/meta-llama/llama-4", r"langchain-groq: pip install langchain-groq"),
        ("openai/gpt-4o-mini", r"langchain-openai: pip install 'agentic-bayes\[openai\]'"),
        ("gemini:gemini-2.5-flash", r"langchain-google-genai"),
    ],
)
def test_a_name_whose_package_is_missing_says_which_to_install(monkeypatch, name, message):
    """Names as Gaussia and others write them, with a colon or a slash, lead to their LangChain package."""
    only(monkeypatch)
    with pytest.raises(MissingPackage, match=message):
        models.resolve(name, {})
    assert models.is_model_name(name)


def test_a_path_or_an_address_is_no_name_of_a_model():
    """A slash counts only behind a provider that is known."""
    assert not any(map(models.is_model_name, ["models/judge", "http://localhost", "gpt-4o", "/openai/x"]))


def test_a_name_is_resolved_on_first_use_only(monkeypatch):
    """Making the judge imports nothing; asking for its identity makes the model, once, with its arguments."""
    made = []

    def resolve(name, arguments):
        made.append((name, arguments))
        return in_turn(GOOD)

    monkeypatch.setattr("agentic_bayes.evidence.llm.models.resolve", resolve)
    judge = LLMJudge("ollama:llama3:8b", model_arguments={"seed": 7})
    assert made == []
    assert judge.identity == judge.identity
    assert grade(judge).value == 0.9
    assert made == [("ollama:llama3:8b", {"temperature": 0, "seed": 7})]


def only(monkeypatch, **packages):
    """Pretend that these packages are installed and no other."""
    monkeypatch.setattr(models.importlib.util, "find_spec", lambda name: packages.get(name))
    monkeypatch.setattr(models.importlib, "import_module", lambda name: packages[name.split(".")[0]])


@pytest.mark.parametrize("provider", ["openai", "anthropic", "ollama"])
def test_a_missing_package_is_one_clear_line(provider, monkeypatch):
    """The message says what to install; no conversation was read."""
    only(monkeypatch)
    with pytest.raises(MissingPackage, match=rf"pip install 'agentic-bayes\[{provider}\]'") as caught:
        assess(many(1), judge=LLMJudge(f"{provider}:some-model"))
    assert "\n" not in str(caught.value)


def test_an_unknown_provider_names_the_nearest(monkeypatch):
    """A misspelt provider is told the right one, and where more are known."""
    only(monkeypatch)
    with pytest.raises(InvalidArgument, match=r"unknown provider 'opnai'.*did you mean 'openai'.*langchain"):
        assess(many(1), judge=LLMJudge("opnai:gpt-4o"))


def test_a_missing_key_is_one_clear_line(monkeypatch):
    """The variable in which the key is looked for is named; no conversation was judged."""
    pytest.importorskip("langchain_openai", reason="the OpenAI client is an extra")
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InvalidArgument, match=r"'openai:gpt-4o' cannot be used \(is OPENAI_API_KEY set\?\)") as caught:
        assess(many(1), judge=LLMJudge("openai:gpt-4o"))
    assert "\n" not in str(caught.value)


def test_the_provider_packages_are_used_where_langchain_is_not_installed(monkeypatch):
    """The provider's class gets the model's name, and no retries of its own where it would have some."""
    made = {}
    package = types.SimpleNamespace(
        ChatOpenAI=lambda **given: made.update(openai=given), ChatOllama=lambda **given: made.update(ollama=given)
    )
    only(monkeypatch, langchain_openai=package, langchain_ollama=package)
    models.resolve("openai:gpt-4o", {"temperature": 0})
    models.resolve("ollama:llama3:8b", {})
    assert made == {
        "openai": {"model": "gpt-4o", "temperature": 0, "max_retries": 0},
        "ollama": {"model": "llama3:8b"},
    }


def test_langchain_knows_every_provider_where_it_is_installed(monkeypatch):
    """`init_chat_model` is asked with provider and model apart; a package that it misses is a clear line."""
    made = {}
    only(monkeypatch, langchain=types.SimpleNamespace(init_chat_model=lambda **given: made.update(given)))
    models.resolve("mistralai:mistral-small", {"temperature": 0})
    assert made == {"model": "mistral-small", "model_provider": "mistralai", "temperature": 0}

    def missing(**given):
        raise ImportError("Unable to import langchain_mistralai.\nPlease install it.")

    only(monkeypatch, langchain=types.SimpleNamespace(init_chat_model=missing))
    with pytest.raises(MissingPackage, match=r"needs a package that is not installed: Unable to import"):
        models.resolve("mistralai:mistral-small", {})


@pytest.mark.parametrize("name", ["openai:", ":gpt", "gpt-4o", "", "open ai:gpt", "http://x:1"])
def test_a_name_has_a_provider_and_a_model(name):
    """Anything else is refused when the judge is made."""
    with pytest.raises(InvalidArgument, match=r"model must be a LangChain chat model .* \(provider:model\)"):
        LLMJudge(name)


def test_parameters_are_the_same_text_in_every_process():
    """Objects in them count by type, so that neither addresses nor secrets are in the identity."""

    class Odd(ScriptedChatModel):
        @property
        def _identifying_params(self):
            return {"b": self.script, "a": 1, "none": None}

    assert models.parameters(Odd(script=lambda _: GOOD)) == '{"a": 1, "b": "function"}'
    assert models.parameters(in_turn(GOOD)) == ""


def test_a_profile_says_what_is_asked_for():
    """The model's own profile orders the ways to ask; what it has not is not tried."""

    class Profiled(ScriptedChatModel):
        def with_structured_output(self, schema, *, method="default", **kwargs):
            return self.bind(method=method)

    def modes(profile):
        model = Profiled(script=lambda _: GOOD)
        model.profile = profile
        return [name for name, _ in models.reply_modes(model, {}, "auto")]

    assert modes({"structured_output": True, "tool_calling": True}) == ["json_schema", "function_calling"]
    assert modes({"tool_calling": True}) == ["function_calling"]
    assert modes({"structured_output": False, "tool_calling": False}) == []
    assert modes(None) == ["structured"]


# Limits of a run


def metered(**fields):
    usage = {"input_tokens": 1000, "output_tokens": 100, "total_tokens": 1100}
    return ScriptedChatModel(script=lambda _: AIMessage(GOOD, usage_metadata=usage), **fields)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_max_cost_is_kept(concurrency):
    """The run stops before the call that would exceed it; the rest is unscored with that reason."""
    judge = LLMJudge(metered(), price=(1, 10))  # 0.002 each
    store = Store(":memory:")
    with store, pytest.warns(StoppedEarly, match=r"max_cost of 0\.02 is reached"):
        found = assess(many(30), judge=judge, max_cost=0.02, concurrency=concurrency, store=store)
    assert store.session.cost == pytest.approx(0.02)
    assert (found.scored, found.stopped) == (10, "max_cost of 0.02 is reached")
    assert {row.unscored_reason for row in found.rows if row.answer_score is None} == {
        "stopped: max_cost of 0.02 is reached"
    }


def test_what_the_store_has_costs_nothing(tmp_path):
    """A run that was stopped by its cost goes on with the same limit, and is complete after a few runs."""
    judge, store = LLMJudge(metered(), price=(1, 10)), tmp_path / "s.db"
    for scored in (10, 20):
        with pytest.warns(StoppedEarly, match=r"max_cost"):
            found = assess(many(25), judge=judge, max_cost=0.02, store=store)
        assert found.scored == scored
    assert assess(many(25), judge=judge, max_cost=0.02, store=store).scored == 25


def test_max_cost_needs_a_price_and_tokens():
    """What cannot be kept is refused, or stops the run with the first reply that has no tokens."""
    with pytest.raises(InvalidArgument, match=r"max_cost needs the price of the judge's tokens"):
        assess(many(2), judge=LLMJudge(metered()), max_cost=1)
    with pytest.warns(StoppedEarly, match=r"max_cost cannot be enforced"):
        found = assess(many(5), judge=LLMJudge(in_turn(GOOD), price=(1, 1)), max_cost=1, concurrency=1)
    assert found.scored == 1


def test_unreadable_replies_cost_too():
    """Every reply is paid for, whatever is in it."""
    usage = {"input_tokens": 1000, "output_tokens": 0, "total_tokens": 1000}
    replies = in_turn(AIMessage("no verdict", usage_metadata=usage), AIMessage(GOOD, usage_metadata=usage))
    with Store(":memory:") as store:
        assess(many(1), judge=LLMJudge(replies, price=(2, 2)), store=store)
        assert store.session.cost == pytest.approx(0.004)
        assert (store.session.calls, store.session.failed, store.session.judgements) == (2, 1, 1)


def failing(pattern):
    """A model that fails at every answer whose number the pattern names."""

    def script(messages):
        number = int(messages[1].content.split("\n[end of answer")[0].rsplit("\na", 1)[1])
        return ConnectionError("gone") if pattern(number) else GOOD

    return ScriptedChatModel(script=script)


@pytest.mark.parametrize(
    ("pattern", "fail_fast", "scored"),
    [
        (lambda i: i >= 10, 5, 10),
        (lambda i: i >= 10, 2, 10),
        (lambda i: i % 5 < 4, 5, 8),
        (lambda i: True, None, 0),
    ],
    ids=["five in a row", "two in a row", "never five in a row", "never stopped"],
)
def test_only_failures_in_a_row_stop_the_run(pattern, fail_fast, scored):
    """A judgement in between starts the count anew."""
    stops = fail_fast is not None and scored == 10
    judge = LLMJudge(failing(pattern), attempts=1)
    arguments = {"judge": judge, "fail_fast": fail_fast, "concurrency": 1}
    if stops:
        with pytest.warns(StoppedEarly, match=rf"after {fail_fast} transport failures"):
            found = assess(many(40), **arguments)
        reasons = {row.unscored_reason for row in found.rows[10 + fail_fast :]}
        assert reasons == {f"stopped after {fail_fast} transport failures: ConnectionError: gone"}
    else:
        found = assess(many(40), **arguments)
        assert found.stopped is None
    assert found.scored == scored


def test_unreadable_replies_do_not_stop_the_run():
    """A model that replies is there, however badly it does."""
    found = assess(many(20), judge=LLMJudge(in_turn("no verdict"), attempts=1), concurrency=1)
    assert (found.unscored, found.stopped) == (20, None)


def test_a_stopped_run_does_not_wait_for_its_waits():
    """Judgements that wait to be repeated end with the run."""

    def script(messages):
        first = "\na0\n" in messages[1].content
        return ConnectionError("gone") if first else error

    error = ConnectionError("wait")
    error.response = types.SimpleNamespace(headers={"retry-after": "300"}, status_code=429)
    judge = LLMJudge(ScriptedChatModel(script=script), attempts=2, backoff=0.2)
    started = time.monotonic()
    with pytest.warns(StoppedEarly, match=r"after 1 transport failures"):
        found = assess(many(8), judge=judge, fail_fast=1, concurrency=4)
    assert time.monotonic() - started < 60
    assert found.rows[0].unscored_reason == "ConnectionError: gone"
    assert {row.unscored_reason for row in found.rows[1:]} == {
        "stopped after 1 transport failures: ConnectionError: gone"
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"requests_per_second": 0}, r"requests_per_second must be a number > 0, got 0"),
        ({"requests_per_second": True}, r"requests_per_second must be a number > 0, got True"),
        ({"requests_per_second": float("inf")}, r"requests_per_second must be a number > 0, got inf"),
        ({"max_cost": -1}, r"max_cost must be a number > 0, got -1"),
        ({"max_cost": float("nan")}, r"max_cost must be a number > 0, got nan"),
        ({"fail_fast": 0}, r"fail_fast must be an integer ≥ 1, got 0"),
        ({"store": 5}, r"store must be a path or a Store, got 5"),
    ],
)
def test_limits_are_checked_before_anything_is_judged(arguments, message):
    """A bad limit costs no call."""
    model = in_turn(GOOD)
    with pytest.raises(InvalidArgument, match=message):
        assess(many(1), judge=LLMJudge(model, price=(1, 1)), **arguments)
    assert model.calls == []


def test_unknown_choices_of_words_are_unknown_names():
    """Closed sets answer with the nearest name."""
    with pytest.raises(UnknownName, match=r"did you mean 'median'"):
        LLMJudge(in_turn(GOOD), combine="medain")
