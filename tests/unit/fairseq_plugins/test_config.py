"""fairseq's options made of our dataclasses, and our dataclasses made of parsed options."""

from argparse import Namespace
from dataclasses import dataclass, field, fields
from typing import get_args, get_type_hints

import pytest
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.configs import FairseqConfig
from omegaconf import OmegaConf

from fairseq_plugins.config import mirror, other_training, restore
from fairseq_plugins.evaluation import METRICS
from fairseq_plugins.language_options import UnifiedLMTaskConfig
from fairseq_plugins.parameter_groups import GroupsConfig
from fairseq_plugins.tasks.unified_understanding import UnifiedUnderstandingTaskConfig
from unified.generation.penalties import PENALTIES


@dataclass(frozen=True)
class Ours:
    """Settings of something."""

    layers: int = field(default=2, metadata={"help": "how many layers"})
    name: str = field(default="a", metadata={"help": "what it is called"})
    rate: float | None = field(default=None, metadata={"help": "a share"})


def test_fields_defaults_and_sentences_are_ours_and_more():
    made = mirror(Ours, "Theirs", without=("name",), writes=(str, "auto", "how it writes"), fast=(bool, False, "fast"))
    assert issubclass(made, FairseqDataclass) and made.__name__ == "Theirs"
    own = [(one.name, one.type, one.default, one.metadata["help"]) for one in fields(made) if one.name != "_name"]
    assert own == [
        ("layers", int, 2, "how many layers"),
        ("rate", float | None, None, "a share"),
        ("writes", str, "auto", "how it writes"),
        ("fast", bool, False, "fast"),
    ]
    assert made().layers == 2 and made(layers=5).layers == 5


@pytest.mark.parametrize("kind", [Namespace, OmegaConf.create])
def test_what_a_parsed_config_lacks_has_its_default_and_what_is_fixed_is_fixed(kind):
    config = kind(layers=7, rate=0.5, other=3) if kind is Namespace else kind({"layers": 7, "rate": 0.5, "other": 3})
    assert restore(Ours, config) == Ours(layers=7, rate=0.5)
    assert restore(Ours, config, layers=9, name="b") == Ours(layers=9, name="b", rate=0.5)


@pytest.mark.parametrize("options", [UnifiedLMTaskConfig, UnifiedUnderstandingTaskConfig, GroupsConfig])
def test_an_option_of_another_group_is_that_of_its_name(options):
    """fairseq says where it stands in all of its options; what stands nowhere would end a training at its start."""
    groups = OmegaConf.structured(FairseqConfig())
    paths = {one.name: one.default for one in fields(options) if str(one.default).startswith("${")}
    assert len(paths) >= 1
    for name, path in paths.items():
        group, option = path.removeprefix("${").removesuffix("}").split(".")
        assert option == name and option in groups[group]


def test_flags_with_choices_have_those_of_the_library():
    types = get_type_hints(UnifiedLMTaskConfig)
    assert [one.value for one in types["length_penalty"]] == list(PENALTIES)
    assert {one.value for one in get_args(types["eval_generate"])[0]} == set(METRICS)


def test_a_checkpoint_is_of_another_training_unless_the_folder_of_this_one_holds_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    last = "checkpoint_last.pt"

    def other(restore=last, once=None, begin=None, folder="run"):
        options = {"restore_file": restore, "continue_once": once, "finetune_from_model": begin}
        return other_training(OmegaConf.create({**options, "save_dir": folder, "checkpoint_suffix": ""}))

    assert other() is None
    assert other("there/a.pt") == "there/a.pt" and other("run/there/a.pt") == "run/there/a.pt"
    assert other(once="a.pt") == "a.pt" and other(begin="b.pt") == "b.pt" and other(once="a.pt", begin="b.pt") == "a.pt"
    for own in ("run/a.pt", f"run/{last}", str(tmp_path / "run" / "a.pt"), "there/../run/a.pt"):
        assert other(own) is None
        assert other(own, folder=str(tmp_path / "run")) is None
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / last).touch()
    assert other() is other(once="a.pt") is other(begin="b.pt") is None
    assert other("there/a.pt") == "there/a.pt"
