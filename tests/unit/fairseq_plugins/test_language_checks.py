"""Options of `--task unified_lm` that contradict each other are refused, and what a new model takes from them."""

from argparse import Namespace

import pytest
from omegaconf import OmegaConf

from fairseq_plugins.language_checks import check_options, settle_model
from fairseq_plugins.models.unified_lm import UnifiedLMModelConfig
from unified.errors import UnifiedError
from unified.objectives import parse_objectives

OPTIONS = {
    "objectives": None,
    "data": "folder",
    "max_tokens": None,
    "padded": False,
    "tokens_per_sample": 64,
    "memory": 0,
    "max_source": None,
    "max_target": None,
    "eval_generate": None,
    "eval_generate_args": "{}",
    "eval_task": None,
    "best_checkpoint_metric": "loss",
    "maximize_best_checkpoint_metric": False,
}


def checked(objectives="bert", paired=False, **options):
    check_options(Namespace(**{**OPTIONS, "objectives": objectives, **options}), parse_objectives(objectives), paired)


def test_what_goes_together_is_taken():
    checked()
    checked(max_tokens=64)
    checked(max_tokens=63, padded=True)
    checked("xlnet", memory=32)
    checked(
        "target_cloze",
        True,
        eval_generate="rouge",
        best_checkpoint_metric="rouge2",
        maximize_best_checkpoint_metric=True,
    )
    checked(
        "target_cloze", True, eval_task="squad_qg", best_checkpoint_metric="bleu4", maximize_best_checkpoint_metric=True
    )
    checked("bert,seq2seq", best_checkpoint_metric="bert_next_sentence_loss")
    checked(best_checkpoint_metric="bert_ppl")
    checked(best_checkpoint_metric="bert_accuracy", maximize_best_checkpoint_metric=True)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"paired": True}, "--objectives 'bert' does not fit folder, which holds source/target pairs"),
        ({"memory": -1}, "--memory must be at least 0, got -1"),
        ({"max_source": -1}, "--max-source must be at least 0, got -1"),
        ({"max_target": -2}, "--max-target must be at least 0, got -2"),
        ({"objectives": "xlnet,bert", "memory": 8}, "--memory 8: streams of running text serve one objective, got "
            "xlnet:1,bert:1; leave the memory out, or name a single one"),
        ({"objectives": "target_cloze", "paired": True, "memory": 8}, "--memory 8: streams of running text serve one "),
        ({"objectives": "xlnet", "memory": 8, "padded": True}, "--memory 8: streams of running text have no padding; "
            "leave --padded out"),
        ({"eval_generate": "bleu"}, "--eval-generate needs source/target pairs, but folder holds documents"),
        ({"eval_generate_args": "[]"}, "--eval-generate-args '[]': expected a JSON object"),
        ({"best_checkpoint_metric": "rouge"}, "--best-checkpoint-metric rouge is not measured in validation (known: "
            "bert_accuracy, bert_loss, bert_next_sentence_accuracy, bert_next_sentence_loss, bert_next_sentence_ppl, "
            "bert_ppl, loss); --eval-generate and --eval-task add others"),
        ({"best_checkpoint_metric": "bert_accuracy"},
            "--best-checkpoint-metric bert_accuracy needs --maximize-best-checkpoint-metric"),
        ({"best_checkpoint_metric": "bert_loss", "maximize_best_checkpoint_metric": True},
            "--best-checkpoint-metric bert_loss cannot go with --maximize-best-checkpoint-metric"),
        ({"objectives": "target_cloze", "paired": True, "eval_generate": "rouge", "best_checkpoint_metric": "bleu"},
            "--best-checkpoint-metric bleu is not measured in validation "),
        ({"objectives": "target_cloze", "paired": True, "eval_generate": "rouge", "best_checkpoint_metric": "rouge"},
            "--best-checkpoint-metric rouge needs --maximize-best-checkpoint-metric"),
        ({"objectives": "target_cloze", "paired": True, "eval_task": "rte"},
            "--eval-task rte: not a generation task; known are "),
    ],
)  # fmt: skip
def test_what_contradicts_is_refused_with_the_option(options, says):
    with pytest.raises(UnifiedError) as raised:
        checked(**options)
    assert str(raised.value).startswith(says)


def settled(objectives, memory=0, **settings):
    cfg = OmegaConf.structured(UnifiedLMModelConfig(**settings))
    settle_model(cfg, parse_objectives(objectives), memory)
    return cfg


def test_a_new_model_takes_mask_heads_and_writing_from_the_objectives():
    found = settled("left_to_right")
    assert (found.mask, found.writes, found.boundary_offsets, found.sentence_head) == (
        "left_to_right",
        "left_to_right",
        0,
        False,
    )
    assert settled("spanbert").boundary_offsets > 0
    assert settled("target_next(extractive=True)").sentence_head and settled("target_next").writes == "next"
    assert settled("target_next", writes="cloze").writes == "cloze"


def test_memory_needs_positions_in_attention():
    assert settled("xlnet", 8, positions="relative").writes == "permutation"
    with pytest.raises(UnifiedError) as raised:
        settled("bert", 8)
    assert str(raised.value) == (
        "--memory 8 needs a model with relative or rotary positions, not 'learned'; pass --positions relative or "
        "rotary, or an --arch xlnet_* or modern_*"
    )
