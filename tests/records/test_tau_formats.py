"""tau-bench and tau2 results: published numbers, oddities, errors that are not the agent's, and broken files."""

import gzip
import itertools
import json
import os
import warnings
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from places import places_in, put
from strategies import reduced

import agentic_bayes as ab
from agentic_bayes.records.formats.evals import tau2

AIRLINE = "taubench_airline/gpt-4o-airline.json.gz"


def attempt(task=0, trial=0, reward=1.0, **changes):
    """A tau-bench attempt."""
    call = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": '{"id": 7}'}}
    return {
        "task_id": task,
        "trial": trial,
        "reward": reward,
        "info": {
            "task": {
                "user_id": "u",
                "actions": [{"name": "book", "kwargs": {"id": 7}}],
                "instruction": "book",
                "outputs": [],
            },
            "user_cost": 0.25,
        },
        "traj": [
            {"role": "system", "content": "policy"},
            {"role": "user", "content": "Hi, book it"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "name": "book", "content": '{"ok": true}'},
            {"role": "assistant", "content": "Done 😀"},
            {"role": "user", "content": "###STOP###"},
        ],
        **changes,
    }


def simulation(task="1", trial=0, reward=1.0, *, checks=None, reason="user_stop", **changes):
    """A tau2 simulation."""
    call = {"id": "c1", "name": "book", "arguments": {"id": 7}, "requestor": "assistant"}
    return {
        "id": f"s-{task}-{trial}",
        "task_id": task,
        "trial": trial,
        "termination_reason": reason,
        "agent_cost": 0.5,
        "duration": 3.5,
        "reward_info": {
            "reward": reward,
            "db_check": {"db_match": True},
            "action_checks": [
                {"action": action}
                for action in ([{"name": "book", "arguments": {"id": 7}}] if checks is None else checks)
            ],
        },
        "messages": [
            {"role": "assistant", "content": "Hi! How can I help?"},
            {"role": "user", "content": "book it"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [call],
                "usage": {"prompt_tokens": 10, "completion_tokens": 2},
            },
            {"role": "tool", "id": "c1", "content": "", "requestor": "assistant"},
            {"role": "assistant", "content": "Done"},
            {"role": "user", "content": "thanks"},
            {"role": "assistant", "content": "You are welcome"},
        ],
        **changes,
    }


def results(*simulations, tasks=("1", "2")):
    """A tau2 file."""
    actions = [{"name": "book", "arguments": {"id": 7}, "compare_args": None}]
    return {
        "info": {
            "agent_info": {"implementation": "llm_agent", "llm": "gpt-4.1", "llm_args": {"api_key": "secret"}},
            "environment_info": {"domain_name": "airline", "policy": "be kind"},
        },
        "tasks": [{"id": task, "ticket": "a ticket", "evaluation_criteria": {"actions": actions}} for task in tasks],
        "simulations": list(simulations),
    }


@pytest.fixture
def read(tmp_path):
    def run(value, name="gpt.json", **options):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
        return list(ab.read_conversations(path, **options))

    return run


# Published numbers


REWARDS = [0.8, 0.75, 1.0, 1.0000001]


@pytest.mark.parametrize(
    "written",
    [
        results(*(simulation(trial=n, reward=reward, id=f"s{n}") for n, reward in enumerate(REWARDS))),
        [attempt(trial=n, reward=reward) for n, reward in enumerate(REWARDS)],
    ],
    ids=["tau2", "tau-bench"],
)
def test_an_attempt_succeeded_if_its_reward_is_1_up_to_rounding(read, written):
    """As both benchmarks count; partial rewards are kept in the metadata."""
    found = read(written)
    assert [c.recorded_score for c in found] == [0, 0, 1, 1]
    assert [c.metadata.get("reward") for c in found] == [0.8, 0.75, None, None]


@pytest.fixture(scope="module")
def airline(shared_data):
    """The conversations of tau-bench's airline tasks, and their evidence with the rubric's defaults."""
    conversations = list(ab.read_conversations(shared_data(AIRLINE), agent="gpt-4o"))
    return conversations, ab.assess(conversations, judge=ab.RecordedJudge())


@pytest.fixture(scope="module")
def published(shared_data):
    """The conversations of a file of tau2 and the warnings about it: each file is read once."""

    @cache
    def read_once(name):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", ab.errors.DoubtfulRecords)
            conversations = list(ab.read_conversations(shared_data(f"tau2_airline/{name}.json.gz")))
        return conversations, [str(warning.message) for warning in said]

    return read_once


