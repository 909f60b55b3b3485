"""Thirty-one support tasks of a fictional web shop, with right answers and hand-written failures.

A task is a list of turns. A failure replaces the answer or the calls of one or more turns; one that changes
no answer gives a conversation with right answers and wrong tool use. ``p`` is how often support-v1 and
support-v2 get all answers of the task right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

KINDS = (
    "wrong_fact",
    "omitted_part",
    "wrong_tool",
    "missing_tool_call",
    "extra_tool_call",
    "wrong_parameter_value",
    "missing_parameter",
    "extra_parameter",
    "wrong_order",
    "result_not_used",
    "right_answer_wrong_tools",
    "empty_answer",
    "repeated_call",
    "crashed",
)


@dataclass(frozen=True)
class Call:
    """One tool call and what the tool returned."""

    name: str
    parameters: dict[str, Any]
    result: Any


@dataclass(frozen=True)
class Turn:
    """A query, its reference, right answers in several wordings, and the expected calls.

    ``calls=None`` expects nothing about tools; ``calls=[]`` expects that no tool is called.
    """

    query: str
    reference: str
    answers: Sequence[str]
    calls: Sequence[Call] | None = None
    ordered: bool = True


@dataclass(frozen=True)
class Change:
    """A deviation in one turn; None leaves that part right."""

    turn: int
    answer: str | None = None
    calls: Sequence[Call] | None = None
    uses_results: bool | None = None


@dataclass(frozen=True)
class Failure:
    """One way in which a conversation goes wrong."""

    kind: str
    changes: Sequence[Change]

    @property
    def answers_stay_right(self) -> bool:
        return all(change.answer is None for change in self.changes)


@dataclass(frozen=True)
class Task:
    """A scenario that both versions attempt several times."""

    id: str
    p: tuple[float, float]
    turns: Sequence[Turn]
    failures: Sequence[Failure] = ()
    language: str = "english"


@dataclass(frozen=True)
class Crash:
    """A crash of the agent: where, why, and whether the conversation continued afterwards."""

    turn: int
    error: str
    continues: bool = False


def call(name: str, result: Any, **parameters: Any) -> Call:
    return Call(name, parameters, result)


def at(
    turn: int, answer: str | None = None, *, calls: Sequence[Call] | None = None, uses: bool | None = None
) -> Change:
    return Change(turn, answer, calls, uses)


def fail(kind: str, *changes: Change) -> Failure:
    return Failure(kind, changes)


# calls shared by several tasks or failures
ORDER_1042 = call(
    "get_order",
    {"status": "packed", "ships_on": "2026-03-14", "carrier": "Postline"},
    order_id="ORD-1042",
)
ORDER_1077 = call("get_order", {"status": "open", "total": 58.9, "paid_with": "card"}, order_id="ORD-1077")
CANCEL_1077 = call("cancel_order", {"cancelled": True, "refund": 58.9}, order_id="ORD-1077", notify=True)
ORDER_1101 = call(
    "get_order",
    {"status": "delivered", "items": [{"sku": "KET-17", "price": 36.4}]},
    order_id="ORD-1101",
)
REFUND_1101 = call(
    "issue_refund",
    {"refund_id": "RF-5510", "approved": True},
    order_id="ORD-1101",
    amount=36.4,
    reason="damaged",
)
ORDER_1118 = call(
    "get_order",
    {"status": "delivered", "items": [{"sku": "MUG-04", "quantity": 6, "unit_price": 8.25}]},
    order_id="ORD-1118",
)
QUOTE_KRAKOW = call(
    "shipping_quote",
    {"price": 14.75, "currency": "USD", "days": 4},
    destination={"country": "PL", "city": "Kraków", "postcode": "31-042"},
    weight_kg=2.35,
    service="standard",
)
STOCK_POT = call("check_stock", {"available": 12}, sku="POT-30", warehouse="north")
STOCK_LID = call("check_stock", {"available": 0, "restock": "2026-04-02"}, sku="LID-30", warehouse="north")
WARRANTY_BX = call("warranty_lookup", {"valid": True, "ends": "2027-08-31", "plan": "standard"}, serial="BX-20931")
WARRANTY_GR = call(
    "warranty_lookup", {"valid": True, "ends": "2026-11-05", "product": "GR-2 grinder"}, serial="GR-77812"
)
CLAIM_GR = call(
    "open_claim",
    {"claim_id": "CL-3306", "label": "by e-mail"},
    serial="GR-77812",
    fault="motor does not start",
)
EUR_RATE = call("convert_currency", {"amount": 109.48, "rate": 0.92}, amount=119.0, source="USD", target="EUR")
GBP_RATE = call("convert_currency", {"amount": 94.01, "rate": 0.79}, amount=119.0, source="USD", target="GBP")
SLOTS_18 = call("list_slots", {"slots": ["09:30", "13:15"]}, service="knife sharpening", date="2026-03-18")
BOOK_18 = call(
    "book_slot",
    {"booking": "BK-614", "confirmed": True},
    service="knife sharpening",
    start="2026-03-18T13:15",
    customer={"name": "Iris Okafor", "phone": "555-0142"},
)
BOOKING_590 = call("get_booking", {"start": "2026-03-16T10:00", "service": "mower check"}, booking="BK-590")
SLOTS_20 = call("list_slots", {"slots": ["11:45", "16:20"]}, service="mower check", date="2026-03-20")
MOVE_590 = call("move_booking", {"confirmed": True}, booking="BK-590", start="2026-03-20T16:20")
POINTS_88 = call("loyalty_points", {"points": 2450, "tier": "silver"}, customer_id="C-0088")
POINTS_31 = call("loyalty_points", {"points": 1800, "expiring": 300}, customer_id="C-0031")
REDEEM_31 = call("redeem_points", {"voucher": "VX-7Q2", "value": 15.0}, customer_id="C-0031", points=1500)
ADDRESS_MUELLER = {
    "name": "Zoë Müller",
    "street": "Gärtnerstraße 8b",
    "city": "München",
    "postcode": "80992",
    "country": "DE",
}
ORDER_1203 = call("get_order", {"status": "open", "address_locked": False}, order_id="ORD-1203")
ADDRESS_1203 = call(
    "update_address", {"updated": True, "extra_cost": 6.2}, order_id="ORD-1203", address=ADDRESS_MUELLER
)
COUPON_CART = call(
    "price_cart",
    {"subtotal": 84.0, "discount": 12.6, "total": 71.4},
    items=[{"sku": "PAN-26", "quantity": 1}, {"sku": "SPA-02", "quantity": 2}],
    coupons=["SPRING15"],
)
CARD_BALANCE = call("gift_card_balance", {"balance": 27.5, "expires": "2028-01-31"}, code="GC-4471-KD")
INVOICE_990 = call("get_invoice", {"invoice": "INV-20260990", "total": 142.35}, order_id="ORD-0990")
SEND_990 = call(
    "send_email",
    {"sent": True},
    to="accounts@brightleaf.example",
    template="invoice",
    attachments=["INV-20260990.pdf"],
)
SEARCH_TEA = call(
    "search_products",
    {"hits": [{"sku": "TEA-51", "name": "Hōjicha set", "price": 24.9}]},
    query="Japanese tea set",
    filters={"price": {"max": 30.0}, "tags": ["ceramic", "gift"], "in_stock": True},
)
STOCK_TEA = call("check_stock", {"available": 7}, sku="TEA-51", warehouse="north")
BULK_PRICE = call("bulk_price", {"unit": 4.32, "total": 259.2}, sku="JAR-09", quantity=60, tiers=[24, 48, 96])
ETA_EXPRESS = call(
    "delivery_estimate", {"arrives": "2026-03-17", "cutoff": "15:00"}, postcode="04101", service="express"
)
TRACK_1150 = call(
    "track_shipment",
    {"last_scan": "2026-03-03", "place": "Dayton hub", "lost": True},
    order_id="ORD-1150",
)
TICKET_1150 = call(
    "create_ticket",
    {"ticket": "TK-8821", "answer_within_days": 3},
    order_id="ORD-1150",
    topic="lost parcel",
    priority="high",
)
SUBSCRIPTION = call("get_subscription", {"product": "coffee filters", "next": "2026-04-01"}, subscription_id="SUB-207")
PAUSE = call(
    "pause_subscription",
    {"resumes": "2026-06-01"},
    subscription_id="SUB-207",
    months=2,
)
PAYMENTS = call(
    "list_payments",
    {"payments": [{"id": "PAY-11", "amount": 47.8}, {"id": "PAY-12", "amount": 47.8}]},
    order_id="ORD-1188",
)
REFUND_PAYMENT = call(
    "issue_refund",
    {"refund_id": "RF-5588", "approved": True},
    order_id="ORD-1188",
    payment_id="PAY-12",
    amount=47.8,
    reason="duplicate",
)
TARIFF = call("tariff_rate", {"rate": 0.065, "vat": 0.081}, country="CH", hs_code="8210.00")
DUTY = call("calculate_duty", {"duty": 15.6, "vat": 20.7, "total": 36.3}, value=240.0, rate=0.065, vat=0.081)
COMPETITOR = call("competitor_price", {"price": 79.0, "shipping": 9.5}, sku="MIX-40", shop="kitchenbarn.example")
OWN_PRICE = call("get_price", {"price": 94.5}, sku="MIX-40")
PEDIDO = call(
    "get_order",
    {"status": "en reparto", "delivery": "2026-03-13", "articles": ["cafetera", "azucarero"]},
    order_id="ORD-1260",
)
HORARIO = call("set_delivery_window", {"confirmed": True}, order_id="ORD-1260", window={"from": "17:00", "to": "20:00"})
PARTS = call(
    "find_parts",
    {"parts": [{"sku": "SEAL-12", "price": 5.6}, {"sku": "VALVE-3", "price": 11.2}]},
    model="espresso maker EM-5",
    symptoms=["leaks", "low pressure"],
)
ORDER_PARTS = call(
    "create_order",
    {"order_id": "ORD-1301", "total": 16.8},
    customer_id="C-0145",
    items=[{"sku": "SEAL-12", "quantity": 1}, {"sku": "VALVE-3", "quantity": 1}],
)
ESCALATE = call(
    "create_ticket",
    {"ticket": "TK-8840", "answer_within_hours": 4},
    order_id="ORD-1222",
    topic="complaint",
    priority="urgent",
)
EXCHANGE_ORDER = call(
    "get_order",
    {"status": "delivered", "items": [{"sku": "APR-M", "price": 29.0}]},
    order_id="ORD-1275",
)
EXCHANGE_STOCK = call("check_stock", {"available": 3}, sku="APR-L", warehouse="north")
EXCHANGE = call("create_exchange", {"exchange": "EX-409", "label": True}, order_id="ORD-1275", old="APR-M", new="APR-L")
MEASURE = call("calculator", 46.8, expression="1.8 * 2.6 * 10")

TASKS = (
    Task(
        "order-status",
        (1.0, 1.0),
        [
            Turn(
                "Where is my order ORD-1042?",
                "Order ORD-1042 ships on 2026-03-14",
                [
                    "Order ORD-1042 ships on 2026-03-14.",
                    "I looked it up: order ORD-1042 is packed and ships on 2026-03-14.",
                    "Good news, order ORD-1042 is packed already. It ships on 2026-03-14.",
                ],
                [ORDER_1042],
            ),
            Turn(
                "And which carrier will bring it?",
                "Postline",
                ["The carrier is Postline.", "Postline will bring it to your door."],
            ),
        ],
        [
            fail("extra_tool_call", at(0, calls=[ORDER_1042, call("list_orders", ["ORD-1042"], open=True)])),
            fail("repeated_call", at(0, calls=[ORDER_1042, ORDER_1042, ORDER_1042, ORDER_1042])),
        ],
    ),
    Task(
        "order-cancel",
        (0.6, 0.9),
        [
            Turn(
                "Please cancel order ORD-1077, I ordered it twice by mistake.",
                "Order ORD-1077 is cancelled and $58.90 is refunded",
                [
                    "Done: order ORD-1077 is cancelled and $58.90 is refunded to your card.",
                    "Order ORD-1077 is cancelled. The full amount of $58.90 is being refunded.",
                ],
                [ORDER_1077, CANCEL_1077],
            ),
            Turn(
                "How long does the money take?",
                "5 working days",
                ["It takes 5 working days.", "Card refunds arrive within 5 working days."],
            ),
        ],
        [
            fail("wrong_order", at(0, calls=[CANCEL_1077, ORDER_1077])),
            fail(
                "missing_tool_call",
                at(0, "I can see an open order, but I was not able to cancel it.", calls=[ORDER_1077]),
            ),
            fail("wrong_fact", at(1, "The money arrives within 14 working days.")),
            fail(
                "omitted_part",
                at(0, "Order ORD-1077 is cancelled. Is there anything else I can do for you?"),
            ),
            fail(
                "missing_parameter",
                at(0, calls=[ORDER_1077, call("cancel_order", {"cancelled": True}, order_id="ORD-1077")]),
            ),
        ],
    ),
    Task(
        "refund-damaged",
        (0.5, 0.9),
        [
            Turn(
                "My kettle from order ORD-1101 arrived with a broken lid. What did I pay for it?",
                "$36.40",
                ["You paid $36.40 for the kettle.", "The kettle in that order cost $36.40."],
                [ORDER_1101],
            ),
            Turn(
                "I would like my money back.",
                "The refund of $36.40 is approved, number RF-5510",
                [
                    "The refund of $36.40 is approved. Its number is RF-5510.",
                    "Sorry about the lid! Your refund of $36.40 is approved; keep the number RF-5510.",
                ],
                [REFUND_1101],
            ),
            Turn(
                "Do I have to send the broken one back?",
                "No, keep or recycle the damaged item",
                [
                    "No. You may keep the damaged item or recycle it.",
                    "No, please keep or recycle the damaged item as you like.",
                ],
            ),
        ],
        [
            fail("wrong_fact", at(2, "Yes, we need it here within two weeks, in its original box.")),
            fail(
                "wrong_parameter_value",
                at(
                    1,
                    "A partial refund of $18.20 went through with reference RF-5511.",
                    calls=[
                        call(
                            "issue_refund",
                            {"refund_id": "RF-5511", "approved": True},
                            order_id="ORD-1101",
                            amount=18.2,
                            reason="damaged",
                        )
                    ],
                ),
            ),
            fail(
                "wrong_tool",
                at(
                    1,
                    "I have passed this on to a colleague, who will get in touch with you.",
                    calls=[call("create_ticket", {"ticket": "TK-8700"}, order_id="ORD-1101", topic="refund")],
                ),
            ),
            fail(
                "missing_parameter",
                at(
                    1,
                    calls=[
                        call(
                            "issue_refund",
                            {"refund_id": "RF-5510", "approved": True},
                            order_id="ORD-1101",
                            amount=36.4,
                        )
                    ],
                ),
            ),
        ],
    ),
    Task(
        "refund-partial",
        (0.2, 0.6),
        [
            Turn(
                "Two of the six mugs in ORD-1118 are chipped. How much would I get back for the two?",
                "$16.50",
                [
                    "For the two mugs you would get $16.50 back.",
                    "That makes $16.50: two mugs at $8.25 each.",
                ],
                [ORDER_1118, call("calculator", 16.5, expression="2 * 8.25")],
            ),
            Turn(
                "Fine, please refund that.",
                "The refund of $16.50 is approved",
                [
                    "The refund of $16.50 is approved.",
                    "Thank you for your patience. The refund of $16.50 is now approved.",
                ],
                [
                    call(
                        "issue_refund",
                        {"refund_id": "RF-5523", "approved": True},
                        order_id="ORD-1118",
                        amount=16.5,
                        reason="damaged",
                    )
                ],
            ),
        ],
        [
            fail(
                "wrong_fact",
                at(0, "For the chipped mugs you would get $49.50 back."),
            ),
            fail(
                "wrong_parameter_value",
                at(
                    0,
                    "You would get $8.25 back.",
                    calls=[ORDER_1118, call("calculator", 8.25, expression="1 * 8.25")],
                ),
                at(
                    1,
                    "I have sent you $8.25.",
                    calls=[
                        call(
                            "issue_refund",
                            {"refund_id": "RF-5524", "approved": True},
                            order_id="ORD-1118",
                            amount=8.25,
                            reason="damaged",
                        )
                    ],
                ),
            ),
            fail("empty_answer", at(1, "")),
            fail(
                "missing_tool_call",
                at(
                    1,
                    "I am afraid that I cannot start this from here; please write to the billing team.",
                    calls=[],
                ),
            ),
            fail(
                "right_answer_wrong_tools",
                at(
                    0,
                    calls=[call("search_products", {"hits": [{"sku": "MUG-04", "price": 8.25}]}, query="mug")],
                ),
            ),
        ],
    ),
    Task(
        "shipping-abroad",
        (0.55, 0.85),
        [
            Turn(
                "What does it cost to send a 2.35 kg parcel to 31-042 Kraków, Poland, standard service?",
                "$14.75",
                [
                    "Standard shipping to Kraków costs $14.75.",
                    "For 2.35 kg to Kraków it is $14.75 with the standard service.",
                ],
                [QUOTE_KRAKOW],
            ),
            Turn(
                "How many days does that take?",
                "4 days",
                ["It takes 4 days.", "Please allow 4 days for the parcel."],
            ),
            Turn(
                "And is it tracked?",
                "Yes, standard parcels are tracked",
                [
                    "Yes, standard parcels are tracked from door to door.",
                    "Yes. All standard parcels are tracked.",
                ],
                [],
            ),
        ],
        [
            fail(
                "wrong_parameter_value",
                at(
                    0,
                    "Shipping it to Poland costs $21.30.",
                    calls=[
                        call(
                            "shipping_quote",
                            {"price": 21.3, "currency": "USD", "days": 2},
                            destination={"country": "PL", "city": "Kraków", "postcode": "31-042"},
                            weight_kg=2.35,
                            service="express",
                        )
                    ],
                ),
                at(1, "It should be there in 2 working days."),
            ),
            fail(
                "wrong_parameter_value",
                at(
                    0,
                    "That would be $11.90.",
                    calls=[
                        call(
                            "shipping_quote",
                            {"price": 11.9, "currency": "USD", "days": 4},
                            destination={"country": "PL", "city": "Krakow", "postcode": "31-042"},
                            weight_kg=2.0,
                            service="standard",
                        )
                    ],
                ),
            ),
            fail("result_not_used", at(0, "Shipping inside Europe is usually about $20.", uses=False)),
            fail(
                "extra_parameter",
                at(
                    0,
                    calls=[
                        call(
                            "shipping_quote",
                            QUOTE_KRAKOW.result,
                            **QUOTE_KRAKOW.parameters,
                            insured=False,
                        )
                    ],
                ),
            ),
            fail(
                "extra_tool_call",
                at(2, calls=[call("search_help", {"article": "Tracking"}, query="tracked parcels")]),
            ),
        ],
    ),
    Task(
        "stock-two-items",
        (0.7, 0.95),
        [
            Turn(
                "Do you have the stock pot POT-30 and its lid LID-30 in the north warehouse?",
                "12 pots are available; the lid is back on 2026-04-02",
                [
                    "12 pots are available. The lid is sold out and back on 2026-04-02.",
                    "There are 12 pots available; the lid will be back on 2026-04-02.",
                ],
                [STOCK_POT, STOCK_LID],
                ordered=False,
            ),
            Turn(
                "Can you tell me when the lid is there?",
                "Yes, an e-mail is sent when the lid is in stock",
                [
                    "Yes, an e-mail is sent to you when the lid is in stock.",
                    "Yes. As soon as the lid is in stock again, an e-mail is sent to you.",
                ],
                [call("notify_me", {"subscribed": True}, sku="LID-30", channel="e-mail")],
            ),
        ],
        [
            fail(
                "missing_tool_call",
                at(0, "Of the pots 12 are available. I have no news of the cover.", calls=[STOCK_POT]),
            ),
            fail("omitted_part", at(0, "The lid is sold out until 2026-04-02.")),
            fail("repeated_call", at(0, calls=[STOCK_POT, STOCK_POT, STOCK_POT, STOCK_LID])),
            fail(
                "wrong_tool",
                at(
                    1,
                    "Please look at the product page every few days.",
                    calls=[call("search_products", {"hits": []}, query="lid")],
                ),
            ),
        ],
    ),
    Task(
        "warranty-status",
        (0.8, 0.95),
        [
            Turn(
                "Is my blender with serial BX-20931 still under warranty?",
                "Yes, the warranty ends on 2027-08-31",
                [
                    "Yes. The warranty ends on 2027-08-31.",
                    "Yes, your blender is covered: the warranty ends on 2027-08-31.",
                ],
                [WARRANTY_BX],
            ),
            Turn(
                "Does it cover the jug if I drop it?",
                "No, accidental damage is not covered",
                [
                    "No, accidental damage is not covered.",
                    "I am afraid not: no, accidental damage such as a drop is not covered.",
                ],
            ),
        ],
        [
            fail("wrong_fact", at(0, "Yes, it is covered until 2026-08-31.")),
            fail("wrong_fact", at(1, "Yes, breakages of any kind are included for the first two years.")),
            fail(
                "missing_tool_call",
                at(
                    0,
                    "Blenders come with a guarantee of two years, so that depends on the purchase date.",
                    calls=[],
                ),
            ),
            fail(
                "extra_parameter",
                at(
                    0,
                    calls=[call("warranty_lookup", WARRANTY_BX.result, serial="BX-20931", include_history=True)],
                ),
            ),
        ],
    ),
    Task(
        "warranty-claim",
        (0.25, 0.7),
        [
            Turn(
                "My grinder GR-77812 does not start any more. Is the warranty still running?",
                "The warranty runs until 2026-11-05",
                [
                    "The warranty runs until 2026-11-05.",
                    "You are in luck, the warranty still runs until 2026-11-05.",
                ],
                [WARRANTY_GR],
            ),
            Turn(
                "Then please open a claim: the motor does not start.",
                "Claim CL-3306 is open",
                ["Claim CL-3306 is open.", "I have filed it: claim CL-3306 is open now."],
                [CLAIM_GR],
            ),
            Turn(
                "How do I send it in?",
                "Use the prepaid label sent by e-mail",
                [
                    "Please use the prepaid label that was sent by e-mail.",
                    "Just use the prepaid label sent to you by e-mail.",
                ],
            ),
            Turn(
                "How long will the repair take?",
                "10 working days",
                ["About 10 working days.", "Repairs take 10 working days once it is here."],
            ),
        ],
        [
            fail("wrong_fact", at(3, "Repairs take 3 weeks at the moment.")),
            fail("wrong_fact", at(2, "Take it to the nearest post office and pay the postage there.")),
            fail(
                "wrong_tool",
                at(
                    1,
                    "Your return RT-0912 is registered.",
                    calls=[call("create_return", {"return": "RT-0912"}, serial="GR-77812", reason="faulty")],
                ),
            ),
            fail(
                "missing_parameter",
                at(
                    1,
                    "The form was rejected because a description of the fault is missing.",
                    calls=[call("open_claim", {"error": "fault is required"}, serial="GR-77812")],
                ),
            ),
            fail("empty_answer", at(1, "")),
            fail("extra_tool_call", at(1, calls=[WARRANTY_GR, CLAIM_GR])),
        ],
    ),
    Task(
        "currency-total",
        (0.75, 1.0),
        [
            Turn(
                "The mixer is $119.00. What is that in euros and in pounds?",
                "€109.48 and £94.01",
                [
                    "That is €109.48 and £94.01 at today's rates.",
                    "€109.48 and £94.01.",
                    "In euros €109.48 and in pounds £94.01.",
                ],
                [EUR_RATE, GBP_RATE],
                ordered=False,
            ),
            Turn(
                "Can I pay in pounds?",
                "No, payment is in US dollars only",
                [
                    "No, payment is possible in US dollars only.",
                    "No. Payment is taken in US dollars only; your bank converts it.",
                ],
            ),
        ],
        [
            fail("omitted_part", at(0, "That is €109.48 at today's rate.", calls=[EUR_RATE])),
            fail("result_not_used", at(0, "Roughly €110 and £95.", uses=False)),
            fail("wrong_fact", at(1, "Yes, choose GBP at the checkout.")),
            fail(
                "wrong_parameter_value",
                at(
                    0,
                    "It comes to €109.48 and CA$162.32.",
                    calls=[
                        EUR_RATE,
                        call(
                            "convert_currency",
                            {"amount": 162.32, "rate": 1.364},
                            amount=119.0,
                            source="USD",
                            target="CAD",
                        ),
                    ],
                ),
            ),
            fail("extra_tool_call", at(0, calls=[EUR_RATE, GBP_RATE, call("get_price", 119.0, sku="MIX-22")])),
        ],
    ),
    Task(
        "appointment-book",
        (0.5, 0.75),
        [
            Turn(
                "I want to have my knives sharpened on 2026-03-18. What times are free?",
                "09:30 and 13:15",
                ["Free times are 09:30 and 13:15.", "On that day 09:30 and 13:15 are free."],
                [SLOTS_18],
            ),
            Turn(
                "The later one, please. Iris Okafor, phone 555-0142.",
                "Booking BK-614 is confirmed for 13:15",
                [
                    "Booking BK-614 is confirmed for 13:15, Iris.",
                    "Thank you. Your booking BK-614 is confirmed for 13:15 on 2026-03-18.",
                ],
                [BOOK_18],
            ),
        ],
        [
            fail(
                "wrong_parameter_value",
                at(
                    1,
                    "You are booked for 09:30 with number BK-613.",
                    calls=[
                        call(
                            "book_slot",
                            {"booking": "BK-613", "confirmed": True},
                            service="knife sharpening",
                            start="2026-03-18T09:30",
                            customer={"name": "Iris Okafor", "phone": "555-0142"},
                        )
                    ],
                ),
            ),
            fail("missing_tool_call", at(1, "All right, see you then at the shop!", calls=[])),
            fail("omitted_part", at(0, "There is a time free at 09:30.")),
            fail(
                "missing_parameter",
                at(
                    1,
                    calls=[
                        call(
                            "book_slot",
                            {"booking": "BK-614", "confirmed": True},
                            service="knife sharpening",
                            start="2026-03-18T13:15",
                            customer={"name": "Iris Okafor"},
                        )
                    ],
                ),
            ),
        ],
    ),
    Task(
        "appointment-move",
        (0.8, 0.2),
        [
            Turn(
                "When is my appointment BK-590?",
                "2026-03-16 at 10:00",
                ["It is on 2026-03-16 at 10:00.", "Your mower check is on 2026-03-16 at 10:00."],
                [BOOKING_590],
            ),
            Turn(
                "Could we move it to the afternoon of 2026-03-20?",
                "The appointment is moved to 16:20",
                [
                    "The appointment is moved to 16:20 on 2026-03-20.",
                    "Gladly. Your appointment is now moved to 16:20 on that day.",
                ],
                [SLOTS_20, MOVE_590],
            ),
            Turn(
                "Does moving cost anything?",
                "No, moving is free",
                ["No, moving is free.", "No, moving an appointment is free of charge."],
                [],
            ),
        ],
        [
            fail(
                "wrong_parameter_value",
                at(
                    1,
                    "It is now at 11:45 on 2026-03-20.",
                    calls=[
                        SLOTS_20,
                        call("move_booking", {"confirmed": True}, booking="BK-590", start="2026-03-20T11:45"),
                    ],
                ),
            ),
            fail("wrong_order", at(1, calls=[MOVE_590, SLOTS_20])),
            fail(
                "wrong_tool",
                at(
                    1,
                    "I cancelled BK-590. Please choose a new time on our website.",
                    calls=[SLOTS_20, call("cancel_booking", {"cancelled": True}, booking="BK-590")],
                ),
            ),
            fail("wrong_fact", at(2, "There is a fee of $5 for each change.")),
            fail(
                "missing_tool_call",
                at(1, "In the afternoon of that day we have a gap, shall I take it?", calls=[SLOTS_20]),
            ),
        ],
    ),
    Task(
        "loyalty-balance",
        (1.0, 1.0),
        [
            Turn(
                "How many loyalty points do I have? My customer number is C-0088.",
                "2,450 points",
                [
                    "You have 2,450 points.",
                    "There are 2450 points on your account.",
                    "2,450 points, well done!",
                ],
                [POINTS_88],
            ),
            Turn(
                "Which tier is that?",
                "Silver",
                ["That is the silver tier.", "Silver."],
            ),
        ],
        [
            fail(
                "extra_parameter",
                at(
                    0,
                    calls=[call("loyalty_points", POINTS_88.result, customer_id="C-0088", currency="points")],
                ),
            ),
            fail(
                "right_answer_wrong_tools",
                at(0, calls=[call("get_customer", {"points": 2450, "tier": "silver"}, customer_id="C-0088")]),
            ),
        ],
    ),
    Task(
        "loyalty-redeem",
        (0.3, 0.6),
        [
            Turn(
                "I am C-0031. How many points do I have, and how many of them expire soon?",
                "1,800 points, of which 300 expire",
                [
                    "You have 1,800 points, 300 of which expire this month.",
                    "There are 1800 points on the account; 300 expire soon.",
                ],
                [POINTS_31],
            ),
            Turn(
                "Turn 1500 of them into a voucher.",
                "Voucher VX-7Q2 is worth $15.00",
                [
                    "Here it is: voucher VX-7Q2 is worth $15.00.",
                    "Your voucher VX-7Q2 is worth $15.00. Enjoy!",
                ],
                [REDEEM_31],
            ),
            Turn(
                "How many points are left?",
                "300 points",
                ["There are 300 points left.", "You still have 300 points."],
                [call("loyalty_points", {"points": 300, "expiring": 300}, customer_id="C-0031")],
            ),
        ],
        [
            fail("omitted_part", at(0, "There are 1,800 points on your account.")),
            fail(
                "missing_tool_call",
                at(2, "You still have 1,800 points.", calls=[]),
            ),
            fail(
                "wrong_parameter_value",
                at(
                    1,
                    "The voucher VX-7Q9 over $18.00 is ready.",
                    calls=[
                        call(
                            "redeem_points",
                            {"voucher": "VX-7Q9", "value": 18.0},
                            customer_id="C-0031",
                            points=1800,
                        )
                    ],
                ),
                at(
                    2,
                    "You have none left.",
                    calls=[call("loyalty_points", {"points": 0, "expiring": 0}, customer_id="C-0031")],
                ),
            ),
            fail("missing_tool_call", at(2, calls=[], uses=False)),
            fail("empty_answer", at(1, "")),
        ],
    ),
    Task(
        "address-change",
        (0.9, 0.25),
        [
            Turn(
                "Please send ORD-1203 to Zoë Müller, Gärtnerstraße 8b, 80992 München, Germany, instead.",
                "Order ORD-1203 goes to Gärtnerstraße 8b, 80992 München",
                [
                    "Done. Order ORD-1203 now goes to Gärtnerstraße 8b, 80992 München.",
                    "Order ORD-1203 goes to your new address, Gärtnerstraße 8b, 80992 München.",
                ],
                [ORDER_1203, ADDRESS_1203],
            ),
            Turn(
                "Does the change cost anything?",
                "$6.20",
                ["Yes, $6.20 more for shipping.", "The longer way costs $6.20."],
            ),
            Turn(
                "All right. When does it leave?",
                "2026-03-16",
                ["It leaves on 2026-03-16.", "The parcel leaves our warehouse on 2026-03-16."],
                [call("shipping_date", "2026-03-16", order_id="ORD-1203")],
            ),
        ],
        [
            fail("wrong_fact", at(1, "No, changing the delivery is free.")),
            fail(
                "wrong_parameter_value",
                at(
                    0,
                    "I changed the delivery to Gaertnerstr. 80.",
                    calls=[
                        ORDER_1203,
                        call(
                            "update_address",
                            {"updated": True, "extra_cost": 6.2},
                            order_id="ORD-1203",
                            address={**ADDRESS_MUELLER, "street": "Gaertnerstr. 80", "city": "Muenchen"},
                        ),
                    ],
                ),
            ),
            fail(
                "missing_parameter",
                at(
                    0,
                    "The system did not accept it, so the parcel keeps its old destination.",
                    calls=[
                        ORDER_1203,
                        call("update_address", {"error": "address is required"}, order_id="ORD-1203"),
                    ],
                ),
                at(1, "Nothing was changed, so nothing is charged."),
            ),
            fail(
                "missing_tool_call",
                at(2, "Usually orders leave within two days.", calls=[]),
            ),
            fail("empty_answer", at(0, "")),
            fail("missing_tool_call", at(0, calls=[ADDRESS_1203])),
            fail("wrong_order", at(0, calls=[ADDRESS_1203, ORDER_1203])),
        ],
    ),
    Task(
        "coupon-cart",
        (0.4, 0.7),
        [
            Turn(
                "One pan PAN-26 and two spatulas SPA-02 with the code SPRING15: what do I pay?",
                "$71.40",
                [
                    "With the code you pay $71.40.",
                    "The total with SPRING15 is $71.40.",
                    "You pay $71.40 instead of $84.00.",
                ],
                [COUPON_CART],
            ),
            Turn(
                "Can I add the code WELCOME5 as well?",
                "No, only one code per order",
                ["No, only one code is allowed per order.", "No. We accept only one code per order."],
                [],
            ),
        ],
        [
            fail("result_not_used", at(0, "The total is $84.00.", uses=False)),
            fail("wrong_fact", at(1, "Yes, both discounts are added up.")),
            fail(
                "extra_tool_call",
                at(
                    1,
                    calls=[
                        call(
                            "price_cart",
                            {"error": "one coupon only"},
                            items=[{"sku": "PAN-26", "quantity": 1}, {"sku": "SPA-02", "quantity": 2}],
                            coupons=["SPRING15", "WELCOME5"],
                        )
                    ],
                ),
            ),
            fail(
                "wrong_parameter_value",
                at(
                    0,
                    "You pay $60.35.",
                    calls=[
                        call(
                            "price_cart",
                            {"subtotal": 71.0, "discount": 10.65, "total": 60.35},
                            items=[{"sku": "PAN-26", "quantity": 1}, {"sku": "SPA-02", "quantity": 1}],
                            coupons=["SPRING15"],
                        )
                    ],
                ),
            ),
            fail(
                "missing_parameter",
                at(
                    0,
                    "That comes to $84.00.",
                    calls=[
                        call(
                            "price_cart",
                            {"subtotal": 84.0, "discount": 0.0, "total": 84.0},
                            items=[{"sku": "PAN-26", "quantity": 1}, {"sku": "SPA-02", "quantity": 2}],
                        )
                    ],
                ),
            ),
        ],
    ),
    Task(
        "gift-card",
        (0.95, 1.0),
        [
            Turn(
                "How much is left on gift card GC-4471-KD?",
                "$27.50",
                ["There is $27.50 left.", "The card still holds $27.50."],
                [CARD_BALANCE],
            ),
            Turn(
                "Until when can I use it?",
                "2028-01-31",
                ["Until 2028-01-31.", "The card is valid until 2028-01-31."],
            ),
        ],
        [
            fail("wrong_fact", at(1, "You can use it until 2027-01-31.")),
            fail("repeated_call", at(0, calls=[CARD_BALANCE, CARD_BALANCE, CARD_BALANCE])),
        ],
    ),
    Task(
        "invoice-copy",
        (0.6, 0.8),
        [
            Turn(
                "I need the invoice for ORD-0990. What is its number and total?",
                "Invoice INV-20260990, total $142.35",
                [
                    "It is invoice INV-20260990 with a total of $142.35.",
                    "Invoice INV-20260990, total $142.35.",
                ],
                [INVOICE_990],
            ),
            Turn(
                "Send it to accounts@brightleaf.example, please.",
                "The invoice is sent to accounts@brightleaf.example",
                [
                    "The invoice is sent to accounts@brightleaf.example.",
                    "Done, the invoice was sent to accounts@brightleaf.example just now.",
                ],
                [SEND_990],
            ),
            Turn(
                "Can the company name be changed on it?",
                "Yes, within 30 days of purchase",
                ["Yes, within 30 days of purchase.", "Yes, that can be done within 30 days of the purchase."],
            ),
        ],
        [
            fail("omitted_part", at(0, "Its number is INV-20260990.")),
            fail("wrong_fact", at(2, "No, what is printed there is final.")),
            fail(
                "missing_tool_call",
                at(1, "You can download the document from your account at any time.", calls=[]),
            ),
            fail(
                "wrong_parameter_value",
                at(
                    1,
                    calls=[
                        call(
                            "send_email",
                            {"sent": True},
                            to="accounts@brightleaf.example",
                            template="invoice",
                            attachments=["INV-20260990.pdf", "terms.pdf"],
                        )
                    ],
                ),
            ),
        ],
    ),
    Task(
        "opening-hours",
        (1.0, 1.0),
        [
            Turn(
                "When can I reach you by phone?",
                "Monday to Friday, 8:00 to 17:00",
                [
                    "Our phone line is open Monday to Friday, 8:00 to 17:00.",
                    "You can call us Monday to Friday from 8:00 to 17:00.",
                ],
                [],
            ),
            Turn(
                "And on Saturdays?",
                "The phone line is closed on Saturdays",
                [
                    "The phone line is closed on Saturdays, but you can write to us.",
                    "On Saturdays the phone line is closed.",
                ],
                [],
            ),
        ],
        [
            fail(
                "extra_tool_call",
                at(0, calls=[call("search_help", {"article": "Contact"}, query="phone hours")]),
            ),
        ],
    ),
    Task(
        "product-search",
        (0.85, 0.3),
        [
            Turn(
                "I am looking for a Japanese tea set as a gift, ceramic, under $30, in stock.",
                "Hōjicha set TEA-51 at $24.90",
                [
                    "I would suggest the Hōjicha set, TEA-51, at $24.90.",
                    "The Hōjicha set TEA-51 fits well, at $24.90.",
                ],
                [SEARCH_TEA],
            ),
            Turn(
                "How many of those are left in the north warehouse?",
                "7 sets",
                ["There are 7 sets left.", "We still have 7 sets."],
                [STOCK_TEA],
            ),
            Turn(
                "Can you wrap it?",
                "Yes, gift wrapping costs $3.50",
                ["Yes, gift wrapping costs $3.50.", "Yes. The gift wrapping costs $3.50."],
            ),
        ],
        [
            fail(
                "missing_parameter",
                at(
                    0,
                    "How about the Sencha service TEA-77 at $64.00?",
                    calls=[
                        call(
                            "search_products",
                            {"hits": [{"sku": "TEA-77", "name": "Sencha service", "price": 64.0}]},
                            query="Japanese tea set",
                        )
                    ],
                ),
                at(
                    1,
                    "There are 2 of them.",
                    calls=[call("check_stock", {"available": 2}, sku="TEA-77", warehouse="north")],
                ),
            ),
            fail(
                "wrong_parameter_value",
                at(
                    0,
                    "I found a plastic picnic cup, CUP-08, at $6.00.",
                    calls=[
                        call(
                            "search_products",
                            {"hits": [{"sku": "CUP-08", "name": "Picnic cup", "price": 6.0}]},
                            query="tea cup",
                            filters={"price": {"max": 30.0}, "tags": ["gift"], "in_stock": True},
                        )
                    ],
                ),
            ),
            fail("result_not_used", at(1, "We have plenty of them.", uses=False)),
            fail("wrong_fact", at(2, "Yes, that is free of charge.")),
            fail(
                "repeated_call",
                at(
                    0,
                    "Sorry, I was not able to find anything that fits.",
                    calls=[SEARCH_TEA, SEARCH_TEA, SEARCH_TEA, SEARCH_TEA, SEARCH_TEA],
                    uses=False,
                ),
                at(1, "I do not know which article you mean.", calls=[]),
            ),
        ],
    ),
    Task(
        "bulk-order",
        (0.15, 0.45),
        [
            Turn(
                "What would 60 preserving jars JAR-09 cost for our café?",
                "$4.32 each, $259.20 in total",
                [
                    "They are $4.32 each, $259.20 in total.",
                    "With the bulk price of $4.32 each it is $259.20 in total.",
                ],
                [BULK_PRICE],
            ),
            Turn(
                "And with free delivery, at what total does that start?",
                "$75.00",
                ["Delivery is free from $75.00.", "From $75.00 on, so yours is free."],
            ),
            Turn(
                "How much more would 96 jars be?",
                "$126.72",
                [
                    "96 jars would be $126.72 more.",
                    "The difference is $126.72.",
                ],
                [
                    call(
                        "bulk_price",
                        {"unit": 4.02, "total": 385.92},
                        sku="JAR-09",
                        quantity=96,
                        tiers=[24, 48, 96],
                    ),
                    call("calculator", 126.72, expression="385.92 - 259.20"),
                ],
            ),
        ],
        [
            fail("wrong_fact", at(2, "You would pay $155.52 more.")),
            fail("omitted_part", at(0, "The jars are $4.32 each.")),
            fail(
                "missing_tool_call",
                at(
                    2,
                    "You would pay $385.92.",
                    calls=[
                        call(
                            "bulk_price",
                            {"unit": 4.02, "total": 385.92},
                            sku="JAR-09",
                            quantity=96,
                            tiers=[24, 48, 96],
                        )
                    ],
                ),
            ),
            fail(
                "wrong_tool",
                at(
                    0,
                    "That would be $4.80 each and $288.00 altogether.",
                    calls=[call("get_price", {"price": 4.8}, sku="JAR-09", quantity=60)],
                ),
                at(2, "I cannot say exactly.", calls=[]),
            ),
            fail("wrong_fact", at(1, "It starts at $50.00.")),
        ],
    ),
    Task(
        "delivery-estimate",
        (0.7, 0.9),
        [
            Turn(
                "If I order express today, when does it arrive in 04101?",
                "2026-03-17 if ordered before 15:00",
                [
                    "It arrives on 2026-03-17 if ordered before 15:00.",
                    "If ordered before 15:00, express arrives on 2026-03-17.",
                ],
                [ETA_EXPRESS],
            ),
            Turn(
                "Does somebody have to be at home?",
                "Yes, express needs a signature",
                ["Yes, express needs a signature.", "Yes. An express parcel needs a signature at the door."],
            ),
        ],
        [
            fail("omitted_part", at(0, "It arrives on 2026-03-17.")),
            fail("wrong_fact", at(1, "No, the courier leaves it at the door.")),
            fail("result_not_used", at(0, "Normally one to three days after dispatch.", uses=False)),
            fail(
                "wrong_parameter_value",
                at(
                    0,
                    "It will arrive on 2026-03-20.",
                    calls=[
                        call(
                            "delivery_estimate",
                            {"arrives": "2026-03-20"},
                            postcode="04101",
                            service="standard",
                        )
                    ],
                ),
            ),
        ],
    ),
    Task(
        "missing-parcel",
        (0.35, 0.8),
        [
            Turn(
                "ORD-1150 should have been here a week ago. Where was it seen last?",
                "Dayton hub on 2026-03-03",
                [
                    "It was last scanned at the Dayton hub on 2026-03-03.",
                    "The last scan is from the Dayton hub on 2026-03-03.",
                ],
                [TRACK_1150],
            ),
            Turn(
                "Then it is lost. What are you going to do?",
                "Ticket TK-8821 is open with high priority",
                [
                    "I am sorry! Ticket TK-8821 is open with high priority.",
                    "Ticket TK-8821 is now open with high priority; we search for it at once.",
                ],
                [TICKET_1150],
            ),
            Turn(
                "When do I hear from you?",
                "3 days",
                ["In 3 days at the latest.", "You will have news within 3 days."],
            ),
        ],
        [
            fail("missing_tool_call", at(1, "Please be patient, it will turn up soon.", calls=[])),
            fail(
                "wrong_parameter_value",
                at(
                    1,
                    "I noted it as TK-8822.",
                    calls=[
                        call(
                            "create_ticket",
                            {"ticket": "TK-8822", "answer_within_days": 10},
                            order_id="ORD-1150",
                            topic="question",
                            priority="low",
                        )
                    ],
                ),
                at(2, "Within 10 days."),
            ),
            fail("wrong_fact", at(0, "It was last seen in Denver on 2026-03-08.")),
            fail(
                "repeated_call",
                at(
                    0,
                    "The tracking page does not load, please try it again later.",
                    calls=[TRACK_1150, TRACK_1150, TRACK_1150, TRACK_1150, TRACK_1150, TRACK_1150],
                    uses=False,
                ),
            ),
            fail("extra_tool_call", at(1, calls=[TRACK_1150, TICKET_1150])),
        ],
    ),
    Task(
        "subscription-pause",
        (1.0, 0.4),
        [
            Turn(
                "When is the next delivery of my subscription SUB-207?",
                "2026-04-01",
                ["The next one is due on 2026-04-01.", "Your coffee filters come next on 2026-04-01."],
                [SUBSCRIPTION],
            ),
            Turn(
                "I am away. Pause it for two months, please.",
                "The subscription is paused and resumes on 2026-06-01",
                [
                    "The subscription is paused and resumes on 2026-06-01.",
                    "Your subscription is paused for two months. It resumes on 2026-06-01.",
                ],
                [PAUSE],
            ),
        ],
        [
            fail(
                "wrong_tool",
                at(
                    1,
                    "I have cancelled it for you.",
                    calls=[call("cancel_subscription", {"cancelled": True}, subscription_id="SUB-207")],
                ),
            ),
            fail(
                "wrong_parameter_value",
                at(
                    1,
                    "Deliveries stop until 2026-05-01.",
                    calls=[
                        call(
                            "pause_subscription",
                            {"resumes": "2026-05-01"},
                            subscription_id="SUB-207",
                            months=1,
                        )
                    ],
                ),
            ),
            fail(
                "wrong_parameter_value",
                at(
                    1,
                    "This did not work: the system wants a number of months.",
                    calls=[
                        call(
                            "pause_subscription",
                            {"error": "months must be a number"},
                            subscription_id="SUB-207",
                            months="two",
                        )
                    ],
                ),
            ),
            fail("extra_tool_call", at(1, calls=[SUBSCRIPTION, PAUSE])),
        ],
    ),
    Task(
        "duplicate-charge",
        (0.2, 0.5),
        [
            Turn(
                "I was charged twice for ORD-1188! Can you see that?",
                "Yes, two payments of $47.80",
                [
                    "Yes, I see two payments of $47.80 each.",
                    "Yes, there are two payments of $47.80 for that order.",
                ],
                [PAYMENTS],
            ),
            Turn(
                "So give me one of them back.",
                "Payment PAY-12 is refunded, number RF-5588",
                [
                    "Of course. Payment PAY-12 is refunded; the number is RF-5588.",
                    "Payment PAY-12 is refunded under the number RF-5588.",
                ],
                [REFUND_PAYMENT],
            ),
            Turn(
                "Why did that happen?",
                "The payment page was reloaded during checkout",
                [
                    "The payment page was reloaded during checkout.",
                    "As far as I can see, the payment page was reloaded during the checkout.",
                ],
                [call("payment_log", {"cause": "page reloaded during checkout"}, order_id="ORD-1188")],
            ),
        ],
        [
            fail("wrong_fact", at(0, "No, I can only see a single charge for that order.")),
            fail(
                "wrong_parameter_value",
                at(
                    1,
                    "I have returned $95.60 to you under RF-5589.",
                    calls=[
                        call(
                            "issue_refund",
                            {"refund_id": "RF-5589", "approved": True},
                            order_id="ORD-1188",
                            payment_id="PAY-11",
                            amount=95.6,
                            reason="duplicate",
                        )
                    ],
                ),
            ),
            fail("missing_tool_call", at(2, "Your bank has made a mistake.", calls=[])),
            fail("result_not_used", at(2, "These things happen, I am sorry.", uses=False)),
            fail("empty_answer", at(1, "")),
            fail(
                "extra_parameter",
                at(
                    1,
                    calls=[call("issue_refund", REFUND_PAYMENT.result, **REFUND_PAYMENT.parameters, notify=True)],
                ),
            ),
        ],
    ),
    Task(
        "customs-duty",
        (0.0, 0.35),
        [
            Turn(
                "Which duty and VAT rates apply to a hand mill (8210.00) sent to Switzerland?",
                "6.5 % duty and 8.1 % VAT",
                ["The rates are 6.5 % duty and 8.1 % VAT.", "You pay 6.5 % duty and 8.1 % VAT."],
                [TARIFF],
            ),
            Turn(
                "How much is that for goods worth $240.00?",
                "$36.30",
                ["It comes to $36.30.", "You would pay $36.30 in all: $15.60 duty and $20.70 VAT."],
                [DUTY],
            ),
            Turn(
                "Who pays that?",
                "The recipient pays customs charges on delivery",
                [
                    "The recipient pays the customs charges on delivery.",
                    "The recipient pays all customs charges on delivery.",
                ],
            ),
        ],
        [
            fail("wrong_fact", at(1, "It would be $35.04.")),
            fail(
                "extra_tool_call",
                at(
                    0,
                    "I would reckon with 2.5 % and 7.7 %.",
                    calls=[call("search_help", {"article": "Customs"}, query="Switzerland"), TARIFF],
                    uses=False,
                ),
                at(1, "About $25.30.", uses=False),
            ),
            fail(
                "wrong_parameter_value",
                at(
                    1,
                    "It comes to $19.44.",
                    calls=[
                        call(
                            "calculate_duty",
                            {"duty": 0.0, "vat": 19.44, "total": 19.44},
                            value=240.0,
                            rate=0.0,
                            vat=0.081,
                        )
                    ],
                ),
            ),
            fail("wrong_fact", at(2, "We do; everything is included in the price.")),
            fail("omitted_part", at(0, "The duty is 6.5 %.")),
        ],
    ),
    Task(
        "price-match",
        (0.0, 0.0),
        [
            Turn(
                "Kitchenbarn.example sells the mixer MIX-40 cheaper. By how much, shipping included?",
                "$6.00 cheaper",
                ["It is $6.00 cheaper there, shipping included.", "With shipping it is $6.00 cheaper."],
                [OWN_PRICE, COMPETITOR, call("calculator", 6.0, expression="94.5 - (79.0 + 9.5)")],
            ),
            Turn(
                "Will you match that price?",
                "Yes, the matched price is $88.50",
                ["Yes, the matched price is $88.50.", "Yes, gladly: your matched price is $88.50."],
                [call("match_price", {"approved": True, "price": 88.5}, sku="MIX-40", price=88.5)],
            ),
        ],
        [
            fail(
                "wrong_parameter_value",
                at(
                    0,
                    "It is $15.50 cheaper there.",
                    calls=[OWN_PRICE, COMPETITOR, call("calculator", 15.5, expression="94.5 - 79.0")],
                ),
                at(
                    1,
                    "We can go down to $79.00.",
                    calls=[call("match_price", {"approved": True, "price": 79.0}, sku="MIX-40", price=79.0)],
                ),
            ),
            fail("missing_tool_call", at(1, "I am afraid that we never do that.", calls=[])),
            fail(
                "wrong_tool",
                at(
                    1,
                    "I can offer you a coupon of 5 % on your next purchase.",
                    calls=[call("create_coupon", {"code": "SORRY5"}, percent=5)],
                ),
            ),
            fail(
                "missing_tool_call",
                at(0, "We do not have a comparison with other shops.", calls=[OWN_PRICE]),
                at(1, "Without a comparison that is not possible.", calls=[]),
            ),
        ],
    ),
    Task(
        "pedido-en-reparto",
        (0.45, 0.7),
        [
            Turn(
                "Hola, ¿cuándo llega mi pedido ORD-1260?",
                "El pedido ORD-1260 llega el 2026-03-13",
                [
                    "El pedido ORD-1260 llega el 2026-03-13.",
                    "Buenos días. Su pedido ORD-1260 ya está en reparto: llega el 2026-03-13.",
                ],
                [PEDIDO],
            ),
            Turn(
                "¿Puede ser entre las 17:00 y las 20:00? Mañana trabajo.",
                "Sí, la entrega queda confirmada por la tarde",
                [
                    "Sí, la entrega queda confirmada por la tarde.",
                    "Sí. La entrega por la tarde queda confirmada, entre las 17:00 y las 20:00.",
                ],
                [HORARIO],
            ),
        ],
        [
            fail("wrong_fact", at(0, "El paquete llega el 2026-03-30.")),
            fail("missing_tool_call", at(1, "Lo siento, no podemos cambiar el horario.", calls=[])),
            fail(
                "wrong_parameter_value",
                at(
                    1,
                    "De acuerdo, el repartidor pasará por la mañana.",
                    calls=[
                        call(
                            "set_delivery_window",
                            {"confirmed": True},
                            order_id="ORD-1260",
                            window={"from": "07:00", "to": "10:00"},
                        )
                    ],
                ),
            ),
            fail("empty_answer", at(1, "")),
        ],
        language="spanish",
    ),
    Task(
        "spare-parts",
        (0.3, 0.65),
        [
            Turn(
                "My espresso maker EM-5 leaks and has low pressure. Which parts do I need?",
                "Seal SEAL-12 and valve VALVE-3",
                [
                    "You need the seal SEAL-12 and the valve VALVE-3.",
                    "Two parts: seal SEAL-12 and valve VALVE-3.",
                ],
                [PARTS],
            ),
            Turn(
                "Order one of each for me (C-0145). What is the total?",
                "Order ORD-1301, total $16.80",
                ["I placed order ORD-1301, total $16.80.", "Order ORD-1301 is placed; the total is $16.80."],
                [ORDER_PARTS],
            ),
            Turn(
                "Is it difficult to fit them?",
                "No, it takes 20 minutes with a screwdriver",
                [
                    "No, it takes about 20 minutes with a screwdriver.",
                    "No. With a screwdriver it takes 20 minutes.",
                ],
            ),
        ],
        [
            fail("omitted_part", at(0, "The seal SEAL-12 will fix the leak.")),
            fail(
                "wrong_parameter_value",
                at(
                    1,
                    "Your purchase ORD-1302 comes to $28.00.",
                    calls=[
                        call(
                            "create_order",
                            {"order_id": "ORD-1302", "total": 28.0},
                            customer_id="C-0145",
                            items=[{"sku": "SEAL-12", "quantity": 1}, {"sku": "VALVE-3", "quantity": 2}],
                        )
                    ],
                ),
            ),
            fail("wrong_fact", at(2, "Yes, this should only be done by a trained technician.")),
            fail(
                "extra_tool_call",
                at(
                    0,
                    "I have ordered a descaler for you.",
                    calls=[
                        call(
                            "create_order",
                            {"order_id": "ORD-1300", "total": 9.9},
                            customer_id="unknown",
                            items=[{"sku": "DESC-1", "quantity": 1}],
                        ),
                        PARTS,
                    ],
                    uses=False,
                ),
            ),
            fail("extra_tool_call", at(1, calls=[PARTS, ORDER_PARTS])),
        ],
    ),
    Task(
        "complaint-escalation",
        (0.65, 0.85),
        [
            Turn(
                "Third time the wrong item in ORD-1222. I want to talk to a human, now!",
                "Ticket TK-8840 is urgent; a colleague calls within 4 hours",
                [
                    "I am very sorry. Ticket TK-8840 is urgent, and a colleague calls you within 4 hours.",
                    "I understand. Ticket TK-8840 is marked urgent; a colleague calls within 4 hours.",
                ],
                [ESCALATE],
            ),
            Turn(
                "And what do I get for the trouble?",
                "A $10.00 voucher",
                ["You get a $10.00 voucher from us.", "As an apology, a $10.00 voucher."],
            ),
        ],
        [
            fail("wrong_fact", at(1, "A discount of 25 % on everything.")),
            fail(
                "wrong_tool",
                at(
                    0,
                    "I can exchange the item for you at once.",
                    calls=[call("create_exchange", {"exchange": "EX-390"}, order_id="ORD-1222")],
                ),
            ),
            fail(
                "wrong_parameter_value",
                at(
                    0,
                    "I wrote it down as TK-8841, somebody answers within 3 days.",
                    calls=[
                        call(
                            "create_ticket",
                            {"ticket": "TK-8841", "answer_within_hours": 72},
                            order_id="ORD-1222",
                            topic="complaint",
                            priority="normal",
                        )
                    ],
                ),
            ),
        ],
    ),
    Task(
        "exchange-size",
        (0.45, 0.75),
        [
            Turn(
                "The apron in ORD-1275 is too small. Do you have it in L?",
                "Yes, 3 aprons in size L are available",
                [
                    "Yes, 3 aprons in size L are available.",
                    "Yes. In size L there are 3 aprons available.",
                ],
                [EXCHANGE_ORDER, EXCHANGE_STOCK],
            ),
            Turn(
                "Exchange it, please.",
                "Exchange EX-409 is registered",
                [
                    "Exchange EX-409 is registered.",
                    "Your exchange EX-409 is registered; the label is on its way.",
                ],
                [EXCHANGE],
            ),
        ],
        [
            fail("wrong_order", at(0, calls=[EXCHANGE_STOCK, EXCHANGE_ORDER])),
            fail(
                "right_answer_wrong_tools",
                at(0, calls=[call("search_products", {"hits": 3}, query="apron L")]),
            ),
            fail("wrong_fact", at(0, "No, that one is sold out.")),
            fail(
                "wrong_parameter_value",
                at(
                    1,
                    "I registered EX-410, you will get the same model again.",
                    calls=[
                        call(
                            "create_exchange",
                            {"exchange": "EX-410", "label": True},
                            order_id="ORD-1275",
                            old="APR-M",
                            new="APR-M",
                        )
                    ],
                ),
            ),
            fail("empty_answer", at(1, "")),
        ],
    ),
    Task(
        "garden-fleece",
        (0.1, 0.55),
        [
            Turn(
                "My bed is 1.8 m by 2.6 m. How many square metres of fleece do I need for ten such beds?",
                "46.8 m²",
                ["You need 46.8 m² of fleece.", "For ten beds that is 46.8 m²."],
                [MEASURE],
            ),
            Turn(
                "You sell it in rolls of 20 m². How many rolls is that?",
                "3 rolls",
                ["That is 3 rolls.", "You need 3 rolls, with some to spare."],
            ),
            Turn(
                "And the price, at $17.30 a roll?",
                "$51.90",
                ["That makes $51.90.", "It comes to $51.90."],
                [call("calculator", 51.9, expression="3 * 17.30")],
            ),
        ],
        [
            fail(
                "wrong_fact",
                at(1, "You need 2 of them."),
                at(2, "That makes $34.60.", calls=[call("calculator", 34.6, expression="2 * 17.30")]),
            ),
            fail(
                "wrong_parameter_value",
                at(0, "You need 4.68 m².", calls=[call("calculator", 4.68, expression="1.8 * 2.6")]),
                at(1, "A single one is enough."),
                at(2, "That makes $17.30.", calls=[]),
            ),
            fail("missing_tool_call", at(2, "That makes $59.10.", calls=[])),
            fail("result_not_used", at(0, "I would take about 50 m² to be safe.", uses=False)),
            fail(
                "right_answer_wrong_tools",
                at(0, calls=[call("search_help", {"article": "Fleece"}, query="area")]),
            ),
        ],
    ),
)

# placed by hand: a crash is an infrastructure accident, not a property of the task
CRASHES = {
    ("support-v1", "missing-parcel", 2): Crash(0, "TimeoutError: track_shipment did not answer within 30 s"),
    ("support-v1", "invoice-copy", 3): Crash(1, "ConnectionError: mail server closed the connection"),
    ("support-v2", "address-change", 1): Crash(1, "RuntimeError: model overloaded (529)", continues=True),
    ("support-v2", "customs-duty", 0): Crash(1, "ContextLengthExceeded: 8,312 tokens, 8,192 allowed"),
}
