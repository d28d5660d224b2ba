"""A model takes over the parameters of a checkpoint: what may be new or unused, what grows, and what the log says."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fairseq.dataclass.configs import EMAConfig
from fairseq.models.ema.ema import EMA

from fairseq_plugins.dictionary import fairseq_dictionary
from fairseq_plugins.models.unified_lm import UnifiedLMModel
from unified.checkpoints import fingerprint
from unified.data.vocabulary import Vocabulary
from unified.model import TransformerConfig, UnifiedModel
from unified.tasks.heads import Classification

WORDS = Vocabulary(list("abc"))
SHAPE = {"layers": 1, "width": 8, "heads": 2, "max_positions": 8}
LSTM = [f"lstm.recurrent.{name}_l0{way}" for way in ("", "_reverse")
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]  # fmt: skip
OUTPUT = "heads.task.output.weight, heads.task.output.bias"
NEW = "parameters that the checkpoint lacks, initialised at random: "
UNUSED = "parameters of the checkpoint that are unused, left out: "
OTHER = "parameters of the checkpoint that are for other labels, left out: "


def wrapped(core, words):
    dictionary = fairseq_dictionary(words)
    task = SimpleNamespace(special=words.special, target_dictionary=dictionary, source_dictionary=dictionary)
    return UnifiedLMModel(core, task, "nothing")


def language_model(words=WORDS, **changes) -> UnifiedLMModel:
    config = TransformerConfig(vocabulary_size=len(words), **{**SHAPE, **changes})
    return wrapped(UnifiedModel.for_language(config), words)


def classifier(labels="xy", words=WORDS, **changes) -> UnifiedLMModel:
    config = TransformerConfig(vocabulary_size=len(words), **{**SHAPE, **changes})
    head = Classification(tuple(labels)).head(config)
    return wrapped(UnifiedModel.for_tasks(config, {"task": head}), words)


@pytest.fixture
def loaded(caplog):
    """Loads the state of one model into another; gives the lines of the log."""

    def load(model, state) -> list[str]:
        caplog.clear()
        with caplog.at_level("INFO"):
            model.load_state_dict(state)
        assert {record.name for record in caplog.records} <= {"fairseq_plugins.models.unified_lm"}
        return caplog.messages

    return load


def test_a_model_goes_on_with_all_its_parameters_without_a_word(loaded):
    saved, model = language_model(), language_model()
    state = saved.state_dict()
    kept = {name: value.clone() for name, value in state.items()}
    assert loaded(model, state) == []
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert state.keys() == kept.keys(), "the given state stays as it is"
    assert loaded(language_model(), {name: one for name, one in state.items() if name != "dictionary_version"}) == []


def test_a_task_begins_with_a_language_model_whose_heads_it_leaves(loaded):
    saved, model = language_model(), classifier()
    assert loaded(model, saved.state_dict()) == [
        NEW + OUTPUT,
        UNUSED + "heads.token (5 parameters), heads.next_sentence (2 parameters)",
    ]
    pooler = saved.core.heads["next_sentence"].pooler.weight
    assert torch.equal(model.core.heads["task"].pooler.weight, pooler)
    assert loaded(classifier(lstm=1), saved.state_dict()) == [
        NEW + ", ".join([*OUTPUT.split(", "), *LSTM]),
        UNUSED + "heads.token (5 parameters), heads.next_sentence (2 parameters)",
    ]


def test_an_lstm_may_be_left_and_is_no_part_of_a_head(loaded):
    state = classifier(lstm=1).state_dict()
    assert loaded(classifier(), state) == [UNUSED + ", ".join(LSTM)]


def test_a_projection_to_other_labels_is_new(loaded):
    saved, model = classifier("xy"), classifier("xyz")
    assert loaded(model, saved.state_dict()) == [NEW + OUTPUT, OTHER + OUTPUT]
    assert torch.equal(model.core.heads["task"].pooler.weight, saved.core.heads["task"].pooler.weight)


def test_a_projection_to_other_labels_of_the_same_number_is_new(loaded):
    """It was taken over in silence, for labels that it had not learnt."""
    saved, model = classifier("xy"), classifier("xz")
    new = model.core.heads["task"].output.weight.clone()
    state = {
        **saved.state_dict(),
        "kept_heads": {"task": {"head": "classification", "settings": {"labels": ["x", "y"]}}},
    }
    model.learnt_heads = {"task": {"head": "classification", "settings": {"labels": ("x", "z")}}}
    assert loaded(model, state) == [NEW + OUTPUT, OTHER + OUTPUT]
    assert torch.equal(model.core.heads["task"].pooler.weight, saved.core.heads["task"].pooler.weight)
    assert torch.equal(model.core.heads["task"].output.weight, new)
    model.learnt_heads = state["kept_heads"]
    assert loaded(model, state) == []
    assert torch.equal(model.core.heads["task"].output.weight, saved.core.heads["task"].output.weight)


def test_a_new_token_head_begins_as_a_comparison_with_embeddings(loaded):
    model = language_model()
    *lines, last = loaded(model, classifier().state_dict())
    assert lines[0].startswith(f"{NEW}heads.token.bias, heads.token.dense.weight, ")
    assert lines[1:] == [UNUSED + "heads.task (4 parameters)"]
    assert last == "the new token head starts by comparing states with embeddings"
    dense = model.core.heads["token"].dense
    assert torch.equal(dense.weight, torch.eye(8) * model.core.config.initializer_range)


def test_anything_else_that_is_missing_or_unknown_is_refused():
    state = language_model().state_dict()
    for changed, says in (
        ({**state, "core.transformer.other": torch.zeros(1)}, "unknown: transformer.other"),
        ({name: one for name, one in state.items() if name != "core.heads.token.bias"}, "missing: heads.token.bias"),
        ({**state, "core.heads.token.bias": torch.zeros(3)}, "heads.token.bias: shape 3, the model has 108"),
    ):
        with pytest.raises(SystemExit) as raised:
            language_model().load_state_dict(changed)
        assert str(raised.value) == (f"unified_lm: error: the checkpoint's parameters do not fit the model: {says}")


def test_another_dictionary_of_the_same_size_is_refused():
    with pytest.raises(SystemExit) as raised:
        language_model(Vocabulary(list("acb"))).load_state_dict(language_model().state_dict())
    assert str(raised.value) == (
        "unified_lm: error: the checkpoint was trained with another dictionary of the same size; prepare this data "
        "with --tokenizer set to the folder the checkpoint was trained on"
    )


def test_another_dictionary_of_another_size_is_refused_before_shapes_are():
    for symbols, sizes in (
        ("abde", "of 108 symbols, that of this data has 109"),
        ("ab", "of 108 symbols, that of this data has 107"),
    ):
        with pytest.raises(SystemExit) as raised:
            language_model(Vocabulary(list(symbols[::-1]))).load_state_dict(language_model().state_dict())
        assert str(raised.value) == (
            f"unified_lm: error: the checkpoint was trained with another dictionary {sizes}; prepare this data with "
            "--tokenizer set to the folder the checkpoint was trained on"
        )


@pytest.mark.parametrize(
    ("count", "shown"), [(1, "m0"), (8, "m0 m1 m2 m3 m4 m5 m6 m7"), (9, "m0 m1 m2 m3 m4 m5 m6 m7 ...")]
)
def test_symbols_behind_those_of_the_checkpoint_get_new_rows(loaded, count, shown):
    """Their embeddings are drawn at random, their softmax entries wait for a training that has them as targets."""
    words = Vocabulary([f"w{i}" for i in range(12)])
    longer = Vocabulary([*words.symbols[4:], *(f"m{i}" for i in range(count))])
    saved, model = language_model(words, initializer_range=0.5), language_model(longer, initializer_range=0.5)
    line = f"symbols that the checkpoint lacks, with new rows: {count} ({shown})"
    assert loaded(model, saved.state_dict()) == [line]
    table, old = model.core.symbols, saved.core.symbols.weight
    assert torch.equal(table.weight[: len(words)], old) and table.left_out.sum() == count
    assert table.left_out[len(words) :].all() and table.weight[len(words) :].abs().mean() > 0.1
    assert int(model.dictionary_version) == fingerprint(longer.symbols), "the buffer is the model's own"


def left_out_of(saved: UnifiedLMModel, symbols: list[int]) -> dict:
    state = saved.state_dict()
    state["core.transformer.embeddings.tokens.scored"][symbols] = 0.0
    return state


LINE = "symbols that the checkpoint's softmax left out: {}; now in it, as targets have them: {}"


@pytest.mark.parametrize(("used", "says"), [([5], "1 (b)"), ([4, 6], "2 (a c)"), ([], "0")])
def test_symbols_that_training_has_as_targets_join_the_softmax(loaded, used, says):
    asked, model = [], language_model()

    def target_symbols(symbols: np.ndarray) -> np.ndarray:
        asked.append(symbols.tolist())
        assert symbols.dtype == np.int64
        return np.array(used, dtype=np.int64)

    model.target_symbols = target_symbols
    assert loaded(model, left_out_of(language_model(), [4, 5, 6])) == [LINE.format(3, says)]
    assert asked == [[4, 5, 6]]
    assert model.core.symbols.left_out.nonzero().squeeze(1).tolist() == [one for one in (4, 5, 6) if one not in used]


def test_without_training_the_softmax_stays_and_where_nothing_is_left_out_nobody_is_asked(loaded):
    model = language_model()
    assert loaded(model, left_out_of(language_model(), [4, 5])) == []
    assert model.core.symbols.left_out.nonzero().squeeze(1).tolist() == [4, 5]
    model = language_model()
    model.target_symbols = lambda symbols: pytest.fail("nothing is left out")
    assert loaded(model, language_model().state_dict()) == []


def test_the_moving_average_asks_nothing_of_the_data_at_an_update(caplog):
    """It takes over what the model has in its softmax."""
    asked, model = [], language_model()
    model.target_symbols = lambda symbols: asked.append(symbols) or symbols[:1]
    model.load_state_dict(left_out_of(language_model(), [4, 5]))
    average = EMA(model, EMAConfig(store_ema=True, ema_decay=0.5))
    with caplog.at_level("INFO"):
        for update in range(3):
            average.step(model, update)
    assert len(asked) == 1 and caplog.messages == []
    assert average.get_model().core.symbols.left_out.nonzero().squeeze(1).tolist() == [5]


def test_a_model_without_a_softmax_says_nothing_of_it(loaded):
    changes = {"token_head": "none"}
    saved, model = classifier(**changes), classifier(**changes)
    model.target_symbols = lambda symbols: symbols[:1]
    assert loaded(model, left_out_of(saved, [4, 5])) == []
    assert model.core.symbols.left_out.nonzero().squeeze(1).tolist() == [5]
