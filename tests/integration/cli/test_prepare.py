"""``unified prepare``: folders against their definition and against fairseq's tools."""

import hashlib
import json
import lzma
from pathlib import Path

import numpy as np
import pytest

from tests.support.corpora import expected_items, items, json_lines, jsonl, random_documents, raw_text, run, tree, write
from unified.data.sampling import uniform
from unified.data.token_files import TokenFile
from unified.data.vocabulary import Vocabulary
from unified.tokenization import load_tokenizer, word_starts


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char", "wordpiece", "anna"])
def test_documents_are_what_the_layout_says(tmp_path, kind):
    documents, valid, test = random_documents(60), random_documents(5, seed=1), random_documents(3, seed=2)
    options = {"char": [], "anna": ["--vocabulary-size", 90, "--word-share", 0.2]}.get(kind, ["--vocabulary-size", 70])
    status = run(
        write(tmp_path / "train.txt", raw_text(documents)),
        *("--valid", write(tmp_path / "valid.txt", raw_text(valid))),
        *("--test", write(tmp_path / "test.jsonl", json_lines(test))),
        *("--output", tmp_path / "data", "--tokenizer", kind, *options),
    )
    assert status == 0
    data = tmp_path / "data"
    tokenizer, vocabulary = load_tokenizer(data), Vocabulary.load(data / "dict.txt")
    for name, part in [("train", documents), ("valid", valid), ("test", test)]:
        assert items(data / name) == expected_items(part, tokenizer, vocabulary)
    np.testing.assert_array_equal(np.load(data / "word_starts.npy"), word_starts(tokenizer, vocabulary))
    counts = np.bincount(TokenFile(data / "train").slice(0, len(TokenFile(data / "train"))), minlength=len(vocabulary))
    stop = vocabulary.special.ordinary_stop
    assert vocabulary.counts[4:stop] == counts[4:stop].tolist()
    files = {"dict.txt", "word_starts.npy", "manifest.json"}
    own = {"wordpiece": {"vocab.txt", "tokenizer_config.json"}, "anna": {"anna.json"}}
    files |= own.get(kind, {"tokenizer.model"})
    assert set(tree(data)) == files | {
        f"{name}.{part}" for name in ("train", "valid", "test") for part in ("bin", "idx")
    }


@pytest.mark.parametrize("kind", ["unigram", "wordpiece"])
def test_symbols_are_reserved_behind_all_others(tmp_path, kind, capsys):
    """The folder is that without the option but for the dictionary, and no text becomes a reserved symbol."""
    documents = [*random_documents(30), *[["a [unused1] cat", "[unused2]cat [unused5]"]] * 3]
    text = write(tmp_path / "train.txt", raw_text(documents))
    train = (text, "--tokenizer", kind, "--vocabulary-size", 80)
    assert run(*train, "--output", tmp_path / "plain") == 0
    assert run(*train, "--output", tmp_path / "reserved", "--reserve", 5) == 0
    plain, reserved = (Vocabulary.load(tmp_path / name / "dict.txt") for name in ("plain", "reserved"))
    names = [f"[unused{i}]" for i in range(1, 6)]
    assert reserved.symbols == [*plain.symbols, *names] and reserved.special == plain.special
    assert f"vocabulary: {len(reserved)} symbols, 5 of them reserved\n" in capsys.readouterr().out
    assert len(np.load(tmp_path / "reserved" / "word_starts.npy")) == len(reserved)
    same = set(tree(tmp_path / "plain")) - {"dict.txt", "word_starts.npy", "manifest.json"}
    for name in same:
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "reserved" / name).read_bytes()
    # Another text with this dictionary takes it over; only what it lacks is added.
    for count, more in ((3, []), (7, ["[unused6]", "[unused7]"])):
        again = tmp_path / f"again{count}"
        assert run(text, "--tokenizer", tmp_path / "reserved", "--reserve", count, "--output", again) == 0
        assert Vocabulary.load(again / "dict.txt").symbols == [*reserved.symbols, *more]
        assert Vocabulary.load(again / "dict.txt").counts == [*reserved.counts, *[1] * len(more)]
    assert run(text, "--reserve", -1, "--output", tmp_path / "none") == 2
    assert "--reserve must be at least 0, got -1" in capsys.readouterr().err


