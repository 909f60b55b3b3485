"""Answers that name the reference without giving it, and answers that only look as if they did."""

import gzip
import json
import re

import pytest
from scripted import conversation, turn

from agentic_bayes.evidence.reference.judge import ReferenceJudge

RIGHT, WRONG = 0.7, 0.3
CAPITAL = "What is the capital of France?"


def grade(reference, answer, query="?"):
    asked = turn(answer=answer, ground_truth_assistant=reference, query=query)
    return ReferenceJudge().grade(conversation(asked), 0)


def value(reference, answer, query="?"):
    return grade(reference, answer, query).value


# kind → answers to CAPITAL that do not give Paris
NAMED_ONLY = {
    "what others say": [
        "Some say Paris, but it's London.",
        "Many believe it is Paris. It is London.",
        "People often say Paris, however the correct answer is London",
        "Wikipedia says Paris. It is London.",
        "The reference says Paris, yet it is London",
        "According to the text it's Paris, but the capital is London",
        "Some say Paris, others London",
        "Some say Paris, others say London",
    ],
    "what seems so": [
        "You might think it's Paris, but it is london",
        "Paris would be the obvious guess, yet it's London",
        "The obvious answer is Paris, but in reality it's London",
        "A common misconception is that it is Paris.",
        "I would have said Paris, but London is right",
    ],
    "a first thought": [
        "I first thought Paris; actually London",
        "I first thought it was Paris. Actually, it is London.",
        "Paris was my first guess, but it's London",
    ],
    "a correction": [
        "Paris, no, London",
        "Paris. No, wait: London.",
        "Paris... sorry, London",
        "Paris, I mean London",
        "Paris. Correction: London.",
        "Paris, or rather London",
        "Paris - oops, London",
        "Paris; strike that, London",
        "Paris... just kidding, it's London",
        "Paris, excuse me, London",
        "~~Paris~~ London",
        "Answer: Paris. Edit: London.",
        "My first answer was Paris. Corrected answer: London",
        "Most people answer Paris. The truth: London.",
    ],
    "a question and its answer": [
        "Paris? No, London.",
        "Paris? Nope, it's London.",
        "Is it Paris? I doubt it.",
        "Paris? Nein, London.",
    ],
    "only a question": ["Is it Paris?", "Could it be Paris?", "Paris? London?", "Paris? London? Rome?"],
    "how it was": [
        "London (formerly Paris)",
        "London, formerly known as Paris",
        "It used to be Paris, now it is London",
        "It used to be Paris; now London.",
        "no longer Paris",
        "The old capital was Paris; the new one is London",
    ],
    "a denial": [
        "not Paris",
        "It isn't Paris or London",
        "Neither London nor Paris",
        "It was never Paris",
        "Not Rome, not Paris",
    ],
    "a denial of what is asked for": [
        "Paris is not the answer",
        "Paris isn't the right answer",
        "Paris is not the capital of France",
        "Paris is the wrong answer",
        "Paris would be wrong",
    ],
    "a claim that is not made": [
        "I don't think it's Paris.",
        "I wouldn't say Paris",
        "I can't confirm that it is Paris",
        "I don't know if it's Paris",
        "I am not sure whether it is Paris",
    ],
    "a doubt": [
        "I doubt it is Paris",
        "It is unclear whether it is Paris",
        "It's unlikely to be Paris",
        "Paris is unlikely.",
        "Paris can be ruled out",
    ],
    "an exception": [
        "Anything but Paris",
        "Any city other than Paris",
        "London rather than Paris",
        "London instead of Paris",
        "Everywhere except Paris",
    ],
    "several guesses": [
        "maybe Paris, maybe London",
        "Perhaps Paris, perhaps London",
        "It could be Paris; it could be Rome",
    ],
    "several names": [
        "London and Paris",
        "London & Paris",
        "London, Paris and Rome",
        "Paris vs. London",
        "Either Paris or Rome",
    ],
    "a numbered list": ["A) London B) Paris C) Rome", "1. London\n2. Paris", "1. Paris 2. London 3. Rome"],
}