def test_tau_bench_airline_has_its_published_numbers(airline):
    """200 conversations of 50 tasks; the recorded outcomes give pass^1..4 .4200 .2733 .2200 .2000."""
    conversations, evidence = airline
    assert len(conversations) == 200
    assert len({c.task_id for c in conversations}) == 50
    outcomes = ab.count_outcomes(evidence)
    baseline = ab.estimate(outcomes, method="frequentist", k=(1, 2, 3, 4)).summary(tasks=False)
    for metric, known in (("pass^", [0.42, 0.2733, 0.22, 0.2]), ("pass@", [0.42, 0.5667, 0.66, 0.72])):
        found = baseline[baseline["metric"].str.startswith(metric) & (baseline["estimand"] == "tasks")]["mean"]
        assert found.tolist() == pytest.approx(known, abs=5e-5)
    counts = [int((outcomes["successes"] == c).sum()) for c in range(5)]
    assert counts == [14, 12, 10, 4, 10]


def test_a_rubric_setting_finds_what_the_benchmark_calls_exact(airline):
    """Expected calls all found exactly in 76 trials, 57 of them successes; 28 expect none. The default finds 12."""
    conversations, default = airline
    rubric = ab.ToolRubric(mode="superset", weights={"selection": 1, "parameters": 1})
    found = [row for row in ab.assess(conversations, judge=ab.RecordedJudge(), tool_rubric=rubric) if row.tools_correct]
    assert (len(found), sum(row.answer_score == 1 for row in found)) == (76, 57)
    assert sum(not c.conversation[0].ground_truth_agentic.expected_tools for c in conversations) == 28
    assert sum(bool(row.tools_correct) for row in default) == 12


@pytest.mark.parametrize(
    ("name", "share"), [("gpt-oss-120b", 0.38), ("toolorchestra", 0.56), ("button_opus-4.6", 0.76)]
)
def test_tau2_airline_has_its_published_numbers(published, name, share):
    """Fifty simulations, and the share of rewards that are 1."""
    conversations, _ = published(name)
    assert [c.assistant_id for c in conversations] == [name] * 50
    outcomes = ab.count_outcomes(ab.assess(conversations, judge=ab.RecordedJudge()))
    assert int(outcomes["successes"].sum()) / int(outcomes["trials"].sum()) == share


def test_tau2_telecom_has_its_published_counts(shared_data):
    """Five tasks, four trials each; the simulated user's own calls are not the agent's."""
    conversations = list(ab.read_conversations(shared_data("tau2_airline/telecom_gpt-4.1_4trials5tasks.json.gz")))
    outcomes = ab.count_outcomes(ab.assess(conversations, judge=ab.RecordedJudge()))
    assert sorted(outcomes["successes"].values.ravel().tolist()) == [0, 4, 4, 4, 4]
    expected = {call.tool_name for c in conversations for call in c.conversation[0].ground_truth_agentic.expected_tools}
    assert "toggle_data_saver_mode" not in expected  # a call of the user
    assert "refuel_data" in expected
    assert all(c.conversation[0].query for c in conversations)  # the ticket, where no user spoke


def test_contradictory_task_ids_are_reported(published):
    """The checks of toolorchestra are not those of its tasks: a warning says so, once, with how many."""
    conversations, said = published("toolorchestra")
    (one,) = said
    assert "simulations[0] and 48 more: action_checks and the task with this task_id" in one
    assert sum(c.metadata.get("task_id_contradicted", False) for c in conversations) == 49
    assert [call.tool_name for call in conversations[0].conversation[0].ground_truth_agentic.expected_tools] == [
        "get_user_details",
        "send_certificate",
    ]


def test_real_oddities_survive(published):
    """Repeated call ids, empty results, parallel calls, messages with neither text nor call: all calls are there."""
    for name, calls in (("gpt-oss-120b", 847), ("qwen2.5-7b", 344), ("button_opus-4.6", 435)):
        conversations, said = published(name)
        assert said == []
        made = [call for c in conversations for call in c.conversation[0].agentic.tools_used]
        assert sum(call.has_result for call in made) == calls
        assert not any(c.conversation[0].metadata.get("results_without_call") for c in conversations)
    text = "\n".join(c.model_dump_json() for c in conversations)
    assert "api_key" not in text


