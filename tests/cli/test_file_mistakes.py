"""Mistakes in files as people have them, given to `estimate`: each is refused, or said, in words that help."""

import gzip
import json
import re

import pytest
from typer.testing import CliRunner

from agentic_bayes.cli.app import app
from agentic_bayes.errors import AgenticBayesError, AgenticBayesWarning
from agentic_bayes.suites.inputs import read_outcomes

COUNTS = "task,successes,trials\n"
ROWS = "task,correct\n"

# file, its content, further words of the command, and what the message must say
REFUSED = {
    # the file
    "an old workbook": ("t.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", (), ("an Excel workbook", "read_excel(path)")),
    "a workbook": ("t.xlsx", b"PK\x03\x04rest", (), ("an Excel workbook", "read_excel(path)")),
    "a PDF": ("t.pdf", b"%PDF-1.4\n%\xe2\xe3", (), ("a PDF file, not a table",)),
    "a picture": ("t.png", b"\x89PNG\r\n\x1a\n", (), ("a picture, not a table",)),
    "a page": ("t.csv", "<table><tr><td>task</td></tr></table>", (), ("HTML or XML", "read_html(path)")),
    "packed twice": ("t.csv.gz", gzip.compress(gzip.compress(ROWS.encode())), (), ("packed by gzip twice",)),
    "two bytes a letter": ("t.csv", (ROWS + "a,1\n").encode("utf-16-le"), (), ("two bytes a letter", "'utf-16-le'")),
    "nothing": ("t.csv", "", (), ("t.csv: the file is empty",)),
    "a header alone": ("t.csv", ROWS, (), ("the table has no rows",)),
    "a folder": ("empty", None, (), ("is a folder without results of a supported tool", "for a table, give the file")),
    "columns as JSON": (
        "t.json",
        json.dumps({"task": ["a"], "correct": [1]}),
        (),
        ("pandas.read_json(path)",),
    ),
    "a frame as JSON": ("t.json", json.dumps({"task": {"0": "a"}, "correct": {"0": 1}}), (), ("looks like columns",)),
    "a split frame": ("t.json", json.dumps({"columns": ["task"], "data": [["a"]]}), (), ("orient='split'",)),
    "printed by Python": ("t.jsonl", "{'task': 'a', 'correct': True}\n", (), ("line 1 is not JSON", "json.dumps")),
    "cut off": ("t.jsonl", '{"task": "a", "correct": 1}\n{"task": "b", "cor', (), ("line 2 is not JSON",)),
    # the header
    "comments": ("t.csv", "# mine\ntask,correct\na,1\n", (), ("line 2 must have 1 field", "comment='#'")),
    "no header, values twice": ("t.csv", "v1,a,1,1\nv1,b,2,0\n", (), ("header is missing", "names=['task', 'correct'")),
    "capital letters": (
        "t.csv",
        "Task,Correct\na,1\n",
        (),
        ("did you mean 'Task'?", "(--columns task=Task,correct=Correct)"),
    ),
    "single quotes": ("t.csv", "'task','correct'\n'a','1'\n", (), ("between quotes", 'quotechar="\'"')),
    "spaces": ("t.csv", "task correct\na 1\n", (), ("separated by ' '", r"sep=r'\s+'")),
    "units below the header": (
        "t.csv",
        "task,correct\nid,(0/1)\na,1\n",
        (),
        ("got '(0/1)' (line 2)", "If line 2 is a second header line", "skiprows=[1]"),
    ),
    "failures for verdicts": ("t.csv", "task,failed\na,1\n", (), ("'failed' seems to mark failures", ".rsub(1)")),
    "errors for verdicts": ("t.csv", "task,error\na,1\n", (), ("no column 'correct'", "Name the columns")),
    "a column with two roles": (
        "t.csv",
        "task,ok\na,1\n",
        ("--columns", "task=ok,correct=ok"),
        ("column 'ok' cannot be both task and correct",),
    ),
    "an unknown role": ("t.csv", "task,ok\na,1\n", ("--columns", "corect=ok"), ("names: agent, task, trial, correct",)),
    # rows
    "merged cells": (
        "t.csv",
        "agent,task,correct\nv1,a,1\n,b,0\n",
        (),
        ("line 3: agent must", ".ffill()"),
    ),
    "a row cut off": ("t.csv", ROWS + "a,1\nb\n", (), ("line 3 must have 2 fields", "Was the file cut off")),
    "an average at the end": ("t.csv", ROWS + "a,1\nb,0\nMean,0.5\n", (), ("'0.5' (line 4)",)),
    # values
    "dots of thousands": ("t.csv", "task;successes;trials\na;1.000;2.000\n", (), ("'1.000'", '.str.replace(".", "")')),
    "spaces of thousands": ("t.csv", COUNTS + "a,1 000,2 000\n", (), ("'1 000'", '.str.replace(" ", "")')),
    "not run": ("t.csv", COUNTS + "a,-1,5\n", (), ("line 2: successes", "got '-1'", "not run")),
    "stars with a 1": ("t.csv", ROWS + "a,5\nb,3\nc,1\n", (), ("'5' (line 2)", '(table["correct"] - 1) / 4')),
    "a typing error in one cell": ("t.csv", ROWS + "a,C\nb,X\n", (), ("'X' (line 3)", ".replace({'X': '…'})")),
    "words of unknown sense": ("t.csv", ROWS + "a,Rome\nb,Oslo\n", (), (".map({'Rome': …, 'Oslo': …})",)),
    "words the wrong way round": ("t.csv", ROWS + "a,nein\nb,ja\n", (), (".map({'nein': 0, 'ja': 1})",)),
    "what to do with a table": ("t.csv", ROWS + "a,85\n", (), ("table = pandas.read_csv(", "table.to_csv('new.csv'")),
    "a percentage as threshold": ("t.csv", ROWS + "a,0.9\n", ("--threshold", "70"), ("in [0, 1], got 70",)),
    # wide
    "an average among the trials": (
        "t.csv",
        "task,run1,run2,mean\na,1,1,1\n",
        ("--wide", "trials"),
        ("'mean' would be counted among the trials", "table.drop(columns=['mean'])"),
    ),
    "row numbers among the trials": ("t.csv", "index,task,r1\n0,a,1\n", ("--wide", "trials"), ("'index' would be",)),
}


