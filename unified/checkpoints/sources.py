"""Files that checkpoints of other libraries consist of: settings in JSON, parameters by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from unified.arguments import Range, shown
from unified.checkpoints.files import load_safely
from unified.errors import UnifiedError, naming
from unified.files.json_text import read_object
from unified.files.model_folders import CONFIG
from unified.files.shapes import Each, Maybe, Shape, misfit

#: Fields of ``config.json`` that are read, of all types of models, by what they hold.
_INTEGERS = (
    "vocab_size", "num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "type_vocab_size",
    "max_position_embeddings", "n_head", "d_model", "n_layer", "d_inner", "n_token",
    "clamp_len", "global_attn_every_n_layers", "local_attention",
)  # fmt: skip
_DROPOUTS = (
    "hidden_dropout_prob", "attention_probs_dropout_prob", "embedding_dropout", "mlp_dropout", "attention_dropout",
    "dropout",
)  # fmt: skip
_NUMBERS = (*_DROPOUTS, "layer_norm_eps", "initializer_range", "norm_eps")
#: Numbers that may be null, which is as if they were not there.
_OPTIONAL_NUMBERS = ("classifier_dropout", "summary_last_dropout", "global_rope_theta", "local_rope_theta")
_FLAGS = (
    "attention_bias", "mlp_bias", "classifier_bias", "decoder_bias", "tie_word_embeddings", "norm_bias", "is_decoder",
    "same_length",
)  # fmt: skip
_TEXTS = ("hidden_act", "hidden_activation", "classifier_activation", "ff_activation", "attn_type")
_OPTIONAL_TEXTS = (
    "model_type", "position_embedding_type", "problem_type", "summary_type", "summary_activation", "decoding",
    "task_head",
)  # fmt: skip
_ROPE = Maybe(({"rope_type": Maybe(str), "type": Maybe(str), "rope_theta": Maybe((float, None))}, None))
_OWN = {
    "head": Maybe(({"head": str, "settings": dict}, None)),
    "longest": Maybe((int, None)),
    "writes": Maybe((str, None)),
    "pair_lengths": Maybe(dict),
    "attention_dropout": Maybe(float),
    "inner_dropout": Maybe(float),
    "max_positions": Maybe(int),
    "token_types": Maybe(int),
}
_CONFIG: Shape = {
    **dict.fromkeys(_INTEGERS, Maybe(int)),
    **dict.fromkeys(_NUMBERS, Maybe(float)),
    **dict.fromkeys(_OPTIONAL_NUMBERS, Maybe((float, None))),
    **dict.fromkeys(_FLAGS, Maybe((bool, None))),
    **dict.fromkeys(_TEXTS, Maybe(str)),
    **dict.fromkeys(_OPTIONAL_TEXTS, Maybe((str, None))),
    "pad_token_id": Maybe((int, None)),
    "d_head": Maybe((int, None)),
    "architectures": Maybe(([str], None)),
    "layer_types": Maybe(([str], None)),
    "id2label": Maybe((Each((str, int)), None)),
    "rope_scaling": _ROPE,
    "rope_parameters": Maybe(({"full_attention": _ROPE, "sliding_attention": _ROPE}, None)),
    "unified": Maybe((_OWN, None)),
    "pair_lengths": Maybe(dict),
}
#: Bounds of what readers count or divide by.
_RANGES = {
    **dict.fromkeys(("num_hidden_layers", "n_layer"), Range(least=1, most=1000)),
    **dict.fromkeys(("num_attention_heads", "n_head", "global_attn_every_n_layers"), Range(least=1)),
    **dict.fromkeys(_DROPOUTS, Range(least=0, below=1)),
    **dict.fromkeys(("layer_norm_eps", "norm_eps", "initializer_range"), Range(least=0)),
}
#: Bytes of a file's name.
_LONGEST_NAME = 255


def counted(names: Iterable[str]) -> list[str]:
    """The last names in TensorFlow's paths, each once, with how often it occurs."""
    counts = Counter(name.rpartition("/")[2] for name in names)
    return [name if count == 1 else f"{name} of {count} variables" for name, count in counts.items()]


