import json
from pathlib import Path

import pytest
from answers import RIGHT as RIGHT_ANSWERS
from answers import WRONG as WRONG_ANSWERS
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import reduced

from agentic_bayes.evidence.reference import finality, phrases
from agentic_bayes.evidence.reference.judge import ReferenceJudge
from agentic_bayes.evidence.score import Grader, Score, Unscored
from agentic_bayes.records.model import Conversation
from agentic_bayes.records.read import read_conversations

RIGHT = 0.7
WRONG = 0.3
PIECES = (
    *("not", "42", "1 234", "$", "°C", "isn't", "no", "yes", "one", "twenty", "1,5", "ORD-1", "不", "."),
    *("hundred", "and", "million", "minus", "C", "++", "May", "2026-03-14", "9:00", "am", "of", "是"),
)


def judge(reference, answer, query="?"):
    conversation = Conversation(
        session_id="s",
        assistant_id="a",
        error="crashed" if answer is None else None,
        conversation=[{"qa_id": "q", "query": query, "assistant": answer, "ground_truth_assistant": reference}],
    )
    return ReferenceJudge().grade(conversation, 0)


def value(reference, answer, query="?"):
    return judge(reference, answer, query).value


def test_the_judge_is_a_grader_with_a_name_and_a_version():
    """It fulfils the grader protocol, and two of them are equal."""
    assert isinstance(ReferenceJudge(), Grader)
    assert (ReferenceJudge().name, ReferenceJudge().identity) == ("reference_judge", "reference-judge/4")
    assert ReferenceJudge() == ReferenceJudge()


def test_public_conversations_are_right_but_for_one_turn(shared_data):
    """In the public file only conversation 3's first turn (53 where 42 is right) is wrong."""
    path = shared_data("fair_forge_dataset_agentic.json")
    conversations = [Conversation.model_validate(c) for c in json.loads(path.read_text(encoding="utf-8"))]
    grades = {
        (c.session_id, turn.qa_id): ReferenceJudge().grade(c, position)
        for c in conversations
        for position, turn in enumerate(c.conversation)
    }
    wrong = grades.pop(("agentic_eval_session3", "q1_math"))
    assert wrong.value < WRONG
    assert "42" in wrong.reason
    assert len(grades) == 8
    assert all(grade.value >= RIGHT for grade in grades.values())


def test_answers_of_the_metric_page_are_right():
    """A bare number as reference is right in a sentence."""
    assert value("8", "The result is 8.", "What is 5 + 3?") == 0.9
    assert value("25", "100 divided by 4 is 25.", "What is 100 / 4?") == 0.9


@pytest.mark.parametrize("reference", [None, "", "  \n"])
def test_no_reference_is_unscored(reference):
    """Without a reference there is nothing to compare with, and no zero."""
    assert judge(reference, "42") == Unscored("no reference answer")


def test_no_recorded_answer_is_unscored():
    """An agent that crashed gave no wrong answer."""
    assert judge("42", None) == Unscored("no answer was recorded")