def test_no_key_of_a_provider_is_carried_along(read):
    """Arguments of the model stay in the file: they may hold a key."""
    (conversation,) = read(results(simulation()))
    assert "secret" not in conversation.model_dump_json()
    assert conversation.metadata["model"] == "gpt-4.1"


# What becomes of an attempt


def test_a_tau_bench_attempt_is_one_interaction(read):
    """Everything the user and the agent said, calls with results, expectations in any order, reward, cost."""
    (found,) = read([attempt()], agent="v1")
    (turn,) = found.conversation
    assert (found.assistant_id, found.task_id, found.trial, found.recorded_score) == ("v1", "0", 0, 1.0)
    assert (found.context, turn.query, turn.assistant) == ("policy", "Hi, book it", "Done 😀")
    (call,) = turn.agentic.tools_used
    assert (call.tool_name, call.parameters, call.result, call.step) == ("book", {"id": 7}, '{"ok": true}', 1)
    assert not turn.ground_truth_agentic.tool_sequence_matters
    assert found.metadata == {"format": "tau-bench", "cost": {"user": 0.25}}


def test_a_tau2_simulation_is_one_interaction(read):
    """The same, with the dialogue in order where the user spoke more than once."""
    (found,) = read(results(simulation()))
    (turn,) = found.conversation
    assert (found.assistant_id, found.session_id, found.task_id, found.context) == ("gpt", "s-1-0", "1", "be kind")
    assert turn.query == "book it\n\nthanks"
    assert turn.metadata["dialogue"][0] == {"role": "assistant", "text": "Hi! How can I help?"}
    assert turn.agentic.tools_used[0].result == ""
    assert found.metadata["tokens"] == {"input": 10, "output": 2}
    assert found.metadata["termination_reason"] == "user_stop"


def test_only_compared_arguments_are_compared(read):
    """`compare_args` names the arguments that count; the others may be anything."""
    checks = [{"name": "book", "arguments": {"id": 7, "note": "x"}, "compare_args": ["id"]}]
    (found,) = read(results(simulation(checks=checks), tasks=()))
    rubric = ab.ToolRubric(mode="superset", weights={"selection": 1, "parameters": 1})
    assert rubric.grade(found.conversation[0]).is_correct
    none = [{"name": "book", "arguments": {"id": 8}, "compare_args": []}]
    (found,) = read(results(simulation(checks=none), tasks=()))
    assert rubric.grade(found.conversation[0]).is_correct


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (
            [attempt(reward=0.0, traj=[], info={"error": "RateLimitError: 429", "traceback": "Traceback …"})],
            "RateLimitError",
        ),
        ([attempt(reward=0.0, traj=[], info={"traceback": "Traceback\n  x\nValueError: boom"})], "ValueError: boom"),
        ([attempt(reward=None)], "no reward was recorded"),
        (results(simulation(reward_info=None)), "no reward was recorded"),
        (results(simulation(reward=0.0, reason="infrastructure_error")), "infrastructure_error"),
        (results(simulation(reward=0.0, reason="user_error")), "user_error"),
        (results(simulation(reward=0.0, reason="unexpected_error")), "unexpected_error"),
    ],
)
def test_infrastructure_errors_are_not_failures_of_the_agent(read, value, reason):
    """They are errors, counted apart and never as a zero."""
    (found,) = read(value)
    assert reason in found.conversation[0].error
    assert found.conversation[0].error.startswith("infrastructure: ")
    assert found.recorded_score is None
    evidence = ab.assess([found], judge=ab.RecordedJudge())
    outcomes = ab.count_outcomes(evidence)
    assert (int(outcomes["trials"].sum()), int(outcomes["errored"].sum())) == (0, 1)
    assert int(ab.count_outcomes(evidence, errors="fail")["trials"].sum()) == 1


@pytest.mark.parametrize("reason", ["max_steps", "too_many_errors", "agent_error", "timeout", "user_stop"])
def test_what_the_agent_did_wrong_stays_a_failure(read, reason):
    """A reward of 0 counts as 0 where the agent ended the run itself."""
    (found,) = read(results(simulation(reward=0.0, reason=reason)))
    assert (found.recorded_score, found.conversation[0].error) == (0, None)


