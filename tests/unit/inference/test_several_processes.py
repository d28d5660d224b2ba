"""Chunks of generated sentences: what each holds, which runs can share them, and what a crash or a refusal leaves."""

import hashlib
import os
import time
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from tests.support.token_files import SPECIAL
from unified.errors import Interrupted, UnifiedError
from unified.generation import GenerationConfig
from unified.generation.lengths import PairLengths
from unified.inference import several_processes
from unified.inference.language_model import UnifiedLM
from unified.inference.length_rules import LengthRules
from unified.inference.sentences import FileSentences
from unified.inference.several_processes import ChunkCounts, ChunkWriter, spread
from unified.inference.source_windows import ShortSources
from unified.runtime.parallel import Workers

TEXTS = ["5", "6 7", "8 9 10", "11 12 13 14", "15 ä"]
#: Ids of the texts, as the model below encodes them.
IDS = [[5], [6, 7], [8, 9, 10], [11, 12, 13, 14], [15, 99]]


class Model:
    """Stands for a language model: generates the number of each sentence as its text, and keeps the calls it gets."""

    special = SPECIAL
    unknown_text = "<unk>"
    model = SimpleNamespace(config=SimpleNamespace(position_limit=15, max_positions=15))
    length_rules = LengthRules(PairLengths(), 15)  # 12 beside special symbols

    def __init__(self):
        self.asked = []

    def encode(self, text):
        return [int(word) if word.isdigit() else 99 for word in text.split()]

    def decode(self, ids, unknown="<unk>"):
        return " ".join("ä" if token == 99 else str(token) for token in ids)

    def pieces(self, ids):
        return [f"p{token}" for token in ids]

    def scheme(self, prompt):
        return "left_to_right" if prompt else "cloze"

    def hypotheses(self, sources, config, **more):
        self.asked.append(("hypotheses", sources, config, more))
        return [
            [SimpleNamespace(score=0.0, tokens=torch.tensor([i]), log_probs=torch.zeros(2))] for i in more["indices"]
        ]

    def shortened(self, sources, config, **more):
        self.asked.append(("shortened", sources, config, more))
        limit, ids = more["max_source"], [self.encode(" ".join(parts)) for parts in sources]
        cut = [2 * (len(own) % 2) for own in ids]  # sources of odd length are cut, others are divided into windows
        return ShortSources([own[-limit:] for own in ids], [0 if one else 3 for one in cut], cut)

    def quantize(self):
        return "quantized"


def line(i, source, written):
    """What is written of a sentence, in the format of fairseq-generate."""
    return f"S-{i}\t{source}\nH-{i}\t0.000000\tp{i}\nD-{i}\t0.000000\t{written}\nP-{i}\t0.0000 0.0000\n"


PLAIN = [line(i, text, i) for i, text in enumerate(TEXTS)]


@pytest.fixture
def job(tmp_path):
    (tmp_path / "sources").write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    (tmp_path / "model.pt").write_text("weights")
    folder = tmp_path / "out.chunks"
    folder.mkdir()
    return ChunkWriter(
        checkpoint=tmp_path / "model.pt",
        data=tmp_path,
        sentences=FileSentences(tmp_path / "sources"),
        config=GenerationConfig(max_length=8, beam=3),
        default_lengths=False,
        prompt=False,
        max_source=0,
        windows=False,
        chunk=2,
        batch_size=7,
        threads=torch.get_num_threads(),
        device="cpu",
        int8=False,
        folder=folder,
    )


@pytest.fixture
def model(monkeypatch):
    """The model that every job loads, whatever its checkpoint is."""
    made = Model()
    monkeypatch.setattr(several_processes, "kept_models", {})
    monkeypatch.setattr(UnifiedLM, "from_pretrained", lambda *given: made)
    return made


def test_chunks_divide_the_sentences_and_have_numbered_files(job):
    assert job.chunks == 3 and [job.indices(i) for i in range(3)] == [range(2), range(2, 4), range(4, 5)]
    assert replace(job, chunk=5).chunks == 1 and replace(job, chunk=4).chunks == 2
    assert job.path(12) == job.folder / "000012.txt"