def test_documents_are_byte_for_byte_those_of_fairseq_preprocess(tmp_path):
    binarizer = pytest.importorskip("fairseq.binarizer")
    from fairseq.data import Dictionary, data_utils

    documents = random_documents(40)
    run(write(tmp_path / "train.txt", raw_text(documents)), "--output", tmp_path / "data")
    tokenizer = load_tokenizer(tmp_path / "data")
    dictionary = Dictionary.load(str(tmp_path / "data" / "dict.txt"))
    # What its users do: pieces joined by spaces, blank lines between documents, then fairseq-preprocess.
    pieces = raw_text([[" ".join(tokenizer.encode(line)) for line in document] for document in documents])
    write(tmp_path / "pieces.txt", pieces)
    binarizer.FileBinarizer.multiprocess_dataset(
        str(tmp_path / "pieces.txt"),
        "mmap",
        binarizer.VocabularyDatasetBinarizer(dictionary, append_eos=True),
        str(tmp_path / "theirs"),
        vocab_size=len(dictionary),
        num_workers=1,
    )
    for part in ("bin", "idx"):
        assert tree(tmp_path / "data")[f"train.{part}"] == (tmp_path / f"theirs.{part}").read_bytes()
    loaded = data_utils.load_indexed_dataset(str(tmp_path / "data" / "train"), dictionary)
    assert [item.tolist() for item in loaded] == items(tmp_path / "data" / "train")


def test_pairs_load_in_fairseqs_translation_task(tmp_path):
    translation = pytest.importorskip("fairseq.tasks.translation")
    sources = [paragraphs[0] for paragraphs in random_documents(50, seed=3)]
    targets = [source.upper() for source in sources]
    pairs = [json.dumps({"src": s, "tgt": t, "id": 1}) for s, t in zip(sources, targets, strict=True)]
    from_json = run(
        write(tmp_path / "train.jsonl", "\n".join(pairs)),
        *("--source-field", "src", "--target-field", "tgt", "--output", tmp_path / "a"),
        *("--valid", write(tmp_path / "valid.jsonl", "\n".join(pairs[:7]))),
    )
    from_files = run(
        write(tmp_path / "train.src", "\n".join(sources)),
        *("--target", write(tmp_path / "train.tgt", "\n".join(targets)), "--output", tmp_path / "b"),
        *("--valid", write(tmp_path / "valid.src", "\n".join(sources[:7]))),
        *("--valid-target", write(tmp_path / "valid.tgt", "\n".join(targets[:7]))),
    )
    assert from_json == from_files == 0
    a, b = tree(tmp_path / "a"), tree(tmp_path / "b")
    assert a.pop("manifest.json") != b.pop("manifest.json") and a == b
    assert a["dict.source.txt"] == a["dict.target.txt"] and "dict.txt" not in a

    tokenizer, vocabulary = load_tokenizer(tmp_path / "a"), Vocabulary.load(tmp_path / "a" / "dict.source.txt")
    dictionary = translation.TranslationTask.load_dictionary(str(tmp_path / "a" / "dict.source.txt"))
    for split, count in [("train", 50), ("valid", 7)]:
        loaded = translation.load_langpair_dataset(
            *(str(tmp_path / "a"), split, "source", dictionary, "target", dictionary),
            *(False, "mmap", -1, True, False, 1024, 1024),
        )
        assert len(loaded) == count
        for i in range(count):
            for side, text in [("source", sources[i]), ("target", targets[i])]:
                assert loaded[i][side].tolist() == [*vocabulary.encode(tokenizer.encode(text)).tolist(), 2]


def test_fine_tuning_data_share_tokenizer_and_dictionary_of_the_folder_given(tmp_path):
    run(write(tmp_path / "a.txt", raw_text(random_documents(30))), "--output", tmp_path / "a")
    pairs = '{"s": "red Ω", "t": "green"}\n'
    arguments = ["--source-field", "s", "--target-field", "t", "--tokenizer", tmp_path / "a"]
    assert run(write(tmp_path / "p.jsonl", pairs), *arguments, "--output", tmp_path / "b") == 0
    a, b = tree(tmp_path / "a"), tree(tmp_path / "b")
    assert b["dict.source.txt"] == b["dict.target.txt"] == a["dict.txt"]
    assert b["tokenizer.model"] == a["tokenizer.model"] and b["word_starts.npy"] == a["word_starts.npy"]
    assert json.loads(b["manifest.json"])["splits"]["train"]["source"] == {"tokens": 6, "unknown": 1}
    # And back: a folder of pairs gives its dictionary to documents.
    again = ["--tokenizer", tmp_path / "b", "--output", tmp_path / "c"]
    assert run(tmp_path / "a.txt", *again) == 0
    c = tree(tmp_path / "c")
    assert c["dict.txt"] == a["dict.txt"] and c["train.bin"] == a["train.bin"]


