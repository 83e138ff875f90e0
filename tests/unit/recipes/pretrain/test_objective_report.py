"""What reports and commands show of an objective."""

from tests.tokenizer_folders import make_tokenizer

from bertkit.recipes.pretrain.objective_report import find_report


def test_a_trial_has_the_mask_of_the_model(tmp_path):
    report = find_report("mlm")
    assert report.choose_trial(None) == ("fill-mask --model", "She opened the [MASK].")
    make_tokenizer(tmp_path, "roberta")
    assert report.choose_trial(None, tmp_path)[1] == "She opened the <mask>."
    assert report.choose_trial(None, tmp_path / "missing")[1] == "She opened the [MASK]."