@pytest.mark.parametrize("prompt", [False, True])
def test_a_chunk_holds_its_sentences_and_those_are_numbered_in_the_whole(job, model, prompt):
    job = replace(job, prompt=prompt)
    assert job.write(1) == ChunkCounts(2)
    more = {"prompt": prompt, "batch_size": 7, "indices": [2, 3], "max_source": 0}
    assert model.asked == [("hypotheses", IDS[2:4], job.config, more)]
    expected = [line(i, TEXTS[i], f"{TEXTS[i]} {i}" if prompt else i) for i in (2, 3)]
    assert job.path(1).read_bytes() == "".join(expected).encode()
    job.write(2)
    assert job.path(2).read_bytes() == line(4, "15 ä", "15 ä 4" if prompt else 4).encode("utf-8")


def test_longer_sources_are_cut_to_their_first_tokens(job, model):
    job = replace(job, max_source=2, chunk=5)
    assert job.write(0) == ChunkCounts(5, 2, 2)
    assert model.asked[0][1] == [[5], [6, 7], [8, 9], [11, 12], [15, 99]]


@pytest.mark.parametrize(
    ("max_source", "divided", "counts"),
    [
        (0, [3], ChunkCounts(5, divided=1)),
        (None, [3], ChunkCounts(5, divided=1)),
        (3, [3], ChunkCounts(5, divided=1)),
        (2, [2, 3], ChunkCounts(5, 1, 2, 1)),
    ],
)
def test_longer_sources_are_divided_into_windows_where_asked(job, model, max_source, divided, counts):
    """Without a limit they are as long as the positions leave, 12 less the 9 tokens to write."""
    config = GenerationConfig(max_length=9, beam=3)
    job = replace(job, config=config, max_source=max_source, windows=True, chunk=5)
    assert job.write(0) == counts
    limit = max_source or 3
    more = {"prompt": False, "batch_size": 7, "indices": divided, "max_source": limit}
    windows, hypotheses = model.asked
    assert windows == ("shortened", [[TEXTS[i]] for i in divided], job.config, more)
    assert hypotheses[1] == [own[-limit:] if i in divided else own for i, own in enumerate(IDS)]


@pytest.mark.parametrize(
    ("prompt", "lengths", "max_source", "expected"),
    [
        # Twelve positions beside special symbols: a prompt leaves the others to its continuation.
        (True, PairLengths(5, 2, 2), None, [([0], 11, 99), ([1, 4], 10, 99), ([2], 9, 99), ([3], 8, 99)]),
        (True, PairLengths(), 2, [([0], 11, 2), ([1, 2, 3, 4], 10, 2)]),
        # A model that has learned no pairs writes what a source leaves, too; others write as much as targets had.
        (False, PairLengths(), None, [([0], 11, 99), ([1, 4], 10, 99), ([2], 9, 99), ([3], 8, 99)]),
        (False, PairLengths(3, 4, 4), None, [([0, 1, 2, 3, 4], 4, 3)]),
        (False, PairLengths(), 10, [([0, 1, 2, 3, 4], 2, 10)]),
    ],
)
def test_each_text_has_the_length_that_generate_gives_it(job, model, prompt, lengths, max_source, expected):
    """Expected for each group of sentences: their numbers, the most tokens to write, and how many are read."""
    model.length_rules = LengthRules(lengths, 15)
    config = GenerationConfig(max_length=12, beam=3)
    job = replace(job, prompt=prompt, max_source=max_source, config=config, default_lengths=True, chunk=5)
    assert job.write(0).sentences == 5
    asked = [(more["indices"], config.max_length, sources) for _, sources, config, more in model.asked]
    assert sorted(asked) == sorted((own, length, [IDS[i][:read] for i in own]) for own, length, read in expected)
    texts = [f"{' '.join(TEXTS[i].split()[: max_source or 9])} {i}" if prompt else i for i in range(5)]
    assert job.path(0).read_text(encoding="utf-8") == "".join(line(i, TEXTS[i], texts[i]) for i in range(5))
    assert job.claim.settings["--max-length"] is None


