"""The model that a training begins with: a preset, a configuration, or a trained one."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.generation.lengths import PairLengths
from unified.inference.language_model import UnifiedLM
from unified.model import PRESETS
from unified.objectives import parse_objectives
from unified.training.model_checks import adapted
from unified.training.new_model import new_model, score_targets
from unified.training.pretraining import model_names, preset_named, sized

MIXTURE = parse_objectives("bert")
VOCABULARY = Vocabulary([f"w{number}" for number in range(40)])
ROW = 64


def trained(config=None, symbols=VOCABULARY, others=()):
    """What a trained model is to a new training, and its model."""
    model = new_model(config or small(), symbols, MIXTURE, ROW, ())
    lm = UnifiedLM(model, symbols, None, "nothing", "folder", PairLengths())
    lm.others = list(others)
    return lm


def small(**settings):
    return PRESETS["bert_tiny"](layers=1, width=32, heads=2, feed_forward=64, **settings)


def test_a_preset_gets_the_vocabulary_and_the_positions_that_the_rows_need():
    for rows in (ROW, 700):
        config = new_model("tiny", VOCABULARY, MIXTURE, rows, ()).config
        assert config.vocabulary_size == len(VOCABULARY) and config.max_positions == max(rows, 512)
        assert (config.layers, config.width, config.token_types) == (2, 128, 6)


def test_a_configuration_keeps_its_positions_and_has_the_vocabulary_or_none():
    for size in (0, len(VOCABULARY)):
        given = small(vocabulary_size=size, max_positions=ROW)
        assert new_model(given, VOCABULARY, MIXTURE, ROW, ()).config == adapted(
            replace(given, vocabulary_size=len(VOCABULARY)), MIXTURE
        )
    with pytest.raises(UnifiedError, match=f"^tokens_per_sample {ROW + 1} exceeds max_positions {ROW}$"):
        new_model(given, VOCABULARY, MIXTURE, ROW + 1, ())
    with pytest.raises(UnifiedError) as raised:
        new_model(small(vocabulary_size=7), VOCABULARY, MIXTURE, ROW, ())
    assert str(raised.value) == (
        f"model: vocabulary_size is 7, but the dictionary of the data has {len(VOCABULARY)} symbols; leave it out"
    )


def test_a_trained_model_is_copied_and_its_missing_heads_are_new():
    lm = trained()
    spans = parse_objectives("spanbert")
    torch.manual_seed(3)
    found = new_model(lm, VOCABULARY, spans, ROW, ())
    before, after = lm.model.state_dict(), found.state_dict()
    assert set(after) > set(before) and found.config.boundary_offsets > 0 == lm.model.config.boundary_offsets
    for name, value in before.items():
        assert torch.equal(after[name], value) and after[name].data_ptr() != value.data_ptr(), name


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (3, "model must be the name of a preset, a TransformerConfig or a UnifiedLM (UnifiedLM.from_pretrained loads "
            "one), got 3"),
        ("bert_tony", "model bert_tony: no such model or folder (did you mean 'bert_tiny'?)"),
        (lambda: trained(others=[object(), object()]),
         "model: an ensemble of 3 models cannot be trained; give one of them"),
        (lambda: trained(symbols=Vocabulary(["another"])),
         "model: its dictionary, from folder, is not that of the data; prepare the text by "
         "`unified prepare --tokenizer folder`"),
    ],
)  # fmt: skip
def test_what_cannot_be_trained_is_refused(model, says):
    with pytest.raises(UnifiedError) as raised:
        new_model(model() if callable(model) else model, VOCABULARY, MIXTURE, ROW, ())
    assert str(raised.value) == says


class Holds:
    """A token file with these symbols."""

    def __init__(self, symbols):
        self.symbols = symbols

    def holds(self, asked):
        return np.isin(asked, self.symbols)


class Table:
    """A table of symbols that remembers what is taken into the softmax."""

    def __init__(self, left_out):
        self.left_out, self.scored = torch.zeros(len(VOCABULARY), dtype=torch.bool), None
        self.left_out[left_out] = True

    def score(self, symbols):
        self.scored = symbols


def test_left_out_symbols_are_scored_where_they_are_targets():
    table = Table([5, 6, 7, 8])
    score_targets(table, [Holds([5, 9]), Holds([8])], MIXTURE, VOCABULARY, ROW)
    assert table.scored == [5, 8]
    all_in = Table([])
    score_targets(all_in, [Holds([5])], MIXTURE, VOCABULARY, ROW)
    assert all_in.scored is None


def test_a_model_that_goes_on_scores_the_targets_of_its_new_texts():
    lm = trained()
    lm.model.symbols.scored[[8, 9]] = 0
    found = new_model(lm, VOCABULARY, MIXTURE, ROW, [Holds([8, 10])]).symbols.left_out
    assert not found[8] and found[9] and not found[10] and lm.model.symbols.left_out[8]


def test_models_are_named_by_size_or_as_a_whole():
    names = model_names()
    assert names[:5] == ["tiny", "mini", "small", "base", "large"] and "bert_base" in names
    assert {preset_named(name) for name in names} == set(PRESETS) and "unified_lm_tiny" not in names
    assert preset_named("small") == preset_named("unified_lm_small") == "unified_lm_small"
    with pytest.raises(
        UnifiedError,
        match="^--model gpt: no such model or folder; they are tiny, mini, small, base, large, bert_tiny, ",
    ):
        preset_named("gpt")
    with pytest.raises(UnifiedError, match=r"^model smal: no such model or folder \(did you mean 'small'\?\)$"):
        preset_named("smal", str)


def test_a_folder_is_not_the_name_of_a_new_model(tmp_path):
    """One that is there, with advice how a trained model is trained further, and one that is not."""
    there, nowhere = str(tmp_path), str(tmp_path / "x")
    with pytest.raises(UnifiedError) as raised:
        preset_named(there)
    assert raised.value.details == (
        f"--model {there}: a folder, not the name of a new model; --fairseq='--finetune-from-model CHECKPOINT' begins "
        "with a trained one"
    )
    with pytest.raises(UnifiedError) as raised:
        new_model(there, VOCABULARY, MIXTURE, ROW, ())
    assert raised.value.details == (
        f"model {there}: a folder, not the name of a new model; unified.load gives a trained one to go on from"
    )
    with pytest.raises(UnifiedError) as raised:
        new_model(nowhere, VOCABULARY, MIXTURE, ROW, ())
    assert raised.value.details.startswith(f"model {nowhere}: no such model or folder; they are tiny, mini, ")


def test_a_size_has_the_token_types_of_the_objective_that_takes_most():
    assert sized("bert_tiny", 50, ROW, parse_objectives("bert,seq2seq,left_to_right")).token_types == 6
    plain = sized("bert_tiny", 50, ROW, parse_objectives("bert"))
    assert (plain.token_types, plain.vocabulary_size, plain.max_positions) == (2, 50, 512)
