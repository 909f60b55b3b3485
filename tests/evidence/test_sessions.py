"""Metrics on embeddings, and of whole conversations."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import reduced

import agentic_bayes as ab
from agentic_bayes.evidence.metrics.embedding_metrics import Coherence, LoopDetection, distinct_words, jaccard
from agentic_bayes.evidence.metrics.embeddings import Embedder, offline_embeddings
from agentic_bayes.evidence.metrics.registry import make_metric
from agentic_bayes.evidence.metrics.session import (
    agent_consistency,
    agent_reliability,
    session_scores,
    threshold_as_half,
)
from agentic_bayes.reports.metric_correlations import metric_correlations

GOOD = {"confidence": 0.9, "loop_detection": 1.0, "tool_correctness": 0.9, "coherence": 0.8}
BAD = {"confidence": 0.2, "loop_detection": 0.3, "tool_correctness": 0.1, "coherence": 0.5}


class Given:
    """Embeddings that are told beforehand; `asked` counts the texts."""

    def __init__(self, vectors):
        self.vectors, self.asked, self.calls = vectors, [], 0

    def embed_documents(self, texts):
        """The vectors that were told."""
        self.asked += texts
        self.calls += 1
        return [self.vectors[text] for text in texts]


def conversation(*outputs, queries=None):
    turns = [
        {"qa_id": f"q{i}", "query": (queries or ["?"] * len(outputs))[i], "assistant": output}
        for i, output in enumerate(outputs)
    ]
    return ab.Conversation(session_id="s", assistant_id="v1", task_id="t", conversation=turns)


# Sessions


@pytest.mark.parametrize(
    ("signals", "reliability", "consistency"),
    [([GOOD], 0.8, 0.872), ([BAD], 0.2, 0.0), ([GOOD] * 9 + [BAD], 0.47, 0.2514)],
)
def test_the_published_session_values(signals, reliability, consistency):
    """One good trace, one bad one, nine good ones and a bad one."""
    assert agent_reliability(signals).score == pytest.approx(reliability, abs=1e-12)
    assert agent_consistency(signals).score == pytest.approx(consistency, abs=5e-5)


def test_a_session_without_signals():
    """Nothing to hold against it is reliable, with a note; without confidence there is no consistency."""
    assert agent_reliability([]).score == 1
    assert "no trace has a signal" in agent_reliability([{}]).note
    assert agent_consistency([]) == ab.Unscored("no trace has confidence")
    assert isinstance(agent_consistency([{"coherence": 0.5}]), ab.Unscored)


def test_missing_signals_are_skipped():
    """None and NaN are no signals, and neither is a metric that was not measured."""
    assert agent_reliability([{"confidence": None, "coherence": 0.9}]).score == pytest.approx(0.9)
    assert agent_reliability([{"coherence": math.nan}, {"coherence": 0.9}]).score == pytest.approx(0.9)
    # other metrics of a row are no signals either
    assert agent_reliability([{"coherence": np.float32(0.9), "task_completion": 0.1}]).score == pytest.approx(0.9)
    found = agent_consistency([{"confidence": 0.5}, {"coherence": 0.1}])
    assert (found.score, len(found.risks)) == (0.5, 2)
    assert math.isnan(found.risks[1])


def test_risks_above_a_half_are_flagged():
    """Per trace: the risk, and whether it stands out."""
    found = agent_reliability([GOOD, BAD, {}, GOOD])
    assert found.flagged == (1,)
    assert found.risks[:2] == pytest.approx((0.2, 0.8))


def test_weights_and_tail_are_yours():
    """Other signals, other weights, another share of worst traces."""
    signals = [{"speed": 0.5}, {"speed": 1.0}]
    assert agent_reliability(signals, weights={"speed": 1.0}).score == pytest.approx(0.5)
    assert agent_reliability(signals, weights={"speed": 1.0}, tail=1).score == pytest.approx(1 - 0.9 * 0.25 - 0.1 * 0.5)
    assert agent_reliability([GOOD] * 19 + [BAD], tail=0.05).score == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"signals": GOOD}, "signals must be a list"),
        ({"signals": [5]}, r"signals\[0\] must map"),
        ({"signals": [GOOD], "random_seed": -1}, "random_seed must be"),
        ({"signals": [], "ci_prob": 95}, "ci_prob must be"),
        ({"signals": [GOOD], "weights": {"confidence": 10**400}}, "must be a number ≥ 0"),
        ({"signals": [{"confidance": 1}]}, "unknown signal 'confidance': did you mean 'confidence'"),
        ({"signals": [{"confidence": 95}]}, r"signals\[0\]\['confidence'\] must be a number in \[0, 1\]"),
        ({"signals": [{"confidence": True}]}, "must be a number"),
        ({"signals": [GOOD], "weights": {"confidence": -1}}, "must be a number ≥ 0"),
        ({"signals": [GOOD], "weights": {}}, "weights must map"),
        ({"signals": [GOOD], "tail": 0}, r"tail must be a number in \(0, 1\]"),
        ({"signals": [GOOD] * 2, "ci_prob": 95}, "ci_prob must be"),
    ],
)
def test_session_arguments_are_checked(arguments, message):
    """What is outside what is allowed is named."""
    with pytest.raises(ab.errors.InvalidArgument, match=message):
        agent_reliability(**arguments)


def test_the_interval_of_a_session_knows_how_many_traces_there_are():
    """More traces of the same mix, a shorter interval; one trace has none; the order of traces changes nothing."""
    short, long = ([GOOD] * n + [BAD] * n for n in (4, 64))
    widths = [agent_consistency(signals).upper - agent_consistency(signals).lower for signals in (short, long)]
    assert widths[1] < widths[0] / 2
    assert math.isnan(agent_reliability([GOOD]).lower)
    found, turned = (agent_reliability(signals) for signals in (short, short[::-1]))
    assert (found.score, found.lower, found.upper) == (turned.score, turned.lower, turned.upper)


@settings(max_examples=reduced(80), deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(sorted(GOOD)), st.floats(0, 1), min_size=1), min_size=1, max_size=12))
def test_session_scores_lie_in_the_unit_interval_and_fall_with_a_worse_trace(signals):
    """One more trace at risk 1 never helps reliability; everything stays in [0, 1]."""
    found = agent_reliability(signals, resamples=50)
    assert 0 <= found.score <= 1
    assert np.isnan(found.lower) or 0 <= found.lower <= found.upper <= 1
    consistency = agent_consistency(signals, resamples=50)
    assert isinstance(consistency, ab.Unscored) or 0 <= consistency.score <= 1
    ruined = [dict.fromkeys(trace, 0.0) for trace in signals]
    assert agent_reliability(ruined, resamples=50).score <= found.score + 1e-12


def test_sessions_of_evidence(tmp_path):
    """One row per conversation, from the metrics that were measured; a signal that none has is an error."""
    vectors = {"?": [1.0, 0.0], "a b": [1.0, 0.0], "c d": [0.6, 0.8]}
    metrics = [Coherence(Given(vectors)), LoopDetection(Given(vectors))]
    evidence = ab.assess([conversation("a b", "c d", "a b")], judge=ab.RecordedJudge(), metrics=metrics)
    (row,) = session_scores(evidence).to_dict("records")
    assert (row["traces"], row["flagged"]) == (3, 1)
    assert row["agent_reliability"] == pytest.approx(0.0)  # the third output repeats the first
    assert math.isnan(row["agent_consistency"])
    with pytest.raises(
        ab.errors.InvalidArgument,
        match="the evidence needs at least one of the metrics speed; it has: coherence, loop_detection",
    ):
        session_scores(evidence, weights={"speed": 1.0})


# Coherence


def test_coherence_by_hand():
    """1 - cosine distance, clamped; the distance is in the details."""
    vectors = {"?": [3.0, 4.0], "near": [4.0, 3.0], "far": [-3.0, -4.0], "same": [6.0, 8.0]}
    evidence = ab.assess(
        [conversation("near", "far", "same")], judge=ab.RecordedJudge(), metrics=[Coherence(Given(vectors))]
    )
    grades = [row.metrics["coherence"] for row in evidence]
    assert [grade.value for grade in grades] == pytest.approx([0.96, 0, 1])
    assert [grade.details["coherence_gap"] for grade in grades] == pytest.approx([0.04, 2, 0], abs=1e-6)


def test_coherence_has_a_threshold_that_suits_its_embedding():
    """.16 parts right from mismatched answers with the offline model; .5 is the default with another one."""

    class Embeddings:
        def embed_documents(self, texts):
            return [[1.0, 0.0]] * len(texts)

    assert (make_metric("coherence").threshold, make_metric("coherence", threshold=0.3).threshold) == (0.16, 0.3)
    assert make_metric("coherence", embeddings=Embeddings()).threshold == 0.5


def test_the_threshold_of_coherence_is_the_middle_of_its_risk():
    """An answer at the threshold has a risk of .5 in its session, whatever cosine the embedding gives."""
    assert threshold_as_half("coherence", ab.Score(0.16, "", {"threshold": 0.16})) == 0.5
    assert threshold_as_half("coherence", ab.Score(0.58, "", {"threshold": 0.16})) == pytest.approx(0.75)
    assert threshold_as_half("coherence", ab.Score(0.3, "", {"threshold": 0.5})) == 0.3
    assert threshold_as_half("confidence", ab.Score(0.3, "", {"threshold": 0.9})) == 0.3


def test_coherence_of_nothing_is_assumed():
    """An empty query or answer: 1, with a note, and no embedding."""
    embeddings = Given({})
    for one in (conversation("", queries=["?"]), conversation("a", queries=[" "])):
        found = Coherence(embeddings).grade(one, 0)
        assert found.value == 1
        assert "assumed" in found.details["note"]
    assert embeddings.asked == []


# Loops


def loops(vectors, *outputs, **options):
    metric = LoopDetection(Given(vectors), **options)
    one = conversation(*outputs)
    return [metric.grade(one, position) for position in range(len(outputs))]


def test_loops_by_hand():
    """1 - the largest cosine × Jaccard over the last three earlier outputs."""
    vectors = {"red blue": [1.0, 0.0], "red green": [0.8, 0.6], "black white": [0.0, 1.0]}
    first, second, third = loops(vectors, "red blue", "red green", "black white")
    assert (first.value, first.details["comparisons"]) == (1, [])
    assert second.value == pytest.approx(1 - 0.8 / 3)
    assert second.details["comparisons"] == [
        {
            "trace_index": 0,
            "cosine_similarity": 0.8,
            "jaccard_similarity": pytest.approx(1 / 3, abs=1e-6),
            "hybrid_score": pytest.approx(0.8 / 3, abs=1e-6),
        }
    ]
    assert third.value == 1
    assert third.details["window_size"] == 3


def test_the_window_looks_back_so_far_and_names_the_right_traces():
    """Empty outputs are no outputs: they take no place in the window, and shift no index."""
    texts = ["a1", "", "b2", "c3", None, "d4", "a1"]
    vectors = {text: np.eye(4)[i].tolist() for i, text in enumerate(["a1", "b2", "c3", "d4"])}
    metric, wide = LoopDetection(Given(vectors)), LoopDetection(Given(vectors), window=4)
    found = metric.compare("a1", texts[:-1])
    assert [one["trace_index"] for one in found.details["comparisons"]] == [2, 3, 5]
    assert found.value == 1
    assert wide.compare("a1", texts[:-1]).value == 0
    empty = metric.compare("  ", texts[:-1])
    assert empty.value == 1
    assert "empty" in empty.details["note"]
    assert isinstance(metric.compare("a1", None), ab.Unscored)


@pytest.mark.parametrize(
    "text",
    ["5", "42 42", "the", "it is what it is", "你好世界", "ありがとう", "สวัสดีครับ", "!!!", "😀", "I cannot do that."],
)
def test_exact_repetition_is_always_a_loop(text):
    """Numbers, stop words, scripts without spaces, signs: whatever is said twice is a loop."""
    vectors = {text: [1.0, 0.0], f" {text.upper()} ": [0.0, 1.0]}
    assert loops(vectors, text, f" {text.upper()} ")[1].value == 0


def test_words_of_every_script():
    """Stop words go unless there is nothing else; unspaced scripts give pairs of characters."""
    assert distinct_words("The cat and the dog") == {"cat", "dog"}
    assert distinct_words("it is") == {"it", "is"}
    assert distinct_words("दीन") != distinct_words("दाना")
    assert distinct_words("हिन्दी में") == {"हिन्दी", "में"}
    assert distinct_words("人々") == {"人々"}
    assert distinct_words("!!!") == distinct_words("!!") == {"!"}
    assert distinct_words("can do") != distinct_words("can not do")
    assert distinct_words("我喜欢猫") == {"我喜", "喜欢", "欢猫"}
    assert distinct_words("GPT很好5") == {"gpt", "很好", "5"}
    assert distinct_words("ｆｕｌｌ") == {"full"}
    assert jaccard(distinct_words(""), distinct_words("")) == 0
    assert jaccard(distinct_words("item 1: apples"), distinct_words("item 2: pears")) == pytest.approx(1 / 5)


def test_loop_detection_embeds_every_output_once():
    """Linear in the number of traces: a window does not ask for a text again."""
    texts = [f"word{i} other{i}" for i in range(50)]
    embeddings = Given({text: [1.0, float(i)] for i, text in enumerate(texts)})
    metric = LoopDetection(embeddings)
    one = conversation(*texts)
    for position in range(50):
        metric.grade(one, position)
    assert embeddings.asked.count("word7 other7") == 1
    assert len(embeddings.asked) == 50
    assert embeddings.calls == 1  # the whole session in one


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0, 2.0], [1.0]], "must give 2 vectors of finite numbers, all of one length"),
        ([[1.0, 2.0]], "must give 2 vectors"),
        ([[1.0, math.nan], [1.0, 1.0]], "must give 2 vectors of finite numbers"),
        ([["1", "2"], ["3", "4"]], "must give 2 vectors"),
        (None, "must give 2 vectors"),
        ([[0.0, 0.0], [1.0, 0.0]], "the embedding of a text is zero"),
    ],
)
def test_odd_embeddings_are_said_and_score_nothing(vectors, message):
    """No row too few, no NaN, no text, no zero vector becomes a score, now or later."""

    class Odd:
        def embed_documents(self, texts):
            """Something else than asked for."""
            return vectors

    metric = Coherence(Odd())
    for _ in range(2):
        evidence = ab.assess([conversation("a")], judge=ab.RecordedJudge(), metrics=[metric])
        assert message in evidence.rows[0].metrics["coherence"].reason


def test_a_text_of_megabytes_takes_no_minutes():
    """Of a long text its beginning and its end are embedded."""
    embeddings = Given({})
    embeddings.embed_documents = lambda texts: embeddings.asked.extend(texts) or [[1.0, 0.0] for _ in texts]
    assert Coherence(embeddings).grade(conversation("word " * 2_000_000), 0).value == 1
    assert max(map(len, embeddings.asked)) <= 20_000


# Real embeddings


def test_a_repeated_sentence_is_a_loop_in_any_language():
    """English, Chinese and Thai, with the offline model; an enumeration is none."""
    for first, second in (
        ("I am sorry, I cannot find your order.", "I am sorry, I cannot find your order!"),
        ("对不起，我找不到您的订单。", "对不起，我找不到您的订单"),
        ("ขอโทษค่ะ ฉันหาคำสั่งซื้อของคุณไม่พบ", "ขอโทษค่ะ ฉันหาคำสั่งซื้อของคุณไม่พบค่ะ"),
    ):
        assert LoopDetection().compare(second, [first]).value < 0.5
    assert LoopDetection().compare("item 2: pears", ["item 1: apples"]).value > 0.8


def test_a_related_answer_is_more_coherent_than_an_unrelated_one():
    """With the offline model."""
    query = "What is the refund policy for a damaged laptop?"
    related, unrelated = (
        Coherence().grade(conversation(answer, queries=[query]), 0).value
        for answer in ("A damaged laptop can be refunded within 30 days.", "Penguins live in the southern hemisphere.")
    )
    assert related > unrelated + 0.2


def test_the_offline_model_looks_nowhere_else(monkeypatch):
    """No connection is opened, also when it is loaded for the first time."""
    import socket

    monkeypatch.setattr(socket, "socket", lambda *_, **__: pytest.fail("a connection"))
    offline_embeddings.cache_clear()
    assert len(Embedder().vectors(["some text"])[0]) == 256


def test_embeddings_of_langchain_are_taken(monkeypatch):
    """Anything with `embed_documents`; without any, and without the package, the message says what to install."""
    from langchain_core.embeddings import DeterministicFakeEmbedding

    fake = DeterministicFakeEmbedding(size=8)
    assert 0 <= Coherence(fake).grade(conversation("a"), 0).value <= 1
    with pytest.raises(ab.errors.InvalidArgument, match="embeddings must have `embed_documents`"):
        Coherence("openai")
    offline_embeddings.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    evidence = ab.assess([conversation("a")], judge=ab.RecordedJudge(), metrics=[Coherence()])
    assert "pip install 'agentic-bayes[embeddings]'" in evidence.rows[0].metrics["coherence"].reason


# Correlations


class Marks:
    """A metric whose scores are told beforehand."""

    def __init__(self, name, scores):
        self.name, self.identity, self._scores = name, f"{name}/1", scores

    def grade(self, conversation, position):
        """The score that was told."""
        score = self._scores[int(conversation.session_id)]
        return ab.Unscored("unknown") if score is None else ab.Score(score, "")


def test_correlations_by_hand():
    """The coefficient is Pearson's correlation of the two indicators; what one of them left unscored does not count."""
    first, second = [1, 1, 1, 0, 0, 0, 1, 0, None], [1, 1, 0, 0, 0, 1, 1, 0, 1]
    conversations = [
        ab.Conversation(
            session_id=str(i),
            assistant_id="a",
            task_id=f"t{i % 4}",
            conversation=[{"qa_id": "q", "query": "?", "assistant": "a"}],
        )
        for i in range(9)
    ]
    metrics = [Marks("one", first), Marks("two", second), Marks("flat", [1] * 9)]
    evidence = ab.assess(conversations, judge=ab.RecordedJudge(), metrics=metrics)
    table = metric_correlations(evidence, ["one", "two", "flat"], resamples=200)
    row = table[(table["first"] == "one") & (table["second"] == "two")].iloc[0]
    known = [(a, b) for a, b in zip(first, second, strict=True) if a is not None]
    assert row["phi"] == pytest.approx(np.corrcoef(np.array(known).T)[0, 1])
    assert (row["interactions"], row["both"], row["tasks"]) == (8, 3, 4)
    assert row["lower"] <= row["phi"] <= row["upper"]
    assert table[table["second"] == "flat"]["phi"].isna().all()
    with pytest.raises(ab.errors.InvalidArgument, match="at least two indicators"):
        metric_correlations(evidence, ["one"])
    with pytest.raises(ab.errors.UnknownName, match="unknown indicator 'on'"):
        metric_correlations(evidence, ["on", "two"])
    with pytest.raises(ab.errors.InvalidArgument, match="random_seed must be an integer ≥ 0, got None"):
        metric_correlations(evidence, ["one", "two"], random_seed=None)


def test_a_session_score_as_text_and_json():
    """A score prints on one line, becomes a Markdown row, and JSON without NaN."""
    score = agent_reliability([{"confidence": 0.2}, {}])
    assert repr(score) == "SessionScore: 0.200, 95 % interval –, 1 of 2 traces flagged"
    record = score.to_dict()
    assert (record["score"], record["lower"], record["risks"], record["flagged"]) == (
        pytest.approx(0.2),
        None,
        [0.8, None],
        [0],
    )
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert score.to_markdown().endswith("| 0.200 | – | 2 | 0 |\n\nan interval needs at least two traces")