def written(folder, name, content):
    path = folder / name
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("name", REFUSED)
def test_estimate_refuses_a_mistake_in_words_that_help(tmp_path, name):
    """The file, the line and the value, and what to write instead."""
    file, content, words, said = REFUSED[name]
    path = written(tmp_path, file, content)
    error = CliRunner().invoke(app, ["estimate", str(path), *words]).exception
    assert isinstance(error, AgenticBayesError), error
    for part in said:
        assert part in str(error)


DOUBTED = {
    "a sum with a note": (COUNTS + "a,3,5\nGrand total (1 task),3,5\n", "task 'Grand total (1 task)' counts as a task"),
    "a sum of another name": (COUNTS + "a,3,5\nb,4,5\ncombined,7,10\n", "'combined' has as many successes and trials"),
    "a sum of agents": ("agent," + COUNTS + "v1,a,3,5\nOverall,a,3,5\n", "agent 'Overall' counts as an agent"),
    "errors under another name": (
        "task,correct,error_message\na,1,\nb,0,Timeout\n",
        "crashed count by their verdicts: if its values ('Timeout') mark them, give error='error_message'",
    ),
    "errors in a status": ("task,correct,status\na,1,done\nb,0,Error\n", "table[\"status\"].isin(['Error'])"),
    "a sum among the tasks": (COUNTS + "a,3,5\nb,4,5\nTotal,7,10\n", "task 'Total' counts as a task: if it sums up"),
    "agents under another name": ("model,task,correct\nm,a,1\nn,a,0\n", "all rows are one agent: if 'model' names"),
    "rates for counts": (COUNTS + "a,1.0,10\nb,0.0,10\n", "successes are all 0.0 or 1.0, of more than one trial each"),
    "an error in every row": ("task,correct,error\na,1,fine\nb,0,fine\n", "every row has an error in column 'error'"),
}


@pytest.mark.parametrize("name", DOUBTED)
def test_what_can_be_read_and_may_be_wrong_is_said(tmp_path, name):
    """No wrong number comes in silence."""
    content, said = DOUBTED[name]
    with pytest.warns(AgenticBayesWarning, match=re.escape(said)):
        read_outcomes(written(tmp_path, "t.csv", content))


READ = {
    "gzip under another name": ("t.csv", gzip.compress(b"task,correct\na,1\nb,0\n")),
    "a byte order mark": ("t.csv", "\ufefftask,correct\na,1\nb,0\n"),
    "semicolons": ("t.csv", "task;correct\na;1\nb;0\n"),
    "tabs": ("t.csv", "task\tcorrect\na\t1\nb\t0\n"),
    "line ends of old Macs": ("t.csv", "task,correct\ra,1\rb,0\r"),
    "spaces around": ("t.csv", " task , correct \na , TRUE\nb, false \n"),
    "words for no error": ("t.csv", "task,correct,error\na,1,no\nb,0,ok\n"),
    "dates as tasks, words for nothing": ("t.csv", "task,correct\na,1\nb,0\n2026-01-02,NaN\n02.Jan,n/a\n"),
}


@pytest.mark.parametrize("name", READ)
def test_what_is_no_mistake_is_read(tmp_path, name):
    """The same two trials in every dress."""
    outcomes = read_outcomes(written(tmp_path, *READ[name]))
    assert (int(outcomes["successes"].sum()), int(outcomes["trials"].sum())) == (1, 2)