def test_a_blank_answer_is_zero():
    """Saying nothing is wrong."""
    assert judge("42", " \n") == Score(0.0, "The answer is blank.", {"failure_kinds": ["no answer"]})


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("Paris", "PARIS."),
        ("Straße", "STRASSE"),
        ("café", "cafe\u0301"),
        ("42", "４２"),
        ("42", "٤٢"),
        ("**42**", "`42`"),
        ("1,234.5", "1234.50"),
        ("1 234", "1,234"),
        ("1\u202f234,5", "1,234.5"),
        ("1.234.567", "1 234 567"),
        ("1'234.5", "1_234.5"),
        ("12,34,567", "1234567"),
        ("1,5", "1.5"),
        ("0,125", "0.125"),
        (".5", "0.50"),
        ("1.5e3", "1500"),
        ("2e-3", "0.002"),
        ("18°C", "18 °C"),
        ("18°C", "18℃"),
        ("18°C", "18 degrees Celsius"),
        ("18 C", "18 degrees centigrade"),
        ("$36", "36 dollars"),
        ("$36", "36 USD"),
        ("USD36", "US$ 36"),
        ("USD 36", "$36"),
        ("minus $5", "-$5"),
        ("€5", "5 euros"),
        ("10%", "10 percent"),
        ("10 %", "10 per cent"),
        ("32.40", "32.4"),
        ("\u22125", "-5"),
        ("-$5", "$-5"),
        ("minus 5 °C", "-5°C"),
        ("$5 million", "$5,000,000"),
        ("10k", "10,000"),
        ("seven", "7"),
        ("Twelve nights", "12 nights"),
        ("one", "1"),
        ("½", "1/2"),
        ("thirty days", "30 days"),
        ("twenty-four hours", "24 hours"),
        ("forty two", "42"),
        ("minus five degrees", "-5°"),
        ("one hundred", "100"),
        ("two hundred and five", "205"),
        ("one thousand two hundred thirty-four", "1,234"),
        ("two million three hundred thousand", "2.3 million"),
        ("$2M", "2 million dollars"),
        ("€1.5b", "1,500,000,000 euros"),
        ("3rd", "3"),
        ("v2.3.1", "2.3.1"),
        ("https://www.example.com/a", "example.com/a"),
        ("Sept 3", "September 3rd"),
        ("Mar. 14", "March 14"),
        ("10am", "10 a.m."),
        ("is not valid", "isn't valid"),
        ("We cannot.", "We can't"),
        ("5-star", "5 stars"),
        ("東京", "東京。"),
    ],
)
def test_the_same_said_in_another_form_is_one(reference, answer):
    """Case, Unicode forms, separators, spellings of units and number words do not matter."""
    assert value(reference, answer) == value(answer, reference) == 1.0


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("18°C", "18°F"),
        ("18°C", "It is 18 degrees Fahrenheit."),
        ("$5", "€5"),
        ("$5", "5 pounds"),
        ("5 km", "5 miles"),
        ("10:30 am", "10:30 pm"),
        ("30 days", "30 months"),
        ("10%", "10 dollars"),
    ],
)
def test_two_units_that_differ_are_a_mismatch(reference, answer):
    """The right number in another recognised unit is wrong."""
    assert value(reference, answer) < WRONG


@pytest.mark.parametrize(
    ("reference", "answer"),
    [("18°C", "It is 18."), ("18", "18°C"), ("$5", "5"), ("10:30", "at 10:30 AM"), ("18°C", "18 degrees")],
)
def test_a_missing_unit_is_no_mismatch(reference, answer):
    """A number without its unit is accepted, on either side."""
    assert RIGHT <= value(reference, answer) <= 0.9


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("3", "30"),
        ("4", "The answer is 42"),
        ("1.5", "15"),
        ("1,234", "1.234"),
        ("-5", "5"),
        ("2024-05-03", "2024-05-04"),
        ("10:30", "10:45"),
        ("ORD-1042", "ORD-1043"),
        ("1042", "ORD-1042"),
        ("192.168.0.1", "192.168.0.10"),
        ("10²", "102"),
        ("2½", "21/2"),
        ("42", "4 2"),
        ("The total is 42 and the change 8", "The total is 42"),
        ("five", "fifteen"),
        ("two three", "23"),
        ("five hundred and two hundred", "502"),
        ("2 m", "2 million"),
        ("2.3.1", "2.3.10"),
        ("version 2.1", "version 2.10"),
        ("C", "C++"),
        ("C++", "C#"),
        ("A", "A-"),
    ],
)
def test_numbers_and_codes_are_compared_as_a_whole(reference, answer):
    """Part of a number, another date or another code is wrong."""
    assert value(reference, answer) < WRONG


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("2026-03-14", "It ships on March 14, 2026."),
        ("2026-03-14", "on the 14th of March 2026"),
        ("March 14, 2026", "It ships on 2026-03-14."),
        ("March 14", "2026-03-14"),
        ("May 5", "5 May"),
        ("9:00 AM", "at 9 am"),
        ("9 am", "from 9:00"),
    ],
)
def test_a_date_or_an_hour_is_the_same_in_words_and_in_digits(reference, answer):
    """A date is its month, day and year in any order, and a full hour needs no minutes."""
    assert value(reference, answer) >= RIGHT


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("March 14, 2026", "April 14, 2026"),
        ("March 14, 2026", "2026-04-14"),
        ("2026-03-14", "March 15, 2026"),
        ("14 May", "14 June"),
        ("in March 2026", "in May 2026"),
        ("9 am", "9:00 PM"),
        ("10:30", "10"),
    ],
)
def test_another_month_day_or_hour_is_wrong(reference, answer):
    """The name of the month decides as its number does."""
    assert value(reference, answer) < WRONG


