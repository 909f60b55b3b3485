"""Which agent a file is of, and what is said where neither agents nor tasks are named."""

import json

import pytest

import agentic_bayes as ab
from agentic_bayes.errors import DoubtfulRecords, InvalidArgument, RecordsError
from agentic_bayes.records.survey import survey

TURNS = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]


@pytest.fixture
def files(tmp_path):
    """Writes one chat, or several, to each of these files; gives the folder."""

    def write(*names, chats=1, **more):
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(json.dumps({"messages": TURNS, **more}) for _ in range(chats)))
        return tmp_path

    return write


def agents(folder, **options):
    return sorted({c.assistant_id for c in ab.read_conversations(folder, **options)})


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["v1/log.jsonl", "v2/log.jsonl"], ["v1", "v2"]),
        (["v1/run/log.jsonl", "v2/run/log.jsonl"], ["v1", "v2"]),
        (["a.jsonl", "b.jsonl"], ["a", "b"]),
        (["x/a.jsonl", "x/b.jsonl", "y/a.jsonl"], ["x", "y"]),
        (["x/log.jsonl", "y/log.jsonl", "z/other.jsonl"], ["other", "x", "y"]),
    ],
)
def test_files_of_one_name_are_told_apart_by_the_nearest_folders_that_differ(files, names, found):
    """Agents are never pooled because their files share a name."""
    assert agents(files(*names, chats=3)) == found


def test_one_file_per_run_in_a_folder_per_agent_is_read_as_these_agents(files):
    """A run that only one of them has belongs to its folder, too."""
    names = [f"v{agent}/{task}__run{run}.json" for agent in (1, 2) for task in ("cancel", "refund") for run in (0, 1)]
    found = list(ab.read_conversations(files(*names, "v1/cancel__run2.json")))
    assert sorted(c.assistant_id for c in found) == ["v1"] * 5 + ["v2"] * 4
    assert len({c.task_id for c in found}) == 5


def test_files_that_no_folder_name_alone_tells_apart_are_refused_with_the_ways_to_name_them(files):
    """A rule decides."""
    folder = files(*[f"{agent}/{run}/log.jsonl" for agent in ("v1", "v2") for run in ("r1", "r2")], chats=2)
    with pytest.raises(RecordsError, match=r"4 files are called 'log'.*\{parent\}.*\{grandparent\}"):
        ab.read_conversations(folder)
    assert agents(folder, agent="{grandparent}") == ["v1", "v2"]
    assert agents(folder, agent="bot-{parent}") == ["bot-r1", "bot-r2"]
    assert len(list(ab.read_conversations(folder, agent="one"))) == 8


def test_a_record_that_names_its_agent_is_read_wherever_it_lies(files):
    """Folders only matter where nothing is named."""
    names = [f"{agent}/{run}/{session}.json" for agent in "ab" for run in "cd" for session in ("log",)]
    for number, name in enumerate(names):
        folder = files(name, assistant_id="bot", id=f"s{number}")
    assert agents(folder) == ["bot"]


def test_several_single_conversations_without_an_agent_are_doubtful_or_refused(files):
    """In one folder they are read, each as an agent; in several folders they are refused."""
    folder = files("runs/a.json", "runs/b.json", "runs/c.json")
    with pytest.warns(DoubtfulRecords, match=r"3 files hold one conversation each and name no agent.*\{parent\}"):
        assert agents(folder) == ["a", "b", "c"]
    assert agents(folder, agent="{parent}") == ["runs"]
    assert agents(folder, agent="{stem}") == ["a", "b", "c"]
    folder = files("more/d.json")
    with pytest.raises(RecordsError, match="4 files hold one conversation each"):
        ab.read_conversations(folder)


@pytest.mark.parametrize("rule", ["{folder}", "{}", "v-{parents}"])
def test_rules_are_checked(rule):
    """The valid places are listed."""
    with pytest.raises(InvalidArgument, match=r"agent may hold \{stem\}, \{parent\}, \{grandparent\}, got"):
        ab.read_conversations("f.json", agent=rule)


