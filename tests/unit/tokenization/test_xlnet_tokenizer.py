"""XLNet's tokenizer against its published code, and sentencepiece models as ``tokenizer.json``."""

from __future__ import annotations

import io
import json
import random
import unicodedata

import pytest
import sentencepiece
from tokenizers import Tokenizer

from tests.support.published_models import xlnet_pieces
from unified.errors import UnifiedError
from unified.tokenization import load_tokenizer, single_spaced
from unified.tokenization.sentencepiece_json import sentencepiece_json
from unified.tokenization.sentencepiece_tokenizer import SentencePieceTokenizer, train_sentencepiece
from unified.tokenization.xlnet import XLNetTokenizer, comma_behind_digit, prepared, prepared_characters
from unified.tokenization.xlnet_json import xlnet_json

LINES = ['in 1,900 and 9,9 cats 10,000, 5, 12, 7,x "quoted" don\'t cafe 2,', "the end, 1 2 3 4 5 6 7 8 9 0 , 1,000"]
TEXTS = [
    "", " ", "9,", "1,900 cats, 12,", "x9,y 9,9, ,9", "``quoted'' `x' ''' ````", "café naïve Å ﬁ ½",
    "e\u0301\u0301 \u0301a",
    "in  1,900\tand\n9,9", "\u0301", "汉字 9,", "10,000, 5, 12, 7,x",
]  # fmt: skip


def model(kind: str = "bpe", size: int = 90, lines: list[str] = LINES, **settings) -> bytes:
    made = io.BytesIO()
    symbols = ["<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 9), model_writer=made, model_type=kind, vocab_size=size, num_threads=1,
        hard_vocab_limit=False, unk_id=0, bos_id=1, eos_id=2, pad_id=-1, control_symbols=symbols, minloglevel=3,
        split_by_number=False, **settings,
    )  # fmt: skip
    return made.getvalue()


@pytest.fixture(scope="module")
def own() -> XLNetTokenizer:
    return XLNetTokenizer(model())


def published(processor: sentencepiece.SentencePieceProcessor, text: str) -> list[str]:
    """``preprocess_text`` and ``encode_pieces`` of zihangdai/xlnet, ``prepro_utils.py``, in Python 3."""
    outputs = " ".join(text.strip().split()).replace("``", '"').replace("''", '"')
    outputs = unicodedata.normalize("NFKD", outputs)
    outputs = "".join([c for c in outputs if not unicodedata.combining(c)])
    new_pieces = []
    for piece in processor.encode(outputs, out_type=str):
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            cur_pieces = processor.encode(piece[:-1].replace("\u2581", ""), out_type=str)
            if piece[0] != "\u2581" and cur_pieces[0][0] == "\u2581":
                if len(cur_pieces[0]) == 1:
                    cur_pieces = cur_pieces[1:]
                else:
                    cur_pieces[0] = cur_pieces[0][1:]
            cur_pieces.append(piece[-1])
            new_pieces.extend(cur_pieces)
        else:
            new_pieces.append(piece)
    return new_pieces


def random_texts(count: int = 150) -> list[str]:
    drawn = random.Random(3)
    parts = ["9,", "1,900", "0,0,", "cats", " ", "''", "``", "é", "e\u0301", "½", "12,", "5", "\u0301", ",", '"']
    return ["".join(drawn.choices(parts, k=drawn.randrange(1, 9))) for _ in range(count)]


def test_pieces_are_those_of_the_published_code(own):
    commas = 0
    for text in [*TEXTS, *random_texts()]:
        wanted, processor = published(own.processor, text), own.processor
        commas += any(
            piece[-1] == "," and piece[-2:-1].isdigit() for piece in processor.encode(prepared(text), out_type=str)
        )
        known = [processor.id_to_piece(processor.piece_to_id(piece)) for piece in wanted]
        assert own.encode(text) == known, text
        ids, sizes = own.encode_ids([text, text])
        assert [processor.id_to_piece(int(i)) for i in ids] == known * 2 and sizes.tolist() == [len(known)] * 2
    assert commas > 20  # pieces that the rule divides