def read_settings(path: Path) -> dict[str, Any]:
    """A JSON object.

    Raises:
        UnifiedError: the file is missing, or is none.
    """
    return read_object(required(path))


def read_config(path: Path) -> dict[str, Any]:
    """The settings of a model of ``transformers``, or of the published code of BERT or XLNet.

    Raises:
        UnifiedError: as :func:`read_settings`; or a field that is read here holds another kind of value.
    """
    settings = read_settings(path)
    wrong = misfit(settings, _CONFIG, "")
    out_of_range = (
        f"{name!r} must be {found}, got {settings[name]}"
        for name, allowed in _RANGES.items()
        if name in settings and (found := allowed.misfit(settings[name])) is not None
    )
    wrong = wrong or next(out_of_range, None)
    if wrong is not None:
        raise UnifiedError(f"{path}: {wrong}")
    return settings


@contextmanager
def reading_config(whose: str) -> Iterator[None]:
    """A ``with`` block that makes a configuration of the fields of a ``config.json``.

    Args:
        whose: it should be, such as "a BERT's".

    Raises:
        UnifiedError: a field is missing, or has a value that is not built; the message names ``config.json``.
    """
    try:
        with naming(CONFIG):
            yield
    except KeyError as error:
        raise UnifiedError(f"config.json: no {error.args[0]}; is it {whose}?") from None


def read_parameters(folder: Path) -> dict[str, torch.Tensor]:
    """Parameters in one file, or in the parts that an index lists: safetensors, or torch's where there are none.

    One file is ``model.safetensors``, ``pytorch_model.bin`` or another single ``*.bin``; an index is named like the
    first two, with ``.index.json`` behind.

    Raises:
        UnifiedError: there is none, or it is damaged, or holds something else.
    """
    for name, read in (("model.safetensors", _safetensors), ("pytorch_model.bin", _state_dict)):
        if (folder / name).is_file():
            return read(folder / name)
        if (folder / f"{name}.index.json").is_file():
            return _parts(folder / f"{name}.index.json", read)
    others = sorted(folder.glob("*.bin"))
    if len(others) != 1:
        raise UnifiedError(f"{folder}: holds no weights in model.safetensors or pytorch_model.bin")
    return _state_dict(others[0])


def _parts(index: Path, read: Callable[[Path], dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """The parameters in all files that an index names."""
    parts: Any = read_settings(index).get("weight_map")
    wrong = misfit(parts, Each(str), "weight_map")
    if wrong is not None:
        raise UnifiedError(f"{index}: {wrong}; it names the file of each parameter")
    found: dict[str, torch.Tensor] = {}
    for part in sorted(set(parts.values())):
        if Path(part).name != part or not part.isprintable() or len(part) > _LONGEST_NAME:
            raise UnifiedError(f"{index}: {shown(part)} is not the name of a file beside it")
        file = index.parent / part
        if not file.is_file():
            raise UnifiedError(f"{index}: names {part!r}, and there is no such file")
        found |= read(file)
    return found


def _state_dict(path: Path) -> dict[str, torch.Tensor]:
    state = load_safely(path, older=True)
    if not isinstance(state, dict) or not all(isinstance(name, str) and _is_plain(state[name]) for name in state):
        raise UnifiedError(f"{path}: expected a dictionary of tensors, the state_dict of a model")
    return state


def _is_plain(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.layout == torch.strided and value.device.type == "cpu"


def _safetensors(path: Path) -> dict[str, torch.Tensor]:
    try:
        return load_file(path)
    except SafetensorError as error:
        raise UnifiedError(f"{path}: damaged, its content cannot be read ({error})") from None


def required(path: Path) -> Path:
    """The path of a file that is there."""
    if not path.is_file():
        raise UnifiedError(f"{path}: no such file")
    return path
