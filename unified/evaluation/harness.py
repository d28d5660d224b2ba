"""Adapter for lm-evaluation-harness: our models answer the requests of its tasks.

The harness finds models by the names that are registered when it starts, so it is started by this module:
``python -m unified.evaluation.harness`` takes the options of ``lm_eval``
(docs/how-to/evaluate.md). In Python :func:`register` makes the name known to ``lm_eval.simple_evaluate``. The harness
itself is imported there alone; ``pip install '.[harness]'`` in the library's folder brings it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch

from unified.arguments import counted, finite, require_integer, require_path, require_texts, shown
from unified.errors import Problems, UnifiedError, nearest
from unified.evaluation.patterns import Sampling
from unified.evaluation.scorings import (
    SCORINGS,
    learnt_scorings,
    require_scorable,
    scorings_named,
    special_tokens,
    unlearnt,
)
from unified.evaluation.token_scores import token_scores
from unified.evaluation.windows import scores_in_windows, window_size
from unified.generation import SCHEMES, GenerationConfig
from unified.generation.lengths import positions_left
from unified.inference.language_model import UnifiedLM
from unified.inference.sequences import Codec
from unified.runtime.progress import Progress, StepProgress

#: The name of the adapter in the harness, and the scorings that know a context from what follows it.
NAME = "unified"
WITH_CONTEXT = ("left_to_right", "pseudo_likelihood", "shifted", "infilling", "permutation", "diffusion")
#: Arguments that a user may write in ``model_args``.
MODEL_ARGS = ("pretrained", "scoring", "draws", "seed", "max_length", "batch_size", "device")
#: Tokens to generate where a task does not say, and the settings that say it, of which the first one counts.
_LENGTH = 256
_LENGTH_SETTINGS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
_DRAW_SETTINGS = ("temperature", "top_p", "top_k")
#: Texts that are generated together where the user leaves it to the harness.
_BATCH_SIZE = 32


class Request(Protocol):
    """A request of the harness (``lm_eval.api.instance.Instance``)."""

    @property
    def args(self) -> tuple[Any, ...]:
        """Texts, and for generation settings."""


class HarnessModel:
    """Answers to the three kinds of requests of the harness (``lm_eval.api.model.LM``).

    Args:
        pretrained: a checkpoint, a folder with one or of ``transformers``, or a name of the hub.
        scoring: one of :data:`WITH_CONTEXT`; default: what the model has learnt first.
        draws: of "permutation" and "diffusion".
        seed: of these, and of texts that are drawn.
        device: "cpu", "cuda", ...; None for "cpu". Without a GPU the harness's default, "cuda:0", is the CPU, which a
            note says.
        batch_size: texts that are generated together, at least 1; 32 for None, "auto" and "auto:N". Scores take as many
            texts as fit.
        max_batch_size, trust_remote_code: are ignored; no code of a model is run.
        max_length: tokens of a context and its continuation, or of a prompt and what is written, special symbols
            counted. None for ``max_positions`` of the model, also where its positions set no limit: it has learnt texts
            up to that length.
        unknown: what else ``model_args`` holds, which is refused.

    Raises:
        UnifiedError: the model is not named, cannot be loaded, cannot score so, or has fewer positions than
            ``max_length``; a number is none; an argument is unknown.
    """

    def __init__(
        self,
        pretrained: str | None = None,
        scoring: str | None = None,
        draws: int = Sampling.draws,
        seed: int = Sampling.seed,
        device: str | None = None,
        batch_size: int | str | None = None,
        max_batch_size: int | None = None,
        max_length: int | None = None,
        trust_remote_code: bool = False,
        **unknown: object,
    ):
        super().__init__()
        for name in unknown:
            meant = nearest(name, MODEL_ARGS)
            raise UnifiedError(f"model_args: no argument {name!r}{meant}; there are {', '.join(MODEL_ARGS)}")
        if pretrained is None:
            raise UnifiedError("model_args: name the model, such as pretrained=models/corpus")
        require_path("model_args: pretrained", pretrained)
        self.batch_size = _batch_size(batch_size)
        if device is not None and device.startswith("cuda") and not torch.cuda.is_available():
            Progress.say(f"note: no GPU on this machine for the device {device}, the default of lm_eval; using the CPU")
            device = None
        self.lm = UnifiedLM.from_pretrained(pretrained, device=device or "cpu")
        self.sampling = Sampling(require_integer("draws", draws, 1), require_integer("seed", seed, 0))
        known = [name for name in learnt_scorings(self.lm) if name in WITH_CONTEXT]
        chosen = [SCORINGS[(*known, "left_to_right")[0]]] if scoring is None else scorings_named(str(scoring))
        if len(chosen) > 1 or chosen[0].name not in WITH_CONTEXT:
            raise UnifiedError(f"scoring {scoring!r}: requests have a context; take one of {', '.join(WITH_CONTEXT)}")
        self.scoring = chosen[0]
        require_scorable(self.lm, self.scoring)
        note = unlearnt(self.lm, self.scoring)
        if note:
            Progress.say(f"note: {note}")
        config, special = self.lm.model.config, special_tokens(self.lm, self.scoring)
        given = None if max_length is None else require_integer("max_length", max_length, special + 1)
        self.max_length = config.max_positions if given is None else given
        self._window = None if given is None else given - special
        if self.max_length > config.position_limit:
            raise UnifiedError(f"max_length {self.max_length:,}: the model has {config.position_limit:,} positions")

    @classmethod
    def create_from_arg_obj(
        cls, arg_dict: Mapping[str, Any], additional_config: Mapping[str, Any] | None = None
    ) -> HarnessModel:
        """Make the model of ``model_args``, whose device and batch size come before the options of ``lm_eval``.

        Raises:
            UnifiedError: see the class.
        """
        options = {name: value for name, value in (additional_config or {}).items() if value is not None}
        return cls(**{**options, **arg_dict})

    def get_model_info(self) -> dict[str, Any]:
        """Say how the model was asked; the harness records it under ``config`` of its results."""
        drawn = {"draws": self.sampling.draws, "seed": self.sampling.seed} if self.scoring.draws else {}
        return {"scoring": self.scoring.name, "max_length": self.max_length, **drawn}

    @property
    def tokenizer_name(self) -> str:
        """Refuse ``apply_chat_template``, for which alone the harness wants the name.

        Raises:
            UnifiedError: always.
        """
        raise UnifiedError("apply_chat_template: the model has no chat template; leave the option out")

    def loglikelihood(self, requests: Sequence[Request], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """Log-probability in nats of each continuation behind its context, and whether no token has a better one there.

        Where a model is scored as it writes, from left to right at a [MASK] behind a prompt or by ``target_next``, the
        second says whether greedy search writes the continuation.
        A token belongs to the continuation where it ends behind the context. Contexts that are too long lose their
        first tokens, and a note says how many do.

        Raises:
            UnifiedError: a continuation has no token, or alone more than ``max_length`` leaves beside special symbols.
        """
        pairs = [(str(request.args[0]), str(request.args[1])) for request in requests]
        limit = self.max_length - special_tokens(self.lm, self.scoring)
        codec = Codec(self.lm.tokenizer, self.lm.vocabulary, limit)
        encoded = codec.encode_offsets([context + continuation for context, continuation in pairs])
        texts, given = [], []
        problems = Problems()
        for (tokens, characters), (context, continuation) in zip(encoded, pairs, strict=True):
            before = int((characters[:, 1] <= len(context)).sum())
            if before == len(tokens):
                problems.add(f"the continuation {shown(continuation)} of {shown(context)}", "no token to score")
            if len(tokens) - before > limit:
                length = f"{len(tokens) - before:,} tokens; max_length {self.max_length:,} has room for {limit:,}"
                problems.add(f"the continuation {shown(continuation)}", length)
            lost = max(len(tokens) - limit, 0)
            texts.append(tokens[lost:])
            given.append(before - lost)
        problems.check()
        self._note_cuts([len(tokens) for tokens, _ in encoded], limit)
        with StepProgress("log-likelihoods", len(texts), "requests", eager=False) as progress:
            scored = token_scores(
                self.lm,
                texts,
                self.scoring,
                given=given,
                sampling=self.sampling,
                done=lambda count: progress.advance(steps=count),
            )
        return [(own.total, bool(own.greedy[first:].all())) for own, first in zip(scored, given, strict=True)]

    def loglikelihood_rolling(self, requests: Sequence[Request], disable_tqdm: bool = False) -> list[float]:
        """Log-probability in nats of each text of any length; every token is predicted once.

        A window has ``max_length`` tokens, by default as many as one of ``unified evaluate perplexity``.
        """
        texts = [np.array(self.lm.encode(str(request.args[0])), dtype=np.int64) for request in requests]
        size = window_size(self.lm, self.scoring, self._window)
        scored = scores_in_windows(self.lm, texts, self.scoring, size, size, self.sampling)
        return [own.total for own in scored]

    def generate_until(self, requests: Sequence[Request], disable_tqdm: bool = False) -> list[str]:
        """Texts that continue prompts, or that are written from sources, up to the first of the strings in ``until``.

        It reads the settings of a request that say where a text ends (``until``), how long it becomes
        (``max_gen_toks`` and its other names) and how it is drawn; a note names others. As in the harness's own models
        a temperature above 0 draws, unless ``do_sample`` says no.

        Raises:
            UnifiedError: the model does not generate, or a setting has no such value.
        """
        found: dict[int, str] = {}
        alike: dict[str, list[int]] = {}
        for number, request in enumerate(requests):
            alike.setdefault(repr(sorted(request.args[1].items())), []).append(number)
        for numbers in alike.values():
            given = requests[numbers[0]].args[1].items()
            settings = {name: value for name, value in given if value is not None}
            ends = settings.get("until", [])
            ends = require_texts("until", [ends] if isinstance(ends, str) else ends)
            texts = self._written([str(requests[number].args[0]) for number in numbers], settings)
            found |= dict(zip(numbers, (_until(text, ends) for text in texts), strict=True))
        return [found[number] for number in range(len(requests))]

    def _written(self, contexts: Sequence[str], settings: Mapping[str, Any]) -> list[str]:
        """Texts that the model writes behind each context, or from it as a source.

        A prompt that is too long loses its first tokens, and a source its last ones, as in training.
        """
        lm = self.lm
        named = next((name for name in _LENGTH_SETTINGS if name in settings), _LENGTH_SETTINGS[0])
        wanted = require_integer(named, _number(settings.get(named, _LENGTH)), 1)
        length = min(wanted, self.max_length // 2)
        if length < wanted:
            half = f"half of max_length {self.max_length:,}"
            Progress.say(f"note: at most {counted(length, 'token')} are written, {half}; {named} is {wanted:,}")
        unread = settings.keys() - {"until", "do_sample", *_LENGTH_SETTINGS, *_DRAW_SETTINGS}
        if unread:
            Progress.say(f"note: generation settings that are not read: {', '.join(sorted(unread))}")
        prompts = SCHEMES[lm.scheme()].prompt
        given = [lm.encode(context) for context in contexts]
        if prompts:
            left = max(0, positions_left(self.max_length, length))
            self._note_cuts([len(tokens) for tokens in given], left)
            given = [tokens[max(0, len(tokens) - left) :] for tokens in given]
        options: dict[str, Any] = {"max_length": length, "beam": 1}
        drawn = {name: _number(settings[name]) for name in _DRAW_SETTINGS if name in settings}
        if settings.get("do_sample", "temperature" in drawn) and drawn.get("temperature") != 0:
            options |= {"sampling": True, "seed": self.sampling.seed, **drawn}
        config = GenerationConfig.of_options(lm.vocabulary, **options)
        written = [some[0].tokens.tolist() for some in lm.hypotheses(given, config, batch_size=self.batch_size)]
        if not prompts:
            return [lm.decode(tokens) for tokens in written]
        return [
            _behind(lm.decode(before), lm.decode([*before, *tokens]))
            for before, tokens in zip(given, written, strict=True)
        ]

    def _note_cuts(self, lengths: Sequence[int], limit: int) -> None:
        """Say how many texts have more than ``limit`` tokens, so that their first ones are not read."""
        cut = sum(length > limit for length in lengths)
        if cut:
            Progress.say(
                f"note: {cut:,} of {counted(len(lengths), 'request')} lose the first tokens of the context, as they "
                f"have more than {counted(limit, 'token')}; max_length in model_args, now {self.max_length:,}, decides "
                "that"
            )


def _behind(beginning: str, text: str) -> str:
    """The text behind its beginning, whose spelling may depend on what follows: "well -" becomes "well-known"."""
    left = len("".join(beginning.split()))
    for end, character in enumerate(text):
        if not left:
            return text[end:]
        left -= not character.isspace()
    return ""


def _batch_size(given: int | str | None) -> int:
    """Returns how many texts are generated together: a number, or what is left to the harness, such as "auto:4".

    Raises:
        UnifiedError: it is neither.
    """
    if given is None or str(given).split(":")[0] == "auto":
        return _BATCH_SIZE
    return require_integer("batch_size", _number(given), 1)


def _number(value: object) -> object:
    """Returns the number that a setting is or shows as a text, a whole one as an integer; else the setting itself."""
    number = finite(value)
    if number is None:
        return value
    return int(number) if number.is_integer() else number


def _until(text: str, ends: Sequence[str]) -> str:
    """The text before the first of ``ends`` in it."""
    for end in ends:
        text = text.split(end)[0] if end else text
    return text


def register() -> type:
    """Makes the adapter known to the harness as the model ``unified``; gives its class.

    Raises:
        UnifiedError: the harness is not installed, or too old.
    """
    try:
        from lm_eval.api.model import LM
        from lm_eval.api.registry import model_registry
    except ImportError as problem:
        raise UnifiedError(
            f"lm-evaluation-harness 0.4.10 or newer is not installed ({problem}); `pip install '.[harness]'` in the "
            "library's folder installs it"
        ) from None
    if NAME not in model_registry:
        model_registry.register(NAME)(type("UnifiedHarnessModel", (HarnessModel, LM), {}))
    return model_registry.get(NAME)


def main() -> None:
    """Runs ``lm_eval`` with the options of the command line, our model registered; a refusal is one line."""
    try:
        register()
        from lm_eval.__main__ import cli_evaluate

        cli_evaluate()
    except UnifiedError as error:
        sys.exit(f"unified.evaluation.harness: error: {error}")


if __name__ == "__main__":
    main()
