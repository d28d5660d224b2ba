"""The code that an export brings along, compared with the library: states, scores, and what is written."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoTokenizer

from tests.support.exported_models import BODIES, Exported, exported, language_model
from unified import masks
from unified.generation import SCHEMES, GenerationConfig
from unified.generation.lengths import PairLengths
from unified.masks import AttentionMask

WRITING = [
    *((body, writes) for body in BODIES for writes in ("cloze", "next", "left_to_right") if body != "entities"),
    ("relative", "permutation"),
    ("rotary", "permutation"),
    ("one way", "permutation"),
]
#: Settings of searches: greedy; a wide beam with all of its texts; every rule at once.
SEARCHES = {
    "greedy": {"beam": 1, "max_length": 7},
    "wide": {"beam": 4, "nbest": 4, "max_length": 9, "length_penalty": "unilm", "lenpen": 0.6},
    "rules": {"beam": 3, "nbest": 2, "max_length": 12, "min_length": 5, "no_repeat_ngram_size": 2, "temperature": 1.6},
    "words once": {
        "beam": 2,
        "nbest": 2,
        "max_length": 6,
        "no_repeat_ngram_size": 1,
        "no_repeat_ngram_ignore": ["w3"],
        "lenpen": 0.0,
    },
}
#: Settings of sampling: from all symbols, and from the most probable ones.
DRAWS = [
    {"beam": 3, "nbest": 3, "max_length": 8, "seed": 5},
    {"nbest": 2, "max_length": 8, "seed": 6},
    {"beam": 4, "nbest": 4, "max_length": 9, "top_k": 9, "top_p": 0.8, "temperature": 1.3, "no_repeat_ngram_size": 2},
]
TEXTS = ["w1 w2 w3 w4 w5 w6 w7", "w9", "w5 w5 w5 w8 w8"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Exports by body, with lengths of pairs."""
    folder, known = tmp_path_factory.mktemp("exports"), {}

    def make(body: str):
        if body not in known:
            known[body] = exported(language_model(**BODIES[body]), folder / body.replace(" ", "_"))
        return known[body]

    return make


def random_mask(rng: torch.Generator, rows: int, queries: int, keys: int) -> AttentionMask:
    """Any intervals; each query sees its own key, if it has one, but for the last row's last, which sees nothing."""
    step = torch.randint(1, 9, (rows, queries), generator=rng)
    start = torch.minimum(torch.randint(0, 6, (rows, keys), generator=rng), step[:, :keys])
    stop = torch.maximum(torch.randint(4, 10, (rows, keys), generator=rng), step[:, :keys] + 1)
    step[-1, keys - 1] = masks.NOWHERE
    own = torch.arange(queries).where(torch.arange(queries) < keys, masks.NO_KEY).expand(rows, -1)
    return AttentionMask(step, start, stop, query_key=own)


@pytest.mark.parametrize("body", BODIES)
@torch.no_grad()
def test_states_and_scores_under_any_mask(made, body):
    one, rng = made(body), torch.Generator().manual_seed(0)
    tokens = torch.randint(4, len(one.ids), (3, 9), generator=rng)
    positions = torch.tensor([[*range(9)], [*range(4), *range(5)], [*range(8, -1, -1)]])
    types = torch.randint(0, 6, (3, 9), generator=rng)
    if one.lm.model.config.positions_in_attention:  # a query stream behind the tokens, of the first row's last three
        positions = torch.cat([torch.tensor([[*range(9)]] * 3), torch.tensor([[6, 7, 8]] * 3)], dim=1)
        types = torch.cat([types, types[:, -3:]], dim=1)
    entities = torch.rand(3, 9, generator=rng) < 0.4 if body == "entities" else None
    mask = random_mask(rng, *positions.shape, 9)
    wanted: list[torch.Tensor] = []
    last = one.lm.model.transformer(tokens, positions, types, mask, hidden_states=wanted, entities=entities)
    given = {"token_type_ids": types, "position_ids": positions, "entities": entities, "output_hidden_states": True}
    steps = {"query_step": mask.query_step, "key_start": mask.key_start, "key_stop": mask.key_stop}
    for seen in (steps, {"attention_mask": mask.dense()}):
        found = one.theirs(one.ids[tokens], **given, **seen)
        for theirs, ours in zip(found.hidden_states, [*wanted, last], strict=True):
            torch.testing.assert_close(theirs, ours, atol=1e-5, rtol=1e-5)
        logits = one.lm.model.logits(last.flatten(0, 1)).unflatten(0, positions.shape)
        torch.testing.assert_close(found.logits[..., one.ids], logits, atol=1e-4, rtol=1e-5)
    # Its other heads are ours, too.
    state = one.lm.model.heads["next_sentence"](last[:, 0])
    torch.testing.assert_close(one.theirs.heads["next_sentence"](last[:, 0]), state)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(settings, marks=[pytest.mark.slow] * (name in ("wide", "words once")), id=name)
        for name, settings in SEARCHES.items()
    ],
)
@pytest.mark.parametrize("body, writes", WRITING)
def test_it_writes_what_the_library_writes(made, body, writes, settings):
    one = made(body)
    one.lm.writes = one.theirs.config.decoding = writes
    ids = [one.lm.encode(text) for text in TEXTS]
    if SCHEMES[writes].prompt:  # an empty prompt, and one of two parts
        ids += [[], [*ids[1], one.lm.special.separator, *ids[2]]]
    require_equal_texts(one, ids, settings)


