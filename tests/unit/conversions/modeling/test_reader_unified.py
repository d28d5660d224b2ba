"""Scores of the next tokens with a cache against the same model read from the beginning, scheme by scheme."""

from __future__ import annotations

import pytest
import torch

from unified.conversions.modeling.configuration_unified import UnifiedConfig
from unified.conversions.modeling.modeling_unified import UnifiedForMaskedLM
from unified.conversions.modeling.reader_unified import SCHEMES, Reader, Scheme
from unified.generation.schemes import SCHEMES as OURS

SHAPE = {
    "vocabulary_size": 13, "layers": 2, "width": 8, "heads": 2, "feed_forward": 12, "max_positions": 24,
    "initializer_range": 0.6,
}  # fmt: skip
RELATIVE = {"positions": "relative", "token_head": "plain"}
BODIES = {
    "learned": {}, "neighbor": {"sublayers": "neighbor,self,feed_forward"}, "relative": RELATIVE,
    "one way": {**RELATIVE, "attn_type": "uni"}, "rotary": {"positions": "rotary", "attention_windows": "0,2"},
}  # fmt: skip
SOURCES = [[5, 6, 7, 8], [9], [10, 11, 5]]


def model(**changes) -> UnifiedForMaskedLM:
    torch.manual_seed(4)
    made = UnifiedForMaskedLM(UnifiedConfig(**{**SHAPE, **changes})).eval()
    for parameter in made.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return made


@torch.no_grad()
def from_the_beginning(lm: UnifiedForMaskedLM, scheme: str, source: list[int], written: list[int]) -> torch.Tensor:
    """Scores (V,) of the token behind ``written``: the text in one piece, its mask made of the definition."""
    config, own = lm.config, SCHEMES[scheme]
    source = source if own.query_stream else [config.cls_token_id, *source]
    asked = [*written, config.mask_token_id] if own.mask_query else written
    tokens = [*source, *([config.cls_token_id, *written] if scheme == "next" else asked)]
    queries = len(tokens) + own.query_stream
    one_way = scheme == "left_to_right" or config.attn_type == "uni"
    visible = torch.tensor([
        [s <= q if q >= len(source) or one_way else s < len(source) for s in range(len(tokens))]
        for q in range(queries)
    ])  # fmt: skip
    if own.query_stream:  # the query is no token, and stands where the next one will
        visible[-1] = True
    types = [*[own.source_type] * len(source), *[own.target_type] * (queries - len(source))]
    view = {"attention_mask": visible[None], "token_type_ids": torch.tensor([types]),
            "position_ids": torch.arange(queries)[None]}  # fmt: skip
    config.attn_type, before = "bi", config.attn_type  # the stream's position is of no token yet
    try:
        return lm(torch.tensor([tokens]).long(), **view).logits[0, -1]
    finally:
        config.attn_type = before


@pytest.mark.parametrize(
    ("body", "scheme"),
    [
        *((body, scheme) for body in BODIES for scheme in ("cloze", "next", "left_to_right")),
        ("relative", "permutation"), ("one way", "permutation"), ("rotary", "permutation"),
    ],
)  # fmt: skip
@torch.no_grad()
def test_scores_are_those_of_the_whole_text_read_at_once(body, scheme):
    lm = model(**BODIES[body])
    sources = SOURCES + [[]] * (scheme == "permutation")
    reader = Reader(lm, SCHEMES[scheme], sources, 2)
    rows = [(source, []) for source in sources for _ in range(2)]
    rng, last = torch.Generator().manual_seed(5), None
    for _ in range(4):
        scores = reader.step(last)
        assert scores.shape == (len(rows), 13)
        for own, (source, written) in zip(scores, rows, strict=True):
            wanted = from_the_beginning(lm, scheme, source, written)
            torch.testing.assert_close(own, wanted, atol=1e-4, rtol=1e-4)
        chosen = torch.randint(len(rows), (len(rows),), generator=rng)
        last = torch.randint(5, 13, (len(rows),), generator=rng)
        reader.select(chosen)
        rows = [(rows[i][0], [*rows[i][1], int(one)]) for i, one in zip(chosen, last, strict=True)]


@torch.no_grad()
def test_a_single_text_is_a_batch_too():
    lm = model()
    own = Reader(lm, SCHEMES["cloze"], [[5, 6]], 1).step(None)
    torch.testing.assert_close(own[0], from_the_beginning(lm, "cloze", [5, 6], []), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_prompts_without_a_token_need_nothing_to_be_read_first():
    lm = model(**RELATIVE)
    reader = Reader(lm, SCHEMES["permutation"], [[], []], 1)
    assert reader.cache.keys == {} and reader.width == 0
    wanted = from_the_beginning(lm, "permutation", [], [])
    for own in reader.step(None):
        torch.testing.assert_close(own, wanted, atol=1e-5, rtol=1e-5)


def test_the_schemes_are_those_of_the_library():
    assert SCHEMES == {
        "cloze": Scheme(mask_query=True, source_type=4, target_type=5, prompt=False, query_stream=False),
        "next": Scheme(mask_query=False, source_type=4, target_type=5, prompt=False, query_stream=False),
        "left_to_right": Scheme(mask_query=True, source_type=2, target_type=2, prompt=True, query_stream=False),
        "permutation": Scheme(mask_query=False, source_type=0, target_type=0, prompt=True, query_stream=True),
    }
    assert SCHEMES.keys() == OURS.keys()
    for name, ours in OURS.items():
        assert (SCHEMES[name].prompt, SCHEMES[name].query_stream) == (ours.prompt, ours.query_stream)


class Elsewhere:
    """Stands for a model on another device: notes where the tensors that it gets are."""

    def __init__(self):
        self.config, self.device, self.seen = UnifiedConfig(**SHAPE), torch.device("meta"), []
        self.transformer = self.logits = self

    def run(self, tokens, view):
        self.seen += [tokens, view.visible, view.own, view.query_positions, view.key_positions, view.query_types]
        return torch.empty(*view.visible.shape[:2], 8, device="meta"), ()

    def __call__(self, states):
        return states


@pytest.mark.parametrize("scheme", SCHEMES)
def test_everything_is_made_where_the_model_is(scheme):
    lm = Elsewhere()
    reader = Reader(lm, SCHEMES[scheme], SOURCES, 2)
    reader.step(None)
    reader.select(torch.arange(6, device="meta"))
    reader.step(torch.full((6,), 5, device="meta"))
    assert len(lm.seen) == 18 and {one.device for one in lm.seen} == {torch.device("meta")}
    assert reader.lengths.device == torch.device("meta")
