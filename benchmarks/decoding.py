"""Beam search: ours beside encoder-decoders of the same size by transformers, fairseq and CTranslate2, and in int8.

    python benchmarks/decoding.py --size small --scheme cloze --bar 1.5
    python benchmarks/decoding.py --size small --scheme next --bar 2.0
    python benchmarks/decoding.py --scheme next --peers ctranslate2 --bar 1
    python benchmarks/decoding.py --scheme next --int8 --peers float32 --bar 1.3
    python benchmarks/decoding.py --scheme next --int8 --peers ctranslate2 --bar 1

Random weights, sources of one length, and exactly as many tokens as asked for: the end symbol is forbidden before. Each
system makes a step for every token and one for the end symbol, and what it wrote is counted. The peers have an encoder
and a decoder of so many layers each, ours one Transformer; scheme ``cloze`` asks by a [MASK] at every step, ``next`` by
the last token. ``--beam 1`` is greedy search. With ``--int8`` the linear maps of our model and of CTranslate2's
(``pip install ctranslate2``) compute in int8; ``float32`` is our own model as it was.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from models import PAD, SIZES, VOCABULARY, Size, our_model
from paired import OURS, compare, configuration, options, run_program, say, set_up

from unified.data.vocabulary import Vocabulary
from unified.generation import SCHEMES, CachedDecoder, GenerationConfig, generate
from unified.kernels.cpu import quantize
from unified.model import UnifiedModel


def dtype_of(arguments: argparse.Namespace) -> torch.dtype:
    """The type of the weights of all models."""
    return torch.bfloat16 if arguments.bf16 else torch.float32


def ours(size: Size, sources: torch.Tensor, arguments: argparse.Namespace) -> Callable[[], list[int]]:
    """A call that writes for all sources."""
    return writer(size, sources, arguments, quantize if arguments.int8 else lambda model: model)


def in_float32(size: Size, sources: torch.Tensor, arguments: argparse.Namespace) -> Callable[[], list[int]]:
    """A call that writes with our model in float32, whatever is asked of the others."""
    return writer(size, sources, arguments, lambda model: model)


def writer(
    size: Size, sources: torch.Tensor, arguments: argparse.Namespace, made: Callable[[UnifiedModel], UnifiedModel]
) -> Callable[[], list[int]]:
    """A call that writes with our model as ``made`` of it."""
    model = our_model(size, 0.0, arguments.device, max_positions=1024, token_types=6)
    model = made(model.eval().to(dtype_of(arguments)))
    special = Vocabulary([f"w{i}" for i in range(VOCABULARY - 5)]).special
    decoder = CachedDecoder(model, special, SCHEMES[arguments.scheme])
    config = GenerationConfig(beam=arguments.beam, max_length=arguments.written, min_length=arguments.written)
    return counting(
        lambda: generate(decoder, sources, config), lambda texts: [len(text[0].log_probs) for text in texts]
    )


def steps_of(arguments: argparse.Namespace) -> int:
    """Steps of each system: for each token, and for the end symbol."""
    return arguments.written + 1


def counting(write: Callable[[], Any], lengths: Callable[[Any], list[int]]) -> Callable[[], list[int]]:
    """A call that writes for all sources and returns for how many symbols of each text it made a step."""
    return lambda: lengths(write())


def equal_work(name: str, write: Callable[[], list[int]], steps: int) -> Callable[[], None]:
    """The call, which ends the program where a text took another number of steps."""

    def call() -> None:
        found = write()
        if set(found) != {steps}:
            raise SystemExit(f"decoding: unequal work, {name} made {sorted(set(found))} steps instead of {steps}")

    return call


def halves(**shape: int) -> dict[str, int]:
    """Settings of fairseq's encoder and, with the same values, of its decoder."""
    return {f"{half}_{name}": value for half in ("encoder", "decoder") for name, value in shape.items()}


def bart(size: Size):
    """An encoder-decoder of transformers."""
    from transformers import BartConfig, BartForConditionalGeneration

    torch.manual_seed(0)
    shape = halves(layers=size.layers, attention_heads=size.heads, ffn_dim=4 * size.width)
    # What is no field of it is of an older release, whose names CTranslate2 reads.
    config = BartConfig(
        vocab_size=VOCABULARY, d_model=size.width, max_position_embeddings=1024, normalize_before=False, **shape
    )
    return BartForConditionalGeneration(config).eval()


def encoder_decoder(size: Size, sources: torch.Tensor, arguments: argparse.Namespace) -> Callable[[], list[int]]:
    """BART, as transformers generates."""
    model = bart(size).to(arguments.device, dtype_of(arguments))

    def write() -> torch.Tensor:
        return model.generate(
            input_ids=sources,
            attention_mask=torch.ones_like(sources),
            num_beams=arguments.beam,
            max_new_tokens=steps_of(arguments),
            min_new_tokens=arguments.written,
            do_sample=False,
        )

    return counting(write, lambda texts: len(texts) * [texts.size(1) - 1])  # the symbol at which it begins takes none


@contextmanager
def ctranslate2_translator(
    size: Size, sources: torch.Tensor, arguments: argparse.Namespace
) -> Iterator[Callable[[], list[int]]]:
    """BART as CTranslate2 translates, which takes the fastest of its own products for the processor.

    It has a process of its own, which ends with the block, because its threads would take the processor from torch's in
    one process.
    """
    given = size, sources.tolist(), arguments
    with ProcessPoolExecutor(1, get_context("spawn"), _Translator.prepare, given) as pool:
        yield lambda: pool.submit(_Translator.translate).result()


