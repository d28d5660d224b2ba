"""Settings with which sentencepiece models are trained, read from the models, and what they do to texts."""

import io
import struct
import unicodedata

import numpy as np
import pytest
import sentencepiece

from unified.errors import UnifiedError
from unified.files.protobuf import message_fields
from unified.tokenization import sentencepiece_tokenizer
from unified.tokenization.sentencepiece_tokenizer import SentencePieceTokenizer, train_sentencepiece

LINES = ["the old house by the river", "a red tree over the old house", "Rivers run\u3000 by \uff21 trees"] * 5
#: Numbers of fields of `TrainerSpec` in sentencepiece_model.proto.
MODEL_TYPE, COVERAGE, THREADS, LONGEST, HARD_LIMIT, BYTES = 3, 10, 16, 18, 33, 35
IDS, PIECES = {"unk": 40, "bos": 41, "eos": 42, "pad": 43}, {"unk": 45, "bos": 46, "eos": 47, "pad": 48}


def trainer_of(tokenizer):
    return dict(message_fields(dict(message_fields(tokenizer.model))[2]))


def test_a_model_has_the_special_symbols_of_fairseq_and_does_not_depend_on_the_machine():
    for kind in ("unigram", "bpe", "char"):
        tokenizer = train_sentencepiece(LINES, kind, 28)
        trainer = trainer_of(tokenizer)
        assert trainer[MODEL_TYPE] == {"unigram": 1, "bpe": 2, "char": 4}[kind]
        assert (trainer[THREADS], trainer[LONGEST], trainer[BYTES]) == (8, 1 << 20, 0)
        # A model holds no field whose value is the default.
        defaults = {"unk": 0, "bos": 1, "eos": 2, "pad": 2**64 - 1}
        assert {name: trainer.get(n, defaults[name]) for name, n in IDS.items()} == {
            "unk": 3,
            "bos": 0,
            "eos": 2,
            "pad": 1,
        }
        names = {"unk": b"<unk>", "bos": b"<s>", "eos": b"</s>", "pad": b"<pad>"}
        assert {name: trainer[n] for name, n in PIECES.items()} == names
        assert tokenizer.native_symbols()[:4] == ["<s>", "<pad>", "</s>", "<unk>"]
        assert [tokenizer.processor.id_to_piece(i) for i in range(4)] == ["<s>", "<pad>", "</s>", "<unk>"]


@pytest.mark.parametrize("normalization", ["identity", "nfkc"])
def test_the_same_lines_give_the_same_model_without_a_name_of_a_file(normalization):
    one, other = (
        train_sentencepiece(LINES, "char", normalization=normalization, lowercase=True).model for _ in range(2)
    )
    assert one == other and b".tsv" not in one


def test_the_size_is_a_demand_only_where_it_is_given(monkeypatch):
    asked = []
    train = sentencepiece.SentencePieceTrainer.train

    def noting(**settings):
        asked.append(settings)
        train(**settings)

    monkeypatch.setattr(sentencepiece.SentencePieceTrainer, "train", noting)
    for options, size, limit, coverage in (((), 32_000, 0, 0.9995), ((40,), 40, 1, 0.9995), ((40, 1.0), 40, 1, 1.0)):
        trainer = trainer_of(train_sentencepiece(LINES, "bpe", *options))
        assert asked[-1]["vocab_size"] == size and trainer.get(HARD_LIMIT, 1) == limit
        assert struct.unpack("<f", struct.pack("<I", trainer[COVERAGE]))[0] == pytest.approx(coverage)


