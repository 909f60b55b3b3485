"""Groups and weights of tasks: kept as coordinates by whatever makes outcomes, and refused where they are unclear."""

import pandas as pd
import pytest

from agentic_bayes import assess, check_outcomes, combine_outcomes, count_outcomes, outcomes_from_table
from agentic_bayes.errors import InvalidArgument, OutcomesError
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.reference.judge import ReferenceJudge
from agentic_bayes.records.model import Conversation

ROWS = [("a1", "refund", 2, 1), ("a1", "refund", 2, 0), ("b1", "cancel", 1, 1), ("b2", "cancel", 0.5, 0)]
TABLE = pd.DataFrame(ROWS, columns=["task", "domain", "share", "correct"])


def conversations(domain="refund", other="cancel"):
    return [
        Conversation.model_validate(
            {
                "session_id": f"s{i}",
                "assistant_id": "bot",
                "task_id": task,
                "metadata": {"domain": group, "sample": {"level": level}, "long": "x" * 500, "list": [1]},
                "conversation": [
                    {"qa_id": f"q{turn}", "query": "?", "assistant": "Oslo", "ground_truth_assistant": "Oslo"}
                    for turn in range(2)
                ],
            }
        )
        for i, (task, group, level) in enumerate([("t1", domain, 1), ("t1", domain, 1), ("t2", other, 2)])
    ]


def test_a_table_keeps_group_and_weight_under_the_columns_names():
    """A group is text and a weight a number, one per task."""
    outcomes = outcomes_from_table(TABLE, group="domain", weight="share")
    assert outcomes["domain"].values.tolist() == ["refund", "cancel", "cancel"]
    assert outcomes["share"].values.tolist() == [2.0, 1.0, 0.5]
    assert outcomes["domain"].dims == ("task",)


def test_without_group_and_weight_tasks_have_no_further_coordinates():
    """Other columns of a table are still ignored."""
    assert set(outcomes_from_table(TABLE).coords) == {"agent", "task"}


def test_evidence_keeps_short_fields_of_the_metadata_and_counts_by_them(tmp_path):
    """They survive the file; long texts and lists are left out."""
    evidence = assess(conversations(), judge=ReferenceJudge())
    evidence.write(tmp_path / "evidence.jsonl")
    outcomes = count_outcomes(Evidence.read(tmp_path / "evidence.jsonl"), group="metadata.domain")
    assert outcomes["domain"].values.tolist() == ["refund", "cancel"]
    weighed = count_outcomes(evidence, weight="metadata.sample.level", unit="interaction")
    assert weighed["level"].values.tolist() == [1, 1, 2]
    assert evidence.rows[0].metadata == {"domain": "refund", "sample": {"level": 1}}
    assert evidence.rows[1].metadata == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"domain": ["refund", "cancel", "cancel", "cancel"]}, "task 'a1' has 2 values of domain"),
        ({"domain": ["refund", "refund", None, "cancel"]}, "domain is blank for task 'b1'"),
        ({"share": [2, 2, -1, 1]}, "share must be a number ≥ 0, got -1"),
        ({"share": [2, 2, "much", 1]}, "share must be a number ≥ 0, got 'much'"),
        ({"share": [0, 0, 0, 0]}, "all are 0"),
    ],
)
def test_an_unclear_group_or_weight_is_refused(change, message):
    """Two groups, none, and weights that are no numbers ≥ 0."""
    with pytest.raises(OutcomesError, match=message):
        outcomes_from_table(TABLE.assign(**change), group="domain", weight="share")


def test_a_missing_column_or_field_is_refused_with_the_names():
    """The message names the column and the tasks."""
    with pytest.raises(OutcomesError, match="no column 'domian'"):
        outcomes_from_table(TABLE, group="domian")
    evidence = assess(conversations(), judge=ReferenceJudge())
    with pytest.raises(OutcomesError, match=r"metadata\.domian is blank for tasks 't1', 't2'"):
        count_outcomes(evidence, group="metadata.domian")
    with pytest.raises(InvalidArgument, match="fields of the metadata"):
        count_outcomes(evidence, group="domain")


def test_a_task_whose_conversations_disagree_about_its_group_is_refused():
    """A task belongs to one group in all its trials."""
    mixed = [*conversations(), *conversations(domain="book")]
    mixed = [c.model_copy(update={"session_id": f"s{i}"}) for i, c in enumerate(mixed)]
    with pytest.raises(OutcomesError, match="task 't1' has 2 values"):
        count_outcomes(assess(mixed, judge=ReferenceJudge()), group="metadata.domain")


def test_names_that_outcomes_hold_already_are_refused():
    """A coordinate must not hide a dimension or a count."""
    with pytest.raises(InvalidArgument, match="which outcomes hold already"):
        outcomes_from_table(TABLE, group="task")
    with pytest.raises(InvalidArgument, match="different columns"):
        outcomes_from_table(TABLE, group="share", weight="share")


def test_combined_outcomes_keep_groups_and_refuse_tasks_in_two():
    """Groups of both sets must agree and be known for all tasks."""
    one = outcomes_from_table(TABLE, group="domain")
    other = outcomes_from_table(TABLE.query("task != 'b2'"), group="domain")
    both = combine_outcomes(one, other, names=["old", "new"])
    assert both["domain"].values.tolist() == ["refund", "cancel", "cancel"]
    moved = outcomes_from_table(TABLE.assign(domain="book"), group="domain")
    with pytest.raises(OutcomesError, match="two values of 'domain': 'refund' and 'book'"):
        combine_outcomes(one, moved, names=["old", "new"])
    more = outcomes_from_table(TABLE.assign(task=["x", "x", "b1", "b2"]))
    with pytest.raises(OutcomesError, match="not for task 'x'"):
        combine_outcomes(one, more, names=["old", "new"])


def test_checked_outcomes_refuse_a_task_without_a_group():
    """Outcomes that are built by hand obey the same rule."""
    outcomes = outcomes_from_table(TABLE).assign_coords(domain=("task", ["refund", "", "cancel"]))
    with pytest.raises(OutcomesError, match="'domain' is blank for task 'b1'"):
        check_outcomes(outcomes)
