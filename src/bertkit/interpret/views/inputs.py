"""The numbers of the inputs view: embeddings, positions beside sines, and two words swapped."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cosine_similarity

from bertkit.inference.engines.torch_engine import find_device
from bertkit.interpret.ablation import ablate
from bertkit.interpret.head_predictions import round_digits
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.observation import EncodedText
from bertkit.interpret.views.view import Collected, View, ViewInputs, paragraphs
from bertkit.nn.embeddings import sinusoids
from bertkit.reports.interactive import Json, JsonObject

NUM_DIMENSIONS = 48  # of each embedding that are shown
NUM_POSITIONS = 64
NUM_POSITION_DIMENSIONS = 128
NUM_LISTED = 24  # tokens whose embeddings are measured in text
DISTANCES = (1, 2, 4, 8)
STEPS = 127
BEYOND = 0.99  # the share of the numbers that the colors tell apart

LEGEND = paragraphs(
    f"""
    The input of a BERT is the sum of three embeddings for each token: one of the token itself, one
    of its position and one of its segment (A or B); layer norm follows. Blue is positive, orange is
    negative, and each block has its own scale.

    The first {NUM_DIMENSIONS} dimensions are shown. The position embeddings of a BERT are trained;
    those of the first Transformer were fixed sines and cosines of decreasing frequency (Vaswani et
    al. 2017, section 3.5). Both make neighbors similar: the second pair of pictures shows the
    cosine between any two positions, where blue is 1 and orange −1.

    Attention alone doesn't see the order of tokens. Without position embeddings a text is a bag of
    words: if two words change places, each keeps its vector, and so does the whole text. The table
    at the top measures this on two words of this text.

    To try: point at a cell, or tap it, to read its number. Compare the rows of a word that occurs
    twice: the token embedding is the same, the position embedding isn't.
    """
)


def collect_inputs(inputs: ViewInputs) -> JsonObject:
    """Return the blocks of the sum, positions and sines with their cosines, and the swap.

    A block is {"rows", "limit"}: the number in a row is its step, from −127 to 127, times limit
    over 127. "swap" is null where two words can't be swapped.
    """
    inspected = inputs.inspected
    assert isinstance(inspected, InspectedModel)  # `supports` excludes other models
    embeddings = inspected.model.encoder.embeddings
    assert embeddings.position is not None, "`supports` excludes other embeddings"
    assert embeddings.token_type is not None, "`supports` excludes other embeddings"
    encoding = inputs.observation.encoded.encoding
    with torch.inference_mode():
        parts = {
            "token": embeddings.word.weight[encoding.ids],
            "position": embeddings.position.weight[: len(encoding.ids)],
            "segment": embeddings.token_type.weight[encoding.token_type_ids],
            "sum": inputs.observation.states[0],
        }
        embedded = [parts[name] for name in ("token", "position", "segment")]
        lengths = torch.stack([part.float().norm(dim=-1) for part in embedded], dim=1)
        return {
            "blocks": {name: _pack(part[:, :NUM_DIMENSIONS]) for name, part in parts.items()},
            "positions": _collect_positions(embeddings.position.weight),
            "lengths": [
                [token, "AB"[segment], lengths]
                for token, segment, lengths in zip(
                    encoding.tokens, encoding.token_type_ids, lengths.tolist(), strict=True
                )
            ],
            "numDimensions": embeddings.word.embedding_dim,
            "swap": _collect_swap(inputs, inspected),
        }


def _collect_positions(weight: Float[Tensor, "positions features"]) -> JsonObject:
    learned = weight[:NUM_POSITIONS].float().cpu()
    tables = {"learned": learned, "sines": sinusoids(*learned.shape)}
    return {
        name: {
            "table": _pack(table[:, :NUM_POSITION_DIMENSIONS]),
            "cosines": _pack(cosines, limit=1.0),
            "byDistance": [
                [distance, float(cosines.diagonal(distance).mean())]
                for distance in DISTANCES
                if distance < len(table)
            ],
        }
        for name, table in tables.items()
        for cosines in [cosine_similarity(table[:, None], table, dim=-1)]
    }


def _pack(part: Float[Tensor, "rows columns"], limit: float | None = None) -> JsonObject:
    """Quantize numbers; those of the largest 1 % beyond the limit have its color."""
    part = part.float().cpu()
    if limit is None:
        limit = float(part.abs().flatten().quantile(BEYOND)) or 1.0
    steps = (part / limit * STEPS).round().clamp(-STEPS, STEPS).int()
    return {"rows": steps.tolist(), "limit": round_digits(limit)}


def _collect_swap(inputs: ViewInputs, inspected: InspectedModel) -> JsonObject | None:
    """Return what swapping two words changes, with and without position embeddings."""
    encoded = inputs.observation.encoded
    positions = find_swap(encoded)
    if positions is None or not inputs.observation.allowed.all():
        return None
    whole, (first, second) = encoded.pack(), positions
    device = find_device(inspected.model)
    order = list(range(len(encoded.tokens)))
    order[first], order[second] = second, first
    same = torch.zeros_like(whole.position_ids)  # so that nothing tells the tokens' order
    with ablate(inspected.model, inputs.observation.without):
        runs = []
        for position_ids in (whole.position_ids, same):
            for ids in (whole.input_ids, whole.input_ids[order]):
                batch = replace(whole, input_ids=ids, position_ids=position_ids)
                states = inspected.model.encoder.hidden_states(batch.to(device))
                runs.append([state.float().cpu() for state in states])
    words = [encoded.tokens[position] for position in positions]
    measures: dict[str, Callable[[list[Tensor], int], Tensor]] = {
        f"“{words[0]}”, the input of layer 1": lambda run, position: run[0][position],
        f"“{words[0]}”, after the last layer": lambda run, position: run[-1][position],
        "the mean of all tokens, after the last layer": lambda run, _: run[-1].mean(dim=0),
    }
    rows: list[list[Json]] = []
    for name, measure in measures.items():
        pairs = ((measure(runs[n], first), measure(runs[n + 1], second)) for n in (0, 2))
        rows.append(
            [name, *(round_digits(float(cosine_similarity(*each, dim=0))) for each in pairs)]
        )
    text, offsets = encoded.text, encoded.encoding.offsets
    (start, stop), (begin, end) = offsets[first], offsets[second]
    swapped = text[:start] + text[begin:end] + text[stop:begin] + text[start:stop] + text[end:]
    return {"words": words, "text": swapped, "rows": rows}


def find_swap(encoded: EncodedText) -> tuple[int, int] | None:
    """Return two words of the first text that occur once, are of letters alone.

    Words after the same word, as two nouns after articles are, make a sentence again; without
    such words, the first and the last are taken.
    """
    counts, words = Counter(encoded.tokens), Counter(encoded.words)
    rows = zip(encoded.tokens, encoded.words, encoded.sides, strict=True)
    positions = [
        position
        for position, (token, word, segment) in enumerate(rows)
        if word >= 0 and segment == 0 and counts[token] == words[word] == 1
        if len(token) > 1 and token.isalpha()
    ]
    if len(positions) < 2:
        return None
    before = [encoded.tokens[position - 1] for position in positions]
    for position, word in zip(positions, before, strict=True):
        last = positions[len(before) - 1 - before[::-1].index(word)]
        if last > position:
            return position, last
    return positions[0], positions[-1]


def summarize_inputs(collected: Collected) -> list[str]:
    """Return the lengths of the embeddings, the likeness of positions and the swap as text."""
    lines = ["length of embeddings     token  position  segment"]
    rows = collected["lengths"][:NUM_LISTED]
    lines += [
        f"{position:3} {segment} {token:16} {lengths[0]:8.3f} {lengths[1]:9.3f} {lengths[2]:8.3f}"
        for position, (token, segment, lengths) in enumerate(rows, start=1)
    ]
    for name in ("learned", "sines"):
        pairs = collected["positions"][name]["byDistance"]
        cosines = [f"{value:.3f} at distance {distance}" for distance, value in pairs]
        lines.append(f"cosine of positions, {name}: {', '.join(cosines)}")
    swap = collected["swap"]
    if swap is None:
        return lines
    rows = [["cosine before and after", "with positions", "without positions"]]
    rows += [[name, *(f"{cosine:.3f}" for cosine in cosines)] for name, *cosines in swap["rows"]]
    width = max(len(row[0]) for row in rows)
    table = [f"{name:{width}}  {first:>14}  {second:>17}" for name, first, second in rows]
    title = "“{}” and “{}” swapped".format(*swap["words"])
    return [*lines, f"{title}: {swap['text']}", *table]


def adds_three_embeddings(inputs: ViewInputs) -> bool:
    """Whether the model's input is the sum of words, positions from row 0, and segments."""
    if not isinstance(inputs.inspected, InspectedModel):
        return False
    embeddings = inputs.inspected.model.encoder.embeddings
    has_all = embeddings.position is not None and embeddings.token_type is not None
    return has_all and not embeddings.position_offset and embeddings.projection is None


INPUTS = View(
    name="inputs",
    title="Inputs",
    legend=LEGEND,
    collect=collect_inputs,
    summarize=summarize_inputs,
    supports=adds_three_embeddings,
)