class _Translator:
    """A model of CTranslate2 in a process of its own, and the texts that it writes for."""

    translator: Any
    texts: list[list[str]]
    arguments: argparse.Namespace

    @classmethod
    def prepare(cls, size: Size, sources: list[list[int]], arguments: argparse.Namespace) -> None:
        """Build the model."""
        import ctranslate2
        from ctranslate2.converters.transformers import BartLoader

        numeric = "int8" if arguments.int8 else "float32"
        words = ["<s>", "<pad>", "</s>", "<unk>", *(f"w{i}" for i in range(VOCABULARY - 4))]
        spec = BartLoader().get_model_spec(bart(size))
        spec.register_source_vocabulary(words)
        spec.register_target_vocabulary(words)
        spec.config.decoder_start_token = "</s>"
        spec.validate()
        spec.optimize(quantization=None if numeric == "float32" else numeric)
        with TemporaryDirectory() as folder:
            spec.save(Path(folder))
            cls.translator = ctranslate2.Translator(
                folder, device=arguments.device, compute_type=numeric, intra_threads=arguments.threads
            )
        cls.texts = [[words[i] for i in row] for row in sources]
        cls.arguments = arguments

    @classmethod
    def translate(cls) -> list[int]:
        """Write for all sources; returns how many symbols of each, the end symbol among them."""
        written = cls.translator.translate_batch(
            cls.texts,
            beam_size=cls.arguments.beam,
            max_decoding_length=steps_of(cls.arguments),
            min_decoding_length=cls.arguments.written,
            max_input_length=0,
            return_end_token=True,
        )
        return [len(one.hypotheses[0]) for one in written]


def fairseq_transformer(size: Size, sources: torch.Tensor, arguments: argparse.Namespace) -> Callable[[], list[int]]:
    """fairseq's sequence generator with its Transformer."""
    from fairseq.data import Dictionary
    from fairseq.models.transformer import TransformerModel, base_architecture
    from fairseq.sequence_generator import SequenceGenerator

    logging.getLogger().setLevel(logging.WARNING)  # fairseq's import makes all libraries log all they do

    torch.manual_seed(0)
    dictionary = Dictionary()
    for i in range(VOCABULARY - len(dictionary)):
        dictionary.add_symbol(f"w{i}")
    width = {"embed_dim": size.width, "ffn_embed_dim": 4 * size.width}
    shape = halves(layers=size.layers, attention_heads=size.heads, **width)
    settings = argparse.Namespace(**shape, share_all_embeddings=True)
    base_architecture(settings)

    class Task:
        source_dictionary = target_dictionary = dictionary

    model = TransformerModel.build_model(settings, Task()).eval().to(arguments.device, dtype_of(arguments))
    generator = SequenceGenerator(
        [model], dictionary, beam_size=arguments.beam, max_len_b=arguments.written, min_len=arguments.written
    )
    lengths = torch.full((len(sources),), sources.size(1), device=sources.device)
    sample = {"net_input": {"src_tokens": sources, "src_lengths": lengths}}
    return counting(
        lambda: generator.generate([model], sample), lambda texts: [len(text[0]["tokens"]) for text in texts]
    )


def here(
    build: Callable[..., Callable[[], list[int]]],
) -> Callable[..., AbstractContextManager[Callable[[], list[int]]]]:
    """Let ``build`` give its call as a block that ends nothing, as the call runs in this process."""
    return lambda *given: nullcontext(build(*given))


#: Name -> the package that it needs, and what builds the block in which its call can be made.
PEERS = {
    "transformers": ("transformers", here(encoder_decoder)),
    "fairseq": ("fairseq", here(fairseq_transformer)),
    "ctranslate2": ("ctranslate2", ctranslate2_translator),
    "float32": ("unified", here(in_float32)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="small", help="size of the models (default: %(default)s)")
    parser.add_argument(
        "--scheme",
        choices=("cloze", "next"),
        default="cloze",
        help="how our model was fine-tuned: by cloze or on the next token (default: %(default)s)",
    )
    parser.add_argument("--sentences", type=int, default=8, help="sentences generated together (default: %(default)s)")
    parser.add_argument("--source", type=int, default=480, help="tokens of a source (default: %(default)s)")
    parser.add_argument(
        "--written", type=int, default=32, help="tokens to write for each source (default: %(default)s)"
    )
    parser.add_argument("--beam", type=int, default=5, help="width of the beam (default: %(default)s)")
    parser.add_argument("--bf16", action="store_true", help="weights of bfloat16 in all models (default: float32)")
    parser.add_argument("--int8", action="store_true", help="linear maps of ours and CTranslate2's in int8")
    parser.add_argument(
        "--peers", nargs="+", choices=PEERS, default=["transformers", "fairseq"], help="what ours is compared with"
    )
    parser.add_argument("--bar", type=float, help="lowest acceptable speed-up over the first peer (default: no bar)")
    options(parser, rounds=3)
    arguments = parser.parse_args()
    set_up(arguments)
    size = SIZES[arguments.size]
    sources = torch.randint(10, VOCABULARY - 10, (arguments.sentences, arguments.source), device=arguments.device)
    sources[:, -1] = PAD + 1  # the separator
    calls = {OURS: ours(size, sources, arguments)}
    bars: dict[str, float | None] = {}
    with ExitStack() as processes:
        for peer in arguments.peers:
            package, build = PEERS[peer]
            if find_spec(package) is None:
                say(f"decoding: {package} is not installed and left out")
                continue
            calls[peer] = processes.enter_context(build(size, sources, arguments))
            bars[peer] = None if bars else arguments.bar
        calls = {name: equal_work(name, call, steps_of(arguments)) for name, call in calls.items()}
        compare("decoding", configuration(arguments, "peers"), calls, arguments.rounds, bars)


if __name__ == "__main__":
    run_program(main)
