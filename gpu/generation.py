"""Texts that a model writes on the card are those that it writes on the CPU."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from gpu.findings import Finding, Place
from tests.support import tiny_models
from unified.generation import GenerationConfig, generate

#: Scores that differ less are those of texts of equal rank, which rounding may exchange.
TIE = 1e-3
WORDS = 200
WAYS = {"greedy": 1, "beam": 5}


def check(place: Place) -> Iterator[Finding]:
    """Greedy search and beam search, by all ways of asking for the next token, on sources of mixed lengths."""
    count, written = place.size(64, 6), place.size(40, 6)
    lengths = torch.randint(3, place.size(60, 12), (count,), generator=torch.Generator().manual_seed(0)).tolist()
    sources = tiny_models.sources(lengths, WORDS)
    size = {"width": place.size(256, 32), "layers": place.size(4, 2), "max_positions": 160}
    for scheme in ("cloze", "next"):
        for way, beam in WAYS.items():
            config = GenerationConfig(beam=beam, max_length=written)
            results = []
            for device, backend in ((torch.device("cpu"), "dense"), (place.device, "auto")):
                decoder = tiny_models.decoder(scheme, WORDS, attention_backend=backend, initializer_range=0.1, **size)
                decoder.model.to(device)
                results.append(generate(decoder, sources.to(device), config))
            differing, tied = [], 0
            for number, (there, here) in enumerate(zip(results[1], results[0], strict=True)):
                if not torch.equal(there[0].tokens, here[0].tokens):
                    tied += abs(there[0].score - here[0].score) < TIE
                    differing.append(number)
            found = {"sentences that differ": len(differing), "of them with scores that are equal": int(tied)}
            settings = {"scheme": scheme, "beam": beam, "sentences": count, "tokens": written}
            yield Finding(
                f"generation: {scheme}, {way}", found, "the CPU, dense attention", len(differing) == tied, TIE, settings
            )
