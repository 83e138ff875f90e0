"""The recurrent translator: a word at a time as the whole, what it learns, how it is searched."""

import pytest
import torch
from tests.closeness import assert_close

from bertkit.base.errors import SettingsError
from bertkit.decoders.decoding.search import decode
from bertkit.decoders.decoding.sequences import DecodingLimits
from bertkit.decoders.decoding.settings import DecodingSettings
from bertkit.nn.packing import PackedBatch
from bertkit_studies.recurrent.config import TranslatorConfig
from bertkit_studies.recurrent.sequences import TranslatorSequences
from bertkit_studies.recurrent.translator import AttentionalTranslator

SOURCES = [[2, 7, 8, 9, 3], [2, 11, 3], [2, 5, 6, 7, 8, 9, 10, 3]]
TARGETS = [[2, 14, 15, 9], [2, 6], [2, 12, 5]]
START, END = 2, 3


def build(**changes):
    torch.manual_seed(1)
    sizes = {"vocab_size": 16, "embedding_size": 12, "hidden_size": 16, "attention_size": 8}
    config = TranslatorConfig(
        **{**sizes, "dropout": 0.0, **changes}, decoder_start_token_id=START, eos_token_id=END
    )
    return AttentionalTranslator(config).double().eval()


def last_scores(model, source, written):
    return model.next_scores(PackedBatch.from_single([source]), PackedBatch.from_single([written]))[
        -1
    ]


def test_a_batch_is_as_each_pair_alone():
    model = build()
    source, target = PackedBatch.from_single(SOURCES), PackedBatch.from_single(TARGETS)
    alone = [
        model.next_scores(PackedBatch.from_single([one]), PackedBatch.from_single([other]))
        for one, other in zip(SOURCES, TARGETS, strict=True)
    ]
    assert_close(model.next_scores(source, target), torch.cat(alone))


def test_shares_add_up_to_one_and_have_the_shapes_of_the_pairs():
    shares = build().align(PackedBatch.from_single(SOURCES), PackedBatch.from_single(TARGETS))
    assert [tuple(each.shape) for each in shares] == [(4, 5), (2, 3), (3, 8)]
    for each in shares:
        assert_close(each.sum(dim=1), torch.ones(len(each), dtype=torch.float64))


@torch.no_grad()
def test_a_word_at_a_time_gives_what_the_whole_gives():
    model = build()
    growing = TranslatorSequences(model, PackedBatch.from_single(SOURCES))
    written = [[START], [START], [START]]
    for words in ([9, 13, 7], [5, 6, 7]):
        expected = [last_scores(model, *pair) for pair in zip(SOURCES, written, strict=True)]
        assert_close(growing.scores(), torch.stack(expected).float())
        growing.extend(torch.tensor(words))
        written = [[*row, word] for row, word in zip(written, words, strict=True)]
    expected = [last_scores(model, *pair) for pair in zip(SOURCES, written, strict=True)]
    assert_close(growing.scores(), torch.stack(expected).float())


@torch.no_grad()
def test_rows_are_chosen_and_what_they_read_with_them():
    model = build()
    growing = TranslatorSequences(model, PackedBatch.from_single(SOURCES))
    growing.select(torch.tensor([2, 2, 0, 0]))
    growing.extend(torch.tensor([4, 5, 6, 7]))
    growing.select(torch.tensor([1, 0, 0, 3, 3, 2]))
    growing.extend(torch.tensor([8, 9, 10, 11, 12, 13]))
    rows = [(2, 5, 8), (2, 4, 9), (2, 4, 10), (0, 7, 11), (0, 7, 12), (0, 6, 13)]
    expected = [last_scores(model, SOURCES[n], [START, one, two]) for n, one, two in rows]
    assert_close(growing.scores(), torch.stack(expected).float())
    assert not growing.scores().requires_grad
    growing.select(torch.tensor([4]))
    assert_close(growing.scores()[0], expected[4].float())


def test_it_learns_to_turn_words_round_and_is_searched():
    model = build(embedding_size=24, hidden_size=32, attention_size=24).float().train()
    generator = torch.Generator().manual_seed(0)

    def draw(count):
        lengths = torch.randint(2, 4, (count,), generator=generator).tolist()
        words = [torch.randint(4, 16, (size,), generator=generator).tolist() for size in lengths]
        return words, [row[::-1] for row in words]

    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    for _ in range(120):
        ours, theirs = draw(24)
        labels = torch.tensor([word for row in theirs for word in (*row, END)])
        optimizer.zero_grad()
        loss, _ = model.next_loss(
            PackedBatch.from_single([[START, *row, END] for row in ours]),
            PackedBatch.from_single([[START, *row] for row in theirs]),
            labels,
        )
        (loss / len(labels)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    ours, theirs = draw(40)
    sources = PackedBatch.from_single([[START, *row, END] for row in ours])
    limits = DecodingLimits(end_id=END, max_tokens=8, suppressed_ids=(0, 1, 2))
    for beams in (1, 3):
        growing = TranslatorSequences(model.eval(), sources)
        answers = decode(growing, DecodingSettings(beams=beams), limits)
        found = [list(best.tokens) for best, *_ in answers]
        assert sum(one == two for one, two in zip(found, theirs, strict=True)) >= 36
        assert all(best.is_finished for best, *_ in answers)
    shares = model.align(
        PackedBatch.from_single([[START, 5, 9, 7, END]]), PackedBatch.from_single([[START, 7, 9]])
    )[0]
    assert shares.argmax(dim=1).tolist() == [3, 2, 1]  # the last word first


def test_what_is_saved_is_loaded(tmp_path):
    model = build().float()
    model.save_pretrained(tmp_path)
    again = AttentionalTranslator.from_pretrained(tmp_path)
    source, target = PackedBatch.from_single(SOURCES), PackedBatch.from_single(TARGETS)
    assert again.next_scores(source, target).equal(model.next_scores(source, target))
    assert again.count_operations(source, target) == model.count_operations(source, target)


def test_a_start_or_an_end_that_is_no_word_is_refused():
    with pytest.raises(SettingsError, match=r"eos_token_id must be under vocab_size \(3\)"):
        TranslatorConfig(vocab_size=3, decoder_start_token_id=2, eos_token_id=3)


def test_operations_are_of_each_word_and_each_look():
    model = build()
    source = PackedBatch.from_single([[2, 5, 3]])
    one = model.count_operations(source, PackedBatch.from_single([[2]]))
    two = model.count_operations(source, PackedBatch.from_single([[2, 5]]))
    word = 16 * 8 + 3 * 16 * (44 + 16) + 24 * (12 + 48) + 16 * 12
    assert two - one == 6 * (word + 3 * (8 + 32))
