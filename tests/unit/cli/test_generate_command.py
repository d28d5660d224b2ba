"""`unified generate`: the jobs that its processes get, and the lengths that a checkpoint keeps from its training."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.support.commands import exit_status
from tests.support.task_folders import language_model
from unified.checkpoints import load_checkpoint
from unified.checkpoints.files import save
from unified.cli import main
from unified.data.token_files import TokenFileWriter
from unified.data.vocabulary import Vocabulary
from unified.generation import GenerationConfig
from unified.inference.sentences import FileSentences
from unified.inference.several_processes import ChunkWriter


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    """A folder with models of 64 positions, some with the lengths that pairs had in training, and prepared data."""
    folder = tmp_path_factory.mktemp("generate")
    for name, writes, lengths in (
        ("cut", "cloze", {"max_source": 20, "max_target": 10, "longest_target": 9}),
        ("whole", "next", {"max_source": 0, "max_target": 0, "longest_target": 9}),
        ("plain", "cloze", None),
        ("silent", "nothing", None),
        ("continues", "left_to_right", {"max_source": 20, "max_target": 10, "longest_target": 9}),
    ):
        path = language_model(folder / name, writes=writes, max_positions=64, token_types=6) / "checkpoint_last.pt"
        if lengths is not None:
            save(load_checkpoint(path) | {"task_state": {"pair_lengths": lengths}}, path)
    (folder / "data").mkdir()
    for name in ("dict.source.txt", "dict.target.txt"):
        (folder / "data" / name).write_bytes((folder / "plain" / "dict.txt").read_bytes())
    for split, pair, count in (("test", "source-target", 3), ("valid", "source-target", 2), ("valid", "de-en", 1)):
        for side in pair.split("-"):
            with TokenFileWriter(folder / "data" / f"{split}.{pair}.{side}", "uint16") as writer:
                for _ in range(count):
                    writer.add([5, 2])
    (folder / "input.txt").write_text("w1\nw2\n", encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def threads():
    """Restores the number of threads, which the command sets for its process."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def asked(models, monkeypatch):
    """Runs a command whose processes are never started; returns the arguments that they would get."""
    given: list[tuple] = []
    monkeypatch.chdir(models)
    monkeypatch.setattr("unified.inference.several_processes.spread", lambda *told: given.append(told))

    def run(*words: str) -> tuple:
        assert exit_status("generate", "--output", "out/a.txt", *words) == 0
        return given.pop()

    return run


def files(writer: ChunkWriter) -> list[str]:
    return [path.name for path in writer.sentences.files]


def test_defaults_reach_the_processes(asked):
    writer, output, workers, overwrite = asked("--model", "cut", "--input", "input.txt")
    assert (output, workers, overwrite) == (Path("out/a.txt"), 1, False)
    assert isinstance(writer.sentences, FileSentences) and writer.sentences.lines == ["w1", "w2"]
    assert writer == ChunkWriter(
        checkpoint=Path("cut/checkpoint_last.pt"), data=Path("cut"), sentences=writer.sentences,
        config=GenerationConfig(max_length=10), default_lengths=True, prompt=False, max_source=None, windows=False,
        chunk=128, batch_size=32, threads=1, device="cpu", int8=False, folder=Path("out/a.txt.chunks"),
    )  # fmt: skip


def test_a_model_and_an_output_are_needed(capsys):
    with pytest.raises(SystemExit, match="^2$"):
        main(["generate", "--input", "input.txt"])
    said = "unified generate: error: the following arguments are required: --model, --output; see"
    assert capsys.readouterr().err.splitlines()[-1].startswith(said)


