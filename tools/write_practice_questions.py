"""Write the practice part of `examples/data/questions.json`: questions on sentences of a grammar.

45 questions written by hand are too few to learn what "who", "when" and "how many" ask for.
"""

import json
import random
from itertools import accumulate
from pathlib import Path

PATH = Path(__file__).resolve().parent.parent / "examples" / "data" / "questions.json"
TITLE = "Practice (written by tools/write_practice_questions.py)"
SEED = 5
NUM_CONTEXTS = 160
NUM_QUESTIONS = 3  # of a context

WORDS = {
    "person": "Anna Weber|Tom Miller|Maria Lopez|John Parker|Kenji Tanaka|Nina Petrova|Ali Hassan",
    "place": "Prague|Paris|Geneva|Brazil|London|Lisbon|Canada|Norway|Japan|Iceland|Cairo|Kenya",
    "thing": "clock|bridge|boat|pump|mill|engine|harp|kite|garden|map|wheel|bell|tunnel|castle",
    "part": "door|window|rope|leaf|stone|bird|seed|guest|room|letter",
    "material": "wood|clay|iron|stone|silver|leather|paper|wool|copper|silk",
    "means": "a rope|a hammer|a brush|warm water|sand|oil|steam|a needle|salt|wind|fire",
    "color": "red|blue|green|yellow|white|black",
    "job": "doctor|farmer|sailor|teacher|baker|painter|smith",
    "unit": "meters|days|hours|years|kilograms|miles|minutes",
}
# a sentence, and its questions with their answers
FACTS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "In {year} {person} invented a {thing} of {material}.",
        (
            ("When did {person} invent the {thing}?", "{year}"),
            ("Who invented the {thing}?", "{person}"),
            ("What was the {thing} made of?", "{material}"),
        ),
    ),
    (
        "{person}, a {job} in {place}, built the first {thing}.",
        (
            ("Who built the first {thing}?", "{person}"),
            ("Where did {person} live?", "{place}"),
        ),
    ),
    ("The {thing} is {number} {unit} long.", (("How long is the {thing}?", "{number} {unit}"),)),
    ("Each {thing} has {number} {part}s.", (("How many {part}s are there?", "{number} {part}s"),)),
    ("The {thing} is cleaned with {means}.", (("How do you clean the {thing}?", "with {means}"),)),
    (
        "Wait {number} {unit}, then open the {thing}.",
        (("How long do you wait?", "{number} {unit}"),),
    ),
    ("Old {thing}s are called {color} {part}s.", (("What are they called?", "{color} {part}s"),)),
    ("{place} has the most {thing}s.", (("Which country has the most {thing}s?", "{place}"),)),
    ("The {thing} was destroyed by {means}.", (("What destroyed the {thing}?", "{means}"),)),
    (
        "The largest {thing} was opened in {place} in {year}.",
        (
            ("When was the largest {thing} opened?", "{year}"),
            ("Where is the largest {thing}?", "{place}"),
        ),
    ),
    (
        "For one {thing} take {number} grams of {material}.",
        (("How much {material} does one {thing} need?", "{number} grams"),),
    ),
)


def draw_words(draw: random.Random) -> dict[str, str]:
    """Return a word of each kind."""
    numbers = ("two", "five", "seven", "ten", "about 40", f"{draw.randint(2, 900)}")
    return {
        **{kind: draw.choice(words.split("|")) for kind, words in WORDS.items()},
        "number": draw.choice(numbers),
        "year": f"{draw.choice(('', 'around '))}{draw.randint(1400, 1999)}",
    }


def write_paragraph(draw: random.Random, number: int) -> dict[str, object]:
    """Return a context of three sentences, with questions as SQuAD has them."""
    sentences, asked = [], []
    for place, (sentence, questions) in enumerate(draw.sample(FACTS, 3)):
        words = draw_words(draw)
        sentences.append(sentence.format(**words))
        for question, answer in questions:
            asked.append((question.format(**words), answer.format(**words), place))
    chosen = draw.sample(asked, min(NUM_QUESTIONS, len(asked)))
    ends = [0, *accumulate(len(sentence) + 1 for sentence in sentences)]
    questions_of_context = [
        {
            "id": f"practice-{number}-{count}",
            "question": question,
            "answers": [{"text": answer, "answer_start": ends[at] + sentences[at].index(answer)}],
        }
        for count, (question, answer, at) in enumerate(chosen)
    ]
    return {"context": " ".join(sentences), "qas": questions_of_context}


def main() -> None:
    """Write the file anew; what was written by hand stays."""
    draw = random.Random(SEED)
    content = json.loads(PATH.read_text(encoding="utf-8"))
    content["data"] = [article for article in content["data"] if article["title"] != TITLE]
    paragraphs = [write_paragraph(draw, number) for number in range(NUM_CONTEXTS)]
    content["data"].append({"title": TITLE, "paragraphs": paragraphs})
    # a paragraph a line
    text = json.dumps(content, ensure_ascii=False).replace('{"context"', '\n{"context"')
    PATH.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
