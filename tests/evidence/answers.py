"""What people answer when they hedge, deny or list, and when they are right; none was written after the rules.

By question and reference; a line is an answer, in which ¶ stands for a new line.
"""

WRONG = {
    ("What is the capital of France?", "Paris"): """
Paris→London
Unlike Paris, Lyon is the capital.
Paris is a common misconception.
Paris (50%) or Lyon (50%)
Nobody would say Paris
Paris, or is it London?
I used to think Paris
Paris or London, one of the two.
It's either Paris or Lyon.
Paris? Lyon? Marseille? Hard to say.
Maybe Paris, maybe Lyon.
Possibly Paris, possibly Lyon
It could be Paris, but it could just as well be Lyon.
Not sure whether it's Paris or Lyon.
Anything but Paris.
It's a common mistake to answer Paris; the capital is Lyon.
Paris was the capital until 1871, now it is Versailles.
Lyon (not Paris)
Lyon, not Paris.
Lyon rather than Paris
Paris isn't the capital of France.
The capital of France is no longer Paris.
If you believe the tourists, Paris; in truth it is Lyon.
My first guess was Paris, my final answer is Lyon.
~~Paris~~ Lyon
Paris / Lyon / Marseille
Paris|Lyon
Options: A) Paris B) Lyon C) Marseille
1. Paris¶2. Lyon¶3. Marseille
- Paris¶- Lyon
Paris, Lyon, Marseille, Nice
Paris and Lyon
Paris... no wait, Lyon.
Paris? No, Lyon.
Paris is what most people say. They are wrong.
You might think Paris, but you'd be mistaken.
The answer is definitely not Paris.
It can't be Paris.
Paris is the wrong answer.
I would have said Paris, but the documents say Lyon.
Contrary to popular belief, Paris is not the capital.
Whoever says Paris is mistaken: it's Lyon.
Far from Paris: it is Lyon
Paris used to be the answer.
It ain't Paris.
Is it Paris?
Paris, I guess? Or Lyon.
Lyon. Paris would be incorrect.
Some sources list Paris, others Lyon.
There is no evidence that it is Paris.
I can't tell whether it is Paris.
It's between Paris and Lyon.
Without more information I can't say; candidates include Paris and Lyon.
Paris == false
Paris ✗, Lyon ✓
Paris (wrong), Lyon (right)
Rule out Paris.
""",
    ("How many widgets are left?", "42"): """
42 or 43
41, 42 or 43
Either 42 or 24.
Between 40 and 42
Anywhere from 42 to 50
42? 43? One of these.
Not 42 but 43.
42 → 43
We had 42; now there are 40.
It was 42 yesterday, today it is 40.
42, sorry, I meant 40.
More than 42
Fewer than 42.
42 is too high; there are 40.
40, 41, 42, 43, 44, 45
I doubt it's 42.
The system shows 42, but that count is out of date.
Nobody counted 42.
There aren't 42 left.
I'd guess 42, maybe 43.
42 is only an upper limit.
""",
    ("Is my order covered by the warranty?", "Yes"): """
Yes and no.
Yes, but also no.
Maybe yes, maybe no
It's not a yes.
I can't say yes.
Yes or no, depending on the date.
Yes? No? I don't know.
I wish I could say yes.
yes no maybe
It would be wrong to say yes.
""",
    ("Is my order covered by the warranty?", "No"): """
No, wait, yes.
No... actually, yes it is.
No is not the right answer.
""",
    ("When was the invoice sent?", "14 March 2026"): """
2026-03-14 or 2026-03-15
14 March 2026 or 15 March 2026, I'm not sure which.
It was not sent on 14 March 2026.
March 14, 2026 → March 16, 2026
Some time between 14 March 2026 and 16 March 2026
""",
    ("How much will be refunded?", "$36.50"): """
$36.50 or $63.50
You would have got $36.50, but now it's $30.
You won't get $36.50.
Not $36.50 but $30.00.
""",
    ("Who wrote Hamlet?", "William Shakespeare"): """
Christopher Marlowe or William Shakespeare
Many credit William Shakespeare, but it was Christopher Marlowe.
Anyone but William Shakespeare
Not by William Shakespeare, as is often claimed.
""",
    ("Which plan includes phone support?", "The Business plan"): """
All plans except the Business plan.
Every plan but the Business plan.
The Business plan used to include it.
The Business plan doesn't.
""",
    ("Which part of the fee is due?", "½"): """
1/2 or 1/4
""",
    ("Where is the head office?", "Berlin"): """
Berlin — or Munich?
Berlin, or possibly Hamburg.
Either Munich or Berlin, I believe.
I'm torn between Berlin and Munich.
Could be Berlin. Could be Munich.
It was Berlin before we moved to Munich.
We moved from Berlin to Munich.
Munich. (Not Berlin.)
Munich, formerly Berlin.
Definitely not in Berlin.
It is nowhere near Berlin.
None of our offices is in Berlin.
No, not Berlin.
Berlin has no head office.
We have no office in Berlin.
We don't have an office in Berlin.
Berlin, Hamburg or Munich
One of: Berlin, Hamburg, Munich
* Berlin¶* Hamburg¶* Munich
Berlin? I doubt it.
Berlin? Not any more.
I cannot confirm that it's Berlin.
It's wrong to say Berlin.
The website says Berlin, which is outdated; it's Munich.
Berlin -> Munich
Berlin, correction: Munich
Scratch that, not Berlin, Munich.
Ask in Berlin or Munich.
Never in Berlin.
Neither Berlin nor Munich.
""",
    ("How many days does shipping take?", "7"): """
7, 8, 9 or 10
5-7 or 7-9
It takes 7, no, 9 days.
Not 7 days.
It takes longer than 7 days.
Less than 7 days
It never takes 7 days.
7 days? No, 9.
Seven or eight
It used to take 7 days; now it takes 9.
Originally 7, currently 9.
""",
    ("Can I change my seat?", "Yes"): """
Yes... well, no.
I can't answer with yes or no.
Neither yes nor no.
Not yes.
Perhaps yes, perhaps no.
Yes and no
""",
    ("Can I change my seat?", "No"): """
No? Yes!
I wouldn't say no.
Yes, or no
""",
    ("When does the contract end?", "3 May 2025"): """
3 May 2025 or 3 June 2025
It doesn't end on 3 May 2025.
May 3, 2025? No, June 3, 2025.
Not on 3 May 2025 but on 3 June 2025.
""",
    ("What does the course cost?", "€120"): """
€120 or €140
€120, maybe €140
It was €120, now it's €140.
No longer €120
""",
    ("Who discovered radium?", "Marie Curie"): """
Marie Curie or Lise Meitner
It wasn't Marie Curie.
Not Marie Curie: Lise Meitner.
Some say Marie Curie, others Lise Meitner.
Marie Curie did not.
""",
    ("Which language is it written in?", "Python"): """
Python or Ruby
Python, Ruby, Go, Rust
It isn't Python.
Anything except Python
Python ❌¶Ruby ✅
They migrated from Python to Rust.
""",
    ("How large is the discount?", "15 %"): """
15 % or 20 %
Not 15 %, 20 %.
There's no 15 % discount.
15% → 20%
""",
}

