"""Imported models give no probability to symbols that they never had: log-probabilities are those of transformers.

A softmax does not see what all biases have in common, so a model whose output bias is 30 lower is the same model; rows
that an import adds must not show in either.
"""

import copy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers
from fairseq.data import Dictionary
from fairseq.dataclass.configs import EMAConfig
from fairseq.models.ema.ema import EMA

from fairseq_plugins.generator import ForcedScorer, UnifiedSequenceGenerator
from fairseq_plugins.models.unified_lm import UnifiedLMModel
from tests.integration.checkpoints.test_vocabulary_change import folder_of
from tests.support.published_models import KINDS, Published, published
from unified import UnifiedLM, masks
from unified.checkpoints import load_parameters
from unified.checkpoints.vocabularies import change_vocabulary
from unified.conversions.bert import export_bert
from unified.conversions.export import Source
from unified.data.vocabulary import SENTINELS
from unified.errors import UnifiedError
from unified.generation import GenerationConfig, generate
from unified.model import TransformerConfig, UnifiedModel
from unified.model.embeddings import SymbolTable
from unified.model.heads import classified
from unified.objectives.xlnet import CLS_TYPE

SHIFTS = (-30.0, 0.0, 30.0)
SOURCES = ["the cat sat on a", "a dog", "bird sang the mat ."]
TARGETS = ["the dog sat", "mat", "cat on the mat"]
#: How each kind writes; RoBERTa and BERT once their token types have grown.
SCHEMES = [(kind, scheme) for kind in ("bert", "roberta", "unilm") for scheme in ("cloze", "next", "left_to_right")]
SCHEMES.append(("xlnet", "permutation"))
CLOSE = {"atol": 1e-5, "rtol": 0}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Published models by kind, shift and scheme, made at their first use."""
    made: dict[tuple, Published] = {}

    def model(kind: str, shift: float, writes: str = "nothing") -> Published:
        key = (kind, shift, writes)
        if key not in made:
            made[key] = published(kind, tmp_path_factory.mktemp("model"), shift, writes)
        return made[key]

    return model


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("kind", KINDS)
def test_masks_are_filled_with_the_probabilities_of_transformers(models, kind, shift):
    one = models(kind, shift)
    lm, hidden = one.lm, " <mask> " if kind == "roberta" else "<mask>"
    text = f"the {hidden} sat on{hidden} mat"
    found = lm.fill_mask(text, top=10**6)
    parts = text.split("<mask>")
    ids = [*lm.encode(parts[0]), lm.special.mask, *lm.encode(parts[1]), lm.special.mask, *lm.encode(parts[2])]
    indices = [i for i, token in enumerate(ids) if token == lm.special.mask]
    if kind == "xlnet":
        ids, types = [*ids, lm.special.separator, lm.special.begin], [0] * (len(ids) + 1) + [CLS_TYPE]
        seen = torch.ones(len(ids), len(ids), dtype=torch.bool)
        seen[:, indices] = False
    else:
        ids = [lm.special.begin, *ids, lm.special.separator]
        indices, types = [index + 1 for index in indices], [0] * len(ids)
        seen = masks.bidirectional(len(ids)).dense()
    assert len(found) == 2
    for row, index in zip(found, indices, strict=True):
        expected = one.log_probs(ids, types, seen, index)
        by_symbol = dict(row)
        assert by_symbol.keys() == {s for s, id in zip(lm.vocabulary.symbols, one.rows, strict=True) if id >= 0}
        values = torch.tensor([by_symbol.get(symbol, 0.0) for symbol in lm.vocabulary.symbols])
        torch.testing.assert_close(values.log(), expected.float(), **CLOSE)


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize(("kind", "scheme"), SCHEMES)
def test_given_targets_have_the_scores_of_transformers(models, kind, scheme, shift):
    one = models(kind, shift, scheme)
    found = one.lm.score(SOURCES, TARGETS)
    for source, target, values in zip(SOURCES, TARGETS, found, strict=True):
        assert values == pytest.approx(their_scores(one, scheme, source, one.lm.encode(target)), abs=1e-5)


def their_scores(one: Published, scheme: str, source: str, ids: list[int]) -> list[float]:
    """Log-probabilities of a target's tokens and, behind a source, of the end symbol."""
    given, ids = one.lm.encode(source), [*ids] + [one.lm.special.separator] * (scheme in ("cloze", "next"))
    return [float(one.next_log_probs(scheme, given, ids[:i])[token]) for i, token in enumerate(ids)]