@pytest.mark.parametrize("normalization", [None, "nmt_nfkc", "nfkc", "identity"])
@pytest.mark.parametrize("kind", ["bpe", "char"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_texts_are_normalized_and_lowered_by_the_model(kind, normalization, lowercase):
    tokenizer = train_sentencepiece(LINES, kind, None, 1.0, normalization, lowercase)
    text = "A\uff21\u2460\u00c9 \ufb01\u200b!"
    expected = text
    if normalization in ("nmt_nfkc", "nfkc") or (normalization is None and kind == "bpe"):
        # NMT's rules make blanks of spaces without a width.
        expected = unicodedata.normalize("NFKC", text if normalization == "nfkc" else text.replace("\u200b", " "))
    elif lowercase:
        text += "\u0130"  # two characters in small letters
        expected = text
    expected = expected.lower() if lowercase else expected
    assert tokenizer.processor.normalize(text).lstrip("\u2581") == expected.replace(" ", "\u2581")


def test_bytes_stand_for_unknown_characters_only_where_that_is_asked_for():
    plain = train_sentencepiece(LINES, "bpe")
    fallback = train_sentencepiece(LINES, "bpe", 310, byte_fallback=True)
    assert plain.encode("\u03a9") == ["\u2581", "<unk>"] and plain.encode_ids(["\u03a9"])[0].tolist()[-1] == 3
    assert fallback.encode("\u03a9") == ["\u2581", "<0xCE>", "<0xA9>"]
    flat, sizes, offsets = fallback.encode_offsets(["\u03a9", "", "the \u03a9"])
    ids, counts = fallback.encode_ids(["\u03a9", "", "the \u03a9"])
    assert flat.tolist() == ids.tolist() and sizes.tolist() == counts.tolist() == [3, 0, len(ids) - 3]
    assert offsets[:3].tolist() == [[0, 1]] * 3 and offsets[-2:].tolist() == [[4, 5]] * 2


def test_ids_of_no_text_are_none():
    tokenizer = train_sentencepiece(LINES, "char")
    for texts in ([], [""], ["", " "]):
        flat, sizes = tokenizer.encode_ids(texts)
        assert flat.dtype == np.int32 and len(flat) == 0 and sizes.dtype == np.int64
        assert sizes.tolist() == [0] * len(texts)


def test_a_long_line_is_read_whole_and_one_beyond_a_mebibyte_is_left_out():
    long, longer = "b" + "a" * ((1 << 20) - 1), "c" + "a" * (1 << 20)
    tokenizer = train_sentencepiece(["a x", long, longer], "char", character_coverage=1.0)
    assert {"a", "x", "b"} <= set(tokenizer.native_symbols()) and "c" not in tokenizer.native_symbols()


def test_white_space_within_lines_is_one_blank_before_training():
    one, other = (train_sentencepiece([line] * 9, "char").model for line in ("a b", "\ta\u2028 b\n"))
    assert one == other


def test_a_failure_is_told_by_sentencepieces_last_words(monkeypatch):
    def fails(says):
        def train(**settings):
            raise RuntimeError(says)

        monkeypatch.setattr(sentencepiece.SentencePieceTrainer, "train", train)
        with pytest.raises(UnifiedError) as raised:
            train_sentencepiece(LINES, "bpe")
        return str(raised.value).removeprefix("the bpe tokenizer cannot be trained: ")

    assert fails("Internal: src/a.cc(3) [(x) > 0] Too few words. ") == "Too few words"
    assert fails("a.cc(3) [x] The limit is X.") == "The limit is X"
    assert fails("x] Increase vocab_size or decrease character_coverage with --character_coverage option.") == (
        "Increase --vocabulary-size or decrease --character-coverage with --character-coverage option"
    )
    assert fails("just so") == "just so" and fails("Internal: a.cc [x] ") == fails("") == "too little text"


def test_an_empty_and_a_damaged_model_are_told_apart(tmp_path):
    for content, says in (
        (b"", "an empty sentencepiece model"),
        (b"\xff", "not a sentencepiece model, or a truncated one"),
    ):
        for arguments, name in (((content,), "the sentencepiece model"), ((content, "x"), "x")):
            with pytest.raises(UnifiedError) as raised:
                SentencePieceTokenizer(*arguments)
            assert str(raised.value) == f"{name}: {says}"
        (tmp_path / "a.model").write_bytes(content)
        with pytest.raises(UnifiedError) as raised:
            SentencePieceTokenizer.load(tmp_path / "a.model")
        assert raised.value.details == f"{tmp_path}/a.model: {says}"
    made = train_sentencepiece(LINES, "char")
    made.save(tmp_path)
    assert (tmp_path / "tokenizer.model").read_bytes() == made.model


def test_all_types_and_normalizations_that_can_be_chosen_are_sentencepieces():
    """Tests above train each of them."""
    assert sentencepiece_tokenizer.MODEL_TYPES == ("unigram", "bpe", "char")
    assert sentencepiece_tokenizer.NORMALIZATIONS == ("nmt_nfkc", "nfkc", "identity")


def test_the_unknown_symbol_of_another_model_has_the_name_of_the_vocabulary():
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=made, model_type="char", vocab_size=40, hard_vocab_limit=False,
        num_threads=1, minloglevel=3, unk_id=1, bos_id=-1, eos_id=0, pad_id=-1, unk_piece="[none]", eos_piece="[end]",
    )  # fmt: skip
    tokenizer = SentencePieceTokenizer(made.getvalue())
    assert tokenizer.native_symbols()[:3] == ["</s>", "<unk>", tokenizer.processor.id_to_piece(2)]


def test_training_says_nothing_where_another_has_said_all(capfd):
    """How much sentencepiece says is a setting of the whole process."""
    sentencepiece.set_min_log_level(0)
    train_sentencepiece(["a b"] * 9, "char")
    assert capfd.readouterr() == ("", "")
