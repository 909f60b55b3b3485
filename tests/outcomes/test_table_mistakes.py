"""Sixty mistakes in tables: each message names the problem, where it is, and the way out."""

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from agentic_bayes.errors import AgenticBayesError, AgenticBayesWarning, InvalidArgument
from agentic_bayes.outcomes.table import outcomes_from_table

THRESHOLD = "threshold=0.7 (--threshold 0.7)"
Case = tuple[str | bytes | Callable[[], Any], dict[str, Any], tuple[str, ...]]


def frame(**columns: list[Any]) -> Callable[[], pd.DataFrame]:
    """A data frame, made when the test runs."""
    return lambda: pd.DataFrame(columns)


def column(*cells: str, header: str = "task,correct") -> str:
    """A CSV file with one task per cell."""
    return f"{header}\n" + "".join(f"t{i},{cell}\n" for i, cell in enumerate(cells))


def zipped() -> bytes:
    """A zip archive with a table in it."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("t.csv", column("1"))
    return stream.getvalue()


# what is read (a CSV file's text, or a table), the arguments, and what the message must say
MISTAKES: dict[str, Case] = {
    # values
    "scores": (column("0.9", "0.4", "0.9"), {}, ("got '0.9' (line 2, 2 rows), '0.4' (line 3)", THRESHOLD)),
    "percentages": (column("85", "90"), {}, ("'85' (line 2)", 'table["correct"] = table["correct"] / 100', THRESHOLD)),
    "percentages with a threshold": (column("85", "9"), {"threshold": 0.7}, ("scores between 0 and 1", "/ 100")),
    "percent signs": (column("85%", "90 %"), {}, ("'85%' (line 2)", '.str.rstrip("% ").astype(float) / 100')),
    "stars": (column("4", "5", "3"), {}, ("'4' (line 2)", '(table["correct"] - 1) / 4', THRESHOLD)),
    "ratings to 10": (column("7", "10"), {}, ('(table["correct"] - 1) / 9', 'successes="…", trials="…"')),
    "half points to 10": (column("7.5", "10"), {"threshold": 0.7}, ('table["correct"] / 10',)),
    "less than nothing": (column("-0.1", "0.5"), {"threshold": 0.7}, ("'-0.1' (line 2)", "clip(0, 1)")),
    "seconds": (column("1200", "345"), {}, ("neither verdicts nor scores", "--columns")),
    "infinite": (frame(task=["a"], correct=[np.inf]), {"threshold": 0.7}, ("got inf (row 1)",)),
    "decimal commas": (column('"0,85"', '"0,9"'), {}, ("'0,85' (line 2)", '.str.replace(",", ".")')),
    "mixed words": (
        column("yes", "1"),
        {},
        ("correct mixes yes/no and 0/1", "'yes' (line 2), '1' (line 3)", ".replace("),
    ),
    "two pairs of words": (column("pass", "failed"), {}, ("mixes pass/fail and passed/failed", "'failed' (line 3)")),
    "C and incorrect": (column("C", "incorrect"), {}, ("mixes C/I and correct/incorrect",)),
    "P without a threshold": (column("C", "P"), {}, ("'P' (line 3)", "P (partly correct) counts .5", THRESHOLD)),
    "N without a threshold": (column("C", "N"), {}, ("'N' (line 3)", "N (no answer) 0", THRESHOLD)),
    "other words": (column("good", "bad"), {}, ("'good' (line 2), 'bad' (line 3)", ".map({'good': 1, 'bad': 0})")),
    "abbreviated": (column("T", "F"), {}, ("'T' (line 2)", ".map({'T': 1, 'F': 0})")),
    "other languages": (column("ja", "nein"), {}, ("'ja' (line 2)", ".map(")),
    "a typing error": (column("pass", "fail", "psas"), {}, ("got 'psas' (line 4)", "pass/fail")),
    "errors among verdicts": (column("pass", "error"), {}, ("'error' (line 3)", 'table["error"] = ', ".mask(")),
    "timeouts among verdicts": (column("1", "timeout"), {}, ("'timeout' (line 3)", 'table["error"] = ')),
    "skipped trials": (column("1", "skipped"), {}, ("'skipped' (line 3)", ".replace('skipped', None)")),
    "dashes": (column("1", "-"), {}, ("'-' (line 3)", "Leave trials without a verdict blank")),
    "fractions": (column("7/10", "3/10"), {}, ("'7/10' (line 2)", '.str.split("/", expand=True)')),
    "answers": (column("Paris is", "It is 4"), {}, ("'Paris is' (line 2)", "If these words are verdicts")),
    "many values": (column(*map(str, range(11, 40))), {}, ("'11' (line 2)", "and 21 more values")),
    "lists in cells": (frame(task=["a"], correct=[[1, 0]]), {}, ("got [1, 0] (row 1)",)),
    "dates": (column("2026-01-02"), {}, ("'2026-01-02' (line 2)",)),
    # columns
    "swapped": ("task,correct\n1,login\n0,search\n", {}, ("'login' (line 2)", "task='correct', correct='task'")),
    "swapped agent": (
        "agent,task,correct\npass,a,v1\nfail,b,v2\n",
        {},
        ("'v1' (line 2)", "agent='correct', correct='agent'", "--columns agent=correct,correct=agent"),
    ),
    "another name for correct": ("task,passed\na,1\n", {}, ("no column 'correct'", "did you mean 'passed'?", "passed")),
    "another name for task": (
        "task_id,correct\na,1\n",
        {},
        ("no column 'task' (did you mean 'task_id'?)", "--columns"),
    ),
    "id for task": ("id,correct\na,1\n", {}, ("no column 'task' (did you mean 'id'?)",)),
    "capital letters": ("TASK,CORRECT\na,1\n", {}, ("'task' (did you mean 'TASK'?)", "(did you mean 'CORRECT'?)")),
    "a typing error in an argument": (column("1"), {"task": "taks"}, ("no column 'taks' (did you mean 'task'?)",)),
    "an unknown verdict column": (
        "task,went_well\na,yes\n",
        {},
        ("Column 'went_well' holds verdicts", "correct=went_well"),
    ),
    "a wide table": ("task,run1,run2\na,1,0\n", {}, ("'run1', 'run2'", 'wide="trials" or wide="agents" (--wide)')),
    "other names for both": (
        lambda: pd.DataFrame({"prompt": ["a", "b"], "passed": [True, False]}),
        {},
        ("(did you mean 'prompt'?) and no 'correct' (did you mean 'passed'?). Its columns: ", "Name the columns"),
    ),
    "no header": ("a,1\nb,0\n", {}, ("header seems to be missing", "names=['task', 'correct', …]")),
    "a title above the header": ("Results,,\ntask,correct,note\na,1,\n", {}, ("header seems to be line 2", "header=1")),
    "a title alone": (
        "Results of May\ntask,correct\na,1\n",
        {},
        ("line 2 must have 1 field", "read_csv(path, header=1)"),
    ),
    "two header lines": ("task,correct\ntask,correct\na,1\n", {}, ("'correct' (line 2)", "skiprows=[1]")),
    "two levels of columns": (
        lambda: pd.DataFrame([["a", 1]], columns=pd.MultiIndex.from_tuples([("task", ""), ("correct", "")])),
        {},
        ("2 levels", 'table.columns.map(" ".join)'),
    ),
    "columns of one name": ("task,correct,correct\na,1,0\n", {}, ("columns occur twice: 'correct'", "rename or drop")),
    "another separator": ("task|correct\na|1\n", {}, ("separated by '|'", "sep='|'")),
    "both ways": (
        "task,correct,successes,trials\na,1,3,4\n",
        {},
        ("two ways", 'correct="correct"', "successes=successes"),
    ),
    "a dotted name that leads nowhere": (
        lambda: [{"task": {"id": "a"}, "correct": 1}],
        {"task": "task.name"},
        ("no column 'task.name'", "'task'"),
    ),
    # rows
    "a blank task": (column("1", "0") + ",1\n", {}, ("line 4: task must not be blank",)),
    "a blank line and a comment": (
        "task,correct\n\n# note\na,1\n",
        {},
        ("line 3 must have 2 fields as the header, got 1",),
    ),
    "an unquoted comma": ("task,correct\nadd 1, 2,1\n", {}, ("line 2 must have 2 fields", "put quotes around")),
    "decimal commas unquoted": ("task,correct\na,0,85\n", {}, ("line 2 must have 2 fields", "decimals with a point")),
    "a row after a cell of two lines": ('task,correct\n"a\nb",1\nc,x\n', {}, ("'x' (line 4)",)),
    "a total at the end": (column("1", "0") + "Total,50%\n", {}, ("'50%' (line 4)",)),
    "trials that repeat": (
        "agent,task,trial,correct\nv,a,1,1\nv,a,1,0\n",
        {},
        ("lines 2 and 3 are both agent 'v', task 'a', trial '1'", ".cumcount()", "drop_duplicates"),
    ),
    "trials that repeat in another metric": (
        "task,trial,metric,correct\na,1,right,1\na,1,polite,0\n",
        {},
        ("lines 2 and 3 are both", "keep one: table = table[table[\"metric\"].astype(str) == 'polite']"),
    ),
    "trials that repeat in another data set": (
        "task,trial,dataset,correct\n1,1,x,1\n1,1,y,0\n",
        {},
        ('different tasks in each \'dataset\': table["task"] = table["dataset"].astype(str)',),
    ),
    "an agent column of another name": (
        "model,task,trial,correct\nv1,a,1,1\nv2,a,1,0\n",
        {},
        ("lines 2 and 3 are both", "agent='model' (--columns agent=model)"),
    ),
    "two groups of a task": (
        "task,domain,correct\na,x,1\na,y,1\n",
        {"group": "domain"},
        ("task 'a' has 2 values of domain", "'x', 'y'"),
    ),
    # counts
    "counts swapped": (
        "task,successes,trials\na,10,7\nb,9,9\n",
        {},
        ("line 2: successes must not exceed trials, got 10 of 7", "--columns successes=trials,trials=successes"),
    ),
    "rates for counts": ("task,successes,trials\na,0.7,10\n", {}, ("line 2: successes", "got '0.7'", "rate × trials")),
    "thousands": (
        'task,successes,trials\na,7,"1,000"\n',
        {},
        ("line 2: trials", "got '1,000'", '.str.replace(",", "")'),
    ),
    "fractions for counts": ("task,successes,trials\na,7/10,10\n", {}, ("got '7/10'", '.str.split("/", expand=True)')),
    "a blank count": ("task,successes,trials\na,,10\n", {}, ("line 2: successes must be a whole number",)),
    "counts of a task twice": (
        "task,successes,trials\na,1,2\na,1,2\n",
        {},
        ("lines 2 and 3 are both agent 'agent', task 'a'", ".sum().reset_index()"),
    ),
    "a threshold for counts": ("task,successes,trials\na,1,2\n", {"threshold": 0.5}, ("the table holds counts",)),
    # files and objects
    "an Excel workbook": (b"PK\x03\x04rest", {}, ("an Excel workbook", "pandas.read_excel(path)")),
    "Windows letters": ("task,correct\nä,1\n".encode("cp1252"), {}, ("must be UTF-8", "encoding='cp1252'")),
    "Unicode text of Excel": (column("1").encode("utf-16"), {}, ("must be UTF-8", "encoding='utf-16'")),
    "an archive": (zipped(), {}, ("a zip archive, not a table; unpack it first",)),
    "packed by another program": (b"\x28\xb5\x2f\xfd", {}, ("packed by zstd", "compression='zstd'")),
    "minus one for no verdict": (column("1", "-1"), {}, ('table["correct"].mask(table["correct"] < 0)',)),
    "JSON in a CSV file": ('{"task": "a"}\n', {}, ("not a CSV or TSV table", ".jsonl")),
    "percent signs in a wide table": (
        "task,run1,run2\na,85%,20%\n",
        {"wide": "trials"},
        ('table[column] = table[column].str.rstrip("% ").astype(float) / 100',),
    ),
    "percent signs after decimal commas": (
        "task;correct\na;85,5%\n",
        {"threshold": 0.7},
        ('.str.rstrip("% ").str.replace(",", ".").astype(float) / 100',),
    ),
    "counts with decimal commas": (
        "task;successes;trials\na;3,0;4,0\n",
        {},
        ('Decimal commas: table["successes"] = table["successes"].str.replace(",", ".").astype(float)',),
    ),
    "a row that misspells a column": (
        lambda: [{"task": "a", "correct": 1}, {"task": "b", "corect": 1}],
        {},
        ("row 2 has 'corect' and no 'correct', as 1 of 2 rows", "call it 'correct' in all of them"),
    ),
    "a dict of columns": (lambda: {"task": ["a"]}, {}, ("got dict; make one: pandas.DataFrame(table)",)),
    "a column alone": (lambda: pd.Series([1, 0]), {}, ("got Series", "table.to_frame('correct')")),
    "an array without names": (lambda: np.eye(2), {}, ("got ndarray", "columns=['task', 'correct']")),
    # published tables
    "footnote marks": ("task,successes,trials\na,7†,10\n", {}, ("got '7†'", 'str.rstrip("† ")')),
    "a header that comes again": (
        "task,successes,trials\na,1,2\ntask,successes,trials\nb,1,2\n",
        {},
        ("line 3: successes", 'table = table[table["successes"] != "successes"]'),
    ),
    "shares and percentages": (
        column("0.9", "85"),
        {"threshold": 0.7},
        ("'85' (line 3)", "Some are shares (0.9), some percentages (85)"),
    ),
    "1 but for rounding": (column("1.0000001"), {"threshold": 0.7}, (".clip(0, 1)",)),
    "means with spread": (column("65.2 ± 1.2"), {}, ("the counts behind them are needed",)),
    "an error of a spreadsheet": (column("1", "#DIV/0!"), {}, (".replace('#DIV/0!', None)",)),
    "a list of trials": (lambda: [{"task": "a", "correct": [1, 0]}], {}, ('.explode("correct")',)),
    "trials under another name": (lambda: [{"task": "a", "runs": [{"ok": 1}]}], {}, ("'runs' holds lists", "explode")),
    "counts under other names": ("task,c,n\na,1,2\n", {}, ("--columns successes=c,trials=n",)),
    "passed and failed": ("task,passed,failed\na,3,2\n", {}, ('table["trials"] = table["passed"] + table["failed"]',)),
    "a cross table": ("task,0,1\na,3,2\n", {}, ('table["trials"] = table["1"] + table["0"]',)),
    "solved attempts": ("task,solved,attempts\na,3,5\n", {}, ("--columns successes=solved,trials=attempts",)),
    "an accuracy": (
        "task,accuracy,n\na,0.5,4\n",
        {},
        ("'accuracy' holds scores", 'table["successes"] = (table["accuracy"] * table["n"]).round().astype(int)'),
    ),
    "answers and references": (
        "task,answer,expected\na,true,true\n",
        {},
        ('table["correct"] = table["answer"] == table["expected"]',),
    ),
    "an index without a name": (lambda: pd.DataFrame({"correct": [1]}, index=["a"]), {}, ('.rename_axis("task")',)),
    "Markdown": ("| task | correct |\n|---|---|\n| a | 1 |\n", {}, ("Markdown", "skipinitialspace=True")),
    "merged header cells": (
        ",GPT,,Claude,\ntask,r1,r2,r1,r2\na,1,0,1,1\n",
        {"wide": "trials"},
        ("The header seems to be line 2", "header=1"),
    ),
    "a row number of pandas in a wide table": (
        "Unnamed: 0,task,r1\n0,a,1\n",
        {"wide": "trials"},
        ("'Unnamed: 0' would be counted among the trials",),
    ),
    "a task twice in a wide table": (
        "task,r1,r2\na,1,0\na,1,1\n",
        {"wide": "trials"},
        ("lines 2 and 3 are both agent 'agent', task 'a'.", "table.melt(['task']"),
    ),
    "one row for each agent": (
        "model,q1,q2\nv1,1,0\nv2,0,1\n",
        {},
        ("one row for each 'model'", 'table.melt(\'model\', var_name="task", value_name="correct")'),
    ),
    "successes without trials": ("task,successes\na,3\n", {}, ("Counts need their trials, too",)),
    "comments above the header": ("# of May\n# v2\ntask,correct\na,1\n", {}, ("line 3 must", "comment='#'")),
    "tasks in a column without a name": (",t1,t2\na,1,0\n", {"wide": "trials"}, ("The first column has no name",)),
    # wide
    "a sum of trials in a wide table": ("task,t1,t2,best_of_2\na,1,0,1\n", {"wide": "trials"}, ("'best_of_2' would",)),
    "a group in a wide table": ("task,level,v1\na,1,0\n", {"wide": "agents"}, ("'level' would be counted",)),
    "notes in a wide table": (
        "task,run1,note\na,1,slow\n",
        {"wide": "trials"},
        ("'slow' (line 2, column 'note')", "table.drop(columns=['note'])"),
    ),
    "a wide table without columns": ("task\na\n", {"wide": "agents"}, ("needs columns that are agents",)),
    "wide spelt otherwise": (column("1"), {"wide": "trial"}, ("unknown wide 'trial'", "trials")),
}


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_the_way_out(tmp_path, name):
    """Each message says what is wrong and where, and what to write instead."""
    table, arguments, words = MISTAKES[name]
    content = table() if callable(table) else written(tmp_path / "t.csv", table)
    with pytest.raises(AgenticBayesError, match=re.escape(words[0])) as caught:
        outcomes_from_table(content, **arguments)
    for part in words[1:]:
        assert part in str(caught.value)
    assert len(str(caught.value)) < 1500


ADVISED = {  # file → passes, scored trials, unscored and errored ones, once the advice was followed
    "task,correct\na,PASS\nb,FAIL\nc,Error\nd,Timeout\n": (1, 2, 2, 2),
    "task,correct\na,pass\nb,skipped\nc,-\n": (1, 1, 2, 0),
    "task,correct\na,passed\nb,0\nc,True\n": (2, 3, 0, 0),
    "task,correct\na,correct\nb,wrong\n": (1, 2, 0, 0),
    "task,correct\na,T\nb,F\nc,\n": (1, 2, 1, 0),
    "task,correct\na,1*\nb,0\n": (1, 2, 0, 0),
    "task;correct\na;85,5%\nb;20%\n": (1, 2, 0, 0),
    "task,correct\na,0.9\nb,85%\nc,0.1\n": (2, 3, 0, 0),
    "task,correct\na,1\ntask,correct\nb,0\n": (1, 2, 0, 0),
    "task;successes;trials\na;1.234;2.000\n": (1234, 2000, 0, 0),
    "task,successes,trials\na,,5\nb,2,5\n": (2, 5, 0, 0),
}


def test_the_lines_of_pandas_that_a_message_gives_do_what_they_say(tmp_path):
    """Run as they stand, in order, they make a table that is read, with the counts that are meant."""
    for content, expected in ADVISED.items():
        path = written(tmp_path / "t.csv", content)
        scored = {"threshold": 0.7} if "0%" in content or "5%" in content else {}
        with pytest.raises(AgenticBayesError, match="Before: table = ") as caught:
            outcomes_from_table(path, **scored)
        advice, _, before = str(caught.value).partition(". Before: ")
        lines = [before.partition("; after:")[0]]
        lines += re.findall(r'table(?:\["[^"]*"\])? = .*?(?=; table|; if|\. |$)', advice)
        names: dict[str, Any] = {"pandas": pd}
        for line in lines:
            exec(line, names)
        found = outcomes_from_table(names["table"], **scored)
        counted = tuple(int(found[name].sum()) for name in ("successes", "trials", "unscored", "errored"))
        assert counted == expected, content


def test_there_are_sixty_mistakes():
    """As many as were promised."""
    assert len(MISTAKES) >= 60


def test_agents_that_differ_in_case_are_doubtful(tmp_path):
    """They are counted apart, and a warning says how to join them."""
    path = written(tmp_path / "t.csv", "agent,task,correct\nGPT-4o,a,1\ngpt-4o,b,1\n")
    with pytest.warns(AgenticBayesWarning, match=r"'GPT-4o' and 'gpt-4o' differ only in case.*str.lower\(\)"):
        assert outcomes_from_table(path).sizes["agent"] == 2
    table = pd.DataFrame({"task": ["refund", "ref\u00adund"], "correct": 1})
    match = r"tasks 'refund' and 'ref\\xadund' differ only in .*invisible"
    with pytest.warns(AgenticBayesWarning, match=match) as caught:
        assert outcomes_from_table(table).sizes["task"] == 2
    exec(str(caught[0].message).partition("to join them: ")[2], {"table": table})
    assert outcomes_from_table(table).sizes["task"] == 1


WITHIN = {  # JSON → how pandas finds the rows in it
    '{"results": {"tool": {}, "tests": [{"name": "a"}]}}': "json.load(open(path))['results']['tests']",
    '{"aggregate": {"x": 1}, "individual": {"a": {"success": true, "level": 1}}}': "['individual'], orient='index')",
    '{"0": 1.0, "1": 0.0}': "pandas.Series(json.load(open(path)))",
}


def test_the_rows_within_json_are_found(tmp_path):
    """One object is no table; the message says which part of it may be one."""
    for content, expected in WITHIN.items():
        path = written(tmp_path / "t.json", content)
        with pytest.raises(AgenticBayesError, match=re.escape(expected)) as caught:
            outcomes_from_table(path)
        line = re.search(r"pandas\..*", str(caught.value))[0]
        assert len(eval(line, {"pandas": pd, "json": json, "path": content, "open": io.StringIO})) > 0


DOUBTFUL = {  # what is read, and the doubt
    "agent_name,task,correct\nv1,a,1\nv2,a,0\n": "if 'agent_name' names agents",
    "task,metric,correct\na,right,1\na,polite,0\n": "task 'a' differ in 'metric' ('polite', 'right')",
    "dataset,task,correct\nx,1,1\ny,1,0\n": 'table["task"] = table["dataset"].astype(str) + "/" + table["task"]',
    "task,epoch,correct\na,1,1\na,2,0\na,1,1\n": "rows repeat the task and epoch of an earlier one (1 row)",
    "task,correct,count\na,1,3\na,0,2\n": "if it counts the trials of a row",
    "traceId,task,correct\nx,right,1\nx,polite,0\n": "if these are scores of one trial, keep one",
    "task,correct,skipped\na,1,False\na,0,True\n": "marks trials without a verdict",
    "task,successes,trials,errors\na,1,3,2\n": "'errored' if their agents crashed",
    "task,successes,trials\na1,1,2\nSubtotal a,1,2\n": "'Subtotal a' counts as a task",
    "task,correct\na,1\nb,0\n* p < .05,\n": "'* p < .05' counts as a task",
    "task,correct\n1.23E+15,1\n1.23E+15,0\n": "an id that a spreadsheet shortened",
}


@pytest.mark.parametrize("lazy", [False, True])
def test_rows_that_may_be_no_trials_are_doubtful(tmp_path, lazy):
    """A column that is not used may say that rows are other metrics, agents, data sets, copies or many trials."""
    for content, doubt in DOUBTFUL.items():
        path = written(tmp_path / "t.csv", content)
        with pytest.warns(AgenticBayesWarning, match=re.escape(doubt)):
            outcomes_from_table(pl.scan_csv(path, schema_overrides={"task": pl.String}) if lazy else path)
    with pytest.warns(AgenticBayesWarning, match=r"'failed' is read as what succeeded.*\.astype\(int\)\.rsub\(1\)"):
        outcomes_from_table(pd.DataFrame({"task": ["a"], "failed": [0]}), correct="failed")
    several = pd.DataFrame({"task": ["a", "a", "b"], "judge": ["x"] * 3, "run": [1, 2, 1], "correct": 1, "domain": "y"})
    assert outcomes_from_table(several)["trials"].values.tolist() == [[2, 1]]  # no doubt


def test_naming_the_columns_settles_what_could_be_read_two_ways(tmp_path):
    """Either name makes it clear."""
    path = written(tmp_path / "t.csv", "task,correct,successes,trials\na,1,3,4\n")
    assert outcomes_from_table(path, correct="correct")["trials"].item() == 1
    assert outcomes_from_table(path, successes="successes", trials="trials")["trials"].item() == 4
    assert outcomes_from_table(path, threshold=0.5)["trials"].item() == 1
    with pytest.raises(InvalidArgument, match="not of counts"):
        outcomes_from_table(path, successes="successes", trials="trials", threshold=0.5)
