"""Checks of names and shapes that imports of every format share, with a list of what does not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from unified.arguments import counted, shown
from unified.checkpoints.parameters import listed, shape_name, without_values, wrong_kind
from unified.checkpoints.trained import Trained, write
from unified.checkpoints.vocabularies import over_symbols
from unified.data.vocabulary import SEPARATOR, Vocabulary
from unified.errors import UnifiedError, naming
from unified.files.destination import new_folder
from unified.files.model_folders import CONFIG
from unified.generation.lengths import PairLengths
from unified.generation.schemes import SCHEMES
from unified.model import TransformerConfig, UnifiedModel
from unified.tokenization import Tokenizer, ordinary_symbols
from unified.tokenization.pair_template import PairTemplate, read_pair_template
from unified.tokenization.wordpiece_files import JSON_NAME

#: Our activations under the names of ``transformers``.
ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_new", "silu": "silu"}


def activation_of(name: str, field: str) -> str:
    """Our name of the activation that ``field`` of a ``config.json`` names.

    Raises:
        UnifiedError: there is none.
    """
    known = {theirs: ours for ours, theirs in ACTIVATIONS.items()} | {"gelu_pytorch_tanh": "gelu_tanh"}
    found = known.get(name)
    if found is None:
        raise UnifiedError(f"config.json: {field} {name!r}; 'gelu', its approximation 'gelu_new' and 'silu' are built")
    return found


@dataclass(frozen=True)
class Conversion:
    """Outcome of converting a checkpoint.

    Attributes:
        new: parameters of ours that the file lacks; a model that loads the result draws them at random.
        left_out: parameters that have no counterpart on the other side.
        remarks: what else a user should know, a sentence each.
    """

    new: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Imported:
    """A checkpoint of another library as one of ours that is not written yet.

    Attributes:
        trained: the model.
        tokenizer: its tokenizer; None where the checkpoint has none.
        told: what became of the checkpoint.
    """

    trained: Trained
    tokenizer: Tokenizer | None
    told: Conversion

    def save(self, destination: Path) -> Conversion:
        """Write dictionary, tokenizer and ``checkpoint_last.pt``, all of it or nothing.

        Args:
            destination: must not exist, or be empty.

        Raises:
            UnifiedError: it is not empty.
        """
        with new_folder(destination, overwrite=False) as folder:
            if self.tokenizer is not None:
                self.tokenizer.save(folder)
            write(self.trained, folder)
        return self.told


#: Heads of ours that a file has as a whole or not at all.
_WHOLE_HEADS = ("heads.token.", "heads.boundary.")
_TOKEN_TYPES = "transformer.embeddings.token_types.weight"


def gather(
    state: Mapping[str, torch.Tensor],
    pairs: Mapping[str, tuple[str, ...]],
    copies: Mapping[str, str],
    ignored: Iterable[str],
    what: str,
) -> tuple[dict[str, torch.Tensor], list[str]]:
    """Our parameters from others', and names of ours that ``state`` lacks.

    Args:
        pairs: our parameter -> theirs; several of theirs are put one above the other.
        copies: their parameter -> the one it must equal.
        ignored: their names of what is no parameter.
        what: of whom the parameters should be, for messages.

    Raises:
        UnifiedError: a name is unknown or stands for no tensor, some of the Transformer or of a head are missing,
            shapes of one joint parameter differ, or a copy is none.
    """
    ignored = set(ignored)
    known = {other for others in pairs.values() for other in others} | copies.keys() | ignored
    problems = [f"unknown: {name}" for name in sorted(state.keys() - known)]
    odd = {name: wrong for name in state if name in known and (wrong := _no_parameter(state[name]))}
    problems += [f"{name}: {wrong}" for name, wrong in odd.items() if name not in ignored]
    begun = [
        head for head in _WHOLE_HEADS if any(mine.startswith(head) and set(pairs[mine]) & set(state) for mine in pairs)
    ]
    problems += [
        f"missing: {other}"
        for mine, others in pairs.items()
        for other in others
        if mine.startswith(("transformer.", *begun)) and other not in state
    ]
    problems += [
        f"different shapes: {', '.join(others)}"
        for others in pairs.values()
        if len({state[other].shape for other in others if other in state.keys() - odd.keys()}) > 1
    ]
    if problems:
        raise UnifiedError(f"not the parameters of {what}: {listed(problems)}")
    for copy, original in copies.items():
        if copy in state and original in state and not torch.equal(state[copy], state[original]):
            raise UnifiedError(f"{copy} differs from {original}; the softmax must be tied to the embeddings")
    found = {
        mine: torch.cat([state[other] for other in others])
        for mine, others in pairs.items()
        if all(other in state for other in others)
    }
    return found, [mine for mine in pairs if mine not in found]


def _no_parameter(value: torch.Tensor) -> str | None:
    """Says why a value of a file is no parameter, which has dimensions; None where it may be one."""
    return wrong_kind(value) or (None if value.dim() else "expected a tensor, got a single number")


def with_heads_of(
    found: Mapping[str, torch.Tensor], new: Iterable[str], config: TransformerConfig
) -> tuple[TransformerConfig, list[str], list[str]]:
    """The configuration of a model with the heads that the file has.

    Args:
        found: parameters of the file under our names.
        new: names of ours that the file lacks.
        config: of the model with all heads.

    Returns:
        The configuration; those of ``new`` that the model has; and a remark where it has no token head.
    """
    reach = found.get("heads.boundary.distances.weight")
    config = config if reach is None else replace(config, boundary_offsets=len(reach))
    if any(name.startswith("heads.token.") for name in found):
        return config, list(new), []
    remark = "it has no token head: the model gives features and can be fine-tuned, but predicts no tokens"
    return replace(config, token_head="none"), [n for n in new if not n.startswith("heads.token.")], [remark]


def lengths_of(settings: Mapping[str, Any]) -> PairLengths:
    """The lengths of pairs that an export of this library has noted in ``config.json``."""
    with naming(CONFIG):
        return PairLengths.of_state(settings)


def require_model_type(settings: Mapping[str, object], model_type: str) -> None:
    """Refuse a ``config.json`` that names another type of model than ``model_type``, as ``transformers`` calls it.

    Raises:
        UnifiedError: it does.
    """
    found = settings.get("model_type", model_type)
    if found != model_type:
        raise UnifiedError(
            f"config.json: model_type {found!r}; --from {model_type} reads models of type {model_type!r}"
        )


def decoding(config: TransformerConfig, writes: str | None, usual: str) -> tuple[str, list[str]]:
    """The name of the decoding scheme of an imported model, and a remark on it for the user.

    Args:
        config: of the model.
        writes: the scheme that the user asks for, or "nothing"; None for ``usual``.
        usual: the scheme of a model of this type that was pre-trained and not fine-tuned.

    Raises:
        UnifiedError: there is no such scheme, or the model cannot write so.
    """
    if writes is None:
        writes = "nothing" if config.token_head == "none" else usual
        if writes == "left_to_right":
            return writes, ["it continues prompts; where it was fine-tuned on pairs, --writes cloze lets it write"]
    if writes == "nothing":
        return writes, []
    if writes not in SCHEMES:
        raise UnifiedError(f"no decoding scheme {shown(writes)}; there are {', '.join(SCHEMES)}, and 'nothing'")
    if config.token_head == "none":
        raise UnifiedError(f"--writes {writes}: the model has no token head, so it writes nothing")
    streamed = SCHEMES[writes].query_stream
    if streamed and not config.positions_in_attention or config.relative and not streamed:
        raise UnifiedError(f"--writes {writes}: a model with {config.positions} positions cannot write so")
    needed = SCHEMES[writes].token_types
    if not config.has_token_types(needed):
        raise UnifiedError(
            f"--writes {writes} takes {needed} token types, the model has {config.token_types}; training it "
            f"by `fairseq-train --token-types {needed}` adds them"
        )
    return writes, [f"it writes by the scheme {writes!r}"]


def over_tokenizer(
    source: Path, config: TransformerConfig, found: Mapping[str, torch.Tensor], tokenizer: Tokenizer, usual_class: str
) -> tuple[TransformerConfig, dict[str, torch.Tensor], Vocabulary, list[str]]:
    """Configuration and parameters over a dictionary of ours, that dictionary, and what is left out.

    Two texts have the separators between them and the token types that the folder's tokenizer gives: the second row of
    token types is the one of the second text.

    Args:
        source: folder that they came from, see :func:`unified.tokenization.pair_template.read_pair_template`.
        config: as the file has it.
        found: parameters under our names, rows in the order of the tokenizer's entries, which may be fewer.
        usual_class: of the tokenizer in ``transformers``, where no file of the folder names one.

    Raises:
        UnifiedError: the tables have fewer rows than the tokenizer entries, shapes are not those of ``config``, or the
            post-processor of ``tokenizer.json`` is none.
    """
    vocabulary, symbols = Vocabulary(ordinary_symbols(tokenizer)), tokenizer.native_symbols()
    more = config.vocabulary_size - len(symbols)
    if more < 0:
        raise UnifiedError(
            f"{source}: {len(symbols)} entries in its vocabulary, {config.vocabulary_size} in config.json"
        )
    left_out = [f"{counted(more, 'row')} that no entry of the vocabulary has"] if more else []
    found = over_symbols(fitting(source, found, config), symbols, vocabulary.symbols, config.initializer_range)
    template = read_pair_template(source, usual_class)
    separators = _pair_separators(template, symbols)
    if separators is None:
        separators = 1
        left_out.append(f"what {JSON_NAME} puts between two texts, which are read with one separator there")
    config = replace(config, pair_separators=separators)
    if config.token_types:
        table, second = found[_TOKEN_TYPES], template.second_type
        if len(table) == 1:
            second = 0
        elif second is None or second >= len(table):
            second = 1
            left_out.append(f"token types that {JSON_NAME} gives to two texts, which are read with 0 and 1")
        elif second != 1:
            left_out.append("the row of token type 1, which its tokenizer gives to no text")
        found[_TOKEN_TYPES] = torch.cat([table[:1], table[second : second + 1], table[2:]])
        config = config.with_token_types(2)
    return config.with_vocabulary(len(vocabulary)), found, vocabulary, left_out


def _pair_separators(template: PairTemplate, symbols: Sequence[str]) -> int | None:
    """Separators that a tokenizer puts between two texts, one where it does not say.

    None where it puts there what no model is built for.
    """
    if template.between is None:
        return 1
    known = [i < len(symbols) and symbols[i] == SEPARATOR for i in template.between]
    return len(known) if all(known) and 1 <= len(known) <= 2 else None


def fitting(source: Path, found: Mapping[str, torch.Tensor], config: TransformerConfig) -> dict[str, torch.Tensor]:
    """Returns ``found`` in float32 after checking that all shapes are those of the configuration.

    Raises:
        UnifiedError: some are not; all of them are listed.
    """
    wanted = without_values(partial(UnifiedModel.for_language, config))
    problems = [
        f"{name}: shape {shape_name(value)}, the configuration says {shape_name(wanted[name])}"
        for name, value in found.items()
        if value.shape != wanted[name].shape
    ]
    if problems:
        raise UnifiedError(f"{source}: the parameters do not fit the configuration: {listed(problems)}")
    return {name: value.float() for name, value in found.items()}
