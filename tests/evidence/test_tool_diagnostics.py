"""What goes wrong with which tool and which argument, by agent."""

import json

import numpy as np
import pytest

import agentic_bayes as ab


def conversation(agent, task, trial, expected, made):
    calls = [[{"tool_name": name, "parameters": arguments} for name, arguments in side] for side in (expected, made)]
    return ab.Conversation(
        session_id=f"{task}-{trial}",
        assistant_id=agent,
        task_id=task,
        trial=trial,
        conversation=[
            {
                "qa_id": "q",
                "query": "?",
                "assistant": "5",
                "ground_truth_assistant": "5",
                "agentic": {"tools_used": calls[1]},
                "ground_truth_agentic": {"expected_tools": calls[0]},
            }
        ],
    )


F, WRONG = ("f", {"a": 1, "b": 2}), ("f", {"a": 1, "b": 3, "c": 4})


def evidence(attempts, **rubric):
    conversations = [conversation(*attempt) for attempt in attempts]
    return ab.assess(conversations, judge=ab.ReferenceJudge(), tool_rubric=ab.ToolRubric(**rubric))


def row(table, **where):
    for name, value in where.items():
        table = table[table[name] == value]
    (found,) = table.to_dict("records")
    return found


ATTEMPTS = [
    ("v1", "t1", 0, [F], [F]),
    ("v1", "t1", 1, [F], [WRONG]),
    ("v1", "t2", 0, [F, ("g", {})], [F]),
    ("v1", "t2", 1, [F, ("g", {})], [("g", {}), F, ("h", {})]),
    ("v2", "t1", 0, [F], []),
]


def test_problems_are_counted_by_tool_and_agent():
    """Of the expected calls those not made, of the made ones those not expected, of the matched ones the rest."""
    tools = ab.metrics.tool_diagnostics(evidence(ATTEMPTS)).tools
    assert row(tools, agent="v1", tool="g", problem="not called")["failed"] == 1
    assert row(tools, agent="v1", tool="g", problem="not called")["of"] == 2
    assert row(tools, agent="v1", tool="h", problem="not expected")["failed"] == 1
    assert row(tools, agent="v1", tool="f", problem="wrong arguments")["failed"] == 1
    assert row(tools, agent="v1", tool="f", problem="wrong arguments")["of"] == 4
    assert row(tools, agent="v2", tool="f", problem="not called")["share"] == 1
    order = tools[(tools["agent"] == "v1") & (tools["problem"] == "out of order")]
    assert order["failed"].sum() == 1
    assert set(tools["dimension"]) == {"selection", "parameters", "sequence"}


def test_arguments_are_counted_by_what_is_wrong_with_them():
    """Unequal, missing and extra arguments of matched calls."""
    arguments = ab.metrics.tool_diagnostics(evidence(ATTEMPTS)).arguments
    b, c = (row(arguments, agent="v1", tool="f", argument=name) for name in "bc")
    assert (b["unequal"], b["failed"], b["of"]) == (1, 1, 4)
    assert (c["extra"], c["failed"], c["of"]) == (1, 1, 1)
    assert row(arguments, agent="v1", tool="f", argument="a")["failed"] == 0


def test_attempts_of_one_task_are_not_independent():
    """With failures that cluster by task the interval is wider than Wilson's of independent calls, else it is that."""
    clustered = [("v1", f"t{i}", j, [F], [F] if i % 2 else []) for i in range(10) for j in range(10)]
    found = row(ab.metrics.tool_diagnostics(evidence(clustered)).tools, tool="f", problem="not called")
    wilson = ab.numerics.wilson_interval(50, 100)
    assert found["share"] == 0.5
    assert found["upper"] - found["lower"] > 2 * float(wilson[1] - wilson[0])
    # every task has the same share: calls of a task are no more alike than those of two
    even = [("v1", f"t{i}", j, [F], [F] if j % 2 else []) for i in range(10) for j in range(10)]
    spread = row(ab.metrics.tool_diagnostics(evidence(even)).tools, tool="f", problem="not called")
    assert (spread["lower"], spread["upper"]) == pytest.approx([float(end) for end in wilson])


def test_where_nothing_failed_the_tasks_count_and_not_the_calls():
    """No failure in ten calls of one task says less than no failure in ten tasks."""
    one = row(
        ab.metrics.tool_diagnostics(evidence([("v1", "t", j, [F], [F]) for j in range(10)])).tools, problem="not called"
    )
    ten = row(
        ab.metrics.tool_diagnostics(evidence([("v1", f"t{j}", 0, [F], [F]) for j in range(10)])).tools,
        problem="not called",
    )
    assert one["upper"] > ten["upper"] > 0
    assert one["lower"] == ten["lower"] == 0