# kind → answers to CAPITAL that give Paris, whatever else they say
GIVEN = {
    "another city denied": [
        "not London but Paris",
        "It's not London, it's Paris",
        "Paris, not London or Rome",
        "Paris! Not London, not Rome.",
        "London is not the answer, Paris is",
        "I don't think it's London; it's Paris",
        "London? No, Paris.",
        "Is it London? No. It's Paris.",
        "Paris rather than London",
        "London, no, Paris",
    ],
    "another city reported": [
        "Some say London, but it's Paris",
        "Many people say London. It is Paris.",
        "I first thought London; actually Paris",
        "It used to be London, now it is Paris",
        "It was London until 1990, but today it is Paris",
        "Paris, though it was Versailles once",
        "Paris (formerly Lutetia)",
    ],
    "other cities mentioned": [
        "Paris. Other large cities are Lyon, Marseille and Nice.",
        "Paris. However, Lyon is bigger than Nice.",
        "Paris, France",
        "Paris, Île-de-France, France",
        "City: Paris\nCountry: France\nCapital: No\nRiver: Seine",
        "Paris is bigger than Lyon, but London is older than Rome.",
        "The Eiffel Tower in Paris opened in 1889, while Big Ben stands in London.",
        "Of the cities London, Rome and Paris, the capital of France is Paris.",
        "London is the capital of England and Paris of France",
        "Unlike London, Paris is the capital",
    ],
    "words of doubt about something else": [
        "I'm not sure about the spelling, but it's Paris",
        "I don't know much about France but it is Paris",
        "There is no doubt that it is Paris",
        "I don't doubt it's Paris",
        "Paris, no doubt.",
        "None other than Paris",
        "Nothing but Paris",
        "Paris, whether you like it or not",
        "Would you believe it? Paris.",
    ],
    "words of correction without one": [
        "It's Paris, actually.",
        "Sorry, it's Paris",
        "No, it's Paris.",
        "Paris. Sorry for the delay.",
        "Paris. No problem!",
        "Paris. It is actually beautiful",
        "Paris, but it's lovely",
        "It is Paris, but it is not a small city",
        "Paris. Now ask me another",
        "Answer: Paris. Edit: fixed a typo.",
        "Isn't it Paris?",
        "It's Paris, isn't it?",
        "- **City:** Paris\n- **Port:** No\n- **River:** Seine",
    ],
    "a weak claim": ["I think it's Paris", "Probably Paris", "Wikipedia says it's Paris"],
}


@pytest.mark.parametrize("kind", NAMED_ONLY)
def test_an_answer_that_names_the_reference_without_giving_it_is_wrong(kind):
    """What is quoted, corrected, denied, doubted or offered among others is not the answer."""
    scores = {answer: value("Paris", answer, CAPITAL) for answer in NAMED_ONLY[kind]}
    assert not {answer: score for answer, score in scores.items() if score >= WRONG}


