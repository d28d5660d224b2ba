"""The benchmarks' programs at debug size: what they count is what they say, and every set's commands are understood."""

from __future__ import annotations

import argparse
import json
import lzma
import subprocess
import sys
from concurrent.futures import Future
from contextlib import ExitStack, nullcontext

import numpy as np
import pytest
import torch

from tests.benchmarks.conftest import BENCHMARKS
from tests.support.prepared_python import interpreter
from unified.data.token_files import TokenFile
from unified.data.vocabulary import Vocabulary
from unified.planning.documents import DocumentTexts

SMALLEST = ("--rounds", "1", "--threads", "1")
#: What a program prints of a measurement, as far as a set reads it.
LINE = {"benchmark": "b", "unit": "ratio", "ratio": 2, "spread": [1, 3], "bar": None, "holds": None}


@pytest.fixture
def lines(monkeypatch, capsys):
    """Runs a program's ``main`` with options and gives its lines by name, points of curves by name and index."""

    def call(program, *options) -> dict:
        monkeypatch.setattr(sys, "argv", ["benchmark", *map(str, options)])
        program.main()
        found = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
        return {(one["benchmark"], one["at"]["value"]) if "at" in one else one["benchmark"]: one for one in found}

    return call


def test_every_command_of_the_sets_is_understood(benchmark, monkeypatch):
    run, card = benchmark("run"), benchmark("card")
    parse = argparse.ArgumentParser.parse_args

    def understood(parser):
        parse(parser)
        raise StopIteration

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", understood)
    for program, *options in [*run.CPU, *run.FULL, *card.commands(card.FULL), *card.commands(card.TINY)]:
        monkeypatch.setattr(sys, "argv", [program, *options])
        with pytest.raises(StopIteration):
            benchmark(program.removesuffix(".py")).main()


def test_a_program_that_takes_too_long_is_ended(benchmark, tmp_path):
    run = benchmark("run")
    (tmp_path / "slow.py").write_text("import time; time.sleep(60)")
    assert run.run([str(tmp_path / "slow.py")], tmp_path / "lines", limit=0.2) == (0, -9)


@pytest.fixture
def three_programs(tmp_path):
    """Commands of three programs; each prints a line with a bar that is missed, and the second one fails then."""
    line = json.dumps(LINE | {"bar": 3, "holds": False})
    for name, more in (("first", ""), ("broken", "raise SystemExit(3)"), ("last", "")):
        (tmp_path / f"{name}.py").write_text(f"print({line!r})\n{more}\n")
    return [[str(tmp_path / f"{name}.py")] for name in ("first", "broken", "last")]


def test_the_others_go_on_behind_a_program_that_fails(benchmark, three_programs, tmp_path, capsys):
    run, file = benchmark("run"), tmp_path / "lines"
    missed, failed = run.run_all(three_programs, None, file)
    assert (missed, failed) == (3, three_programs[1]) and len(file.read_text().splitlines()) == 3
    assert "broken.py: ended with 3" in capsys.readouterr().err
    assert run.ended(missed, ["broken.py"]) == "3 bars missed, 1 program failed (broken.py)"
    assert run.run_all(three_programs, [three_programs[2][0].removesuffix(".py")], file) == (1, [])


@pytest.mark.parametrize("set_of_a", ["run", "card"])
def test_a_set_of_which_a_program_failed_ends_with_status_1(
    benchmark, three_programs, set_of_a, tmp_path, monkeypatch, lines
):
    run, program = benchmark("run"), benchmark(set_of_a)
    monkeypatch.setitem(run.SETS, "cpu", three_programs)
    if set_of_a == "card":
        monkeypatch.setattr(program, "commands", lambda scale, aim: three_programs)
        monkeypatch.setattr(program, "correct", lambda device, minutes: True)
        options = ("--device", "cpu", "--tiny", "--output", tmp_path / "lines")
    else:
        monkeypatch.setattr(program, "results_file", lambda: tmp_path / "lines")
        options = ()
    with pytest.raises(SystemExit) as ended:
        lines(program, *options)
    assert ended.value.code == 1 and len((tmp_path / "lines").read_text().splitlines()) == 3
    with pytest.raises(SystemExit) as ended:
        lines(program, *options, "--only", three_programs[0][0].removesuffix(".py"))
    assert ended.value.code == 0