def test_clustered_intervals_cover():
    """95 % intervals of shares over tasks that differ hold the truth in 91 to 98 % of 400 simulated data sets.

    With true coverage .95 the share of 400 is outside .91 to .98 less than once in 1,000.
    """
    from agentic_bayes.evidence.tools.diagnostics import _share

    rng = np.random.default_rng(1)
    held = 0
    for _ in range(400):
        p = rng.beta(2, 3, size=40)
        cells = {str(i): [int(rng.binomial(8, p[i])), 8] for i in range(40)}
        found = _share(cells, 0.95)
        held += found["lower"] <= 0.4 <= found["upper"]
    assert 0.91 <= held / 400 <= 0.98


def test_the_worst_come_first_and_print():
    """Sorted by failures; arguments stand for "wrong arguments"."""
    found = ab.metrics.tool_diagnostics(evidence(ATTEMPTS))
    worst = found.worst(3)
    assert len(worst) == 3
    assert list(worst["failed"]) == sorted(worst["failed"], reverse=True)
    assert "wrong arguments" not in set(found.worst(100)["what"])
    assert "v1, f: wrong argument b 1 of 4, 0.250" in str(found)
    assert "nothing was wrong" in str(ab.metrics.tool_diagnostics(evidence([("v1", "t", 0, [F], [F])])))


def test_scope_and_schema_are_counted_where_they_are_asked_for():
    """Without such a rule there is no row; with one, violations are counted."""
    plain = ab.metrics.tool_diagnostics(evidence(ATTEMPTS)).tools
    assert not set(plain["problem"]) & {"schema broken", "scope violation"}
    ruled = evidence(ATTEMPTS, forbidden_tools=["h"], schemas={"f": {"properties": {"b": {"maximum": 2}}}})
    tools = ab.metrics.tool_diagnostics(ruled).tools
    assert row(tools, tool="h", problem="scope violation")["failed"] == 1
    assert row(tools, tool="f", problem="schema broken")["failed"] == 1


def test_every_dimension_has_a_posterior():
    """Each dimension of the rubric is an indicator, counted at the tool threshold."""
    found = evidence(ATTEMPTS)
    counts = {
        name: int(ab.count_outcomes(found, indicator=name)["successes"].sel(agent="v1").sum())
        for name in ("selection", "parameters", "sequence")
    }
    assert counts == {"selection": 2, "parameters": 2, "sequence": 2}
    est = ab.estimate(ab.count_outcomes(found, indicator="parameters"), k=1)
    assert est.outcomes.attrs["indicator"] == "parameters"
    unknown = ab.count_outcomes(found, indicator="utilization")
    assert int(unknown["unscored"].sum()) == 5  # nothing was recorded to measure it by: not zero


def test_evidence_without_tool_verdicts_has_nothing_to_diagnose():
    """An error that says so."""
    bare = ab.assess(
        [
            ab.Conversation(
                session_id="s",
                assistant_id="a",
                conversation=[{"qa_id": "q", "query": "?", "assistant": "5", "ground_truth_assistant": "5"}],
            )
        ],
        judge=ab.ReferenceJudge(),
    )
    with pytest.raises(ab.errors.EvidenceError, match="no interaction has a tool verdict"):
        ab.metrics.tool_diagnostics(bare)


def test_counts_survive_the_file(tmp_path):
    """Evidence that was written and read gives the same diagnosis."""
    found = evidence(ATTEMPTS)
    found.write(tmp_path / "e.jsonl")
    again = ab.metrics.tool_diagnostics(ab.Evidence.read(tmp_path / "e.jsonl"))
    assert again.tools.equals(ab.metrics.tool_diagnostics(found).tools)


@pytest.mark.parametrize(
    "details",
    [
        {"f": 5},
        {"f": {"made": -1}},
        {"f": {"made": True}},
        {"f": {"arguments": 5}},
        {"f": {"arguments": {"a": 5}}},
        {"f": {"arguments": {"a": {"agree": "1"}}}},
        {"f": {"expected": 1, "made": 1, "matched": 2}},
    ],
)
def test_counts_of_another_shape_are_refused_when_read(tmp_path, details):
    """What cannot be counts is an error of the file, not of the diagnosis."""
    file = tmp_path / "e.jsonl"
    evidence(ATTEMPTS[:1]).write(file)
    record = json.loads(file.read_text(encoding="utf-8")) | {"tool_details": details}
    file.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(ab.errors.EvidenceError, match="tool_details: must map tools to counts"):
        ab.Evidence.read(file)


def test_diagnostics_as_table_markdown_and_json():
    """One table holds problems and arguments, failures first; the Markdown table has the worst; JSON has no NaN."""
    found = ab.metrics.tool_diagnostics(evidence(ATTEMPTS))
    table = found.to_pandas()
    assert list(table.columns) == ["agent", "tool", "what", "failed", "of", "share", "lower", "upper"]
    assert table["failed"].is_monotonic_decreasing
    assert table["failed"].min() == 0
    assert found.worst(3).equals(table.head(3))
    assert sum(line.startswith("| v") for line in found.to_markdown().splitlines()) == len(found.worst())
    record = found.to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert len(record["tools"]) == len(found.tools)
