"""One training step of permutation language modelling in two streams: ours beside transformers' XLNetLMHeadModel.

    python benchmarks/permutation_step.py --size small --bar 2.5

The same factorization orders, targets and shapes. Ours has a query for each target alone; transformers is given its
targets by ``target_mapping``, as its documentation says. Both have attention dropout 0.1 unless told otherwise.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import torch
from models import PREDICTED, SIZES, VOCABULARY, Size, batch_of, compiler, example, our_model, our_step, step_of
from paired import OURS, compare, configuration, options, ratios, report, run_program, set_up

from unified import masks
from unified.data.example import Batch, Example
from unified.data.targets import TOKEN, ExampleTargets

MASKED = "our masked language modelling"


def permuted(length: int, rng: np.random.Generator) -> Example:
    """Random tokens in a random order, the last of which are predicted [XLNet, sec. 2.3]."""
    order = rng.permutation(length)
    targets = np.flatnonzero(order >= length - int(PREDICTED * length))
    steps = np.maximum(1 + order - (length - len(targets)), masks.GIVEN)
    base = example(masks.bidirectional(length), rng)
    return replace(
        base,
        mask=masks.permutation(steps),
        targets={TOKEN: ExampleTargets.at(targets, base.tokens[targets])},
        query_stream=True,
    )


def xlnet(size: Size, examples: list[Example], attention_dropout: float, device: str, dtype: torch.dtype | None = None):
    """A step of transformers' XLNet on the same tokens, orders and targets; it has one dropout for everything."""
    from transformers import XLNetConfig, XLNetLMHeadModel

    torch.manual_seed(0)
    shape = {"d_model": size.width, "n_layer": size.layers, "n_head": size.heads, "d_inner": 4 * size.width}
    config = XLNetConfig(vocab_size=VOCABULARY, **shape, dropout=attention_dropout, ff_activation="gelu")
    model = XLNetLMHeadModel(config).train().to(device)
    tokens = torch.from_numpy(np.stack([one.tokens for one in examples])).to(device)
    hidden = torch.stack([_hidden(one) for one in examples]).to(device)
    mapping = torch.stack([_one_hot(one) for one in examples]).to(device)
    labels = torch.from_numpy(np.stack([one.targets[TOKEN].labels for one in examples])).to(device)

    def loss() -> torch.Tensor:
        scores = model(input_ids=tokens, perm_mask=hidden, target_mapping=mapping).logits
        return torch.nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten())

    return step_of(model, loss, dtype)


def _hidden(one: Example) -> torch.Tensor:
    """(T, T), 1 where the first token must not see the second: ``perm_mask``."""
    step = one.mask.key_start
    return ((step[None, :] >= step[:, None]) & (step[None, :] > masks.GIVEN)).float()


def _one_hot(one: Example) -> torch.Tensor:
    """(P, T), the index of each target: ``target_mapping``."""
    return torch.nn.functional.one_hot(
        torch.from_numpy(one.targets[TOKEN].output_indices[:, 0]), len(one.tokens)
    ).float()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="small", help="size of the models (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=4, help="rows of a batch (default: %(default)s)")
    parser.add_argument("--length", type=int, default=512, help="tokens of a row (default: %(default)s)")
    parser.add_argument(
        "--attention-dropout",
        type=float,
        default=0.1,
        help="dropout on attention weights in both models (default: %(default)s)",
    )
    parser.add_argument(
        "--bar", type=float, help="lowest acceptable speed-up; below it the bar is missed (default: no bar)"
    )
    parser.add_argument("--bf16", action="store_true", help="compute in bfloat16 by autocast (default: float32)")
    parser.add_argument("--compile", action="store_true", help="compile our layers with torch.compile")
    parser.add_argument(
        "--masked-bar",
        type=float,
        help="highest acceptable cost, as a ratio to our masked language modelling (default: no bar)",
    )
    options(parser, rounds=5)
    arguments = parser.parse_args()
    set_up(arguments)
    size, rng = SIZES[arguments.size], np.random.default_rng(0)
    examples = [permuted(arguments.length, rng) for _ in range(arguments.rows)]
    shape = {"positions": "relative", "token_head": "plain"}
    backend = {"attention_backend": "sdpa"} if arguments.compile and arguments.device == "cpu" else {}
    model = our_model(size, arguments.attention_dropout, arguments.device, **shape, **backend)
    if arguments.compile:
        model.transformer.compile_layers(**compiler(arguments.device))
    batch: Batch = batch_of([[one] for one in examples], device=arguments.device)
    dtype = torch.bfloat16 if arguments.bf16 else None
    calls = {
        OURS: our_step(model, batch, dtype),
        "transformers": xlnet(size, examples, arguments.attention_dropout, arguments.device, dtype),
    }
    if arguments.masked_bar is not None:
        masked = [[example(masks.bidirectional(arguments.length), rng)] for _ in range(arguments.rows)]
        plain = our_model(size, arguments.attention_dropout, arguments.device, **backend)
        if arguments.compile:
            plain.transformer.compile_layers(**compiler(arguments.device))
        calls[MASKED] = our_step(plain, batch_of(masked, device=arguments.device), dtype)
    wanted = configuration(arguments)
    times = compare("permutation step", wanted, calls, arguments.rounds, {"transformers": arguments.bar})
    if arguments.masked_bar is not None:
        found = ratios(times, OURS, MASKED)
        report(f"permutation step / {MASKED}", wanted, found, arguments.masked_bar, at_most=True)


if __name__ == "__main__":
    run_program(main)
