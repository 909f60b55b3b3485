"""A table of PySpark is counted in Spark; CI has neither PySpark nor Java, so run this where both are."""

import pytest

from agentic_bayes.errors import OutcomesError
from agentic_bayes.evidence import frames
from agentic_bayes.outcomes.table import outcomes_from_table

sql = pytest.importorskip("pyspark.sql", reason="PySpark needs Java, and is not in CI")
pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning")
]


@pytest.fixture(scope="module")
def spark():
    """A session on this machine alone."""
    builder = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    yield session
    session.stop()


def test_spark_counts_and_only_counts_come_back(spark, monkeypatch):
    """Verdicts, scores, errors and numbered trials: the counts of plain arithmetic, from a few rows collected."""
    collected = []
    original = frames._collected

    def recorded(frame, names):
        found = original(frame, names)
        collected.append(len(found))
        return found

    monkeypatch.setattr(frames, "_collected", recorded)
    rows = spark.range(0, 400, 1, 1).selectExpr(
        "concat('v', id % 2) as agent",
        "concat('task ', floor(id / 2) % 5) as task",
        "floor(id / 10) as trial",
        "id % 4 < 3 as correct",
        "cast(id % 4 / 4 as float) as score",
        "if(id % 20 = 0, 'timeout', '') as error",
    )
    plain = [{"agent": i % 2, "task": i // 2 % 5, "right": i % 4 < 3, "score": i % 4 / 4} for i in range(400)]
    for correct, threshold in (("correct", None), ("score", 0.5)):
        outcomes = outcomes_from_table(rows, correct=correct, threshold=threshold)
        for agent in range(2):
            for task in range(5):
                cells = [
                    (row["right"] if threshold is None else row["score"] >= threshold)
                    for i, row in enumerate(plain)
                    if (row["agent"], row["task"]) == (agent, task) and i % 20
                ]
                cell = outcomes.sel(agent=f"v{agent}", task=f"task {task}")
                assert (int(cell["successes"]), int(cell["trials"])) == (sum(cells), len(cells))
                assert int(cell["errored"]) == 40 - len(cells)
    assert max(collected) <= 30
    with pytest.raises(OutcomesError, match="2 rows are all agent 'v0', task 'task 0', trial '0'"):
        outcomes_from_table(rows.union(rows.limit(1)))
    dotted = rows.withColumnRenamed("correct", "eval.correct")
    assert int(outcomes_from_table(dotted, correct="eval.correct")["trials"].sum()) == 380