def test_every_option_reaches_the_processes(asked):
    line = (
        "data --model cut --gen-subset valid -sen -tde --workers 2 --threads 2 --int8 --batch-size 4 "
        "--chunk 5 --max-source 6 --windows --no-prompt --overwrite --beam 7 --max-length 8 --min-length 2 --nbest 3 "
        "--length-penalty unilm --lenpen 0.5 --no-repeat-ngram-size 3 --no-repeat-ngram-ignore w1 w2 --sampling "
        "--top-k 5 --top-p 0.5 --temperature 2 --seed 9"
    )
    writer, output, workers, overwrite = asked(*line.split())
    assert (output, workers, overwrite) == (Path("out/a.txt"), 2, True) and torch.get_num_threads() == 2
    known = Vocabulary.load("cut/dict.txt")
    config = GenerationConfig(
        beam=7, max_length=8, min_length=2, nbest=3, length_penalty="unilm", lenpen=0.5, no_repeat_ngram_size=3,
        no_repeat_ngram_ignore=frozenset(known.index(word) for word in ("w1", "w2")), sampling=True, top_k=5,
        top_p=0.5, temperature=2.0, seed=9,
    )  # fmt: skip
    assert files(writer) == [f"valid.de-en.{end}" for end in ("en.idx", "en.bin", "de.idx", "de.bin")]
    assert writer == ChunkWriter(
        checkpoint=Path("cut/checkpoint_last.pt"), data=Path("data"), sentences=writer.sentences, config=config,
        default_lengths=False, prompt=False, max_source=6, windows=True, chunk=5, batch_size=4, threads=2,
        device="cpu", int8=True, folder=Path("out/a.txt.chunks"),
    )  # fmt: skip


def test_a_split_of_a_folder_is_read_unless_there_is_a_file(asked):
    assert files(asked("data", "--model", "cut", "-s", "source")[0])[0] == "test.source-target.source.idx"
    only_source = asked("data", "--model", "cut", "--gen-subset", "valid", "-s", "target")[0]
    assert files(only_source)[0] == "valid.source-target.target.idx"
    only_target = asked("data", "--model", "cut", "--gen-subset", "valid", "-t", "en")[0]
    assert files(only_target)[0] == "valid.de-en.de.idx"
    both = asked("data", "--model", "cut", "--input", "input.txt")[0]
    assert (files(both), both.data) == (["input.txt"], Path("data"))


@pytest.mark.parametrize(
    ("line", "length"),
    [
        # The lengths of training, where they fit into 64 positions; three of these are for special symbols.
        ("cut", 10),
        ("whole", 9),
        # A model without pairs, and prompts: what a text of one token, or an empty prompt, leaves of the positions.
        ("plain", 64 - 1 - 3),
        ("silent", 64 - 1 - 3),
        ("plain --min-length 20", 60),
        ("cut --min-length 5", 10),
        ("cut --min-length 11", 11),
        ("cut --max-source 57", 64 - 57 - 3),
        ("continues", 64 - 3),
        ("continues --max-source 5", 64 - 3),
        ("cut --prompt", 64 - 3),
        ("continues --no-prompt", 10),
    ],
)
def test_each_text_has_its_default_length_and_none_a_longer_one(asked, line, length):
    writer = asked("--input", "input.txt", "--model", *line.split())[0]
    assert writer.default_lengths and writer.config.max_length == length


@pytest.mark.parametrize("line", ["cut", "plain", "continues", "cut --min-length 1 --max-source 5"])
@pytest.mark.parametrize("length", [1, 30, 60])
def test_a_given_length_is_that_of_all_texts(asked, line, length):
    writer = asked("--input", "input.txt", "--model", *line.split(), "--max-length", str(length))[0]
    assert not writer.default_lengths and writer.config.max_length == length


@pytest.mark.parametrize(
    ("line", "prompt", "source"),
    [
        ("cut", False, None), ("cut --max-source 0", False, 0), ("cut --max-source 30", False, 30),
        ("cut --prompt", True, None), ("cut --no-prompt --windows", False, None), ("whole", False, None),
        ("silent", False, None), ("continues", True, None), ("continues --prompt --max-source 5", True, 5),
        ("continues --no-prompt --windows", False, None),
    ],
)  # fmt: skip
def test_processes_are_told_whether_sentences_are_prompts_and_what_is_read(asked, line, prompt, source):
    writer = asked("--input", "input.txt", "--model", *line.split())[0]
    assert (writer.prompt, writer.max_source) == (prompt, source)