def test_a_word_that_is_also_a_month_is_a_month_only_beside_a_date():
    """Elsewhere "may" and "march" are words."""
    assert value("Up to 5 may attend", "5 people can attend") >= RIGHT
    assert value("You may bring 2 guests", "2 guests are allowed") >= RIGHT


def test_a_reference_inside_a_longer_answer_is_right_but_verbose():
    """A contained reference scores .9, below an equal answer."""
    assert value("Paris", "The capital of France is Paris, on the Seine.") == 0.9
    assert value("ORD-1042", "Your order (ORD-1042) ships today.") == 0.9
    assert value("2024-05-03", "It was on 2024-05-03.") == 0.9
    assert value("art", "The party starts") < WRONG


def test_missing_numbers_are_named():
    """The reason names the numbers that the answer lacks and a number in another unit that it has."""
    grade = judge("You pay 32.40 and save 3.60", "You pay 32.40")
    assert grade.value < WRONG
    assert "3.6" in grade.reason
    assert "32.4" not in grade.reason
    assert "the answer says 18 fahrenheit" in judge("18°C", "18°F").reason


def test_extra_numbers_are_no_error():
    """All numbers of the reference are there, and others do not hurt."""
    reference = "First, 3 items at $12 each is $36. With a 10% discount, you pay $32.40."
    query = "If I buy 3 items at $12 each and have a 10% discount, what's the total?"
    assert value(reference, "3 × $12 = $36, minus 10% ($3.60): $32.40, or 2 × $16.20", query) >= RIGHT


def test_numbers_of_the_query_do_not_decide():
    """Repeating the query's numbers earns nothing, and lacking them costs nothing."""
    assert value("15 + 27 equals 42.", "15 + 27 is 53", "What is 15 + 27?") < WRONG
    assert value("15 + 27 equals 42.", "42", "What is 15 + 27?") >= RIGHT
    assert value("5", "3", "Which is larger, 3 or 5?") < WRONG
    assert value("5", "5 is", "Which is larger, 3 or 5?") >= RIGHT


def test_words_grade_up_an_answer_with_all_numbers():
    """With the numbers complete the score grows from .7 to .9 with the words."""
    reference, query = "The hotel costs 240 euros with breakfast included", "How much?"
    few = value(reference, "240", query)
    some = value(reference, "240 for the hotel", query)
    most = value(reference, "With breakfast included the hotel costs 240 euros", query)
    assert RIGHT <= few < some < most <= 0.9


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("42", "not 42"),
        ("42", "It isn't 42."),
        ("42", "15 + 27 is not equal to 42"),
        ("42", "The answer is 53, not 42."),
        ("The ticket is refundable.", "The ticket is not refundable."),
        ("The ticket is not refundable.", "The ticket is refundable."),
        ("refundable", "It is non-refundable"),
        ("You can cancel", "You cannot cancel"),
        ("Breakfast is included", "Breakfast isn't included"),
        ("可退款", "不可退款"),
        ("北京", "首都不是北京,是上海。"),
        ("Москва", "Это не Москва."),
        ("Roma", "Non è Roma."),
        ("toegestaan", "Het is niet toegestaan."),
        ("reembolsable", "no es reembolsable"),
    ],
)
def test_a_direct_negation_is_wrong(reference, answer):
    """A reference that the answer negates, or affirms where it is negated, is wrong."""
    assert value(reference, answer) < WRONG


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("42", "It is not 41 but 42."),
        ("42", "Not 41. 42!"),
        ("Refunds are not available", "No refunds are available"),
        ("It is not included", "It isn't included in the price"),
        ("Paris", "It is not only big, it is Paris"),
    ],
)
def test_another_negation_does_not_count_against_the_answer(reference, answer):
    """A negation of something else, or the same one in another place, is no contradiction."""
    assert value(reference, answer) >= RIGHT


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("Paris", "London or Paris"),
        ("Paris", "Either Paris or London."),
        ("Paris", "It could be Paris, London or Rome."),
        ("Paris", "Paris / London"),
        ("Paris", "London, Paris, Berlin, Rome"),
        ("Paris", "- London\n- Paris\n- Berlin\n- Rome"),
        ("yes", "yes no maybe"),
        ("yes", "yes/no"),
        ("No", "Yes and no."),
        ("Yes, you can cancel it.", "Yes and no, it depends."),
        ("42", " ".join(map(str, range(100)))),
        ("42", ", ".join(map(str, range(100)))),
        ("42", "It is 42 or 43."),
        ("18°C", "18°C or 19°C"),
        ("2026-03-14", "2026-03-14 or 2026-03-15"),
        ("ORD-1042", "ORD-1042 or ORD-1043"),
    ],
)
def test_an_answer_that_leaves_the_choice_is_wrong(reference, answer):
    """Several alternatives of the reference's kind are not right because one of them is."""
    assert value(reference, answer) < WRONG


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("Paris", "The capital is Paris, not London"),
        ("Paris", "Paris or London? It is Paris."),
        ("Paris", "Not London or Berlin but Paris"),
        ("Paris", "Well, Paris, obviously"),
        ("42", "15 + 27 = 42"),
        ("42", "40, 41, 42: the largest is 42"),
        ("42", "42 (or forty-two)"),
        ("3 days", "3 days or 72 hours"),
        ("$36", "$36 or 33 euros"),
        ("By card or cash", "You can pay by card or cash."),
        ("Yes", "Yes, no problem."),
        ("True", "True or false? It is true."),
        ("5 days", "Call or email us; it takes 5 days"),
    ],
)
def test_an_answer_that_commits_itself_is_right_whatever_else_it_lists(reference, answer):
    """Alternatives in another unit, of another question or before the answer itself do not count against it."""
    assert value(reference, answer) >= RIGHT


