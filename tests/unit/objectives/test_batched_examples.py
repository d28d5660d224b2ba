"""Examples made for a batch at once are those made one by one, whatever else is in the batch."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.many import each, many
from tests.support.token_files import (
    SPECIAL,
    Reads,
    numbered_documents,
    random_sizes,
    random_texts,
    same,
    write_documents,
    write_spans,
)
from tests.unit.planning.test_dataset import UNILM
from tests.unit.planning.test_pairs import ROW, random_pairs, write_pairs
from unified.data.annotations import KINDS, SOURCE_KINDS, columns
from unified.data.example import Examples
from unified.data.text import Text
from unified.data.texts import Texts
from unified.errors import UnifiedError
from unified.objectives import parse_objectives
from unified.objectives.anna import Anna
from unified.objectives.bert import Bert
from unified.objectives.joined_segments import Sequences, joined
from unified.objectives.mixture import Mixture
from unified.objectives.spanbert import SpanBert
from unified.objectives.t5 import RandomSpans
from unified.objectives.xlnet import XLNet
from unified.planning.documents import DocumentTexts
from unified.planning.pairs import PairTexts
from unified.training.row_dataset import RowDataset

#: Every objective on running text, with settings that take other ways.
ALL = (
    "bidirectional,bidirectional_words,left_to_right,right_to_left,seq2seq,bert,bert_words,spanbert,subwords,phrases,anna,"
    "typed,tagged,plain,xlnet,runs,hidden,prefix_lm,bert_style,deshuffling,mass_style,replace_spans,drop_tokens,random_spans"
).split(",")
SETTINGS = {
    "bidirectional_words": "bidirectional(whole_words=True, ngram_share=0.5)",
    "bert_words": "bert(whole_words=True)",
    "subwords": "spanbert(scheme='subword', next_sentence=True)",
    "phrases": "spanbert(scheme='noun_phrase', next_sentence=True)",
    "typed": "anna(mark_entities=True, span_share=0.7, word_share=0.1)",
    "tagged": "anna(scheme='pos')",
    "plain": "anna(scheme='token')",
    "runs": "xlnet(permutation_size=7, next_sentence=True, reuse=20)",
    "hidden": "xlnet(denoising=True)",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ALL, "a mixture"])
def test_a_row_is_the_same_in_every_batch(tmp_path, name):
    """What is made of all rows at once, in any order, is what is made of each row alone."""
    rng = np.random.default_rng(3)
    file = write_documents(tmp_path / "train", numbered_documents(random_sizes(rng, 12, 15, 20)))
    annotations = write_spans(file, KINDS, rng)
    documents = DocumentTexts(file, SPECIAL, rng.random(SPECIAL.ordinary_stop) < 0.6, annotations)
    if name == "a mixture":
        mixture = Mixture((*UNILM.objectives, Bert(), RandomSpans(), SpanBert(), XLNet(), Anna(), Reads()), (1,) * 10)
    else:
        mixture = parse_objectives(SETTINGS.get(name, name))
    dataset = RowDataset(documents, mixture, 96, seed=2)
    dataset.set_epoch(3)
    order = np.random.default_rng(0).permutation(len(dataset)).tolist()
    examples, per_row = dataset.examples(order)
    together = examples.split()
    alone = [dataset[row] for row in order]
    assert per_row.tolist() == [len(row) for row in alone] and len(together) > 20
    assert same([together], [[example for row in alone for example in row]])
    again = Examples.of(together)
    assert again.objectives == examples.objectives and same([again.split()], [together])


@pytest.mark.parametrize("name", ALL)
def test_many_examples_of_a_text_are_those_made_one_by_one(name):
    """So a test may count what is drawn in a batch."""
    objective = parse_objectives(SETTINGS.get(name, name)).objectives[0]
    rng = np.random.default_rng(0)
    tokens, starts, bounds = rng.integers(10, 900, 50), rng.random(50) < 0.5, np.arange(0, 30, 3).reshape(-1, 2)
    spans = {kind: np.column_stack([bounds, [1] * len(bounds)])[:, : columns(kind)] for kind in KINDS}
    two = objective.segments == 2
    text = Text(tokens[:30], SPECIAL, word_starts=starts[:30], spans=spans)
    if two:
        text = replace(text, second=tokens[30:], is_next=True, word_starts=starts)
    one_by_one, again = np.random.default_rng(1), np.random.default_rng(1)
    expected = [objective(text, one_by_one) for _ in range(4)]
    assert same([expected], [many(objective, text, 4, np.random.default_rng(1)).split()])
    assert same([expected], [each(objective, [text] * 4, again)])
    assert one_by_one.random() == again.random()


@pytest.mark.slow
@pytest.mark.parametrize("packed", [True, False])
def test_a_row_of_pairs_is_the_same_in_every_batch(tmp_path, packed):
    plain = write_pairs(tmp_path, random_pairs(80), max_source=60)
    annotations = write_spans(plain.source, SOURCE_KINDS, np.random.default_rng(1))
    asked = PairTexts(plain.source, plain.target, SPECIAL, max_source=60, annotations=annotations)
    extracting = "extractive=True, sentence_limit=7"
    for pairs, settings in ((plain, ""), (plain, "mask_source=0.2, ngram_share=0.3"), (asked, extracting)):
        for name in (f"target_cloze({settings})", f"target_next({settings if pairs is asked else ''})"):
            dataset = RowDataset(pairs, parse_objectives(name), ROW, seed=2, packed=packed)
            together = dataset.examples(range(len(dataset)))[0].split()
            assert same([together], [[example for row in range(len(dataset)) for example in dataset[row]]])


@pytest.mark.parametrize("segments", [1, 2])
@pytest.mark.parametrize("two", [False, True])
def test_sequences_are_joined_one_after_another(two, segments):
    texts = random_texts(40, two)
    if segments > 1 + two:
        with pytest.raises(UnifiedError, match="name: needs two segments"):
            Sequences.of(Texts.of(texts), segments, "name")
        return
    found = Sequences.of(Texts.of(texts), segments, "name")
    parts = [(text.tokens, text.second)[:segments] for text in texts]
    expected = [joined(part, SPECIAL) for part in parts]
    assert found.tokens.tolist() == np.concatenate([tokens for tokens, _ in expected]).tolist()
    assert found.blocks.T.tolist() == [lengths for _, lengths in expected]
    assert found.extents.lengths.tolist() == [len(tokens) for tokens, _ in expected]
    types = [
        kind for _, lengths in expected for kind, length in zip((7, 9), lengths, strict=False) for _ in range(length)
    ]
    assert found.token_types((7, 9)[:segments]).tolist() == types
    starts = found.word_starts(Texts.of(texts), "name")
    for text, start, part in zip(texts, found.extents.starts, parts, strict=True):
        first = len(text.tokens)
        own = starts[start : start + sum(map(len, part)) + 1 + segments].tolist()
        words = text.word_starts.tolist()
        rest = [*words[first:], True] if segments == 2 else []
        assert own == [True, *words[:first], True, *rest]