def test_options_take_their_smallest_values(asked):
    given = "--beam 1 --max-length 1 --min-length 0 --chunk 1 --batch-size 1 --workers 1 --threads 1"
    writer = asked("--input", "input.txt", "--model", "cut", *given.split())[0]
    assert (writer.config.beam, writer.config.max_length, writer.config.min_length) == (1, 1, 0)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--model cut", "nothing to write from: give a prepared folder DATA, or a text file with --input"),
        ("data --input input.txt --model cut --gen-subset test",
         "--gen-subset chooses pairs of DATA; --input is read instead of them"),
        ("--input input.txt --model cut -s source",
         "--source-lang chooses pairs of DATA; --input is read instead of them"),
        ("--input input.txt --model cut --target-lang de",
         "--target-lang chooses pairs of DATA; --input is read instead of them"),
        ("data --model cut --max-source -1", "--max-source must be 0 or a number of tokens, got -1"),
        ("data --model continues --windows",
         "--windows divides sources, but the model continues prompts, which are read whole"),
        ("data --model cut --prompt --windows",
         "--windows divides sources, but the model continues prompts, which are read whole"),
        ("data --model cut --max-length 61",
         "the model's 64 positions leave none for a source beside a target of 61 tokens; a target must be shorter"),
        ("data --model cut --windows --max-source 0 --max-length 61",
         "the model's 64 positions leave none for a source beside a target of 61 tokens; a target must be shorter"),
        ("data --model plain --min-length 61",
         "the model's 64 positions leave none for a source beside a target of 61 tokens; a target must be shorter"),
        ("data --model cut --no-repeat-ngram-ignore beam",
         "--no-repeat-ngram-ignore: 'beam' is not a symbol of the dictionary"),
        ("data --model cut --no-repeat-ngram-ignore w1",
         "--no-repeat-ngram-ignore names what --no-repeat-ngram-size never blocks; it needs a size of at least 1"),
        ("data --model cut --min-length 11 --max-length 10", "--min-length 11 exceeds --max-length 10"),
        ("data --model cut --nbest 6", "--nbest 6 exceeds --beam 5; there are no more hypotheses than that"),
        ("data --model cut --top-k 3",
         "--top-k 3 says what is drawn from; it needs --sampling"),
        ("data --model cut --temperature 0",
         "--temperature must be above 0, got 0.0; for the most probable use --beam=1"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_before_any_process_starts(models, monkeypatch, capsys, line, says):
    monkeypatch.chdir(models)
    assert main(["generate", "--output", "out.txt", *line.split()]) == 2
    assert capsys.readouterr().err == f"unified generate: error: {says}\n"


def test_empty_lines_are_prompts_but_no_sources(asked, models, tmp_path, capsys):
    (tmp_path / "lines.txt").write_text("w1\n\nw2\n \t\n", encoding="utf-8")
    line = ["--input", str(tmp_path / "lines.txt"), "--model"]
    for more in (["plain"], ["continues", "--no-prompt"], ["plain", "--windows"]):
        assert main(["generate", "--output", str(tmp_path / "out.txt"), *line, *more]) == 2
        assert capsys.readouterr().err == (
            f"unified generate: error: {tmp_path}/lines.txt, 2 lines (2, 4): empty, there is nothing to write from; "
            "leave such lines out\n"
        )
    for more in (["continues"], ["plain", "--prompt"]):
        assert asked(*line, *more)[0].sentences.lines == ["w1", "", "w2", " \t"]


def test_int8_is_for_a_cpu(models, monkeypatch, capsys):
    monkeypatch.chdir(models)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    assert main(["generate", "data", "--output", "out.txt", "--model", "cut", "--int8", "--device", "cuda"]) == 2
    assert capsys.readouterr().err == (
        "unified generate: error: --int8 computes on a CPU; --device cuda does not go with it\n"
    )
    monkeypatch.setattr("unified.inference.several_processes.spread", lambda writer, *_: print(writer.device))
    assert main(["generate", "--input", "input.txt", "--output", "out.txt", "--model", "cut", "--device", "cuda"]) == 0
    assert capsys.readouterr().out == "cuda\n"