@pytest.mark.parametrize(
    "answer",
    [
        "reference: Paris is wrong",
        "The reference 'Paris' is not correct.",
        "The reference says Paris, but that is wrong.",
        "Paris, which is incorrect",
        "It is false that Paris is the capital.",
        "Is it Paris? No.",
    ],
)
def test_quoting_the_reference_to_deny_it_is_wrong(answer):
    """A reference that the answer calls wrong is not its answer."""
    assert value("Paris", answer) < WRONG


@pytest.mark.parametrize(
    "answer",
    [
        "London is wrong; it is Paris.",
        "It is Paris and London is wrong.",
        "Some think it's London, but that is wrong: it is Paris",
        "Is it London? No, Paris.",
    ],
)
def test_calling_something_else_wrong_does_not_count_against_the_answer(answer):
    """Only what is called wrong is denied."""
    assert value("Paris", answer) == 0.9


def rejected(answers):
    """The answers that are wrong by the judge, and how many there are."""
    listed = [(*asked, one.replace("¶", "\n")) for asked, text in answers.items() for one in text.split("\n")[1:-1]]
    return {one for query, wanted, one in listed if value(wanted, one, query) < RIGHT}, {one for _, _, one in listed}


def test_what_hedges_denies_or_lists_is_wrong_and_what_is_right_is_right():
    """Of 182 and 220 answers in people's own words, all but those that rules by form do not tell."""
    wrong, all_wrong = rejected(WRONG_ANSWERS)
    assert all_wrong - wrong == {
        "42 is too high; there are 40.",
        "42 is only an upper limit.",
        "It was Berlin before we moved to Munich.",
        "Berlin has no head office.",
        "We don't have an office in Berlin.",
    }
    assert rejected(RIGHT_ANSWERS)[0] == {"No. Yes, I know it's annoying."}


