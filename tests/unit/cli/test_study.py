"""The words that make a study again."""

from pathlib import Path

from bertkit.cli.study import describe_command
from bertkit.studies.settings import PretrainingSettings, TranslationSettings

OUT = Path("my study")


def test_the_command_makes_all_arms_and_nothing_that_is_the_default():
    settings = PretrainingSettings(data=Path("shards"), seeds=5, only=("with",))
    words = "bertkit study steps --seeds 5 --data shards --output 'my study'"
    assert describe_command("steps", settings, OUT) == words


def test_switches_and_several_files_are_written_as_they_are_read():
    settings = TranslationSettings(train=("a.de", "a.en"), header=False)
    words = describe_command("translation", settings, OUT)
    assert "--no-header" in words
    assert "False" not in words
    assert "--train a.de --train a.en" in words