def test_a_model_is_loaded_once_and_again_where_another_is_asked_for(job, monkeypatch):
    loaded, made = [], []

    class Quick(Model):
        def quantize(self):
            made.append("int8")
            return self

    monkeypatch.setattr(several_processes, "kept_models", kept := {})
    monkeypatch.setattr(UnifiedLM, "from_pretrained", lambda *given: loaded.append(given) or Quick())
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: made.append(threads))
    job = replace(job, threads=3)
    for number in range(3):
        job.write(number)
    assert loaded == [(job.checkpoint, job.data, "cpu")] and made == [3]
    changes = [{"int8": True}, {"device": "meta"}, {"checkpoint": job.data}, {"data": job.folder}]
    for change in changes:
        replace(job, **change).write(0)
        assert len(kept) == 1  # the model before it goes
    assert len(loaded) == 5 and made == [3, 3, "int8", 3, 3, 3]
    monkeypatch.setattr(os, "getpid", lambda: -1)  # a fork has its parent's memory
    replace(job, **changes[-1]).write(0)
    assert len(loaded) == 6


def test_a_claim_has_all_that_decides_the_texts(job):
    """The size of a batch and the number of threads do not."""
    (job.data / "dict.txt").write_text("words")
    (job.data / "dict.target.txt").write_text("more words")
    (job.data / "vocab.txt").write_text("pieces")
    (job.data / "notes.txt").write_text("of no use")
    config = replace(job.config, no_repeat_ngram_size=3, no_repeat_ngram_ignore=frozenset({9, 4}), seed=6)
    claim = replace(job, config=config, prompt=True, windows=True, int8=True, max_source=2).claim
    assert claim.settings == {
        "--beam": 3, "--max-length": 8, "--min-length": 1, "--nbest": 1, "--length-penalty": "fairseq",
        "--lenpen": 1.0, "--no-repeat-ngram-size": 3, "--no-repeat-ngram-ignore": [4, 9], "--sampling": False,
        "--top-k": 0, "--top-p": 1.0, "--temperature": 1.0, "--seed": 6, "--prompt": True, "--max-source": 2,
        "--windows": True, "--chunk": 2, "--int8": True,
    }  # fmt: skip
    contents = {"model.pt": b"weights", "dict.txt": b"words", "dict.target.txt": b"more words", "vocab.txt": b"pieces"}
    assert claim.inputs == {
        "--model": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
        "the sources": {"sources": hashlib.sha256((job.data / "sources").read_bytes()).hexdigest()},
    }
    assert claim.content == replace(claim).content  # as JSON


def test_all_chunks_are_joined_and_their_folder_goes(job, model, tmp_path, capsys):
    job.folder.rmdir()  # as before a first run
    spread(job, tmp_path / "out", 1)
    assert (tmp_path / "out").read_text(encoding="utf-8") == "".join(PLAIN)
    assert not job.folder.exists()
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "generate: 2 of 5 sentences" and said[-1].startswith("generate: 5 of 5 sentences")
    assert len(said) == 2 and len(model.asked) == 3


def test_an_output_is_replaced_only_where_asked(job, model, tmp_path):
    output = tmp_path / "out"
    output.write_text("before")
    with pytest.raises(UnifiedError) as raised:
        spread(job, output, 1)
    assert str(raised.value) == f"{output}: exists already; --overwrite replaces it, or give another --output"
    assert output.read_text() == "before" and not model.asked
    spread(job, output, 1, overwrite=True)
    assert output.read_text(encoding="utf-8") == "".join(PLAIN)


def load(monkeypatch, model):
    """Lets every job load this model."""
    monkeypatch.setattr(several_processes, "kept_models", {})
    monkeypatch.setattr(UnifiedLM, "from_pretrained", lambda *given: model)


def stopped_by(error, at):
    """A model that is stopped by an error when it writes the sentence with the number ``at``."""

    class Stopped(Model):
        def hypotheses(self, sources, config, **more):
            if at in more["indices"]:
                raise error
            return super().hypotheses(sources, config, **more)

    return Stopped()