@pytest.mark.parametrize("kind", GIVEN)
def test_an_answer_that_gives_the_reference_is_right_whatever_else_it_says(kind):
    """Corrections, denials and doubts of something else do not count against it."""
    scores = {answer: value("Paris", answer, CAPITAL) for answer in GIVEN[kind]}
    assert not {answer: score for answer, score in scores.items() if score < RIGHT}


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("42", "between 40 and 42"),
        ("42", "40-42"),
        ("42", "40 to 42"),
        ("42", "40\u201342"),
        ("42", "41 and 42"),
        ("42", "x != 42"),
        ("42", "x ≠ 42"),
        ("42", "It was 42, but it's 43 now"),
        ("42", "42? No, 43."),
        ("42", "I first thought 42; actually 43"),
        ("42", "Some say 42, but it is 43"),
        ("42 km", "It is 42 miles, not 42 km"),
        ("blue", "Some say blue, but it's red"),
        ("blue", "blue, no, red"),
        ("ORD-1042", "ORD-1042. Sorry, ORD-1043."),
        ("2026-03-14", "2026-03-14; correction: 2026-03-15"),
    ],
)
def test_numbers_dates_and_words_can_be_taken_back_as_names_can(reference, answer):
    """An end of a range, a corrected figure or another unit is not the answer."""
    assert value(reference, answer) < WRONG


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("42", "between 40 and 45, namely 42"),
        ("42", "The sum rose from 40 to 42"),
        ("42", "43? No, 42."),
        ("42", "42 (40 and 2)"),
        ("3 days", "3 days, or rather 72 hours"),
        ("3-5 days", "It takes between 3 and 5 days"),
        ("$36", "The total is $36, but it's $32.40 after the discount"),
        ("$32.40", "It's $36, but with the discount it is $32.40"),
        ("0.5", "0.5, or rather 1/2"),
        ("blue", "It is blue, but it's nice"),
        ("partly cloudy", "partly cloudy and mild"),
        ("5 pm", "It's open from 9 am to 5 pm"),
    ],
)
def test_other_figures_and_words_do_not_take_the_answer_back(reference, answer):
    """Steps, conversions and additions are no corrections."""
    assert value(reference, answer) >= RIGHT


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("It is not true.", False),
        ("That isn't correct", False),
        ("Absolutely not", False),
        ("Of course not.", False),
        ("I'm afraid not.", False),
        ("No, not at all", False),
        ("Never.", False),
        ("I don't think so.", False),
        ("It's not entirely true", False),
        ("It is not false", True),
        ("Not incorrect", True),
        ("Yes, but no refunds", True),
        ("Yes, not a problem.", True),
        ("I think so", True),
        ("Absolutely!", True),
        ("Of course.", True),
        ("Certainly, you can.", True),
        ("Yes, but actually no", None),
        ("I wouldn't say yes", None),
        ("I don't know if it is true", None),
        ("It depends", None),
    ],
)
def test_yes_and_no_are_read_behind_negations(answer, says):
    """As "not true" is no, "not false" is yes, and what is neither is neither."""
    assert (value("Yes", answer) >= RIGHT, value("No", answer) >= RIGHT) == (says is True, says is False)


@pytest.mark.parametrize(
    "date",
    [
        *("14. März 2026", "le 14 mars 2026", "14 de marzo de 2026", "14 marzo 2026", "14 de março de 2026"),
        *("14 maart 2026", "14 марта 2026", "14 marca 2026", "2026年3月14日", "Saturday, 14 March 2026, not the 15th"),
    ],
)
def test_dates_are_read_in_other_languages(date):
    """The months of eight languages are known next to a number."""
    assert value("2026-03-14", f"{date}.") >= RIGHT
    assert value("2026-04-14", f"{date}.") < WRONG


def test_long_public_answers_give_what_they_state(shared_data):
    """Reservations, flights and amounts in answers of tau-bench are found there, but where several are on offer."""
    runs = json.loads(gzip.decompress(shared_data("taubench_airline/gpt-4o-airline.json.gz").read_bytes()))
    answers = {m["content"] for run in runs[::4] for m in run["traj"] if m["role"] == "assistant" and m.get("content")}
    fact = re.compile(r"\b(?=\w*\d)[A-Z0-9]{6}\b|\$\d[\d,]*\b")
    stated = [(found, answer) for answer in sorted(answers)[::3] for found in fact.findall(answer)[:2]]
    assert len(stated) > 60
    grades = [grade(*pair) for pair in stated]
    assert all(g.value >= RIGHT or g.reason.startswith("The answer leaves a choice") for g in grades)
    assert sum(g.value >= RIGHT for g in grades) > 0.9 * len(grades)