@pytest.mark.parametrize("settings", DRAWS, ids=["all", "as many as returned", "most probable"])
@pytest.mark.parametrize(
    "body, writes", [("UniLM", "cloze"), ("pre-norm", "left_to_right"), ("relative", "permutation")]
)
def test_it_draws_what_the_library_draws(tmp_path, body, writes, settings):
    lm = language_model(writes, **BODIES[body])
    ids = [lm.encode(text) for text in TEXTS]
    lm.tokenizer = None  # so that ids are the same on both sides, and draws from them too
    one = exported(lm, tmp_path / "out")
    require_equal_texts(one, ids, {**settings, "sampling": True})


def require_equal_texts(one: Exported, ids: list[list[int]], settings: dict) -> None:
    """The export writes from a batch of texts, given by our ids, what the library writes, with the same scores."""
    config = GenerationConfig.of_options(one.lm.vocabulary, **settings)
    wanted = one.lm.hypotheses(ids, config)
    special, width = one.theirs.config, max(map(len, ids)) + 2
    rows = [
        [special.cls_token_id, *one.ids[torch.tensor(row, dtype=torch.long)].tolist(), special.sep_token_id]
        for row in ids
    ]
    rows = torch.tensor([[*row, *[special.pad_token_id] * (width - len(row))] for row in rows])
    ignored = [int(one.ids[i]) for i in config.no_repeat_ngram_ignore]
    texts, found = one.theirs.hypotheses(rows, **{**settings, "no_repeat_ngram_ignore": ignored})
    assert [one.symbols(text) for text in texts] == [[one.lm.vocabulary.symbols[i] for i in row] for row in ids]
    for theirs, ours in zip(found, wanted, strict=True):
        assert [one.symbols(h.tokens) for h in theirs] == [
            [one.lm.vocabulary.symbols[i] for i in h.tokens] for h in ours
        ]
        for h, mine in zip(theirs, ours, strict=True):
            assert h.score == pytest.approx(mine.score, abs=1e-4)
            torch.testing.assert_close(h.log_probs, mine.log_probs, atol=1e-4, rtol=0)


def test_the_searches_end_in_every_way(made):
    """What is compared above covers texts that end by themselves, and texts that ``max_length`` ends."""
    one = made("UniLM")
    one.lm.writes = "cloze"
    config = GenerationConfig(beam=4, nbest=4, max_length=9)
    lengths = [len(h.tokens) for some in one.lm.hypotheses([one.lm.encode(t) for t in TEXTS], config) for h in some]
    assert min(lengths) < 9 and max(lengths) == 9