TINY = ("--size", "tiny", "--rows", 1, "--length", 16)


@pytest.mark.parametrize(
    ("name", "options", "changed"),
    [
        ("permutation_step", TINY, ["--bf16"]),
        ("mask_cost", TINY, ["--bf16"]),
        ("bodies", ("--layers", 1, "--width", 64, "--rows", 1, "--length", 16, "--only", "rotary"),
         ["--attention-dropout", 0.0]),
        ("packing", ("--size", "tiny", "--sequences", 2, "--batch", 2, "--max-length", 32, "--mean", 20),
         ["--deviation", 1]),
    ],
)  # fmt: skip
def test_lines_of_different_work_are_told_apart(benchmark, lines, name, options, changed, tmp_path):
    program, file = benchmark(name), tmp_path / "lines.json"
    found = [lines(program, *options, *more, *SMALLEST) for more in ((), changed)]
    file.write_text("".join(f"{json.dumps(line)}\n" for some in found for line in some.values()))
    assert len(benchmark("lines").read_lines([file])) == sum(map(len, found)) == 2 * len(found[0])


def test_settings_are_the_options_that_change_the_work(benchmark):
    paired, parser = benchmark("paired"), argparse.ArgumentParser()
    paired.options(parser, rounds=3)
    for name, default in (("bf16", False), ("bar", 1.5), ("ceiling-bar", 2.0), ("only", ["a"])):
        parser.add_argument(f"--{name}", default=default)
    assert paired.configuration(parser.parse_args([]), "only") == {"bf16": False}
    assert paired.configuration(parser.parse_args(["--device", "cuda"]), "only") == {"device": "cuda", "bf16": False}


# ------------------------------------------------------------------ memory


def test_peaks_are_those_of_what_was_allocated(benchmark):
    resident = benchmark("resident")
    # A fresh process: one that has freed memory would take that again.
    counted = (
        "import numpy as np; from resident import forget_peak, resident; forget_peak(); before = resident();"
        f"np.ones({150 * 10**6}, dtype=np.uint8); print(resident('VmHWM') - before)"
    )
    found = subprocess.run([sys.executable, "-c", counted], cwd=BENCHMARKS, capture_output=True, text=True, check=True)
    assert 148 <= int(found.stdout) / 1e6 < 170
    grandchild = f"import numpy as np; x = np.ones({150 * 10**6}, dtype=np.uint8); import time; time.sleep(1)"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {grandchild!r}])"
    with subprocess.Popen([sys.executable, "-c", child]) as process, resident.TreePeak(process.pid) as tree:
        process.wait()
    assert 148 <= tree.peak / 1e6 < 250


def test_memory_of_a_step_holds_the_state_and_grows_linearly(benchmark, lines):
    memory = benchmark("memory")
    assert memory.growth([1, 2, 4, 8], [10, 11, 13, 17]) == 1
    assert memory.growth([1, 2, 4], [1, 4, 16]) == 2  # of quadratic growth
    with pytest.raises(ValueError, match="rows of 64 and 128 tokens have equal peaks: give longer --lengths"):
        memory.growth([64, 128, 256], [94, 94, 141])
    found = lines(
        memory, "--alone", "--size", "small", "--rows", 1, "--length", 32, "--lengths", 200, 400, 800, *SMALLEST
    )
    ours = found["memory: ours"]
    parameters = 6 * 12 * 384**2 + 31_000 * 384  # blocks and embeddings
    assert ours["state"] == pytest.approx(16e-6 * parameters, rel=0.05)
    assert ours["megabytes"] > ours["libraries"] + ours["state"]
    # A block keeps for backward at least its inputs, queries, keys, values and the inner states: 9 times the states.
    assert found["memory by length", 800]["megabytes"] > 6 * 9 * 800 * 384 * 4e-6