def test_manifest_says_what_is_there(tmp_path):
    documents = random_documents(25)
    source = write(tmp_path / "a.txt", raw_text(documents) + "\n\nΩ ΩΩ\n")
    run(write(tmp_path / "t.txt", raw_text(documents)), "--output", tmp_path / "t")
    run(source, "--output", tmp_path / "data", "--tokenizer", tmp_path / "t" / "tokenizer.model", "--seed", 5)
    manifest = json.loads((tmp_path / "data" / "manifest.json").read_text())
    letters = sum(len(line.split()) + len(line.replace(" ", "")) for document in documents for line in document)
    assert manifest["splits"]["train"] == {
        "documents": 26,
        "skipped": 0,
        "sentences": sum(map(len, documents)) + 1,
        "tokens": letters + 4,  # a space sign before each word; the two Ω of a word make one unknown piece
        "unknown": 2,
    }
    assert manifest["inputs"][source]["sha256"] == hashlib.sha256(Path(source).read_bytes()).hexdigest()
    outputs = tree(tmp_path / "data")
    outputs.pop("manifest.json")
    assert {name: entry["sha256"] for name, entry in manifest["outputs"].items()} == {
        name: hashlib.sha256(content).hexdigest() for name, content in outputs.items()
    }
    assert manifest["settings"]["seed"] == 5 and manifest["content"] == "documents"
    assert manifest["symbols"] == len(Vocabulary.load(tmp_path / "data" / "dict.txt"))


def test_summary_counts_what_is_unknown(tmp_path, capsys):
    run(write(tmp_path / "a.txt", "ab\n"), "--output", tmp_path / "a")
    run(write(tmp_path / "b.txt", "aΩbΩ\n"), "--output", tmp_path / "b", "--tokenizer", tmp_path / "a")
    out = capsys.readouterr().out
    assert "train: 1 document, 1 sentence, 5 tokens, 2 of them unknown (40.000 %)" in out
    assert f"wrote {tmp_path / 'b'}" in out


def test_skip_empty_leaves_pairs_out_on_both_sides_and_counts_them(tmp_path):
    source = write(tmp_path / "s", "a\n\nb\nc\n")
    target = write(tmp_path / "t", "A\nB\n\u200b \nC\n")
    arguments = ["--target", target, "--skip-empty", "--tokenizer", "unigram", "--output", tmp_path / "data"]
    assert run(source, *arguments) == 0  # NFKC of sentencepiece drops the zero-width space: that side is empty too
    assert json.loads((tmp_path / "data" / "manifest.json").read_text())["splits"]["train"]["pairs"] == 2
    assert json.loads((tmp_path / "data" / "manifest.json").read_text())["splits"]["train"]["skipped"] == 2
    sizes = [len(TokenFile(tmp_path / "data" / f"train.source-target.{side}")) for side in ("source", "target")]
    assert sizes == [2, 2]


def test_skip_empty_leaves_null_out_as_it_leaves_empty_texts_out(tmp_path):
    rows = [("a", "A"), (None, "B"), ("b", None), (["a", None], "C"), ("c", "D")]
    pairs = jsonl(tmp_path / "pairs.jsonl", [{"s": source, "t": target} for source, target in rows])
    documents = jsonl(tmp_path / "documents.jsonl", [{"text": source} for source in ("a", None, "b")])
    fields = ["--source-field", "s", "--target-field", "t"]
    for path, options, unit, kept in ((pairs, fields, "pairs", 2), (documents, [], "documents", 2)):
        output = tmp_path / unit
        assert run(path, *options, "--skip-empty", "--output", output) == 0
        split = json.loads((output / "manifest.json").read_text())["splits"]["train"]
        assert (split[unit], split["skipped"]) == (kept, len(Path(path).read_text().splitlines()) - kept)
        assert run(path, *options, "--output", tmp_path / "no") == 2


def test_a_paragraph_without_pieces_is_no_end_of_a_document(tmp_path):
    text = write(tmp_path / "a.txt", "a\n\u200b\nb\n\n\u200b\n\nc\n")
    assert run(text, "--tokenizer", "unigram", "--output", tmp_path / "data") == 0
    assert [len(item) > 1 for item in items(tmp_path / "data" / "train")] == [True, True, False, True]
    assert json.loads((tmp_path / "data" / "manifest.json").read_text())["splits"]["train"]["documents"] == 2


