"""Write those files of `examples/data` that come from a grammar: `story.txt` and `pairs*`.

Their vocabulary is small on purpose: a model that learns for half a minute meets each word often.
"""

import random
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "data"
SEED = 11
NUM_STORIES = 80
NUM_PAIRS = 300
NUM_TEST_PAIRS = 30

# animal: home, food, what it does
ANIMALS = {
    "fox": ("the forest", "berries", "runs"),
    "duck": ("the lake", "seeds", "swims"),
    "cow": ("the field", "grass", "stands"),
    "owl": ("the tower", "mice", "flies"),
    "bear": ("the cave", "honey", "climbs"),
    "squirrel": ("the tree", "nuts", "jumps"),
    "dog": ("the house", "meat", "barks"),
    "cat": ("the barn", "fish", "sleeps"),
    "frog": ("the pond", "flies", "sings"),
    "mouse": ("the cellar", "cheese", "hides"),
}
NAMES = {"Anna": "she", "Ida": "she", "Rosa": "she", "Ben": "he", "Tom": "he", "Max": "he"}
KINDS = ("small", "old", "young", "hungry", "clever", "brave")
# season: what it is like then
SEASONS = {
    "winter": ("cold", "The snow was white and the lake was frozen."),
    "spring": ("mild", "The flowers were red and the birds came back."),
    "summer": ("hot", "The sun was bright and the days were long."),
    "autumn": ("windy", "The leaves were yellow and fell from the trees."),
}

# German, English
SUBJECTS = (
    ("der Hund", "the dog"),
    ("die Katze", "the cat"),
    ("das Kind", "the child"),
    ("der Mann", "the man"),
    ("die Frau", "the woman"),
    ("das Mädchen", "the girl"),
    ("der Junge", "the boy"),
    ("die Lehrerin", "the teacher"),
)
OBJECTS = (
    ("einen Ball", "a ball"),
    ("einen Apfel", "an apple"),
    ("ein Buch", "a book"),
    ("eine Blume", "a flower"),
    ("das Brot", "the bread"),
    ("einen Fisch", "a fish"),
    ("den Schlüssel", "the key"),
    ("eine Tasche", "a bag"),
)
VERBS = (
    ("sieht", "sees", "gesehen", "saw"),
    ("findet", "finds", "gefunden", "found"),
    ("kauft", "buys", "gekauft", "bought"),
    ("nimmt", "takes", "genommen", "took"),
    ("bringt", "brings", "gebracht", "brought"),
)
ACTIONS = (("schläft", "sleeps"), ("spielt", "plays"), ("wartet", "waits"), ("singt", "sings"))
PLACES = (
    ("im Garten", "in the garden"),
    ("im Haus", "in the house"),
    ("am See", "by the lake"),
    ("auf der Straße", "on the street"),
    ("im Wald", "in the forest"),
)
TIMES = (("heute", "today"), ("am Morgen", "in the morning"), ("im Sommer", "in summer"))
STATES = (("müde", "tired"), ("alt", "old"), ("klein", "small"), ("glücklich", "happy"))


def write_story(draw: random.Random) -> str:
    """Return a story of about ten sentences, one a line, about two animals."""
    (animal, (home, food, act)), (other, (other_home, other_food, _)) = draw.sample(
        sorted(ANIMALS.items()), 2
    )
    name = draw.choice(sorted(NAMES))
    pronoun = NAMES[name]
    season = draw.choice(sorted(SEASONS))
    weather, scene = SEASONS[season]
    start = [
        f"{name} is a {draw.choice(KINDS)} {animal} and lives in {home}.",
        f"Every morning {pronoun} eats {food}.",
        f"The {animal} {act} all day and is never bored.",
    ]
    meeting = [
        f"One day in {season} {name} met {'an' if other == 'owl' else 'a'} {other}.",
        f"It was {weather}, because it was {season}.",
        scene,
        f"The {other} came from {other_home}.",
        f"The {other} was hungry, because it found no {other_food} in {home}.",
    ]
    end = [
        f"{name} gave the {other} some {food}, and they were friends.",
        f"In the evening {pronoun} was tired and went back to {home}.",
        f"The {other} went home to {other_home} and ate {other_food}.",
    ]
    return "\n".join([*start, *meeting, *end])


def write_pair(draw: random.Random) -> tuple[str, str]:
    """Return a German sentence and its translation."""
    (subject, who), (thing, what) = draw.choice(SUBJECTS), draw.choice(OBJECTS)
    (finds, finds_en, found, found_en), (acts, acts_en) = draw.choice(VERBS), draw.choice(ACTIONS)
    (place, where), (time, when) = draw.choice(PLACES), draw.choice(TIMES)
    state, state_en = draw.choice(STATES)
    german, english = draw.choice(
        (
            (f"{subject} {finds} {thing} {place}", f"{who} {finds_en} {what} {where}"),
            (f"{subject} hat {thing} {found}", f"{who} {found_en} {what}"),
            (f"{time} {acts} {subject} {place}", f"{when} {who} {acts_en} {where}"),
            (f"{time} {finds} {subject} {thing}", f"{when} {who} {finds_en} {what}"),
            (f"{subject} ist {state}", f"{who} is {state_en}"),
            (f"{subject} {acts} nicht {place}", f"{who} does not {acts_en[:-1]} {where}"),
        )
    )
    return f"{german[0].upper()}{german[1:]}.", f"{english[0].upper()}{english[1:]}."


def main() -> None:
    """Write the files."""
    draw = random.Random(SEED)
    stories = "\n\n".join(write_story(draw) for _ in range(NUM_STORIES))
    (FOLDER / "story.txt").write_text(f"{stories}\n", encoding="utf-8")
    pairs: dict[tuple[str, str], None] = {}
    while len(pairs) < NUM_PAIRS + NUM_TEST_PAIRS:
        pairs[write_pair(draw)] = None
    for name, chosen in (
        ("pairs", list(pairs)[:NUM_PAIRS]),
        ("pairs-test", list(pairs)[NUM_PAIRS:]),
    ):
        for language, texts in zip(("de", "en"), zip(*chosen, strict=True), strict=True):
            path = FOLDER / f"{name}.{language}"
            path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")


if __name__ == "__main__":
    main()