def test_offsets_go_with_the_ids_and_lie_in_the_text(own):
    texts = [*TEXTS, *random_texts()]
    ids, sizes, offsets = own.encode_offsets(texts)
    again, counts = own.encode_ids(texts)
    assert ids.tolist() == again.tolist() and sizes.tolist() == counts.tolist()
    at = 0
    for text, size in zip(texts, sizes.tolist(), strict=True):
        length, own_offsets = len(single_spaced(text)), offsets[at : at + size].tolist()
        at += size
        assert all(0 <= begin < end <= length for begin, end in own_offsets), text
        assert own_offsets == sorted(own_offsets)


def test_offsets_cut_the_pieces_of_plain_numbers_out_of_the_text(own):
    for text in ("1,900 cats, 12,", "10,000, 5, 12, 7,x", "9, 9,9"):
        pieces, (_, _, offsets) = own.encode(text), own.encode_offsets([text])
        cuts = [text[begin:end].strip(" ") for begin, end in offsets.tolist()]
        assert [piece.lstrip("\u2581") for piece in pieces] == [
            cut if piece != "\u2581" else "" for cut, piece in zip(cuts, pieces, strict=True)
        ]


def test_a_space_that_is_not_in_the_text_has_its_first_character():
    """In front of a text sentencepiece puts one; here it is a piece of its own once the comma is taken off."""
    tokenizer = XLNetTokenizer(model(size=16, lines=["a 7, b 7, a 7,", "7, b a 7, 7, b"]))
    for text, joined, pieces, offsets in (
        ("7, b", "\u25817,", ["\u2581", "7", ","], [[0, 1], [0, 1], [1, 2]]),
        ("7,7,", "\u25817,", ["\u2581", "7", ",", "7", ","], [[0, 1], [0, 1], [1, 2], [2, 3], [3, 4]]),
        ("a 7,", "\u2581", ["\u2581", "a", "\u2581", "7", ","], [[0, 1], [0, 1], [1, 2], [2, 3], [3, 4]]),
    ):
        assert tokenizer.processor.encode(text, out_type=str)[0] == joined
        assert tokenizer.encode(text)[: len(pieces)] == pieces
        assert tokenizer.encode_offsets([text])[2][: len(pieces)].tolist() == offsets


def test_a_number_without_a_space_keeps_all_its_pieces_when_its_comma_is_taken_off():
    """Alone it would begin with a space, which is taken off its first piece."""
    tokenizer = XLNetTokenizer(model(size=22, lines=["ab7, cb7, b1 b2 b3 b4"], split_by_unicode_script=False))
    assert tokenizer.processor.encode("ab7,", out_type=str) == ["\u2581", "a", "b7,"]
    assert tokenizer.processor.encode("b7", out_type=str) == ["\u2581b", "7"]
    pieces = ["\u2581", "a", "b", "7", ","]
    assert tokenizer.encode("ab7,") == published(tokenizer.processor, "ab7,") == pieces
    assert tokenizer.encode_offsets(["ab7,"])[2].tolist() == [[0, 1], [0, 1], [1, 2], [2, 3], [3, 4]]


def test_a_number_that_is_longer_than_its_text_has_all_its_characters_for_each_piece(tmp_path):
    """The model replaces one character by two before it divides a text."""
    rules = tmp_path / "rules.tsv"
    rules.write_text("DF\t73 73\n")  # ß becomes ss
    lines = ["xss9, yss9, zss9, ass"]
    made = model(size=24, lines=lines, split_by_unicode_script=False, normalization_rule_tsv=str(rules))
    tokenizer = XLNetTokenizer(made)
    assert tokenizer.processor.encode("aß9,", out_type=str) == ["\u2581a", "ss9,"]
    assert tokenizer.encode("aß9,") == ["\u2581a", "ss", "9", ","]
    assert tokenizer.encode_offsets(["aß9,"])[2].tolist() == [[0, 1], [1, 3], [1, 3], [3, 4]]


def test_prepared_characters_say_where_each_character_comes_from():
    assert prepared_characters("``a''") == ('"a"', [0, 2, 3], [2, 3, 5])
    assert prepared_characters("e\u0301\u0301b") == ("eb", [0, 3], [3, 4])
    assert prepared_characters("\u00e9ﬁ") == ("efi", [0, 1, 1], [1, 2, 2])
    assert prepared_characters("\u0301a") == ("a", [1], [2]) and prepared_characters("") == ("", [], [])
    for text in map(single_spaced, [*TEXTS, *random_texts()]):
        assert prepared_characters(text)[0] == prepared(text)


