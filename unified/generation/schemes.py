"""Decoding schemes: the input that predicts the next token, and the direction in which the given text is read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DecodingScheme:
    """A way in which a model writes.

    Attributes:
        mask_query: True where a [MASK] asks for the next token (UniLM); False where the last token predicts the next.
        source_type, target_type: token types of what is given and of what is written.
        prompt: True where the given text is the beginning of what is written, False where it is a source that ends with
            the separator.
        causal_source: True where the given text is itself read left to right, False where it sees all of itself.
        query_stream: True where a query that is no token asks for the next one (XLNet); no begin symbol stands in front
            of the given text then.
    """

    mask_query: bool
    source_type: int
    target_type: int
    prompt: bool
    causal_source: bool = False
    query_stream: bool = False

    @property
    def token_types(self) -> int:
        """Rows of the token-type table that it takes."""
        return max(self.source_type, self.target_type) + 1


#: Decoding schemes by name: of a model fine-tuned by cloze, of one fine-tuned on the next token, of a pre-trained model
#: that continues a prompt, and of a permutation language model, to which the prompt is context and what it writes an
#: order of prediction.
SCHEMES = {
    "cloze": DecodingScheme(mask_query=True, source_type=4, target_type=5, prompt=False),
    "next": DecodingScheme(mask_query=False, source_type=4, target_type=5, prompt=False),
    "left_to_right": DecodingScheme(mask_query=True, source_type=2, target_type=2, prompt=True, causal_source=True),
    "permutation": DecodingScheme(mask_query=False, source_type=0, target_type=0, prompt=True, query_stream=True),
}


#: Why a model with entity-aware attention does not write.
NO_ENTITIES_IN_WRITING = (
    "the model has entity-aware attention ('entity' among its sublayers), and nobody marks named entities in what it "
    "would read and write; it does not generate or score texts"
)

#: Why a model that writes nothing does not generate.
NO_SCHEME = (
    "the model does not generate (writes nothing): no objective that it learnt declares a decoding scheme, or the "
    "scheme needs more token types than the model has; `fairseq-train --writes` chooses a scheme, and "
    "--token-types gives the types"
)