def interrupted(job, output, monkeypatch, at):
    """Runs a job that is killed when it writes the sentence with the number ``at``."""
    load(monkeypatch, stopped_by(Interrupted("killed"), at))
    with pytest.raises(Interrupted, match="^killed$"):
        spread(job, output, 1)
    assert not output.exists()


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_after_an_interruption_the_missing_chunks_alone_are_written(job, model, tmp_path, monkeypatch, capsys):
    interrupted(job, tmp_path / "out", monkeypatch, at=4)
    assert names(job.folder) == {"000000.txt", "000001.txt", "claim.json"}
    with pytest.raises(UnifiedError) as raised:
        spread(replace(job, int8=True), tmp_path / "out", 1)
    assert str(raised.value).endswith("; remove it, or give another --output")
    capsys.readouterr()
    load(monkeypatch, model)
    spread(job, tmp_path / "out", 1)
    assert (tmp_path / "out").read_text(encoding="utf-8") == "".join(PLAIN)
    assert [asked[3]["indices"] for asked in model.asked] == [[4]]
    assert capsys.readouterr().err.splitlines() == [
        f"generate: {job.folder}: 2 of 3 chunks are there already", "generate: 5 of 5 sentences"
    ]  # fmt: skip


def test_an_error_leaves_what_is_finished(job, model, tmp_path, monkeypatch):
    """A checkpoint that cannot be read for a moment is an error, too; hours of work stay."""
    load(monkeypatch, stopped_by(UnifiedError("damaged"), 0))
    with pytest.raises(UnifiedError, match="^damaged$"):
        spread(job, tmp_path / "out", 1)
    assert names(job.folder) <= {"claim.json"}  # nothing stands in the way of another command
    interrupted(job, tmp_path / "out", monkeypatch, at=2)
    load(monkeypatch, stopped_by(UnifiedError("damaged"), 4))
    with pytest.raises(UnifiedError, match="^damaged$"):
        spread(job, tmp_path / "out", 1)
    assert not (tmp_path / "out").exists() and names(job.folder) == {"000000.txt", "000001.txt", "claim.json"}
    load(monkeypatch, model)
    spread(job, tmp_path / "out", 1)
    assert [asked[3]["indices"] for asked in model.asked] == [[4]]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"max_source": 0}, "sentence 4: 6 tokens"),
        ({"max_source": 5}, "sentence 4: 5 tokens"),
        ({"max_source": 5, "windows": True}, "sentence 4: 5 tokens"),
        ({"prompt": True, "max_source": None}, "sentence 4: 6 tokens"),
        ({"max_source": 4}, None),
        ({"max_source": None}, None),
        ({"max_source": 0, "windows": True}, None),
    ],
)
def test_texts_that_are_too_long_are_refused_before_any_is_written(job, model, tmp_path, changes, named):
    """Eight tokens may be written, which leaves four of twelve positions to a text; the last one has six."""
    (job.data / "sources").write_text("5\n6\n7\n8\n5 6 7 8 9 10\n", encoding="utf-8")
    job = replace(job, sentences=FileSentences(job.data / "sources"), chunk=1, **changes)
    assert job.always_has_room == (changes == {"max_source": None})
    if named is None:
        spread(job, tmp_path / "out", 1)
        return
    with pytest.raises(UnifiedError) as raised:
        spread(job, tmp_path / "out", 1)
    assert str(raised.value) == (
        f"{named}, but the model's 15 positions leave room for 4 beside the 8 that may be written; shorten the text or "
        "what is written"
    )
    assert not model.asked and names(job.folder) <= {"claim.json"} and not (tmp_path / "out").exists()


def test_files_of_killed_processes_go_at_the_end(job, model, tmp_path, monkeypatch):
    interrupted(job, tmp_path / "out", monkeypatch, at=2)
    (job.folder / ".000001.txt.77.partial").write_text("half")
    load(monkeypatch, model)
    spread(job, tmp_path / "out", 1)
    assert not job.folder.exists()