@pytest.mark.parametrize("sampling", [False, True])
@pytest.mark.parametrize(("kind", "scheme"), SCHEMES)
def test_what_is_written_has_the_log_probabilities_of_transformers(models, kind, scheme, sampling):
    """Beam search and sampling write the same tokens whatever the shift, and none that the model never had."""
    config = GenerationConfig(beam=3, nbest=3, max_length=5, min_length=2, sampling=sampling, seed=4)
    written = []
    for shift in SHIFTS:
        one = models(kind, shift, scheme)
        found = one.lm.hypotheses([one.lm.encode(source) for source in SOURCES], config)
        written.append([[hypothesis.tokens.tolist() for hypothesis in some] for some in found])
        for source, some in zip(SOURCES, found, strict=True):
            for hypothesis in some:
                assert (one.rows[hypothesis.tokens] >= 0).all()
                ids = [*hypothesis.tokens.tolist(), one.lm.special.separator]
                given = one.lm.encode(source)
                expected = [one.next_log_probs(scheme, given, ids[:i])[token] for i, token in enumerate(ids)]
                torch.testing.assert_close(hypothesis.log_probs, torch.stack(expected).float(), **CLOSE)
    assert written[0] == written[1] == written[2]


@pytest.mark.parametrize("shift", SHIFTS)
def test_fairseqs_generator_and_forced_scores_follow(models, shift):
    one = models("unilm", shift, "cloze")
    lm, dictionary = one.lm, Dictionary()
    for symbol in lm.vocabulary.symbols[4:]:
        dictionary.add_symbol(symbol)
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary, special=lm.special)
    model = UnifiedLMModel(lm.model, task, "cloze").eval()
    ids = [[*lm.encode(source), lm.special.separator] for source in SOURCES[:1]]
    sample = {"net_input": {"src_tokens": torch.tensor(ids), "src_lengths": torch.tensor([len(ids[0])])}}
    generator = UnifiedSequenceGenerator([model], dictionary, beam_size=3, max_len_b=5, min_len=2)
    for hypothesis in generator.generate([model], sample)[0]:
        tokens = hypothesis["tokens"]
        expected = [
            float(one.next_log_probs("cloze", ids[0][:-1], tokens[:i].tolist())[t])
            for i, t in enumerate(tokens.tolist())
        ]
        assert hypothesis["positional_scores"].tolist() == pytest.approx(expected, abs=1e-5)
    target = lm.encode(TARGETS[0])
    sample["target"] = torch.tensor([[*target, lm.special.separator]])
    ((forced,),) = ForcedScorer([model]).generate([model], sample)
    assert forced["positional_scores"].tolist() == pytest.approx(
        their_scores(one, "cloze", SOURCES[0], target), abs=1e-5
    )


def test_no_symbol_is_written_that_was_never_learnt(models):
    """Where every other symbol is blocked, too; and none can be forced."""
    lm = models("unilm", -30.0, "cloze").lm
    ids = torch.tensor([[*lm.encode("the cat"), lm.special.separator]])
    every = lm.hypotheses(
        [ids[0, :-1].tolist()], GenerationConfig(beam=50, nbest=50, max_length=1, no_repeat_ngram_size=1)
    )
    first = {int(h.tokens[0]) for h in every[0] if len(h.tokens)}
    sentinels = {lm.vocabulary.index(symbol) for symbol in SENTINELS}
    assert len(first) > 5 and not first & sentinels
    with pytest.raises(
        UnifiedError, match=rf"prefix holds id {min(sentinels)}, a symbol that the model has not learnt"
    ):
        generate(lm.decoder(), ids, GenerationConfig(max_length=3), prefix=torch.tensor([[min(sentinels)]]))


@torch.no_grad()
def test_the_boundary_head_leaves_them_out_too(models):
    lm = models("unilm", -30.0).lm
    model = UnifiedModel.for_language(replace(lm.model.config, boundary_offsets=4))
    load_parameters(model, lm.model.state_dict(), ["heads.boundary."])
    spans = UnifiedLM(model, lm.vocabulary, lm.tokenizer, "nothing", lm.folder)
    (found,) = spans.fill_span("the <mask> sat", top=10**6)
    assert not {symbol for symbol, _ in found} & set(SENTINELS)
    assert sum(p for _, p in found) == pytest.approx(1, abs=1e-5)


# Another dictionary


