"""A language model as Python users have it: files, ensembles, lengths of sources and texts, warnings, refusals."""

import warnings

import pytest
import torch

from tests.support.refusals import refused
from tests.support.tiny_models import model, vocabulary
from unified import UnifiedLM
from unified.generation import GenerationConfig
from unified.generation.ensemble import EnsembleDecoder
from unified.generation.lengths import PairLengths
from unified.generation.schemes import NO_ENTITIES_IN_WRITING, NO_SCHEME
from unified.inference.language_model import require_no_heads
from unified.tokenization.symbol_tokenizer import SymbolTokenizer

WORDS = vocabulary()
SEP = WORDS.special.separator
FIRST = WORDS.index("w0")
POSITIONS = 48


def handle(writes="cloze", lengths=PairLengths(), **changes) -> UnifiedLM:  # noqa: B008 (it is frozen)
    return UnifiedLM(model(**changes), WORDS, SymbolTokenizer(WORDS.symbols), writes, "folder", lengths)


def test_a_model_is_saved_into_a_new_folder_and_read_again(saved, tmp_path):
    lm = UnifiedLM.from_pretrained(saved)
    lm.objectives, lm.lengths = "target_cloze:1", PairLengths(7, 5, 4)
    assert UnifiedLM.objectives == "" and UnifiedLM.history == ()
    for folder in (tmp_path / "deep" / "model", tmp_path / "deep" / "model"):  # the second time it is there
        lm.save(folder)
    read = UnifiedLM.from_pretrained(folder)
    assert (read.objectives, read.lengths, read.writes) == (lm.objectives, lm.lengths, lm.writes)
    assert read.encode("the cat") == lm.encode("the cat") and (folder / "dict.txt").is_file()
    for name, value in lm.model.state_dict().items():
        assert torch.equal(read.model.state_dict()[name], value)
    assert refused(lm.save, 3).startswith("folder: expected the path of a file or folder, got ")


@pytest.mark.parametrize("name", ["checkpoint_best.pt", "results.json"])
def test_a_model_is_not_saved_beside_a_training_that_would_be_read_instead(saved, tmp_path, name):
    (tmp_path / name).touch()
    said = refused(UnifiedLM.from_pretrained(saved).save, tmp_path)
    assert said == f"{tmp_path}: holds a training ({name}); name another folder for the model"
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_models_of_tasks_are_refused_by_the_names_of_their_heads():
    require_no_heads([])
    assert refused(require_no_heads, ["rte", "cola"]) == (
        "the model was fine-tuned for rte, cola and predicts no tokens; take the language model it came from"
    )


def test_several_models_write_together_and_one_alone_is_itself(saved, tmp_path):
    assert UnifiedLM.ensemble([saved]).others == ()
    two = UnifiedLM.ensemble([saved, saved])
    assert len(two.others) == 1 and isinstance(two.decoder(), EnsembleDecoder)
    assert not isinstance(UnifiedLM.ensemble([saved]).decoder(), EnsembleDecoder)
    assert refused(two.save, tmp_path / "none") == "save asks a single model; this is an ensemble of 2"
    assert not (tmp_path / "none").exists()
    assert refused(UnifiedLM.ensemble, str(saved)) == "paths: expected a list of texts, got one text; put it in a list"
    other = UnifiedLM.from_pretrained(saved)
    other.lengths = PairLengths(longest_target=3)
    assert "lengths of sources and targets" in refused(UnifiedLM.together, ["a", "b"], [two, other])


def test_batches_have_32_texts_unless_the_user_says_otherwise():
    lm, words, config = handle(layers=1), ["w1"] * 33, GenerationConfig(beam=1, max_length=1)
    long, rows = ["w1 w2 w3 w4 w5"] * 17, []  # two windows each
    lm.model.transformer.embeddings.register_forward_hook(lambda module, given, states: rows.append(len(states)))
    for ask, left in (
        (lambda **size: lm.generate(words, beam=1, max_length=1, **size), 1),
        (lambda **size: lm.hypotheses([[FIRST]] * 33, config, **size), 1),
        (lambda **size: lm.shortened(long, config, max_source=3, **size), 2),
        (lambda **size: lm.score(words, words, **size), 1),
    ):
        ask()
        assert set(rows) == {32, left}
        rows.clear()
        ask(batch_size=40)
        assert set(rows) == {32 + left}
        rows.clear()