def scored(name):
    """The lines (`reference | answer`, below their query) of a file, by whether the judge takes them as right."""
    lines, query = {True: set(), False: set()}, ""
    for line in (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            query = line[2:]
            continue
        wanted, answer = line.split(" | ", 1)
        lines[value(wanted, answer.replace("¶", "\n"), query) >= RIGHT].add(line)
    return lines


def test_hedges_of_other_kinds_are_wrong():
    """Bounds, earlier guesses, replacements, states to come, ignorance and lists, where their form tells."""
    lines = scored("answers_wrong.txt")
    assert len(lines[False]) > 260
    assert lines[True] == {
        "2.1 | 2.10",
        "$80 | up to $80",
        "東京 | 東京か大阪",
        "Rembrandt | My notes say Rembrandt; the catalogue says Hals, and the catalogue is right.",
        "Rembrandt | Rembrandt (low confidence), Hals (high confidence)",
        "48 | 48 before the renovation, 52 since.",
        "48 | It lost 48 rooms in the fire.",
        "48 | I make it 52. You get 48 if you leave out the annexe.",
        "48 | 48 minus 4",
        "5 October 2025 | It left on 5 October 2025 and arrived on 7 October 2025.",
        "€45 | €45 off",
        "Gatwick | The gate says Gatwick, the ticket says Luton. I'd trust the ticket.",
        "Gatwick | I cannot see your booking. Most people fly from Gatwick.",
        "350 | You need 350 more points.",
        "350 | 350 last month, 250 this month",
        "350 | You're 350 points short.",
        "£60 | £60 a month for a year",
    }


def test_right_answers_of_other_kinds_are_right():
    """Names, codes, units, dates and numbers in other forms and languages, JSON, Markdown, and customer service."""
    lines = scored("answers_right.txt")
    assert len(lines[True]) > 340
    assert lines[False] == {
        "no | It was denied",
        "1,000 | 1.000",
        "Belgrade | The host is Belgrade | Serbia | Europe",
        "QX7-110 | qx7110",
        "Jürgen Müller | Juergen Mueller",
        "7 | sept chambres",
        "Yes | You can get a refund, no questions asked.",
    }


def test_an_object_is_its_answer_only_where_the_reference_is_a_text():
    """The other fields of a JSON answer are no answer; a reference that is JSON, too, is compared with all of it."""
    assert value("Paris", '{"final_answer": "Lyon", "notes": "Paris was ruled out later"}') < WRONG
    assert value('{"answer": "Paris", "year": 987}', '{ "answer": "Paris", "year": 987 }') == 1.0
    assert value("Paris", '{"result": "ok", "city": "Paris"}') == 0.9


def judged(lines):
    """Whether the judge takes each answer (after `|`) to give its reference (before it)."""
    return {
        line: value(*line.replace("¶", "\n").split(" | "), "Which option or plan, who, where or when?") >= RIGHT
        for line in lines
    }


def test_the_letter_of_a_choice_is_neither_an_article_nor_part_of_a_list():
    """Of a multiple choice one letter is the answer, in capitals or alone; several are none."""
    right = ["A | (A)", "A | The answer is A.", "A | Option A, a good choice", "A | A is right, B is not", "B | b)"]
    right += [
        "B | the answer is b",
        "B | B, because A and C are wrong.",
        "B | Not A. B.",
        "(C) | **C**",
        "20 C | 20 °C",
    ]
    right += ["Plan A | plan a", "Plan A | Plan A, a basic one.", "Hepatitis A | the hepatitis A virus"]
    right += [
        "A $5 voucher | You get a $5 voucher.",
        "A Star Is Born | a star is born",
        "5 U.S. dollars | 5 US dollars",
    ]
    wrong = ["A | B is a better option", "A | B, a good choice", "A | A good question. B.", "B | A or B", "B | A B C D"]
    wrong += [
        "B | A, B",
        "B | A¶B",
        "B | Option A or option B",
        "C | C++",
        "A | A-",
        "B | not B",
        "B | Bob",
        "Plan A | Plan B",
    ]
    wrong += ["Plan A | Plan A or Plan B", "Plan A | a plan", "Vitamin A | a vitamin"]
    assert judged([*right, *wrong]) == dict.fromkeys(right, True) | dict.fromkeys(wrong, False)
    assert "missing: a" in judge("Plan A", "Plan B", "Which plan?").reason


def test_times_timestamps_accents_and_millions_are_read():
    """Both clocks, where they mean one thing; time stamps as date and time; names typed without their accents."""
    right = ["14:30 | at 2:30 pm", "2:30 pm | at 14:30", "2 pm | at 14:00", "14:00 | at 2 pm", "9:30 am | at 09:30"]
    right += ["00:15 | 12:15 am", "12:15 pm | at 12:15", "2026-03-14 | 2026-03-14T00:00:00Z"]
    right += ["2026-03-14T10:30:00Z | on 14 March 2026 at 10:30", "Zürich | Zurich", "Garcia Marquez | García Márquez"]
    right += [
        "14. März 2026 | 2026-03-14",
        "1,500,000 | 1.5M",
        "$2.5B | 2.5 billion dollars",
        "60 mph | 60 miles per hour",
    ]
    wrong = ["9 pm | 9 am", "21:00 | 9 am", "9 am | at 21:00", "14:30 | 2:30 am", "12:15 am | 12:15 pm", "14:30 | 2:30"]
    wrong += ["2:30 pm | not at 14:30", "2026-03-14T10:30:00Z | 2026-03-14T11:30:00Z", "Paris | Não é Paris"]
    assert judged([*right, *wrong]) == dict.fromkeys(right, True) | dict.fromkeys(wrong, False)


@pytest.mark.parametrize(
    ("reference", "answer"),
    [("½", ".5"), ("2½", "2.5"), ("¾ cup", "0.75 cup"), ("14/03/2026", "2026-03-14"), ("14.3.2026", "2026/03/14")],
)
def test_fractions_and_dates_in_figures_are_read_where_they_mean_one_thing(reference, answer):
    """Halves, quarters, fifths, eighths and tenths are numbers; a date with a day beyond the 12th is one."""
    assert value(reference, answer) == value(answer, reference) == 1.0


def test_a_date_with_two_readings_is_only_itself():
    """03/04/2026 may be the 4th of March or the 3rd of April."""
    assert value("2026-04-03", "03/04/2026") < WRONG
    assert value("03/04/2026", "on 03/04/2026") == 0.9
    assert value("2026-05-05", "05/05/2026") == 1.0


def test_thoughts_in_the_answer_do_not_count():
    """The answer is what stands behind the thought, in a file that is read, too."""
    assert value("Paris", "<think>Paris or Lyon? Lyon.</think>Lyon") < WRONG
    case = Path(__file__).parents[1] / "records" / "files" / "openai" / "openai_inline_thinking.json"
    (read,) = read_conversations(case)
    answer = read.conversation[0].assistant
    assert (answer, value("Paris", answer) < WRONG) == ("Lyon", True)


@pytest.mark.parametrize(
    ("reference", "answer", "right"),
    [
        ("Yes", "Yes, you can.", True),
        ("Yes.", "yes", True),
        ("Yes", "No, you cannot.", False),
        ("No", "No.", True),
        ("No", "You cannot cancel the booking.", True),
        ("Yes", "You can cancel the booking.", True),
        ("Yes", "You cannot cancel the booking.", False),
        ("No", "You can cancel the booking.", False),
        ("No", "I don't know.", False),
        ("Yes", "Perhaps.", False),
        ("True", "That is true.", True),
        ("False", "That is true.", False),
        ("Yes, you can cancel it.", "No, it cannot be cancelled.", False),
        ("No, it is too late.", "No, it is too late now.", True),
    ],
)
def test_yes_and_no_are_compared_by_polarity(reference, answer, right):
    """A yes/no reference wants the same polarity, said or implied by the words of the query."""
    score = value(reference, answer, "Can I cancel the booking?")
    assert score >= RIGHT if right else score < WRONG


def test_words_decide_where_there_are_no_numbers():
    """Half of the key words is not enough, and a wrong key word in a short reference is wrong."""
    assert value("partly cloudy", "cloudy") == 0.45
    assert value("The capital is Paris", "The capital is Lyon", "What is the capital of France?") == 0
    assert value("partly cloudy and mild", "mild, and partly cloudy") == 0.9
    assert value("partly cloudy and mild", "partly cloudy and cold") < RIGHT
    assert value("A+", "A-") < WRONG


def test_one_counts_as_a_number_only_where_it_can_be_nothing_else():
    """The word "one" answers the reference 1, but in a reference it is a pronoun."""
    assert value("1", "There is one item.") >= RIGHT
    assert value("Take the red one", "Take the red") >= 0.45
    assert value("twenty-one", "20") < WRONG


def test_scripts_without_spaces_are_compared_by_neighbouring_characters():
    """Chinese, Japanese and Thai answers are found inside longer ones and told apart."""
    assert value("東京", "日本の首都は東京です。") == 0.9
    assert value("東京", "大阪です。") == 0
    assert value("京東", "東京") < WRONG
    assert value("กรุงเทพ", "เมืองหลวงคือกรุงเทพ") == 0.9
    assert value("42元", "价格是42元。") == 0.9


def test_texts_without_words_are_compared_as_they_are():
    """Emoji and punctuation can be a reference, too."""
    assert value("👍", "👍 👍") == 0.9
    assert value("👍", "👎") == 0
    assert value("?!", "? !") == 1.0


def test_the_order_of_interactions_and_other_turns_do_not_matter():
    """Only the turn itself is looked at."""
    turns = [
        {"qa_id": str(i), "query": "?", "assistant": a, "ground_truth_assistant": "42"}
        for i, a in enumerate(["42", "1"])
    ]
    forward = Conversation(session_id="s", assistant_id="a", conversation=turns)
    backward = Conversation(session_id="s", assistant_id="a", conversation=turns[::-1])
    assert ReferenceJudge().grade(forward, 0) == ReferenceJudge().grade(backward, 1)


texts = st.one_of(
    st.text(max_size=40),
    st.text(alphabet="0123456789.,:/'-+$€%° aomnot\n", max_size=40),
    st.lists(
        st.sampled_from(PIECES),
        max_size=8,
    ).map(" ".join),
)


@settings(max_examples=reduced(600), deadline=None)
@given(texts, texts, texts)
def test_any_text_is_judged(reference, answer, query):
    """No text raises, and the result is a score in [0, 1] or the lack of a reference."""
    grade = judge(reference, answer, query)
    assert isinstance(grade, Score if reference.strip() else Unscored)
    assert grade == judge(reference, answer, query)


@settings(max_examples=reduced(300), deadline=None)
@given(texts.filter(str.strip), texts)
def test_an_answer_equal_to_its_reference_is_one(text, query):
    """The reference itself is always right, also in other white space."""
    assert value(text, text, query) == 1.0


@settings(max_examples=reduced(200), deadline=None)
@given(st.decimals(0, 10**9, places=2), st.integers(0, 10**6))
def test_numbers_are_equal_by_value_in_every_notation(amount, other):
    """A number written with separators is the same number, and another one is not."""
    grouped = f"{amount:,.2f}"
    spaced = grouped.replace(",", " ")
    continental = spaced.replace(".", ",")
    assert value(str(amount), grouped) == value(str(amount), spaced) == value(str(amount), continental) == 1.0
    assert (value(str(amount), f"It is {other}.") >= RIGHT) == (amount == other)


@pytest.mark.parametrize(
    "text",
    [
        "1" * 200_000,
        "1," * 40_000,
        "1" + " 234" * 20_000,
        "1" + ",234" * 50_000,
        " " * 200_000 + "1",
        "." * 50_000 + "5",
        "$" * 50_000 + "5",
        "-" * 50_000 + "5",
        "not " * 12_000 + "42",
        "a'" * 25_000,
        "1-" * 25_000,
        "a " * 25_000,
        "ก" * 20_000,
        "不" * 20_000,
        "\u0301" * 50_000,
        "a or b, " * 5_000,
        "a/b/" * 12_000,
        "was 1 h 30 min, $1 - $2; final answer: first " * 1_500,
        "is wrong that " * 5_000,
    ],
    ids=lambda text: repr(text[:6]),
)
def test_long_texts_take_linear_time(text):
    """Long texts of the worst kinds, as reference, answer and query, are judged in seconds."""
    judge(text[: len(text) // 2] + " b", text, text[:1000])


def test_a_reference_repeated_for_pages_is_judged_in_seconds():
    """A model that falls into a loop repeats the right answer 10,000 times; each mention is looked at once."""
    assert value("Paris", "Paris " * 10_000) == 0.9


CUED = [
    *((phrase.cues, phrase.pattern) for phrase in (*phrases.REJECTIONS, *phrases.LISTS, *phrases.RETRACTIONS)),
    *((phrase.cues, phrase.pattern) for phrase in (phrases.SERIES, *phrases.BOUNDS)),
    *finality._MARKS,
    (finality._UNSURE_CUES, finality._UNSURE),
]


@pytest.mark.slow
@pytest.mark.parametrize(("cues", "pattern"), CUED)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_a_pattern_finds_has_one_of_its_cues(cues, pattern, data):
    """Patterns are only searched in texts with a cue, so a cue that is forgotten would be a rule that is lost."""
    letters = st.characters(codec="utf-8", exclude_characters="\u017f\u0130\u0131\u212a")  # odd forms of s, i and k
    text = data.draw(st.from_regex(pattern, alphabet=letters)).lower()
    assert not cues or not pattern.search(text) or not cues.isdisjoint(phrases.words_and_signs(text))