RIGHT = {
    ("What is the capital of France?", "Paris"): """
Paris
Paris.
It's Paris.
The capital of France is Paris.
France's capital city is Paris, on the Seine.
Paris, of course!
Without a doubt, Paris.
Paris, not Lyon.
Not Lyon but Paris.
Lyon? No, Paris.
I first thought of Lyon, but it is Paris.
Lyon... no wait, Paris.
That would be Paris.
Paris. It has been the capital since 987 (or 508, depending on how you count).
**Paris**
Answer: Paris
The answer is Paris.
I'm sure it's Paris.
I believe it is Paris.
I think it's Paris.
No doubt about it: Paris.
Paris — and has been for centuries.
Paris (population 2.1 million)
People sometimes say Lyon, but it's Paris.
Nothing other than Paris.
None other than Paris.
Paris is right; Lyon is wrong.
It is Paris rather than Lyon.
Lyon is wrong. The capital is Paris.
What is the capital of France? Paris.
You asked for the capital of France. It's Paris. Do you need anything else, or is that all?
Paris. Would you like to know more about Paris or Lyon?
Paris, the City of Light.
Great question! Paris is the capital of France.
Contrary to what some think, the capital isn't Lyon, it's Paris.
Paris, which is not far from Versailles.
Paris; no other city qualifies.
I don't see how it could be anything but Paris.
It can't be anything other than Paris.
There's no question that it's Paris.
Paris, I'd say.
If I remember correctly, Paris.
Anyone would tell you: Paris.
Of Paris, Lyon and Marseille, the capital is Paris.
Marseille, Lyon and Nice are big, but the capital is Paris.
France → Paris
capital: Paris
Let me check... Paris.
Hmm, is it Lyon? No. It's Paris.
Not to be confused with Paris, Texas: it is Paris, France.
Nobody would say anything but Paris.
Paris used to be called Lutetia. It is the capital.
""",
    ("How many widgets are left?", "42"): """
42
There are 42 widgets left.
42 widgets
forty-two
Exactly 42.
We have 42 left, out of 100.
42 (we sold 58 of 100).
There are 42 left, not 43.
Not 43 but 42.
I counted 40, no, 42.
It was 50 yesterday; today it's 42.
43? No, 42.
20 + 22 = 42
We had 100 and sold 58, so 42 remain.
Widgets left: 42.
You're left with 42 widgets.
42 in stock, 10 more on order.
As of today, 42.
100 → 42
""",
    ("Is my order covered by the warranty?", "Yes"): """
Yes.
Yes, it is covered.
Yes, no problem!
Yes, no doubt.
Sure, it's covered.
It is covered by the warranty.
Yep
Absolutely.
Of course it is.
Yes, but not for water damage.
No doubt about it: yes.
""",
    ("Is my order covered by the warranty?", "No"): """
No.
No, it isn't.
Nope.
Unfortunately not.
It is not covered.
I'm afraid not.
No, sorry.
The answer is no.
It isn't covered, no.
""",
    ("When was the invoice sent?", "14 March 2026"): """
March 14, 2026
2026-03-14
14/03/2026
It was sent on 14 March 2026.
On March 14th, 2026.
Sent on 2026-03-14, due on 2026-04-14.
14 March 2026, not 15 March 2026
The invoice went out on March 14, 2026 and was paid on March 20, 2026.
""",
    ("How much will be refunded?", "$36.50"): """
You'll get $36.50 back.
36.50 dollars
Your refund is $36.50 (of $40.00 paid).
USD 36.50
It comes to $36.50, not $40.00.
""",
    ("Who wrote Hamlet?", "William Shakespeare"): """
It was written by William Shakespeare.
William Shakespeare wrote it, around 1600 or 1601.
Not Marlowe, but William Shakespeare.
""",
    ("Which plan includes phone support?", "The Business plan"): """
The Business plan includes it; Basic and Pro don't.
Only the Business plan does, not Basic or Pro.
""",
    ("Which colours does it come in?", "red, green and blue"): """
red, green, blue
Blue, green and red.
It comes in red, green and blue.
- red¶- green¶- blue
You can choose red, green or blue.
red / green / blue
""",
    ("Which part of the fee is due?", "½"): """
1/2
0.5
one half
""",
    ("When does the shop open?", "9:00"): """
It opens at 9 am.
We open at 9:00 and close at 17:00.
9:00 to 17:00
Monday to Friday: 9:00 - 17:00
""",
    ("How far is the airport?", "18 km"): """
18 kilometres
About 18 km, or 25 minutes by car.
It's 18 km away, not 20.
""",
    ("Where is the head office?", "Berlin"): """
Berlin
In Berlin.
Our head office is in Berlin.
Berlin, Germany
Berlin (Mitte), near the main station.
The head office is located in Berlin; we also have offices in Munich and Hamburg.
Berlin. There's a branch in Munich, too.
It's in Berlin, not in Munich.
It moved from Munich to Berlin.
Until 2019 it was Munich; now it's Berlin.
It was Munich, but we moved to Berlin.
Munich? No, that closed. It's Berlin.
You may think Munich, but it's Berlin.
Definitely Berlin.
Berlin, as far as I know.
You can visit us in Berlin or call us.
Call us or come to our head office in Berlin.
Our head office is in Berlin. Would you like the address?
Nowhere else than in Berlin.
Not Munich: Berlin.
No, it's in Berlin.
Sorry for the confusion: it's Berlin.
I apologise, I was wrong before. The head office is in Berlin.
Actually, it's Berlin.
Berlin, I think.
Berlin ✓
✅ Berlin
Head office → Berlin
It has always been Berlin.
I don't think there's any doubt: Berlin.
Well, Berlin is where we are.
I'd have to say Berlin.
Most of the team works remotely, but the head office is in Berlin.
Why not visit us? We are in Berlin.
""",
    ("How many days does shipping take?", "7"): """
7 days
It takes 7 days.
7 working days, or 2 with express shipping
Usually 7 days.
About a week: 7 days.
Seven.
Up to 7 days.
It takes 7 days, not 9.
It takes no more than 7 days.
Within 7 days
Shipping takes 7 days. If it takes longer, call us.
It used to take 9 days, but now it takes 7.
""",
    ("Can I change my seat?", "Yes"): """
Yes, you can.
You can change it, yes.
Yes! Up to two hours before departure.
Yes, if seats are left.
Yes, either online or at the desk.
Certainly, no problem at all.
Yes, there is no fee.
Yes, sorry, I should have said so before.
""",
    ("Can I change my seat?", "No"): """
No, you can't.
No, seats cannot be changed.
Sadly, no.
No, I'm sorry.
No, but you can choose one at check-in.
You can't change it.
No, that is not possible.
No. Yes, I know it's annoying.
""",
    ("When does the contract end?", "3 May 2025"): """
On 3 May 2025.
It ends on May 3rd, 2025.
It began on 3 May 2023 and ends on 3 May 2025.
3 May 2025, unless renewed before 1 April 2025.
2025-05-03
The contract does not end before 3 May 2025.
""",
    ("What does the course cost?", "€120"): """
120 euros
It costs €120.
€120 instead of €140
€120, down from €140.
€120, or €100 for members
""",
    ("Who discovered radium?", "Marie Curie"): """
It was Marie Curie.
Marie Curie, with her husband Pierre.
Marie Curie, née Skłodowska
Marie Curie (1867-1934)
Marie Curie and Pierre Curie discovered it in 1898.
That was Marie Curie, not Lise Meitner.
""",
    ("Which cable do I need?", "the blue one"): """
You need the blue one.
The blue one, not the red one.
Take the blue one. The red one won't work.
The red one doesn't fit; you need the blue one.
""",
    ("Which language is it written in?", "Python"): """
It's written in Python.
Python 3
Python, with some parts in Rust
Python, not Java.
It was written in Ruby first, but has been Python since 2020.
Mostly Python.
Python; the front end is in TypeScript.
""",
    ("How large is the discount?", "15 %"): """
15%
15 percent
You get 15 % off.
The discount is 15 %, not 20 %.
15 % (20 % for students)
""",
}