def test_an_unchecked_run_expects_what_its_task_expects(read):
    """After `max_steps` nothing was checked: the task's calls are expected, not none."""
    run = simulation(reward=0.0, reason="max_steps")
    run["reward_info"]["action_checks"] = None
    (found,) = read(results(run))
    assert [call.tool_name for call in found.conversation[0].ground_truth_agentic.expected_tools] == ["book"]


# Forms of the file


def test_tasks_may_follow_the_simulations(read):
    """The order of the members does not matter."""
    value = results(simulation(), simulation("2"))
    turned = dict(reversed(value.items()))
    assert [c.session_id for c in read(turned)] == ["s-1-0", "s-2-0"]
    assert read(turned)[0].conversation == read(value)[0].conversation


def test_members_may_come_in_any_order(read):
    """Simulations wait for tasks and info, whatever comes last."""
    value = results(simulation(), simulation("2"))
    expected = [c.model_dump() for c in read(value)]
    assert expected[0]["context"] == "be kind"
    for keys in itertools.permutations(value):
        assert [c.model_dump() for c in read({key: value[key] for key in keys})] == expected


def test_the_folder_form_gives_the_same_conversations(tmp_path, read):
    """`results.json` beside `simulations/`: read through either, or through the folder, once each."""
    runs = [simulation("1"), simulation("2", reward=0.0)]
    whole = read(results(*runs), "other/myrun.json")
    folder = tmp_path / "myrun"
    (folder / "simulations").mkdir(parents=True)
    index = {**results(), "simulation_index": [{"id": run["id"], "task_id": run["task_id"]} for run in runs]}
    (folder / "results.json").write_text(json.dumps(index), encoding="utf-8")
    for run in runs:
        (folder / "simulations" / f"{run['id']}.json").write_text(json.dumps(run), encoding="utf-8")
    for path in (folder, folder / "results.json", folder / "simulations"):
        assert [c.model_dump() for c in ab.read_conversations(path)] == [c.model_dump() for c in whole]
    os.unlink(folder / "simulations" / "s-2-0.json")
    with pytest.raises(ab.errors.RecordsError, match="lists simulations that are missing: s-2-0"):
        ab.read_conversations(folder)
    (folder / "simulations" / "s-2-0.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ab.errors.RecordsError, match=r"simulations/s-2-0\.json: holds no simulation"):
        ab.read_conversations(folder)


@pytest.fixture
def folder(tmp_path):
    """Results whose simulations are in a folder beside them."""
    folder = tmp_path / "myrun"
    (folder / "simulations").mkdir(parents=True)
    (folder / "results.json").write_text(json.dumps({**results(), "simulations": []}), encoding="utf-8")
    for run in (simulation("1"), simulation("2")):
        (folder / "simulations" / f"{run['id']}.json").write_text(json.dumps(run), encoding="utf-8")
    return folder


def sessions(path):
    return [c.session_id for c in ab.read_conversations(path)]


@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
def test_only_regular_files_among_the_simulations_are_opened(folder, kind):
    """Anything else whose name ends so is named as wrong: no waiting for a pipe, and no other kind of error."""
    odd = folder / "simulations" / "odd.json"
    if kind == "pipe":
        os.mkfifo(odd)
    elif kind == "folder":
        odd.mkdir()
    else:
        odd.symlink_to(folder / "nowhere")
    for path in (folder, folder / "results.json"):
        with pytest.raises(
            ab.errors.RecordsError, match=r"results.json, simulations/odd\.json: must be a regular file"
        ) as caught:
            ab.read_conversations(path)
        assert len(caught.value.problems) == 1
    if kind != "folder":
        wrong = "must be a regular file, got a pipe" if kind == "pipe" else "cannot be opened"
        with pytest.raises(ab.errors.RecordsError, match=rf"odd\.json: {wrong}"):
            ab.read_conversations(folder / "simulations")
    odd.rmdir() if kind == "folder" else odd.unlink()
    assert sessions(folder) == ["s-1-0", "s-2-0"]


@pytest.mark.parametrize("index", [False, True])
def test_simulations_and_results_may_be_packed(folder, index):
    """Either may end in .gz; nothing is left out."""
    for path in [*(folder / "simulations").iterdir(), *([folder / "results.json"] if index else [])]:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    for path in (folder, folder / "simulations", folder / ("results.json.gz" if index else "results.json")):
        found = list(ab.read_conversations(path))
        assert [(c.session_id, c.assistant_id, c.context) for c in found] == [
            ("s-1-0", "myrun", "be kind"),
            ("s-2-0", "myrun", "be kind"),
        ]


def test_a_simulation_with_two_names_is_read_once(folder, monkeypatch):
    """A link to it in the same folder is the same file; it finds its tasks by either name, and from its own folder."""
    link = folder / "simulations" / "zz.json"
    link.symlink_to(folder / "simulations" / "s-1-0.json")
    for path in (folder, folder / "results.json", folder / "simulations"):
        assert sessions(path) == ["s-1-0", "s-2-0"]
    away = folder.parent / "away.json"
    away.symlink_to(folder / "simulations" / "s-1-0.json")
    monkeypatch.chdir(folder / "simulations")
    for path in (away, link, "s-1-0.json"):
        (found,) = ab.read_conversations(path)
        assert (found.assistant_id, found.context) == ("myrun", "be kind")


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        ('{"info": {}, "tasks": [', "", "is incomplete: the file ends in the middle of it"),
        ("", "", "is empty"),
        ('{"info": {}, "tasks": 5, "simulations": []}', "tasks", "must be a list, got 5"),
        ('{"info": {}, "tasks": [5], "simulations": []}', "tasks[0]", "must be an object, got 5"),
    ],
)
def test_broken_results_beside_simulations_are_reported_once(folder, text, field, message):
    """Whether the folder, its simulations or one of them is named: without tasks, nobody knows what was expected."""
    (folder / "results.json").write_text(text, encoding="utf-8")
    for path in (folder, folder / "simulations", folder / "simulations" / "s-1-0.json"):
        with pytest.raises(ab.errors.RecordsError, match="problem") as caught:
            ab.read_conversations(path)
        (problem,) = caught.value.problems
        assert (problem.source, problem.field, problem.message) == (str(folder / "results.json"), field, message)


