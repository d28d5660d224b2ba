"""Beam search: ours beside an encoder-decoder of transformers and fairseq's own Transformer of the same size.

    python benchmarks/decoding.py --size small --scheme cloze --bar 1.5
    python benchmarks/decoding.py --size small --scheme next --bar 2.0

Random weights, sources of one length, and exactly as many tokens as asked for: the end symbol is forbidden before. The
peers have an encoder and a decoder of so many layers each, ours one Transformer; scheme ``cloze`` asks by a [MASK] at
every step, ``next`` by the last token. ``--beam 1`` is greedy search.
"""

from __future__ import annotations

import argparse
import logging
from importlib.util import find_spec

import torch
from models import PAD, SIZES, VOCABULARY, Size, our_model
from paired import OURS, compare, options, say, set_up

from unified.data.vocabulary import Vocabulary
from unified.generation import SCHEMES, CachedDecoder, GenerationConfig, generate


def dtype_of(arguments: argparse.Namespace) -> torch.dtype:
    """The type of the weights of all models."""
    return torch.bfloat16 if arguments.bf16 else torch.float32


def ours(size: Size, sources: torch.Tensor, arguments: argparse.Namespace):
    """A call that writes for all sources."""
    model = our_model(size, 0.0, arguments.device, max_positions=1024, token_types=6)
    model = model.eval().to(dtype_of(arguments))
    special = Vocabulary([f"w{i}" for i in range(VOCABULARY - 5)]).special
    decoder = CachedDecoder(model, special, SCHEMES[arguments.scheme])
    config = GenerationConfig(beam=arguments.beam, max_length=arguments.written, min_length=arguments.written)
    return lambda: generate(decoder, sources, config)


def halves(**shape: int) -> dict[str, int]:
    """Settings of fairseq's encoder and, with the same values, of its decoder."""
    return {f"{half}_{name}": value for half in ("encoder", "decoder") for name, value in shape.items()}


def encoder_decoder(size: Size, sources: torch.Tensor, arguments: argparse.Namespace):
    """BART of transformers."""
    from transformers import BartConfig, BartForConditionalGeneration

    torch.manual_seed(0)
    shape = halves(layers=size.layers, attention_heads=size.heads, ffn_dim=4 * size.width)
    config = BartConfig(vocab_size=VOCABULARY, d_model=size.width, max_position_embeddings=1024, **shape)
    model = BartForConditionalGeneration(config).eval().to(arguments.device, dtype_of(arguments))
    return lambda: model.generate(
        input_ids=sources,
        attention_mask=torch.ones_like(sources),
        num_beams=arguments.beam,
        max_new_tokens=arguments.written,
        min_new_tokens=arguments.written,
        do_sample=False,
    )


def fairseq_transformer(size: Size, sources: torch.Tensor, arguments: argparse.Namespace):
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
    return lambda: generator.generate([model], {"net_input": {"src_tokens": sources, "src_lengths": lengths}})


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
    parser.add_argument("--bar", type=float, help="lowest acceptable speed-up over transformers (default: no bar)")
    parser.add_argument("--no-fairseq", action="store_true", help="do not compare with fairseq's Transformer")
    options(parser, rounds=3)
    arguments = parser.parse_args()
    set_up(arguments)
    size = SIZES[arguments.size]
    sources = torch.randint(10, VOCABULARY - 10, (arguments.sentences, arguments.source), device=arguments.device)
    sources[:, -1] = PAD + 1  # the separator
    wanted = ("size", "scheme", "sentences", "source", "written", "beam", "bf16")
    calls = {OURS: ours(size, sources, arguments), "transformers": encoder_decoder(size, sources, arguments)}
    bars: dict[str, float | None] = {"transformers": arguments.bar}
    if find_spec("fairseq") is None:
        say("decoding: fairseq is not installed and left out")
    elif not arguments.no_fairseq:
        calls["fairseq"], bars["fairseq"] = fairseq_transformer(size, sources, arguments), None
    compare("decoding", {name: getattr(arguments, name) for name in wanted}, calls, arguments.rounds, bars)


if __name__ == "__main__":
    main()
