"""``unified generate``: the texts of ``UnifiedLM``, in any number of processes, across crashes."""

import math
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import torch

from tests.support.checkpoint_samples import TEXT, checkpoint, data_folder
from tests.support.fairseq_runs import ROOT, environment
from tests.support.prepared_python import interpreter
from unified import UnifiedLM
from unified.checkpoints import load_checkpoint, save
from unified.cli import main
from unified.data.token_files import TokenFileWriter
from unified.files.claims import Claim, claimed_folder
from unified.generation import GenerationConfig
from unified.inference import several_processes
from unified.inference.generate_output import lines
from unified.kernels.cpu.int8 import has_int8_product
from unified.tasks.metrics.outputs import read_generate_output

SEARCH = ["--beam", "3", "--max-length", "8"]


@pytest.fixture(scope="module")
def samples(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("generate")
    vocabulary = data_folder(folder / "pairs", pairs=True)
    checkpoint(folder / "model.pt", vocabulary, str(folder / "pairs"))
    (folder / "input.txt").write_text("".join(f"{line.lower()}\n" for line in TEXT * 7), encoding="utf-8")
    return folder


def generate(samples: Path, output: Path, *options: str) -> int:
    return main(["generate", "--model", str(samples / "model.pt"), "--output", str(output), *SEARCH, *options])


def plain(samples: Path, output: Path, *options: str) -> int:
    return generate(samples, output, "--input", str(samples / "input.txt"), *options)


def test_a_split_is_written_as_fairseq_generate_would(samples, tmp_path):
    output = tmp_path / "out.txt"
    assert generate(samples, output, str(samples / "pairs"), "--nbest", "2") == 0
    lm = UnifiedLM.from_pretrained(samples / "model.pt")
    ids = [lm.encode(text.lower()) for text in TEXT]
    found = lm.hypotheses(ids, GenerationConfig(beam=3, nbest=2, max_length=8))
    expected = []
    for i, (text, hypotheses) in enumerate(zip(TEXT, found, strict=True)):
        expected += [f"S-{i}\t{text.lower()}", f"T-{i}\t{text}"]
        for h in hypotheses:
            written = h.tokens.tolist()
            expected.append(
                f"H-{i}\t{h.score / math.log(2):.6f}\t{' '.join(lm.vocabulary.symbols[t] for t in written)}"
            )
            expected.append(f"D-{i}\t{h.score / math.log(2):.6f}\t{lm.decode(written)}")
            expected.append(f"P-{i}\t{' '.join(f'{float(p) / math.log(2):.4f}' for p in h.log_probs)}")
    assert output.read_text(encoding="utf-8").splitlines() == expected
    hypotheses, references = read_generate_output([output])
    assert references == TEXT and hypotheses == [lm.decode(some[0].tokens) for some in found]
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


@pytest.mark.parametrize("extra", [[], ["--sampling", "--seed", "3"]], ids=["beam", "sampling"])
def test_chunks_batches_and_processes_change_nothing(samples, tmp_path, extra):
    outputs = [tmp_path / f"{i}.txt" for i in range(3)]
    assert plain(samples, outputs[0], *extra) == 0
    assert plain(samples, outputs[1], "--chunk", "4", "--batch-size", "3", *extra) == 0
    assert plain(samples, outputs[2], "--chunk", "5", "--workers", "2", *extra) == 0
    texts = [read_generate_output([output], need_references=False)[0] for output in outputs]
    assert texts[0] == texts[1] == texts[2] and len(texts[0]) == 21


def test_sources_may_be_cut_and_prompts_continued(samples, tmp_path, capsys):
    lm = UnifiedLM.from_pretrained(samples / "model.pt")
    assert plain(samples, tmp_path / "cut", "--max-source", "5") == 0
    longer = 7 * sum(len(lm.encode(text.lower())) > 5 for text in TEXT)
    assert 0 < longer and f"{longer} of these 21 sources were cut to their first 5 tokens" in capsys.readouterr().err
    cut = read_generate_output([tmp_path / "cut"], need_references=False)[0]
    (expected,) = lm.hypotheses([lm.encode(TEXT[0].lower())[:5]], GenerationConfig(beam=3, max_length=8))
    assert cut[0] == lm.decode(expected[0].tokens)
    assert plain(samples, tmp_path / "prompt", "--prompt") == 0
    continued = read_generate_output([tmp_path / "prompt"], need_references=False)[0]
    assert continued[:3] == lm.generate([t.lower() for t in TEXT], prompt=True, beam=3, max_length=8)


@pytest.mark.parametrize("prompt", [True, False])
def test_each_text_is_as_long_as_in_python(samples, tmp_path, capsys, prompt):
    """A prompt, and a source of a model without pairs, leave positions to what is written from them alone."""
    lm = UnifiedLM.from_pretrained(samples / "model.pt")
    positions = lm.model.config.max_positions
    texts = ["the cat", "the " * 60]
    while len(lm.encode(texts[1])) > positions - 9:
        texts[1] = texts[1][:-1]
    (tmp_path / "in.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    options = ["--input", str(tmp_path / "in.txt"), "--model", str(samples / "model.pt"), "--beam", "1"]
    choice = "--prompt" if prompt else "--no-prompt"
    assert main(["generate", "--output", str(tmp_path / "out"), *options, choice]) == 0
    found = read_generate_output([tmp_path / "out"], need_references=False)[0]
    assert found == lm.generate(texts, prompt=prompt, beam=1)
    written = [
        row.split("\t")[2].split() for row in (tmp_path / "out").read_text("utf-8").splitlines() if row[0] == "H"
    ]
    assert len(written[0]) > positions // 4


@pytest.mark.skipif(not has_int8_product(), reason="this torch has no int8 product")
def test_int8_writes_as_the_quantized_model_does(samples, tmp_path):
    lm = UnifiedLM.from_pretrained(samples / "model.pt")
    ids, config = [lm.encode(text.lower()) for text in TEXT], GenerationConfig(beam=3, max_length=8)
    usual = [some[0].score for some in lm.hypotheses(ids, config)]
    found = lm.quantize().hypotheses(ids, config)
    scores = [some[0].score for some in found]
    assert scores != usual and scores == pytest.approx(usual, rel=0.05)
    assert plain(samples, tmp_path / "out", "--int8", "--chunk", "4", "--workers", "2") == 0
    written = [line.split("\t")[1] for line in (tmp_path / "out").read_text("utf-8").splitlines() if line[0] == "H"]
    assert written == [f"{score / math.log(2):.6f}" for score in scores] * 7
    lm.save(tmp_path / "saved")
    again = UnifiedLM.from_pretrained(tmp_path / "saved")
    assert [some[0].score for some in again.hypotheses(ids, config)] == usual


def test_the_parameters_are_read_once(samples, tmp_path, monkeypatch):
    """What the command asks the checkpoint before is read without them."""
    load, whole = torch.load, []

    def loaded(path, **options):
        whole.extend([] if options["mmap"] else [path])
        return load(path, **options)

    monkeypatch.setattr(torch, "load", loaded)
    monkeypatch.setattr(several_processes, "kept_models", {})
    assert plain(samples, tmp_path / "out") == 0 and whole == [samples / "model.pt"]


def test_int8_is_refused_on_a_card_before_anything_is_read(samples, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    assert plain(samples, tmp_path / "out", "--int8", "--device", "cuda") == 2
    assert capsys.readouterr().err.endswith("--int8 computes on a CPU; --device cuda does not go with it\n")


@pytest.fixture(scope="module")
def writer(samples) -> Path:
    """The model, which writes characters alone: the names of other symbols are long texts, in windows and elsewhere."""
    content = load_checkpoint(samples / "model.pt")
    lm = UnifiedLM.from_pretrained(samples / "model.pt")
    content["model"]["core.transformer.embeddings.tokens.scored"][lm.special.ordinary_stop :] = 0
    save(content, samples / "writer.pt")
    return samples / "writer.pt"


@pytest.mark.parametrize("extra", [[], ["--sampling", "--seed", "3"]], ids=["beam", "sampling"])
def test_windows_are_those_of_python_in_any_chunks(samples, writer, tmp_path, capsys, extra):
    lm = UnifiedLM.from_pretrained(writer)
    lines = [line.lower() for line in TEXT]
    lines = [*lines, " ".join(lines), "the cat."]
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    options = ["--windows", "--max-source", "30", "--model", str(writer), *extra]
    for name, more in (("one", []), ("chunks", ["--chunk", "2", "--batch-size", "3"])):
        assert plain(samples, tmp_path / name, "--input", str(tmp_path / "in.txt"), *options, *more) == 0
        long = sum(len(lm.encode(line)) > 30 for line in lines)
        assert 2 < long < 5 and f"{long} of these 5 sources were divided into windows\n" in capsys.readouterr().err
    one, chunks = (read_generate_output([tmp_path / name], need_references=False)[0] for name in ("one", "chunks"))
    settings = {"beam": 3, "max_length": 8, "sampling": bool(extra), "seed": 3 if extra else 0}
    assert one == chunks == lm.generate(lines, windows=True, max_source=30, **settings)
    assert plain(samples, tmp_path / "cut", "--input", str(tmp_path / "in.txt"), *options[1:]) == 0
    cut = read_generate_output([tmp_path / "cut"], need_references=False)[0]
    assert cut[4] == one[4] and cut[3] != one[3]
    # The sources of a prepared folder are divided as the texts that they stand for.
    assert generate(samples, tmp_path / "folder", str(samples / "pairs"), *options) == 0
    assert read_generate_output([tmp_path / "folder"])[0] == one[:3]


def test_windows_of_sources_of_several_parts(samples, writer, tmp_path):
    """A prepared source holds its parts with the separator between them, and the longest one is divided."""
    lm = UnifiedLM.from_pretrained(writer)
    sources = [["a cat", " ".join(TEXT).lower()], [" ".join(TEXT).lower(), "the dog", "a mat"]]
    shutil.copytree(samples / "pairs", tmp_path / "pairs")
    for side in ("source", "target"):
        with TokenFileWriter(tmp_path / "pairs" / f"test.source-target.{side}", "uint16") as tokens:
            for source in sources:
                tokens.add([*lm.encode_source(source), lm.special.separator])
    options = ["--windows", "--max-source", "50", "--model", str(writer)]
    assert generate(samples, tmp_path / "out", str(tmp_path / "pairs"), *options) == 0
    found = read_generate_output([tmp_path / "out"])[0]
    assert found == lm.generate(sources, windows=True, max_source=50, beam=3, max_length=8)
    assert found != lm.generate(sources, max_source=50, beam=3, max_length=8)


def test_line_ends_in_a_text_do_not_break_lines(samples):
    lm = UnifiedLM.from_pretrained(samples / "model.pt")
    assert lines(lm, 4, "a\nb\u2028c", None, [], []) == "S-4\ta b c\n"


def killed_in_the_middle(samples: Path, output: Path) -> Path:
    """A run that is killed as soon as its fifth chunk is there; returns the folder of the chunks."""
    words = [
        "--model", samples / "model.pt", "--input", samples / "input.txt", "--output", output, "--chunk", 1, *SEARCH
    ]  # fmt: skip
    command = [interpreter(), "-m", "tests.support.killed_generate", *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), stderr=subprocess.DEVNULL)
    assert done.returncode == -signal.SIGKILL
    return output.with_name(output.name + ".chunks")


def test_a_killed_run_goes_on_where_it_stopped(samples, tmp_path, capsys):
    whole, output = tmp_path / "whole.txt", tmp_path / "out.txt"
    assert plain(samples, whole, "--chunk", "1") == 0
    parts = killed_in_the_middle(samples, output)
    done = sorted(parts.glob("[0-9]*.txt"))
    assert len(done) == 5 and not output.exists()
    before = done[0].read_text(encoding="utf-8")
    done[0].write_text(before + "kept\n", encoding="utf-8")  # a chunk that is written anew would lose this
    capsys.readouterr()
    assert plain(samples, output, "--chunk", "1", "--workers", "2") == 0
    assert "5 of 21 chunks are there already" in capsys.readouterr().err
    assert output.read_text(encoding="utf-8") == whole.read_text(encoding="utf-8").replace(before, before + "kept\n", 1)
    assert not parts.exists()


def one_line(capsys) -> str:
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and error.startswith("unified generate: error: ")
    return error


def test_parts_of_other_settings_or_files_are_not_mixed(samples, tmp_path, capsys):
    output = tmp_path / "out.txt"
    parts = killed_in_the_middle(samples, output)
    left = {path: path.read_bytes() for path in parts.iterdir()}
    assert {path.name for path in left} == {"claim.json", *(f"{number:06d}.txt" for number in range(5))}
    for options, difference in (
        (["--beam", "2"], "--beam 3, now 2"),
        (["--chunk", "2"], "--chunk 1, now 2"),
        (["--prompt"], "--prompt false, now true"),
        (["--max-source", "9"], "no --max-source, now 9"),
    ):
        capsys.readouterr()
        assert plain(samples, output, *(["--chunk", "1"] if "--chunk" not in options else []), *options) == 2
        assert f"out.txt.chunks: was begun with {difference}" in one_line(capsys)
    (tmp_path / "input.txt").write_text("a\nb\nc\n", encoding="utf-8")
    assert generate(samples, output, "--input", str(tmp_path / "input.txt"), "--chunk", "1") == 2
    assert "was begun with other contents of the sources (input.txt); remove it, or" in one_line(capsys)
    assert {path: path.read_bytes() for path in parts.iterdir()} == left and not output.exists()


def test_a_refused_command_does_not_stand_in_the_way_of_the_corrected_one(samples, tmp_path, capsys):
    """It stops at the third sentence, which is too long."""
    (tmp_path / "input.txt").write_text("a\nb\n" + "a" * 200 + "\n", encoding="utf-8")
    words = ["--input", str(tmp_path / "input.txt"), "--chunk", "1"]
    assert generate(samples, tmp_path / "out.txt", *words, "--max-source", "0") == 2
    assert [path.name for path in tmp_path.iterdir()] == ["input.txt"]
    assert generate(samples, tmp_path / "out.txt", *words, "--max-source", "9") == 0


def test_two_at_once_are_refused(samples, tmp_path, capsys):
    with claimed_folder(tmp_path / "out.txt.chunks", Claim({}), ""):
        assert plain(samples, tmp_path / "out.txt") == 2
        assert "out.txt.chunks: a command is at work on it" in one_line(capsys)
    assert not list(tmp_path.iterdir())


def test_an_existing_output_is_left_alone(samples, tmp_path, capsys):
    output = tmp_path / "out.txt"
    output.write_text("precious\n", encoding="utf-8")
    assert plain(samples, output) == 2
    assert "exists already; --overwrite replaces it, or give another --output" in one_line(capsys)
    assert output.read_text(encoding="utf-8") == "precious\n"
    assert plain(samples, output, "--overwrite") == 0
    assert plain(samples, tmp_path / "new.txt") == 0
    assert output.read_bytes() == (tmp_path / "new.txt").read_bytes()


def test_an_empty_input_gives_an_empty_output(samples, tmp_path):
    (tmp_path / "nothing.txt").write_text("")
    assert generate(samples, tmp_path / "out.txt", "--input", str(tmp_path / "nothing.txt")) == 0
    assert (tmp_path / "out.txt").read_text() == ""


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_source_that_is_too_long_is_named(samples, tmp_path, capsys, processes):
    (tmp_path / "long.txt").write_text("a\nb\n" + "a" * 200 + "\n", encoding="utf-8")
    options = ["--input", str(tmp_path / "long.txt"), "--workers", processes, "--chunk", "1", "--max-source", "0"]
    assert generate(samples, tmp_path / "out.txt", *options) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "sentence 2: 201 tokens" in error and error.startswith("unified generate: error: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "nothing to write from"),
        (["{samples}/pairs", "--gen-subset", "valid"], "pairs: has no split 'valid' for source-target"),
        (["{samples}/pairs", "-s", "en"], "pairs: holds no pairs for -s en; its language pairs are"),
        (["{samples}/nowhere"], "nowhere: no such data folder"),
        (["--input", "{samples}/nowhere.txt"], "nowhere.txt: no such file"),
        (["--input", "{samples}/model.pt"], "model.pt: not raw text but a zip archive"),
        (["--input", "{samples}/input.txt", "--max-source", "-1"], "--max-source must be 0 or a number of tokens"),
        (
            ["--input", "{samples}/input.txt", "--prompt", "--windows"],
            "--windows divides sources, but the model continues",
        ),
        (
            ["--input", "{samples}/input.txt", "--top-k", "3"],
            "--top-k 3 says what is drawn from; it needs --sampling",
        ),
        (
            ["--input", "{samples}/input.txt", "--no-repeat-ngram-ignore", "xyz"],
            "'xyz' is not a symbol of the dictionary",
        ),
    ],
)
def test_commands_that_cannot_work_are_refused_in_one_line(samples, tmp_path, capsys, options, message):
    assert generate(samples, tmp_path / "out.txt", *(option.format(samples=samples) for option in options)) == 2
    assert message in one_line(capsys)
    assert not list(tmp_path.iterdir())


def test_either_side_can_be_the_source(samples, tmp_path):
    sides = ["-s", "target", "-t", "source"]
    assert generate(samples, tmp_path / "out.txt", str(samples / "pairs"), *sides) == 0
    assert read_generate_output([tmp_path / "out.txt"])[1] == [text.lower() for text in TEXT]