def test_results_that_are_no_file_are_reported(folder):
    """A pipe in their place is not opened."""
    (folder / "results.json").unlink()
    os.mkfifo(folder / "results.json")
    with pytest.raises(ab.errors.RecordsError, match=r"results\.json: must be a regular file, got a pipe or device"):
        ab.read_conversations(folder / "simulations")


def test_content_and_not_the_name_tells_the_format(read):
    """Any name, gzipped or not; a format that was asked for is taken at its word."""
    packed = gzip.compress(json.dumps(results(simulation())).encode(), mtime=0)
    assert read(packed, "chat.jsonl")[0].metadata["format"] == "tau2"
    assert read([attempt()], "results.eval")[0].metadata["format"] == "tau-bench"
    with pytest.raises(ab.errors.RecordsError, match="simulations"):
        read(results(simulation()), format="native")


def test_a_voice_run_is_said_to_be_unread(read):
    """Messages that are only in ticks: a warning, and no claim about calls."""
    with pytest.warns(ab.errors.DoubtfulRecords, match="keeps its messages in ticks"):
        (found,) = read(results(simulation(messages=None, ticks=[{}])))
    assert found.conversation[0].agentic is None


@pytest.mark.parametrize("criteria", [None, {"actions": None}, {}, "no task"])
@pytest.mark.parametrize("reason", ["max_steps", "user_stop"])
def test_where_nobody_says_which_calls_are_expected_nothing_is_known(read, criteria, reason):
    """Neither checks nor a list of the task: that is not the same as that no call is expected."""
    run = simulation(reward=0.0, reason=reason)
    run["reward_info"]["action_checks"] = None
    value = results(run)
    value["tasks"] = [] if criteria == "no task" else [{"id": "1", "evaluation_criteria": criteria}]
    (found,) = read(value)
    assert found.conversation[0].ground_truth_agentic is None
    value["tasks"] = [{"id": "1", "evaluation_criteria": {"actions": []}}]
    (found,) = read(value)
    assert found.conversation[0].ground_truth_agentic.expected_tools == ()