def test_parts_of_a_source_stand_with_the_separator_between_them():
    lm = handle()
    assert lm.encode_source("w1 w2") == [FIRST + 1, FIRST + 2]
    assert lm.encode_source(["w1", "w2 w3", "w0"]) == [FIRST + 1, SEP, FIRST + 2, FIRST + 3, SEP, FIRST]
    assert refused(lm.encode_source, 3).startswith("source: expected ")


@pytest.mark.parametrize(
    ("writes", "prompt", "scheme"),
    [
        ("cloze", None, "cloze"),
        ("cloze", False, "cloze"),
        ("cloze", True, "left_to_right"),
        ("next", None, "next"),
        ("left_to_right", None, "left_to_right"),
        ("left_to_right", False, "cloze"),
        ("left_to_right", True, "left_to_right"),
    ],
)
def test_a_model_writes_as_it_has_learnt_or_as_asked(writes, prompt, scheme):
    assert handle(writes).scheme(prompt) == scheme


def test_what_cannot_be_written_is_refused():
    assert refused(handle().scheme, 1) == "prompt must be True, False or None, got 1"
    assert refused(handle("nothing").scheme) == NO_SCHEME
    assert refused(handle(sublayers="entity,feed_forward").scheme) == NO_ENTITIES_IN_WRITING
    permuting = handle("permutation", positions="relative")
    assert permuting.scheme() == permuting.scheme(True) == "permutation"
    assert refused(permuting.scheme, False) == (
        "the model continues prompts; it has not learnt to write targets of sources"
    )
    assert refused(handle("left_to_right").generate, ["w1"], windows=True) == (
        "windows divide sources, but the model continues prompts, which are read whole"
    )
    writing = handle("cloze")  # special symbols take three positions
    positions = writing.model.config.max_positions
    for length in (positions - 3, positions):
        options = {"prompt": False, "windows": True, "max_source": 0, "max_length": length}
        said = f"leave none for a source beside a target of {length} tokens; a target must be shorter"
        assert refused(writing.generate, ["w1 w2 w3"], **options).endswith(said)
    assert refused(handle().score, ["w1", "w2"], ["w1"]) == "2 sources but 1 target; they must pair one to one"


def said(function, *arguments, **options) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function(*arguments, **options)
    return [str(one.message) for one in found if one.category is UserWarning]


def test_sources_are_cut_to_what_training_read_which_is_said_unless_the_user_says_so():
    lm = handle(lengths=PairLengths(max_source=2, longest_target=3))
    long, short = ["w1 w2 w3", "w4"], ["w1 w2", "w4"]
    says = ["1 of 2 texts have more than 2 tokens; the rest is not read"]
    assert said(lm.generate, long) == says == said(lm.score, long, ["w1", "w1"])
    assert said(lm.generate, long, max_source=2) == [] == said(lm.score, long, ["w1", "w1"], max_source=2)
    assert said(lm.generate, short) == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert lm.generate(long) == lm.generate(short) != lm.generate(long, max_source=0)
        assert lm.score(long, ["w1", "w1"]) == lm.score(short, ["w1", "w1"])


def test_texts_are_as_long_as_those_of_training_or_as_the_positions_leave():
    def most(lm, texts, **options):
        """Tokens that may be written: what a fewest number above them is refused by."""
        asked = []
        inner = lm.hypotheses
        lm.hypotheses = lambda ids, config, **more: asked.append(config.max_length) or inner(ids, config, **more)
        lm.generate(texts, beam=1, **options)
        return asked[0]

    assert most(handle(lengths=PairLengths(longest_target=4)), ["w1"]) == 4
    assert most(handle(lengths=PairLengths(longest_target=4)), ["w1"], min_length=6) == 6
    assert most(handle(lengths=PairLengths(longest_target=4)), ["w1"], max_length=5) == 5
    assert most(handle(), ["w1 " * 30]) == POSITIONS - 30 - 3
    assert most(handle(), ["w1 " * 40, "w1"], max_source=0, max_length=5) == 5
    assert most(handle("left_to_right"), ["w1 " * 30, "w2"]) == POSITIONS - 30 - 3
    assert most(handle("left_to_right"), ["w1 " * 44]) == 1
    assert most(handle("left_to_right", max_positions=300), ["w1"]) == 128