@pytest.mark.parametrize(
    "writes, lengths, options",
    [
        ("cloze", PairLengths(), {}),
        ("cloze", PairLengths(max_source=4, longest_target=6), {"beam": 2}),
        ("next", PairLengths(longest_target=5), {"max_source": 3, "nbest": 2, "beam": 3}),
        ("left_to_right", PairLengths(), {"beam": 2}),
        ("left_to_right", PairLengths(), {"max_source": 2, "min_length": 3, "beam": 2}),
        ("cloze", PairLengths(), {"prompt": True, "beam": 1}),
        ("left_to_right", PairLengths(longest_target=3), {"prompt": False, "beam": 1}),
    ],
)
@pytest.mark.filterwarnings("ignore:.* of .* texts have more than")
def test_texts_go_through_the_tokenizer_as_through_the_library(tmp_path, writes, lengths, options):
    lm = language_model(writes, lengths)
    one = exported(lm, tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out", trust_remote_code=True)
    given = tokenizer(TEXTS, padding=True, return_tensors="pt")
    found = tokenizer.batch_decode(one.theirs.generate(**given, **options), skip_special_tokens=True)
    wanted = lm.generate(TEXTS, **options)
    assert found == [text for some in wanted for text in ([some] if isinstance(some, str) else some)]


def test_parts_of_a_source_are_a_pair_of_texts(tmp_path):
    one = exported(language_model(), tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out", trust_remote_code=True)
    given = tokenizer("w1 w2", "w7", return_tensors="pt")
    found = tokenizer.batch_decode(one.theirs.generate(**given), skip_special_tokens=True)
    assert found == one.lm.generate([["w1 w2", "w7"]])
    assert found != one.lm.generate(["w1 w2 w7"])


@pytest.mark.parametrize("token_types", [2, 6])
@pytest.mark.parametrize("mask", masks.TEXT_MASKS)
@torch.no_grad()
def test_texts_are_read_under_the_models_mask(tmp_path, mask, token_types):
    lm = language_model("nothing", mask=mask, token_types=token_types)
    one = exported(lm, tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out", trust_remote_code=True)
    given = tokenizer(TEXTS, padding=True, return_tensors="pt")
    states, real = one.theirs.transformer(**given).last_hidden_state, given["attention_mask"].unsqueeze(2)
    torch.testing.assert_close((states * real).sum(1) / real.sum(1), lm.embed(TEXTS), atol=1e-5, rtol=1e-5)
    # Padding on the left changes nothing.
    tokenizer.padding_side = "left"
    left = tokenizer(TEXTS, padding=True, return_tensors="pt")
    states, real = one.theirs.transformer(**left).last_hidden_state, left["attention_mask"].unsqueeze(2)
    torch.testing.assert_close((states * real).sum(1) / real.sum(1), lm.embed(TEXTS), atol=1e-5, rtol=1e-5)


def test_symbols_without_a_score_are_never_written(tmp_path):
    lm = language_model()
    words = ["w3", "w7", "w12", "w20"]
    scored = lm.model.symbols.scored
    scored.fill_(0)
    lm.model.symbols.score([lm.vocabulary.special.separator, *map(lm.vocabulary.index, words)])
    one = exported(lm, tmp_path / "out")
    _, found = one.theirs.hypotheses(one.ids[torch.tensor([lm.encode("w1 w2")])], beam=3, nbest=3, max_length=8)
    assert {symbol for h in found[0] for symbol in one.symbols(h.tokens)} <= set(words)
    ours = lm.hypotheses([lm.encode("w1 w2")], GenerationConfig(beam=3, nbest=3, max_length=8))
    assert [h.score for h in found[0]] == pytest.approx([h.score for h in ours[0]], abs=1e-4)


def test_the_loss_is_that_of_labels_in_their_places(made):
    one = made("pre-norm")
    ids, labels = one.ids[torch.tensor([[5, 6, 7]])], one.ids[torch.tensor([[9, 8, 7]])]
    labels[0, 1] = -100
    found = one.theirs(ids, labels=labels)
    log_probs = found.logits[0].log_softmax(-1)
    expected = -(log_probs[0, labels[0, 0]] + log_probs[2, labels[0, 2]]) / 2
    torch.testing.assert_close(found.loss, expected)


@pytest.mark.parametrize(
    "given, message",
    [
        ({"query_step": torch.zeros(3)}, "query_step, key_start and key_stop"),
        ({"attention_mask": torch.ones(1, 2, 3, dtype=torch.bool)}, r"\(1, 3, 3\), got \(1, 2, 3\)"),
        ({"position_ids": torch.arange(4)[None]}, "a query stream needs relative or rotary positions"),
    ],
)
def test_inputs_that_cannot_be_read(made, given, message):
    one = made("pre-norm")
    if "position_ids" in given:
        given["attention_mask"] = torch.ones(1, 4, 3, dtype=torch.bool)
    with pytest.raises(ValueError, match=message):
        one.theirs(torch.tensor([[5, 6, 7]]), **given)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"max_length": 38}, "max_length 38 leaves no position"),
        ({"max_length": 34, "max_source": 0}, "room for 3 beside the 34"),
        ({"beam": 2, "nbest": 3}, "nbest 3 exceeds beam 2"),
        ({"length_penalty": "none"}, "length_penalty must be one of"),
        ({"min_length": 9, "max_length": 8}, "min_length 9 exceeds max_length 8"),
        ({"num_beams": 3}, "generate has no setting num_beams; its settings are beam, max_length"),
        ({"top_k": 3}, "top_k 3 says what is drawn from; it needs sampling"),
        ({"sampling": True, "top_p": 0.0}, r"top_p must be in \(0, 1\]"),
    ],
)
def test_what_cannot_be_written_is_refused(made, options, message):
    one = made("UniLM")
    one.theirs.config.decoding = "cloze"
    with pytest.raises(ValueError, match=message):
        one.theirs.generate(one.ids[torch.tensor([[5, 6, 7, 8]])], **options)


def test_a_model_that_does_not_write_says_so(tmp_path, made):
    one = exported(language_model("nothing"), tmp_path / "out")
    with pytest.raises(ValueError, match="does not write texts"):
        one.theirs.generate(torch.tensor([[5]]))
    relative = made("relative")
    relative.theirs.config.decoding = "permutation"
    with pytest.raises(ValueError, match="has not learnt to write targets"):
        relative.theirs.generate(torch.tensor([[5]]), prompt=False)
