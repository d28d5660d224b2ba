"""fairseq's encoder and decoder over the cache: each step against a whole forward pass, for rows that come and go."""

from types import SimpleNamespace

import pytest
import torch

from fairseq_plugins.dictionary import fairseq_dictionary
from fairseq_plugins.models.unified_lm import UnifiedLMModel
from tests.support import tiny_models

WORDS = tiny_models.vocabulary()
DICTIONARY = fairseq_dictionary(WORDS)
TASK = SimpleNamespace(special=WORDS.special, source_dictionary=DICTIONARY, target_dictionary=DICTIONARY)
SOURCES = tiny_models.sources([5, 2, 3])
BEAM = 2


def model_of(scheme: str) -> UnifiedLMModel:
    return UnifiedLMModel(tiny_models.decoder(scheme).model, TASK, scheme).eval()


class Rows:
    """Rows that a search of fairseq writes: sentence of each, tokens, and the states of encoder and decoder."""

    def __init__(self, scheme: str):
        self.scheme, self.model, self.state = scheme, model_of(scheme), {}
        self.owners = torch.arange(len(SOURCES)).repeat_interleave(BEAM)
        self.tokens = torch.full((len(self.owners), 1), WORDS.special.separator)
        source = self.model.encoder.forward_torchscript({"src_tokens": SOURCES, "src_lengths": None})
        self.source = self.model.encoder.reorder_encoder_out(source, self.owners)

    def step(self, tokens: list[int]) -> None:
        """Compare the scores with those of the definition, then write these tokens."""
        logits, attention = self.model.decoder(self.tokens, self.source, self.state, unused="by this decoder")
        assert logits.shape == (len(self.tokens), 1, len(WORDS)) and attention is None
        for row, owner, own in zip(self.tokens, self.owners.tolist(), logits[:, 0], strict=True):
            written = row[1:].tolist()
            wanted = tiny_models.next_logits(self.model.core, WORDS.special, self.scheme, SOURCES[owner], written)
            torch.testing.assert_close(own, wanted, atol=1e-4, rtol=1e-4)
        self.tokens = torch.cat([self.tokens, torch.tensor(tokens)[:, None]], dim=1)

    def reorder(self, order: list[int]) -> None:
        """Row i goes on as the old row ``order[i]``."""
        rows = torch.tensor(order)
        self.owners, self.tokens = self.owners[rows], self.tokens[rows]
        self.model.decoder.reorder_incremental_state_scripting(self.state, rows)
        self.source = self.model.encoder.reorder_encoder_out(self.source, rows)


@pytest.mark.parametrize("scheme", ["cloze", "next", "left_to_right"])
@torch.no_grad()
def test_each_step_scores_as_a_whole_pass_does_whichever_rows_are_left(scheme):
    rows = Rows(scheme)
    rows.step([5, 6, 7, 8, 9, 10])
    rows.reorder([1, 0, 2, 2, 5, 4])  # within the sentences
    rows.step([11, 12, 13, 14, 15, 4])
    rows.reorder([0, 0, 5, 4])  # the second sentence is done
    assert rows.owners.tolist() == [0, 0, 2, 2]
    rows.step([6, 5, 8, 7])
    rows.reorder([3, 2])  # and the first
    assert rows.owners.tolist() == [2, 2]
    rows.step([4, 5])
    rows.step([5, 5])


@torch.no_grad()
def test_sources_are_kept_once_for_each_sentence():
    """However many rows read them; only a sentence that is done makes a new cache."""
    encoder = model_of("cloze").encoder
    first = encoder.forward_torchscript({"src_tokens": SOURCES})
    assert first["beam"] is None and set(first) == {"cache", "beam"}
    beams = encoder.reorder_encoder_out(first, torch.arange(3).repeat_interleave(4))
    assert beams == {"cache": first["cache"], "beam": 4} and beams["cache"] is first["cache"]
    same = encoder.reorder_encoder_out(beams, torch.tensor([1, 0, 0, 2, 7, 7, 5, 4, 8, 9, 11, 10]))
    assert same["cache"] is first["cache"] and same["beam"] == 4
    fewer = encoder.reorder_encoder_out(beams, torch.tensor([5, 4, 7, 7, 8, 8, 9, 10]))
    assert fewer["beam"] == 4 and torch.equal(fewer["cache"].visible, first["cache"].visible[1:])
    assert torch.equal(fewer["cache"].keys[1], first["cache"].keys[1][1:])