@pytest.mark.parametrize("shift", SHIFTS)
@torch.no_grad()
def test_a_new_dictionary_adds_nothing_to_the_softmax_here_or_exported(tmp_path, shift):
    one = published("bert", tmp_path / "bert", shift)
    entries = [*one.lm.tokenizer.entries, "fish", "##s"]
    folder_of(tmp_path / "data", [entry for entry in entries if not entry.startswith("[")], vocab_txt=entries)
    (tmp_path / "data" / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    assert change_vocabulary(one.lm.folder, tmp_path / "data", tmp_path / "new").new == ("fish", "##s")
    lm, text = UnifiedLM.from_pretrained(tmp_path / "new"), "the <mask> sat on a mat"
    before, after = (dict(model.fill_mask(text, top=10**6)[0]) for model in (one.lm, lm))
    assert before.keys() == after.keys()
    for symbol, p in before.items():
        assert np.log(after[symbol]) == pytest.approx(np.log(p), abs=1e-5)
    export_bert(Source.read(tmp_path / "new"), tmp_path / "back")
    back = transformers.BertForMaskedLM.from_pretrained(tmp_path / "back").double()
    ids = [entries.index(e) for e in ("[CLS]", "the", "[MASK]", "sat", "on", "a", "mat", "[SEP]")]
    found = back(input_ids=torch.tensor([ids])).logits[0, 2].log_softmax(-1)
    names = {"<s>": "[CLS]", "</s>": "[SEP]", "<pad>": "[PAD]", "<unk>": "[UNK]", "<mask>": "[MASK]"}
    expected = torch.tensor([before[symbol] for symbol in lm.tokenizer.native_symbols()[:-2]]).log()
    assert [names.get(symbol, symbol) for symbol in lm.tokenizer.native_symbols()] == entries
    torch.testing.assert_close(found[:-2].float(), expected, **CLOSE)
    assert (found[-2:] < -1000).all() and all(map(torch.isfinite, back.cls.predictions.bias))


# Losses


def with_left_out(left_out: list[int]) -> SymbolTable:
    table = SymbolTable(TransformerConfig(vocabulary_size=9, width=6, heads=2))
    table.scored[left_out] = 0.0
    return table


@pytest.mark.parametrize("left_out", [[], [3], [0, 3, 8]])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_losses_are_those_of_a_softmax_without_them(left_out, smoothing):
    """Loss and gradients against the same softmax over the other rows alone; smoothing gives padding (0) nothing."""
    table, states, bias = with_left_out(left_out), torch.randn(5, 6, requires_grad=True), torch.randn(9)
    bias.requires_grad_()
    labels = torch.tensor([1, 2, 4, 7, 1])
    unsmoothed = table.left_out
    unsmoothed[0] = True
    found = classified(table.logits(states, bias), labels, smoothing, unsmoothed).loss.sum()
    found.backward()
    gradients = [states.grad.clone(), bias.grad.clone(), table.weight.grad.clone()]
    for tensor in (states, bias, table.weight):
        tensor.grad = None
    kept = [i for i in range(9) if i not in left_out]
    log_probs = (states @ table.weight[kept].T + bias[kept]).log_softmax(-1)
    spread = smoothing / (len([i for i in kept if i != 0]) - 1)
    expected = -sum(
        ((1 - smoothing) if i == label else spread if i != 0 else 0.0) * row[kept.index(i)]
        for row, label in zip(log_probs, labels.tolist(), strict=True)
        for i in kept
    )
    torch.testing.assert_close(found, expected)
    expected.backward()
    for value, tensor in zip(gradients, (states, bias, table.weight), strict=True):
        torch.testing.assert_close(value, tensor.grad)
    assert not gradients[1][left_out].any() and not gradients[2][left_out].any()


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9999])
def test_averages_of_models_keep_what_is_left_out(decay):
    """fairseq's moving average goes over whatever a model saves; a decay of 0 is its start."""
    table = with_left_out([3, 8])
    average = EMA(table, EMAConfig(store_ema=True, ema_decay=decay))
    for step in range(300):
        average._set_decay(decay)
        average._step_internal(table, step)
    mean = SymbolTable(TransformerConfig(vocabulary_size=9, width=6, heads=2))
    mean.load_state_dict({k: (v + average.get_model().state_dict()[k]) / 2 for k, v in table.state_dict().items()})
    for one in (average.get_model(), mean, mean.half(), copy.deepcopy(mean).bfloat16()):
        assert one.left_out.nonzero().ravel().tolist() == [3, 8]
        logits = one.logits(torch.randn(2, 6).to(one.weight.dtype), torch.randn(9).to(one.weight.dtype)).float()
        probabilities = logits.softmax(-1)
        assert not probabilities[:, [3, 8]].any() and probabilities.isfinite().all()


def test_weight_decay_leaves_everything_finite():
    table = with_left_out([3, 8])
    bias = torch.nn.Parameter(torch.randn(9))
    optimizer = torch.optim.AdamW([table.weight, bias], lr=0.1, weight_decay=0.5)
    for _ in range(5):
        optimizer.zero_grad()
        labels = torch.tensor([1, 2])
        classified(table.logits(torch.randn(2, 6), bias), labels).loss.sum().backward()
        optimizer.step()
    assert bias.isfinite().all() and table.weight.isfinite().all()
