"""The options of `--task unified_lm`: their defaults, choices and short names, and which are those of other groups."""

from dataclasses import MISSING, fields

from fairseq_plugins.language_options import UnifiedLMTaskConfig


def test_options_have_these_defaults():
    options = {field.name: field for field in fields(UnifiedLMTaskConfig)}
    assert {name: field.default for name, field in options.items()} == {
        "_name": None, "no_export": False, "data": "???", "objectives": None, "source_lang": None, "target_lang": None,
        "tokens_per_sample": 512, "memory": 0, "padded": False, "max_source": None, "max_target": None,
        "eval_generate": None, "eval_task": None, "eval_items": None, "eval_generate_args": '{"beam": 1}',
        "length_penalty": "fairseq", "no_repeat_ngram_ignore": "", "seed": "${common.seed}",
        "max_tokens": "${dataset.max_tokens}", "max_valid_steps": "${dataset.max_valid_steps}",
        "update_freq": "${optimization.update_freq}",
        "best_checkpoint_metric": "${checkpoint.best_checkpoint_metric}",
        "maximize_best_checkpoint_metric": "${checkpoint.maximize_best_checkpoint_metric}",
    }  # fmt: skip
    assert all(field.default_factory is MISSING for field in options.values())
    assert [str(one) for one in options["length_penalty"].type] == ["fairseq", "unilm"]
    (metric, _) = options["eval_generate"].type.__args__
    assert [str(one) for one in metric] == ["rouge", "bleu"]
    assert [options[f"{side}_lang"].metadata["argparse_alias"] for side in ("source", "target")] == ["-s", "-t"]
