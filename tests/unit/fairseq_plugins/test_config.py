"""fairseq's options made of our dataclasses, and our dataclasses made of parsed options."""

from argparse import Namespace
from dataclasses import dataclass, field, fields

import pytest
from fairseq.dataclass import FairseqDataclass
from omegaconf import OmegaConf

from fairseq_plugins.config import mirror, restore


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