def test_the_requestor_of_a_call_is_the_agent_or_the_user(read):
    """Whose call it is decides whether it counts: anybody else is an error, in messages, checks and tasks."""
    for requestor, calls in ((None, 1), ("assistant", 1), ("user", 0)):
        run = simulation()
        run["messages"][2]["tool_calls"][0]["requestor"] = requestor
        run["messages"][3]["requestor"] = requestor
        (found,) = read(results(run))
        assert len(found.conversation[0].agentic.tools_used) == calls
    for requestor in ("Assistant", "", 5, [], {}):
        value = results(simulation(checks=[{"name": "book", "arguments": {}, "requestor": requestor}]))
        value["simulations"][0]["messages"][2]["tool_calls"][0]["requestor"] = requestor
        value["simulations"][0]["messages"][3]["requestor"] = requestor
        value["tasks"][1]["evaluation_criteria"]["actions"] = [{"name": "f", "requestor": requestor}]
        with pytest.raises(ab.errors.RecordsError, match="must be assistant or user, got") as caught:
            read(value)
        assert [problem.field for problem in caught.value.problems] == [
            "tasks[1].evaluation_criteria.actions[0].requestor",
            "messages[2].tool_calls[0].requestor",
            "messages[3].requestor",
            "reward_info.action_checks[0].action.requestor",
        ]


def test_results_without_a_call_are_said(read):
    """A result with an id that no call has is of no call, even where a call of its tool waits."""
    value = attempt()
    value["traj"][3]["tool_call_id"] = "other"
    with pytest.warns(ab.errors.DoubtfulRecords, match="some tool results belong to no recorded call"):
        (found,) = read([value])
    assert found.conversation[0].metadata["results_without_call"] == 1
    assert not found.conversation[0].agentic.tools_used[0].has_result


# Files that are broken

VALID = {"tau-bench": [attempt(trial=0), attempt(trial=1)], "tau2": results(simulation("1"), simulation("2"))}


ODD = [None, 5, -1, "x", "", [], {}, True, [None], {"a": 1}, "\ud800", 1e400]


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow), 6])
@pytest.mark.parametrize("name", VALID)
def test_any_wrong_value_is_reported_or_harmless(read, name, every):
    """Each value of a file replaced by odd ones: a `RecordsError`, or both attempts; never anything else."""
    refused = 0
    for number, path in enumerate(places_in(VALID[name])):
        for odd in ODD[number % every :: every]:
            text = json.dumps(put(VALID[name], path, odd)).encode()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ab.errors.DoubtfulRecords)
                    found = read(text, format=name)
            except ab.errors.RecordsError as error:
                refused += bool(error.problems)
            else:
                assert len(found) == 2, (path, odd)
    assert refused > 100 / every


@pytest.mark.parametrize("name", VALID)
def test_a_file_cut_anywhere_is_refused(read, name):
    """Truncation never passes as a shorter data set."""
    text = json.dumps(VALID[name]).encode()
    for end in range(1, len(text), 7):
        with pytest.raises(ab.errors.RecordsError, match=r"problem"):
            read(text[:end], format=name)


@settings(max_examples=reduced(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(VALID)), st.data())
def test_bytes_put_anywhere_are_reported_or_harmless(read, name, data):
    """A few bytes inserted or removed at a random place."""
    text = json.dumps(VALID[name]).encode()
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 20))
    broken = text[:at] + data.draw(st.binary(max_size=8)) + text[at + cut :]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ab.errors.DoubtfulRecords)
            found = read(broken)
    except ab.errors.RecordsError:
        return
    assert len(found) == 2 or broken.count(b'"trial"') != text.count(b'"trial"')


def test_duplicates_are_refused(read):
    """The same attempt twice, and the same key twice in one object."""
    with pytest.raises(ab.errors.RecordsError, match=r"trial: must be unique within a task|session_id: must be unique"):
        read([attempt(), attempt()])
    text = json.dumps([attempt()]).replace('"reward": 1.0', '"reward": 0.0, "reward": 1.0')
    with pytest.raises(ab.errors.RecordsError, match="this key twice"):
        read(text.encode())
    with pytest.raises(ab.errors.RecordsError, match="this key twice"):
        read(json.dumps(results(simulation())).replace('"tasks"', '"info": {}, "tasks"').encode())