def test_conversations_without_any_task_are_doubtful(files):
    """Every conversation would be a task of its own with one trial."""
    folder = files("log.jsonl", chats=40)
    with pytest.warns(DoubtfulRecords, match=r"none of the 40 conversations names its task.*--fields task="):
        ab.read_conversations(folder)
    assert any("none of the 40 conversations names its task" in doubt for doubt in survey(folder).doubts)


@pytest.mark.parametrize("more", [{"task_id": "oslo"}, {"metadata": {"task_id": "oslo"}}])
def test_conversations_with_a_task_are_not(files, more):
    """Trials of a task are numbered as usual."""
    assert len(list(ab.read_conversations(files("log.jsonl", chats=40, **more)))) == 40


def test_a_task_called_nan_is_a_task(tmp_path):
    """Names of tasks are text."""
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(json.dumps({"messages": TURNS, "task_id": name, "score": 1}) for name in ("nan", "NA")))
    evidence = ab.assess(ab.read_conversations(path), judge=ab.RecordedJudge())
    evidence.write(tmp_path / "evidence.jsonl")
    outcomes = ab.count_outcomes(ab.Evidence.read(tmp_path / "evidence.jsonl"))
    assert sorted(map(str, outcomes.task.values)) == ["NA", "nan"]


def test_what_counts_twice_is_doubtful(tmp_path):
    """A copy of a file of the same agent, and a log of requests, each of which repeats the session so far."""
    call = {"id": "1", "type": "function", "function": {"name": "w", "arguments": "{}"}}
    asked = [{"role": "user", "content": "?"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    whole = [*asked, {"role": "tool", "tool_call_id": "1", "content": "4"}, {"role": "assistant", "content": "4"}]
    requests = "".join(json.dumps({"task_id": "t", "messages": part}) + "\n" for part in (asked, whole))
    (tmp_path / "a.jsonl").write_text(requests, "utf-8")
    with pytest.warns(DoubtfulRecords, match="1 of the 2 conversations are the beginning of a later one"):
        ab.read_conversations(tmp_path / "a.jsonl")
    for name in ("a.jsonl", "a (1).jsonl"):
        chats = [{"task_id": task, "messages": [*whole[:-1], {**whole[-1], "content": task}]} for task in "st"]
        (tmp_path / name).write_text(json.dumps(chats), "utf-8")
    with pytest.warns(DoubtfulRecords, match=r"a\.jsonl: has the same content as .*a \(1\)\.jsonl, and both count"):
        assert len(list(ab.read_conversations(tmp_path, agent="v1"))) == 4


def test_several_models_of_an_agent_that_no_record_names_are_doubtful(tmp_path):
    """They would be counted together; the path in the message makes each an agent."""
    path = tmp_path / "log.jsonl"
    lines = [json.dumps({"task_id": "t", "model": model, "messages": TURNS, "error": "null"}) for model in ("m1", "m2")]
    path.write_text("\n".join(lines), "utf-8")
    with pytest.warns(DoubtfulRecords, match=r"'log' counts as one agent with several models \('m1', 'm2'\)"):
        ab.read_conversations(path)
    found = list(ab.read_conversations(path, fields={"agent": "metadata.model"}))
    assert [(one.assistant_id, one.conversation[0].error) for one in found] == [("m1", None), ("m2", None)]


def test_roles_as_the_users_side_sees_them_are_refused(tmp_path):
    """AutoGen 0.2 calls what its user proxy said the assistant's, so that question and answer would change places."""
    path = tmp_path / "chat.json"
    chat = [
        {"role": "assistant", "name": "user_proxy", "content": "?"},
        {"role": "user", "name": "bot", "content": "4"},
    ]
    path.write_text(json.dumps(chat), "utf-8")
    with pytest.raises(RecordsError, match=r"AutoGen 0\.2 writes roles as the user's side sees them; swap them"):
        ab.read_conversations(path)