# ------------------------------------------------------------------ preparation and start


def test_preparation_and_the_encoding_alone_read_the_same_text(benchmark, lines, monkeypatch, tmp_path):
    preparing = benchmark("preparing")
    rng = np.random.default_rng(0)
    (tmp_path / "pretrain_wiki").mkdir()
    words = ["".join(map(chr, rng.integers(97, 123, rng.integers(2, 9)))) for _ in range(300)]
    documents = ["\n".join(" ".join(rng.choice(words, 20)) for _ in range(4)) + "\n\n" for _ in range(80)]
    with lzma.open(tmp_path / "pretrain_wiki" / "train-00.jsonl.xz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in documents)
    monkeypatch.setenv("UNIFIED_DATA", str(tmp_path))
    # Only where memory is measured the command has a fresh Python.
    run = preparing.run
    monkeypatch.setattr(preparing, "run", lambda words: run([interpreter(), *words[1:]]))
    found = lines(preparing, "--megabytes", 0.03, "--vocabulary-size", 200, *SMALLEST)
    assert set(found) == {
        "prepare / encoding alone", "prepare, beyond its start / encoding alone", "prepare: memory"
    }  # fmt: skip
    assert found["prepare / encoding alone"]["seconds"]["ours"] > 0
    assert 20 < found["prepare: memory"]["megabytes"] < 1000
    chunks = preparing.paragraphs(preparing.documents([tmp_path / "pretrain_wiki" / "train-00.jsonl.xz"]))
    assert [text for chunk in chunks for text in chunk] == [
        line for text in documents for line in text.split("\n") if line
    ]


def test_without_data_nothing_is_measured(benchmark, lines, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("UNIFIED_DATA", str(tmp_path))
    assert lines(benchmark("preparing")) == {}


def test_training_starts_on_the_corpus_that_is_written(benchmark, tmp_path):
    start = benchmark("start")
    start.write_corpus(tmp_path, 300_000)
    file, vocabulary = TokenFile(tmp_path / "train"), Vocabulary.load(tmp_path / "dict.txt")
    file.check_ids(vocabulary.listed)
    texts = DocumentTexts(file, vocabulary.special)
    assert 300_000 <= file.token_count < 1_300_000 and texts.document_count > 100
    assert 1_000 < file.token_count / texts.document_count < 6_000
    seconds, megabytes, used = start.start_of(tmp_path)
    assert 0 < seconds and 100 < megabytes < 1500 and used > 1


# ------------------------------------------------------------------ generation and growth


def test_files_to_generate_from_have_mixed_lengths_and_unequal_work_is_refused(benchmark, tmp_path):
    generating = benchmark("generating")
    generating.write_pairs(tmp_path, sentences=200, longest=440, written=5)
    sizes = TokenFile(tmp_path / "test.src-tgt.src").sizes - 1
    assert len(sizes) == 200 and 8 <= sizes.min() < 100 and 300 < sizes.max() <= 440
    assert set(TokenFile(tmp_path / "test.src-tgt.tgt").sizes) == {6}
    printed = "… | Translated 1,600 sentences (8,000 tokens) in 12.5s (10.1 sentences/s, 50.3 tokens/s)"
    assert generating.decoding(printed) == (8000, 12.5)
    calls = {name: generating.Generation([], [1.0], [count]) for name, count in (("ours", 80), ("fairseq", 81))}
    with pytest.raises(SystemExit, match="unequal work"):
        generating.require_equal_work(calls)


class Steps:
    """Counts the calls of a method."""

    def __init__(self, monkeypatch, owner, name):
        self.count, own = 0, getattr(owner, name)

        def counting(*args, **kwargs):
            self.count += 1
            return own(*args, **kwargs)

        monkeypatch.setattr(owner, name, counting)


@pytest.mark.parametrize("beam", [1, 2])
def test_every_system_makes_a_step_for_each_token_and_one_for_the_end(benchmark, monkeypatch, beam):
    decoding = benchmark("decoding")
    from fairseq.sequence_generator import EnsembleModel
    from transformers import BartForConditionalGeneration

    arguments = argparse.Namespace(scheme="next", beam=beam, written=4, bf16=False, int8=False, device="cpu", threads=1)
    torch.manual_seed(0)
    sources = torch.randint(10, 1000, (2, 8))
    sources[:, -1] = decoding.PAD + 1
    made = {
        "ours": (decoding.ours, decoding.CachedDecoder, "step"),
        "transformers": (decoding.encoder_decoder, BartForConditionalGeneration, "forward"),
        "fairseq": (decoding.fairseq_transformer, EnsembleModel, "forward_decoder"),
    }
    for name, (build, owner, method) in made.items():
        steps = Steps(monkeypatch, owner, method)
        assert build(decoding.SIZES["tiny"], sources, arguments)() == [5, 5] and steps.count == 5, name


def test_unequal_work_of_decoding_is_refused(benchmark, lines, monkeypatch):
    decoding = benchmark("decoding")
    options = ("--size", "tiny", "--sentences", 2, "--source", 8, "--written", 3, "--peers", "float32", *SMALLEST)
    assert lines(decoding, *options)["decoding / float32"]["ratio"] > 0
    monkeypatch.setitem(decoding.PEERS, "float32", ("unified", decoding.here(lambda *_: lambda: [4, 3])))
    with pytest.raises(SystemExit, match=r"decoding: unequal work, float32 made \[3, 4\] steps instead of 4"):
        lines(decoding, *options)


@pytest.mark.parametrize("steps", [4, 3])
def test_the_process_of_a_peer_ends_before_the_program(benchmark, lines, monkeypatch, steps):
    """Python reports a bad file descriptor where the process outlives the program. Unequal work ends it, too."""
    decoding, happened = benchmark("decoding"), []

    class Pool(ExitStack):
        def __init__(self, *given):
            super().__init__()
            self.callback(happened.append, "ended")

        def submit(self, function):
            happened.append("asked")
            done = Future()
            done.set_result([steps])
            return done

    monkeypatch.setattr(decoding, "ProcessPoolExecutor", Pool)
    monkeypatch.setitem(decoding.PEERS, "ctranslate2", ("unified", decoding.ctranslate2_translator))
    options = ("--size", "tiny", "--sentences", 1, "--source", 8, "--written", 3, "--peers", "ctranslate2", *SMALLEST)
    with nullcontext() if steps == 4 else pytest.raises(SystemExit, match="unequal work, ctranslate2 made"):
        assert list(lines(decoding, *options)) == ["decoding / ctranslate2"]
    assert happened[0] == "asked" and happened.count("ended") == 1 and happened[-1] == "ended"


@pytest.mark.parametrize("rows", [0, 16, 48])
def test_rows_that_are_not_made_are_not_counted(benchmark, lines, rows, capsys):
    with pytest.raises(SystemExit, match="2"):
        lines(benchmark("masking"), "--rows", rows)
    assert "--rows must be a multiple of 32, the rows of a batch" in capsys.readouterr().err


def test_masking_counts_the_rows_of_a_batch(benchmark, lines):
    options = ("--rows", 32, "--length", 64, "--tokens", 120_000, "--objectives", "left_to_right", "--rounds", 1)
    line = lines(benchmark("masking"), *options)["masking: left_to_right"]
    assert line["per_second"] > 0 and line["configuration"] == {"tokens": 120_000, "rows": 32, "length": 64}


def test_what_the_library_refuses_ends_a_program_with_one_line(benchmark, monkeypatch):
    """Too little text for second segments."""
    few = ("--rows", "32", "--length", "64", "--tokens", "1000", "--objectives", "bidirectional", "--rounds", "1")
    monkeypatch.setattr(sys, "argv", ["benchmarks/masking.py", *few])
    with pytest.raises(SystemExit, match="^masking: .* holds one document, but bidirectional wants second segments"):
        benchmark("paired").run_program(benchmark("masking").main)
    guards = {
        path.name: path.read_text().partition('if __name__ == "__main__":\n')[2] for path in BENCHMARKS.glob("*.py")
    }
    assert {name for name, guard in guards.items() if guard.strip() == "main()"} == {
        "card.py",
        "report.py",
        "run.py",
        "scale.py",
    }


def test_growth_has_a_point_for_every_size(benchmark, lines):
    growth = benchmark("growth")
    options = (
        "--size",
        "tiny",
        "--curves",
        "beam",
        "vocabulary",
        "--tokens",
        512,
        "--vocabularies",
        100,
        200,
        "--beams",
        1,
        3,
    )
    found = lines(growth, *options, "--sentences", 2, "--written", 2, *SMALLEST)
    cache = [found["growth with the beam: megabytes of the source cache", beam]["megabytes"] for beam in (1, 3)]
    # Keys and values of begin and 256 tokens, in two layers of width 128.
    assert cache[0] == cache[1] == pytest.approx(2 * 2 * 2 * 257 * 128 * 4e-6, abs=1e-3)
    assert found["growth with the beam: source cache of beam 3 / 1"]["holds"]
    assert all(("growth with the vocabulary: seconds", size) in found for size in (100, 200))
    batch = growth.packed(tokens=64, row=32, document=8)
    assert batch.tokens.shape == (2, 32) and set(batch.mask.query_documents().flatten().tolist()) == {0, 1, 2, 3}


# ------------------------------------------------------------------ packing


@pytest.mark.parametrize("fixed", [(), ("--fixed-shapes",)])
def test_packed_rows_are_measured_beside_padded_ones(benchmark, lines, fixed):
    program, options = benchmark("packing"), ("--sequences", 6, "--batch", 3, "--max-length", 32, "--mean", 20)
    found = lines(program, "--size", "tiny", "--row", 32, *options, *fixed, *SMALLEST)
    others = [] if fixed else ["padded to the longest", "padded, like lengths"]
    assert list(found) == [f"packing / {name}" for name in ("padded to 32", *others)]
    for line in found.values():
        assert line["ratio"] > 0
        assert set(line["tokens_per_second"]) == {"ours", "padded to 32", *others}


# ------------------------------------------------------------------ cards


def test_masks_of_equal_area(benchmark):
    cost = benchmark("mask_cost")
    for name, row in cost.mask_kinds(512, np.random.default_rng(0)).items():
        area = cost.area_of(row)
        other = cost.unmasked_of_area(512, area)
        assert sum(mask.query_length for mask in other) == 512
        assert cost.area_of(other) == pytest.approx(area, rel=0.05), name


def test_without_a_card_the_set_says_so(benchmark, lines):
    if torch.cuda.is_available():
        pytest.skip("there is a card")
    with pytest.raises(SystemExit, match="torch sees no CUDA card"):
        lines(benchmark("card"))


def test_the_rehearsal_has_the_programs_of_the_set_and_no_bars_of_its_sizes(benchmark):
    card = benchmark("card")
    whole, rehearsed = card.commands(card.FULL), card.commands(card.TINY)
    assert [words[0] for words in whole] == [words[0] for words in rehearsed]
    assert all(words[words.index("--device") + 1] == "cuda" for words in whole)
    assert "--tokens-bar" in whole[0] and not any("--tokens-bar" in words for words in rehearsed)


def test_real_tokens_of_a_mixture(benchmark, lines):
    mixture = benchmark("mixture_step")
    found = lines(mixture, "--size", "tiny", "--rows", 64, "--tokens", 128, "--dropout-bar", 9, *SMALLEST)
    speed = found["mixture of six objectives: real tokens"]
    assert 0.5 < speed["real_share"] <= 1 and speed["per_second"] > 0
    assert found["mixture of six objectives: attention dropout 0.1 / 0"]["ratio"] > 0
    (batch, *_) = batches = mixture.batches_of(64, 128, "cpu")
    assert len(batches) == mixture.BATCHES and all(one.tokens.shape == (2, 64) for one in batches)
    assert set(batch.objectives) >= set(mixture.MIXTURE.split(","))


# ------------------------------------------------------------------ scale


def test_scale_follows_from_its_formulas(benchmark):
    scale = benchmark("scale")
    machine = scale.Machine(large_tokens=1000, at_once=512, inside=100, between=10)
    large = scale.System("x", 24, 1024, (scale.Stage(updates=36, sequences=10, length=512),))
    assert scale.hours(large, 1, machine) == pytest.approx(36 * 5.12 / 3600)  # of 5,120 tokens, 1,000 a second
    # Six operations a parameter of the blocks and a token, and attention.
    alone = 6 * 24 * 12 * 1024**2 + 12 * 24 * 512 * 1024
    head = 6 * 0.15 * (1024**2 + 1024 * 30_522)
    assert large.operations(512) == pytest.approx(alone + head)
    # Within a node each card sends 2 x 7/8 of the bytes; between two nodes once the bytes.
    assert scale.reduction(1e9, 8, machine) == pytest.approx(2 * 7 / 8 / 100)
    assert scale.reduction(1e9, 16, machine) == pytest.approx(2 * 7 / 8 / 100 + 1 / 10)
    assert scale.reduction(1e9, 1, machine) == 0
    for system in scale.SYSTEMS:
        for one, several in ((1, 8), (8, 64)):
            assert 1 / 9 < scale.hours(system, several, machine) / scale.hours(system, one, machine)
        assert scale.efficiency(system, scale.limit(system, machine), machine) >= scale.WORTH
    unilm = next(system for system in scale.SYSTEMS if system.name.startswith("UniLM"))
    # UniLM, section 2.4: seven hours for 10,000 updates on 8 V100.
    assert scale.hours(unilm, 8, scale.MACHINES["v100"]) == pytest.approx(77 * 7, rel=0.02)


def test_the_tables_of_scale_md_are_those_of_the_program(benchmark):
    scale = benchmark("scale")
    page = (BENCHMARKS.parent / "docs" / "background" / "scale.md").read_text(encoding="utf-8")
    for machine in scale.MACHINES.values():
        assert scale.table(machine) in page and scale.settings(machine) in page


def test_choices_measure_each_beside_its_absence(benchmark, lines):
    found = lines(benchmark("choices"), "--size", "tiny", "--rows", 1, "--length", 32, *SMALLEST)
    assert len(found) == 8 and all(line["unit"] == "ratio" and line["ratio"] > 0 for line in found.values())
    choices = benchmark("choices")
    with choices.torchs(choices.dropout, "dropout"):
        from unified.kernels.cpu.dropout import Dropout

        torch.manual_seed(0)
        ours = Dropout(0.5)(torch.ones(64))
        torch.manual_seed(0)
        assert torch.equal(ours, torch.nn.functional.dropout(torch.ones(64), 0.5))
    torch.manual_seed(0)
    assert not torch.equal(Dropout(0.5)(torch.ones(64)), ours)
    own = choices.linear.linear
    with choices.torchs(choices.linear, "linear"):
        assert choices.linear.linear is torch.nn.functional.linear
    assert choices.linear.linear is own


def test_products_of_a_few_rows_are_measured_for_every_matrix(benchmark, lines):
    program = benchmark("few_rows")
    found, width = lines(program, "--size", "tiny", "--work", 1, "--rows", 2, 3, *SMALLEST), program.SIZES["tiny"].width
    pairs = ((width, width), (width, 4 * width), (4 * width, width), (width, program.VOCABULARY))
    matrices = [f"{inner} x {columns}" for inner, columns in pairs]
    assert list(found) == [f"product of {rows} rows, {one} / torch" for one in matrices for rows in (2, 3)]
    assert all(set(line["seconds"]) == {"ours", "torch"} for line in found.values())
