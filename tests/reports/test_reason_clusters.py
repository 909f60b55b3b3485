"""Reasons in other people's words, by the words that they share: compared with groups that people made, and by hand."""

import time

import numpy as np
import pytest

from agentic_bayes.reports.reason_clusters import MOST_CLUSTERS, MOST_REASONS, cluster_reasons

# What judges wrote of failures, sorted by hand.
SORTED = {
    "amounts": [
        "The reference gives a total of 42.50 EUR, but the assistant calculated 45.20 EUR, so the amount is wrong.",
        "The agent's total of 118 USD is incorrect; the reference total is 128 USD.",
        "Incorrect calculation: the assistant states the refund amount is 18.20, whereas the correct amount is 36.40.",
        "The computed amount (71.4) does not match the reference amount of 17.4.",
        "The answer states a total price of 99 EUR while the correct total is 89 EUR.",
        "The assistant's calculation is off by ten; the total amount should be 90.",
    ],
    "omissions": [
        "The answer does not mention the tracking number, which the reference includes.",
        "The assistant omits the delivery window that is required by the reference answer.",
        "The response fails to mention that the warranty excludes batteries.",
        "The assistant does not mention the return deadline at all.",
        "Missing information: the reply omits the collection address.",
        "The response leaves out the carrier, which the reference answer mentions.",
    ],
    "refusals": [
        "The assistant refused to answer and said it cannot help with that request.",
        "The agent declined to help and redirected the user to human support.",
        "Instead of answering, the assistant apologises and says that it is unable to help.",
        "The assistant refuses the request, claiming it cannot help with orders.",
        "The response is a refusal: the agent says it cannot assist with this request.",
        "The assistant declined, saying it cannot help, and referred the user to support.",
    ],
    "languages": [
        "The customer wrote in Spanish, but the answer is in English.",
        "The reply is in English although the user asked in German.",
        "The response should be in Spanish as the customer's message was.",
        "The answer switches from Spanish to English halfway through.",
        "Wrong language: the customer asked in French and the reply is in English.",
    ],
}


def test_clusters_are_those_that_people_made():
    """Of two reasons that share a cluster, 95 % share a group sorted by hand; hardly a reason is left over."""
    group = [name for name, reasons in SORTED.items() for _ in reasons]
    found = cluster_reasons([text for reasons in SORTED.values() for text in reasons], [1] * len(group))
    pairs = [(i, j) for i in range(len(group)) for j in range(i) if found.members[i] == found.members[j]]
    assert np.mean([group[i] == group[j] for i, j in pairs]) >= 0.95
    assert len(pairs) >= 0.6 * sum(len(own) * (len(own) - 1) / 2 for own in SORTED.values())
    assert (found.members >= 0).mean() >= 0.9
    assert "english" in found.labels[found.members[-1]]


def test_a_cluster_is_named_by_the_words_that_its_reasons_share():
    """Words stand as in the most typical reason; numbers and words without content are left out."""
    found = cluster_reasons(
        [f"The parcel of order {n} was lost by customs" for n in range(20)] + ["no budget"], [1] * 21
    )
    assert found.labels == ("order, lost, customs",)
    assert found.members.tolist() == [0] * 20 + [-1]


def test_a_reason_given_often_is_a_cluster_of_its_own():
    """Weights count as trials: one text of thirty trials is no rarity; the largest cluster comes first."""
    found = cluster_reasons(["timed out", "wrong_func_name", "schema broken", "schema was broken"], [2, 30, 1, 1])
    assert found.labels == ("wrong, func, name", "timed, out", "schema, broken")
    assert found.members.tolist() == [1, 0, 2, 2]


def test_a_reason_of_words_without_content_is_read_as_it_is():
    """“No reference answer” says nothing but what judges always speak of, and yet says why."""
    found = cluster_reasons(["no reference answer", "the judge timed out"], [5, 5])
    assert found.labels == ("no, reference, answer", "judge, timed, out")


@pytest.mark.parametrize("reasons", [[], [""], ["1 2 3", "\0"], ["alone"], ["one thing", "another matter"]])
def test_reasons_that_share_nothing_are_in_no_cluster(reasons):
    """Blank ones, numbers, and each of a kind."""
    found = cluster_reasons(reasons, [1] * len(reasons))
    assert (found.labels, found.members.tolist()) == ((), [-1] * len(reasons))


def test_scripts_without_spaces_are_read_in_pairs_of_signs():
    """拒绝 is shared by two reasons, and no third one."""
    found = cluster_reasons(["客服拒绝回答", "价格有误", "代理拒绝回答问题"], [1, 1, 1])
    assert found.members.tolist() == [0, -1, 0]
    assert "拒绝" in found.labels[0]


def test_many_long_reasons_take_a_bounded_time():
    """30,000 different reasons of 30 kinds, with a word of 100,000 letters each hundredth: 12 clusters in seconds."""
    rng = np.random.default_rng(7)
    words = np.array([f"{a}{b}{c}ing" for a in "bdfgklmnp" for b in "aeiou" for c in "bdfgklmnp"])
    themes = words[rng.permutation(len(words))[:150]].reshape(30, 5)
    kinds = rng.choice(30, size=30_000, p=np.arange(30, 0, -1) / 465)
    more = rng.choice(words, size=(30_000, 3))
    reasons = [
        " ".join([*themes[kind], *own, "x" * 100_000 * (i % 3_000 == 0), f"№{i}"])
        for i, (kind, own) in enumerate(zip(kinds, more, strict=True))
    ]
    start = time.process_time()
    found = cluster_reasons(reasons, [1] * len(reasons))
    assert time.process_time() - start < 10
    assert len(found.labels) == MOST_CLUSTERS
    assert (found.members[MOST_REASONS:] == -1).all()
    largest = kinds[:MOST_REASONS][found.members[:MOST_REASONS] == 0]
    assert np.bincount(largest).max() > 0.99 * len(largest)