@pytest.mark.parametrize("options", [{"beam": 2, "nbest": 2}, {"sampling": True, "seed": 3}])
@pytest.mark.parametrize(
    "writes, lengths, windows",
    [
        ("left_to_right", PairLengths(), False),  # prompts are read whole
        ("cloze", PairLengths(), False),
        ("cloze", PairLengths(), True),
        ("cloze", PairLengths(max_source=9), True),
    ],
)
@pytest.mark.filterwarnings("ignore:.* of .* texts")
def test_no_text_depends_on_the_others_of_a_call(writes, lengths, options, windows):
    """Each has the positions that it leaves itself, however long its neighbours are."""
    lm = handle(writes, lengths)
    lm.model.heads["token"].bias.data[lm.special.separator] -= 30  # so that texts become as long as they may
    texts = ["w4", "w1 " * 42, "w2 w3", "w5 " * 30, "w1 " * 42]
    together = lm.generate(texts, windows=windows, **options)
    for number, text in enumerate(texts):
        before = ["w4"] * number  # draws depend on the number of a text
        assert lm.generate([*before, text], windows=windows, **options)[-1] == together[number]
    longest = [lm.encode(one if isinstance(one, str) else one[0]) for one in together]
    assert len(longest[0]) >= len(longest[2]) > 40 and (writes == "left_to_right" or len(longest[1]) == POSITIONS // 4)


def test_cut_sources_are_counted_once_with_all_their_limits():
    """Without pairs the positions that a source leaves are its own, but for a quarter that it must leave."""
    with pytest.warns(UserWarning) as found:
        handle().generate(["w1 " * 44, "w4", "w1 " * 47, "w1 " * 33], beam=1)
    assert [str(one.message) for one in found] == [
        f"2 of 4 texts have more than {POSITIONS - POSITIONS // 4 - 3} tokens; the rest is not read"
    ]
    assert found[0].filename == __file__


def test_one_text_for_each_source_or_a_list_of_the_best():
    lm = handle(lengths=PairLengths(longest_target=3))
    one = lm.generate(["w1", "w2"], beam=3)
    best = lm.generate(["w1", "w2"], beam=3, nbest=2)
    assert all(isinstance(text, str) for text in one) and [len(some) for some in best] == [2, 2]
    assert [some[0] for some in best] == one
    prompts = handle("left_to_right").generate(["w1 w2"], max_length=2)
    assert prompts[0].startswith("w1 w2")


def test_a_batch_changes_nothing_and_texts_keep_their_order():
    lm = handle(lengths=PairLengths(longest_target=3))
    sources, targets = ["w1", "w2 w3 w4 w5", "w6 w7", "w8"], ["w1 w1", "w2", "w3 w3 w3", "w4"]
    assert lm.generate(sources, batch_size=1) == lm.generate(sources, batch_size=2) == lm.generate(sources)
    for small, large in zip(lm.score(sources, targets, batch_size=1), lm.score(sources, targets), strict=True):
        assert small == pytest.approx(large, abs=1e-4)
    assert [len(own) for own in lm.score(sources, targets)] == [3, 2, 4, 2]  # with the end symbol
    prompts = handle("left_to_right")
    assert [len(own) for own in prompts.score(sources, targets)] == [2, 1, 3, 1]


def test_the_draws_of_sampling_follow_the_numbers_of_the_sentences():
    lm = handle(lengths=PairLengths(longest_target=5))
    config, ids = GenerationConfig(sampling=True, beam=1, max_length=5, seed=3), [[FIRST], [FIRST], [FIRST]]
    texts = [some[0].tokens.tolist() for some in lm.hypotheses(ids, config)]
    again = [some[0].tokens.tolist() for some in lm.hypotheses(ids[:2], config, indices=[2, 0])]
    assert again == [texts[2], texts[0]] and len({tuple(text) for text in texts}) > 1
    assert lm.hypotheses([], config) == []