@pytest.mark.parametrize(
    ("path", "value", "field", "message"),
    [
        (("tasks",), 5, "tasks", "must be a list, got 5"),
        (("tasks", 1), 5, "tasks[1]", "must be an object, got 5"),
        (("tasks", 1, "id"), None, "tasks[1].id", "must be given, got null"),
        (("tasks", 1, "id"), "1", "tasks[1].id", "must be unique, got '1' also at tasks[0]"),
        (("tasks", 1, "ticket"), [], "tasks[1].ticket", "must be text, got []"),
        (("tasks", 1, "evaluation_criteria"), 5, "tasks[1].evaluation_criteria", "must be an object, got 5"),
        (("tasks", 1, "evaluation_criteria"), "x", "tasks[1].evaluation_criteria", "must be an object, got 'x'"),
        *(
            (
                ("tasks", 1, "evaluation_criteria", key),
                "x",
                f"tasks[1].evaluation_criteria.{key}",
                "must be a list, got 'x'",
            )
            for key in ("actions", "communicate_info")
        ),
        (
            ("tasks", 1, "evaluation_criteria", "communicate_info"),
            5,
            "tasks[1].evaluation_criteria.communicate_info",
            "must be a list, got 5",
        ),
        (
            ("tasks", 1, "evaluation_criteria", "communicate_info"),
            ["a", 5],
            "tasks[1].evaluation_criteria.communicate_info[1]",
            "must be text, got 5",
        ),
        (
            ("tasks", 1, "evaluation_criteria", "actions", 0),
            5,
            "tasks[1].evaluation_criteria.actions[0]",
            "must be an object, got 5",
        ),
        (
            ("tasks", 1, "evaluation_criteria", "actions", 0, "compare_args"),
            [1],
            "tasks[1].evaluation_criteria.actions[0].compare_args[0]",
            "must be text, got 1",
        ),
        (("info",), "x", "info", "must be an object, got 'x'"),
        (("info", "environment_info"), 5, "info.environment_info", "must be an object, got 5"),
        (("info", "environment_info", "policy"), 5, "info.environment_info.policy", "must be text, got 5"),
        (("info", "agent_info", "llm"), 5, "info.agent_info.llm", "must be text, got 5"),
        (("simulations",), {}, "simulations", "must be a list, got {}"),
        (("simulation_index",), {}, "simulation_index", "must be a list, got {}"),
    ],
)
@pytest.mark.parametrize("tasks_first", [True, False])
def test_what_is_wrong_with_tasks_is_a_problem_of_the_file_said_once(read, path, value, field, message, tasks_first):
    """All simulations depend on them: a task that cannot be read is not the same as one that expects nothing."""
    whole = json.loads(json.dumps(results(simulation("1"), simulation("1", trial=1), simulation("2"))))
    broken = put({**whole, "simulation_index": []}, path, value)
    if not tasks_first:
        broken = dict(reversed(broken.items()))
    with pytest.raises(ab.errors.RecordsError, match="1 problem") as caught:
        read(broken, format="tau2")
    (problem,) = caught.value.problems
    assert (problem.field, problem.message) == (field, message)


def test_a_broken_simulation_is_named_with_its_place(read):
    """A key that is given twice in it is found where it is."""
    text = json.dumps(results(simulation(), simulation("2"))).replace('"duration"', '"trial": 5, "duration"', 1)
    with pytest.raises(ab.errors.RecordsError, match=r"simulations\[0\]\.trial: must occur once"):
        read(text.encode())


def test_reference_outputs_are_text(read):
    """Others are not dropped in silence."""
    value = attempt()
    value["info"]["task"]["outputs"] = ["a", 5]
    with pytest.raises(ab.errors.RecordsError, match=r"info\.task\.outputs\[1\]: must be text, got 5"):
        read([value])


def test_costs_beyond_any_number_are_refused(read):
    """A whole number may be larger than any float."""
    text = json.dumps([attempt()]).replace("0.25", "9" * 400)
    with pytest.raises(ab.errors.RecordsError, match=r"user_cost: must be a finite number, got"):
        read(text.encode())


def test_every_bad_attempt_is_named(read):
    """Two bad ones among good ones: both are in the report, with their place and what is allowed."""
    bad = [attempt(trial=0), attempt(trial=1, reward="1"), attempt(trial=2, traj="x"), 5]
    with pytest.raises(ab.errors.RecordsError, match="problems in the conversations") as caught:
        read(bad, format="tau-bench")
    text = str(caught.value)
    assert "index 1, reward: must be a number in [0, 1], got '1'" in text
    assert "index 2, traj: must be a list, got 'x'" in text
    assert "index 3: must be an object, got 5" in text


def test_names_of_the_folder_form_are_where_the_module_says():
    """The reader and the search for files agree on the names."""
    assert (tau2.INDEX, tau2.FOLDER) == ("results.json", "simulations")