def test_special_symbols_have_our_names_and_xlnets_first_and_last_others(own, tmp_path):
    names = {"<cls>": "<s>", "<sep>": "</s>", "<s>": "<bos>", "</s>": "<eos>"}
    pieces = [own.processor.id_to_piece(i) for i in range(len(own.processor))]
    assert own.native_symbols() == [names.get(piece, piece) for piece in pieces]
    own.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["xlnet.model"]
    again = load_tokenizer(tmp_path)
    assert isinstance(again, XLNetTokenizer) and again.model == own.model


def test_a_model_without_xlnets_symbols_is_refused():
    other = train_sentencepiece(LINES, "char").model
    for arguments, name in (((other,), "the sentencepiece model"), ((other, "x.model"), "x.model")):
        with pytest.raises(UnifiedError) as raised:
            XLNetTokenizer(*arguments)
        assert str(raised.value) == f"{name}: not an XLNet's model: it has no piece <cls>, <sep>, <mask>"
    assert XLNetTokenizer(xlnet_pieces()).encode("the cat")


# As tokenizer.json


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("unigram", {}),
        ("unigram", {"lowercase": True, "byte_fallback": True}),
        ("bpe", {}),
        ("bpe", {"byte_fallback": True, "normalization": "identity"}),
        ("char", {}),
    ],
)
def test_a_model_as_tokenizer_json_divides_texts_as_sentencepiece_does(kind, settings):
    trained = train_sentencepiece(LINES * 5, kind, **settings)
    read = Tokenizer.from_str(json.dumps(sentencepiece_json(trained)))
    whole = 0
    texts = [*TEXTS, *random_texts(40), "UPPER Ⅷ ﬁ\u2028x\x1cy", "\u3000 ａ"]
    # Of "\u00bd\u0301" and the like tokenizers loses the mark.
    for text in (text for text in texts if not any(map(unicodedata.combining, text))):
        ids = trained.encode_ids([text])[0].tolist()
        assert read.encode(text).ids == ids, text
        if trained.processor.unk_id() not in ids:  # which sentencepiece shows as another mark
            assert read.decode(ids, skip_special_tokens=False) == trained.processor.decode(ids), text
            whole += 1
    assert whole > 9


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        ("word", {}, "divides words"),
        ("bpe", {"treat_whitespace_as_suffix": True}, "divides words"),
        ("bpe", {"add_dummy_prefix": False}, "keeps white space"),
        ("bpe", {"remove_extra_whitespaces": False}, "keeps white space"),
    ],
)
def test_rules_that_tokenizer_json_lacks_are_refused(kind, settings, said):
    with pytest.raises(UnifiedError) as raised:
        sentencepiece_json(SentencePieceTokenizer(model(kind, **settings)))
    assert str(raised.value) == f"the sentencepiece model {said} in a way that tokenizer.json cannot say"


def differing(own: XLNetTokenizer, texts: list[str]) -> list[str]:
    """Texts that the tokenizer.json divides in another way."""
    theirs = Tokenizer.from_str(json.dumps(xlnet_json(own)))
    return [text for text in texts if theirs.encode(text).ids != own.encode_ids([text])[0].tolist()]


@pytest.mark.parametrize("kind", ["unigram", "char", "bpe"])
def test_as_a_tokenizer_json_it_divides_texts_alike(kind):
    """But for the pieces of a number before a comma, where the comma is a piece of its own all the same."""
    own = XLNetTokenizer(model(kind, 60))
    assert any(map(comma_behind_digit, own.entries)) is (kind != "char")
    texts = [*TEXTS, *LINES, "0 cats  \x1cand\u2003\u00a0dogs"]
    numbers = [text for text in texts if any(map(comma_behind_digit, text.split()))]
    assert len(numbers) > 3 and not set(differing(own, texts)) - set(numbers if kind != "char" else [])
    theirs = Tokenizer.from_str(json.dumps(xlnet_json(own)))
    for text in numbers:
        pieces, wanted = [own.entries[i] for i in theirs.encode(text).ids], own.encode(text)
        assert "".join(pieces) == "".join(wanted) and not any(map(comma_behind_digit, pieces))
