"""Train a recurrent translator on the same batches as `bertkit finetune translate`."""

from functools import partial
from pathlib import Path

import numpy as np

from bertkit.base.errors import InputError
from bertkit.decoders.seq2seq.order import TokenBatchOrder
from bertkit.decoders.seq2seq.token_pairs import PairBatch, TokenPairs
from bertkit.nn.packed_ids import plan_batches
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.job import Scores
from bertkit_studies.baselines.plan import BaselinePlan, hash_arrays
from bertkit_studies.baselines.run import RecurrentResult, train
from bertkit_studies.baselines.settings import TranslatorSettings
from bertkit_studies.recurrent.config import TranslatorConfig
from bertkit_studies.recurrent.translator import AttentionalTranslator

TOKENS_PER_BATCH = 4096  # of an evaluation batch


def train_translator(
    pairs: TokenPairs,
    held_out: TokenPairs,
    tokenizer: Tokenizer,
    output: Path,
    settings: TranslatorSettings,
) -> RecurrentResult:
    """Train a translator; raises what `run.train` raises.

    Args:
        pairs: the training pairs, at least one.
        held_out: the evaluation pairs, at least one.
        tokenizer: the tokenizer of both sides.
        output: the run's folder.
        settings: model and training settings.
    """
    return train(lambda: plan_translator(pairs, held_out, tokenizer, settings), output, settings)


def plan_translator(
    pairs: TokenPairs, held_out: TokenPairs, tokenizer: Tokenizer, settings: TranslatorSettings
) -> BaselinePlan:
    """Assemble data, net and losses of a run."""
    if not len(held_out.lengths):
        raise InputError("there are no held-out pairs, and evaluations need at least one")
    config = TranslatorConfig(
        vocab_size=tokenizer.vocab_size,
        decoder_start_token_id=tokenizer.cls_id,
        eos_token_id=tokenizer.sep_id,
        **settings.model_dump(include=set(TranslatorConfig.model_fields)),
    )
    order = TokenBatchOrder(pairs.lengths, settings.tokens_per_batch, settings.seed)

    sides = (pairs.sources, pairs.targets, held_out.sources, held_out.targets)
    return BaselinePlan(
        config=config,
        begin=lambda: AttentionalTranslator(config),
        load=AttentionalTranslator.from_pretrained,
        tokenizer=tokenizer,
        data_fingerprint=hash_arrays(
            *(part for side in sides for part in (side.ids, side.offsets))
        ),
        examples_at=lambda step: order.examples(step).tolist(),
        collate=lambda numbers: PairBatch.of(pairs, np.array(numbers)),
        num_micro_batches=settings.accumulate,
        held_out=[
            PairBatch.of(held_out, np.array(numbers))
            for numbers in plan_batches(held_out.lengths.tolist(), TOKENS_PER_BATCH)
        ],
        score=partial(score, smoothing=settings.label_smoothing),
        judge=score,
        count_operations=lambda net, batch: net.count_operations(batch.source, batch.target),
        progress_metrics={"word_accuracy": "next word"},
    )


def score(model: AttentionalTranslator, batch: PairBatch, smoothing: float = 0.0) -> Scores:
    """Return the summed loss of a batch and the number of correct predictions."""
    loss, num_hits = model.next_loss(batch.source, batch.target, batch.labels, smoothing)
    return Scores({"word": loss}, {"word": num_hits})