def test_a_line_of_a_million_characters_is_one_item(tmp_path):
    text = "short\n" + "abcé " * 200_000 + "\nshort\n"
    assert run(write(tmp_path / "a.txt", text), "--output", tmp_path / "data") == 0
    file = TokenFile(tmp_path / "data" / "train")
    assert file.sizes.tolist() == [7, 1_000_001, 7]


def test_surrogate_pairs_in_json_are_characters(tmp_path):
    content = '{"text": "\\ud83d\\ude00"}\n{"text": "a"}\n'
    assert run(write(tmp_path / "a.jsonl", content), "--output", tmp_path / "data") == 0
    assert "\U0001f600" in load_tokenizer(tmp_path / "data").native_symbols()


def test_any_number_of_workers_makes_the_same_folder(tmp_path):
    text = write(tmp_path / "a.txt", raw_text(random_documents(400)))
    options = ["--chunk-bytes", 3000, "--valid-share", "0.2", "--tokenizer", "unigram", "--vocabulary-size", 60]
    for workers in (1, 2, 3):
        assert run(text, *options, "--workers", workers, "--output", tmp_path / str(workers)) == 0
    assert tree(tmp_path / "1") == tree(tmp_path / "2") == tree(tmp_path / "3")


@pytest.mark.parametrize("as_json", [False, True])
def test_valid_share_divides_by_document_and_keeps_the_order(tmp_path, as_json):
    documents = [
        [f"{i} {line}" for line in document] for i, document in enumerate(random_documents(1500, paragraphs=2))
    ]
    text, name = (json_lines(documents), "a.jsonl") if as_json else (raw_text(documents), "a.txt")
    path, found = write(tmp_path / name, text), []
    for seed in (1, 1, 2):
        destination = tmp_path / f"{len(found)}"
        run(path, "--chunk-bytes", 5000, "--valid-share", 0.1, "--seed", seed, "--output", destination)
        tokenizer, vocabulary = load_tokenizer(destination), Vocabulary.load(destination / "dict.txt")
        valid = uniform(seed, np.arange(1500)) < 0.1
        for part, chosen in [("train", ~valid), ("valid", valid)]:
            kept = [document for document, keep in zip(documents, chosen, strict=True) if keep]
            assert items(destination / part) == expected_items(kept, tokenizer, vocabulary)
        found.append(valid)
        assert 100 < valid.sum() < 200  # 150 expected, standard deviation 12
    assert (found[0] != found[2]).sum() > 200


def test_tokenizer_sees_no_more_than_the_sample_and_nothing_of_the_validation_split(tmp_path):
    letters = [chr(0x4E00 + i) for i in range(400)]
    text = write(tmp_path / "a.txt", "\n\n".join(letters))
    assert run(text, "--valid-share", 0.3, "--output", tmp_path / "data") == 0
    valid = uniform(1, np.arange(400)) < 0.3
    pieces = set(load_tokenizer(tmp_path / "data").native_symbols())
    assert {letter for letter in letters if letter in pieces} == {
        letter for letter, hidden in zip(letters, valid, strict=True) if not hidden
    }


def test_real_text_comes_back(tmp_path, unified_data):
    source = unified_data / "pretrain_wiki" / "valid.jsonl.xz"
    arguments = ["--tokenizer", "char", "--valid-share", 0.1, "--workers", 2, "--output", tmp_path / "data"]
    assert run(source, *arguments) == 0
    data = tmp_path / "data"
    tokenizer, vocabulary = load_tokenizer(data), Vocabulary.load(data / "dict.txt")
    with lzma.open(source, "rt", encoding="utf-8") as stream:
        documents = [json.loads(line)["text"].split("\n") for line in stream]
    valid = uniform(1, np.arange(len(documents))) < 0.1
    for part, chosen in [("train", ~valid), ("valid", valid)]:
        lines = [line for document, keep in zip(documents, chosen, strict=True) if keep for line in document]
        lines = [" ".join(line.split()) for line in lines if line.strip()]
        found = [item for item in items(data / part) if item != [2]]
        assert len(found) == len(lines)
        for line, item in zip(lines, found, strict=True):
            if 3 not in item:
                assert tokenizer.decode([vocabulary.symbols[i] for i in item[:-1]]) == line
        unknown = sum(item.count(3) for item in found)
        assert unknown < 0.001 * sum(map(len, found))