def test_what_was_cut_or_divided_is_said_of_these_sources(job, model, tmp_path, capsys):
    spread(replace(job, max_source=1), tmp_path / "cut", 1)
    *_, said = capsys.readouterr().err.splitlines()
    assert said == "generate: 4 of these 5 sources were cut to their first 1 token"
    spread(replace(job, max_source=1, windows=True, folder=tmp_path / "w.chunks"), tmp_path / "windows", 1)
    *_, divided, cut = capsys.readouterr().err.splitlines()
    assert divided == "generate: 3 of these 5 sources were divided into windows"
    assert cut == "generate: 1 of these 5 sources were cut to their first 1 token"
    # Without --max-source the positions decide: 12 less 10 tokens to write leave 2.
    longer = replace(job, config=GenerationConfig(max_length=10), windows=True, folder=tmp_path / "p.chunks")
    spread(longer, tmp_path / "positions", 1)
    assert capsys.readouterr().err.splitlines()[-1] == (
        "generate: 1 of these 5 sources were cut to their first 2 tokens"
    )


def test_sources_without_pairs_are_cut_where_they_leave_less_than_a_quarter_of_the_positions(
    job, monkeypatch, tmp_path, capsys
):
    short = Model()
    short.length_rules = LengthRules(PairLengths(), 8)
    short.model = SimpleNamespace(config=SimpleNamespace(position_limit=8, max_positions=8))
    load(monkeypatch, short)
    (job.data / "sources").write_text("5 6 7 8 9\n5 6\n5 6 7 8\n", encoding="utf-8")
    job = replace(job, sentences=FileSentences(job.data / "sources"), max_source=None, default_lengths=True)
    spread(job, tmp_path / "out", 1)
    asked = [(more["indices"], config.max_length, sources) for _, sources, config, more in short.asked]
    assert asked == [([0], 2, [[5, 6, 7]]), ([1], 3, [[5, 6]]), ([2], 2, [[5, 6, 7]])]
    assert capsys.readouterr().err.splitlines()[-1] == "generate: 2 of these 3 sources were cut to their first 3 tokens"


def test_counts_of_chunks_are_added():
    total = ChunkCounts(3, 0, 0, 1)
    total.add(ChunkCounts(2, 1, 9, 2))
    total.add(ChunkCounts(1))
    assert total == ChunkCounts(6, 1, 9, 3)


@pytest.mark.parametrize(("processes", "there", "taken"), [(8, 0, 3), (2, 0, 2), (8, 2, 1), (8, 3, 1)])
def test_no_process_is_started_without_a_chunk(job, model, tmp_path, monkeypatch, processes, there, taken):
    asked = []

    def first_chunks(workers, function, items):
        yield from (function(workers.held, item) for item in items[:there])
        raise Interrupted("killed")

    @contextmanager
    def noted(held, number):
        asked.append(number)
        yield Workers(held)

    job = replace(job, max_source=None)  # no text can be too long then, and none is looked at beforehand
    with monkeypatch.context() as patched, pytest.raises(Interrupted):
        patched.setattr(Workers, "ordered_map", first_chunks)
        spread(job, tmp_path / "out", 1)
    assert names(job.folder) - {"claim.json"} == {job.path(number).name for number in range(there)}
    monkeypatch.setattr(several_processes, "kept_workers", noted)
    spread(job, tmp_path / "out", processes)
    assert asked == [taken] and (tmp_path / "out").read_text(encoding="utf-8") == "".join(PLAIN)


def test_each_process_loads_the_model_once(job, model, tmp_path, monkeypatch):
    """Also where texts are looked at before the first of them is written."""
    load, noted = UnifiedLM.from_pretrained, tmp_path / "loaded"

    def loaded(*given):
        with open(noted, "a") as stream:
            stream.write(f"{os.getpid()}\n")
        while noted.read_text().count("\n") < 2:  # so that both processes load it
            time.sleep(0.01)
        return load(*given)

    monkeypatch.setattr(UnifiedLM, "from_pretrained", loaded)
    assert not job.always_has_room
    spread(replace(job, chunk=1, threads=1), tmp_path / "out", 2)
    processes = noted.read_text().split()
    assert len(processes) == len(set(processes)) == 2 and str(os.getpid()) not in processes
    assert (tmp_path / "out").read_text(encoding="utf-8") == "".join(PLAIN)
