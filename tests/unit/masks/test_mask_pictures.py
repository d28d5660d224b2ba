"""Pictures of masks: the text, the cells of SVG and PNG files read back, and the command line."""

import re
import struct
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from tests.support.mask_samples import triangle
from unified import masks
from unified.cli import main
from unified.masks import GIVEN, pictures

G = GIVEN
SVG = "{http://www.w3.org/2000/svg}"


def test_text_of_one_document():
    assert str(masks.seq2seq(2, 2)) == (
        "4 queries (lines) and 4 keys (columns), mixed\n    0 0 1 2\n0   ■ ■ · ·\n0   ■ ■ · ·\n1   ■ ■ ■ ·\n2   ■ ■ ■ ■"
    )


def test_text_of_several_documents_numbers_them():
    assert str(masks.pack([masks.seq2seq(1, 1), masks.right_to_left(2)], 5)) == (
        "5 queries (lines) and 5 keys (columns), mixed\n"
        "      0 0 1 1 -\n"
        "      0 1 4 3 -\n"
        "0 0   ■ · · · ·\n"
        "0 1   ■ ■ · · ·\n"
        "1 4   · · ■ ■ ·\n"
        "1 3   · · · ■ ·\n"
        "- -   · · · · ·"
    )


def test_text_of_keys_that_disappear_says_when():
    assert str(masks.sliding_window(3, 1)) == (
        "3 queries (lines) and 3 keys (columns), mixed\n    1 2 3\n    3 ∞ ∞\n1   ■ · ·\n2   ■ ■ ·\n3   · ■ ■"
    )


def test_text_of_padding_has_no_step_at_which_it_disappears():
    heads = str(masks.pack([masks.sliding_window(3, 1)], 4)).splitlines()[1:3]
    assert heads == ["    1 2 3 -", "    3 ∞ ∞ -"]


def test_text_of_wide_steps_memory_and_no_self():
    mask = masks.permutation([10, G]).with_memory(2, filled=1).without_self()
    assert str(mask) == (
        "2 queries (lines) and 4 keys (columns), mixed, without self\n"
        "      -  0 10  0\n"
        "10    ·  ■  ·  ■\n"
        " 0    ·  ■  ·  ·"
    )


def test_text_of_a_batch_and_of_large_masks_is_cut():
    text = str(masks.batch([masks.left_to_right(2)] * 6))
    assert text.startswith("6 rows, each of 2 queries (lines) and 2 keys (columns), causal\nrow 0\n    1 2\n1   ■ ·")
    assert "row 3\n" in text and "row 4\n" not in text
    assert text.endswith("… and 2 more rows")
    assert str(masks.batch([masks.left_to_right(2)] * 4)).endswith("\nrow 3\n    1 2\n1   ■ ·\n2   ■ ■")
    lines = str(masks.left_to_right(500)).split("\n")
    assert len(lines) == 2 + 64 + 1
    assert lines[-1] == "…" and all(line.endswith(" …") for line in lines[1:-1])
    assert "…" not in str(masks.left_to_right(64))


LARGE = {
    "steps": lambda: masks.sliding_window(90, 3, 2),
    "without self": lambda: masks.pack([masks.seq2seq(30, 20), masks.bidirectional(40)], 95).without_self(),
    "memory": lambda: masks.left_to_right(70).with_memory(40).without_self(),
    "one way": lambda: masks.permutation(torch.randperm(80)).causal(),
    "window": lambda: masks.bidirectional(80).windowed(3),
    "query stream": lambda: masks.permutation(torch.arange(80)).query_stream(torch.arange(1, 80).flip(0)),
    "few queries": lambda: masks.left_to_right(80).query_stream([5, 79]),
}


@pytest.mark.parametrize("name", LARGE)
def test_text_of_a_large_mask_shows_its_corner_and_looks_at_no_more(name, monkeypatch):
    mask = LARGE[name]()
    expected = mask.dense()[:64, :64].tolist()
    whole = type(mask).dense

    def small(one):
        assert max(one.query_length, one.key_length) <= 64
        return whole(one)

    monkeypatch.setattr(pictures.MaskVectors, "dense", small)
    found = [[cell == "■" for cell in line if cell in "■·"] for line in str(mask).splitlines()]
    assert [line for line in found if line] == expected


def test_text_of_a_row_of_a_batch_keeps_its_limits():
    row = masks.bidirectional(2)
    assert str(masks.batch([row.without_self()])).endswith("without self\nrow 0\n    0 0\n0   · ■\n0   ■ ·")
    near = masks.batch([row]).windowed(0)
    assert str(near).endswith("within 0 positions\nrow 0\n    0 0\n0   ■ ·\n0   · ■")


def test_text_of_nothing():
    assert str(masks.permutation([1, 12]).query_stream([])).endswith(", mixed\n    1 12")
    none = torch.zeros(2, 0, dtype=torch.int32)
    assert str(masks.AttentionMask(torch.zeros(2, 1, dtype=torch.int32), none, none)).endswith("row 1\n0  ")
    assert str(masks.bidirectional(0)).startswith("0 queries (lines) and 0 keys (columns), full")
    assert repr(masks.seq2seq(1, 2).without_self()) == (
        "AttentionMask(queries=(3,), keys=(3,), 'mixed', exclude_self=True)"
    )


PLOTTED = {
    "seq2seq": masks.seq2seq(4, 3),
    "without self": masks.bidirectional(4).without_self(),
    "packed": masks.pack([masks.seq2seq(2, 2), masks.left_to_right(3)], 9),
    "memory": masks.right_to_left(3).with_memory(4, filled=2),
    "query stream": masks.permutation([G, 3, 1, 2]).query_stream([1, 3]),
    "one token": masks.bidirectional(1),
    "many tokens": masks.left_to_right(90),
    "nothing": masks.bidirectional(0),
}


def colours_of(mask) -> np.ndarray:
    """The expected colour of each cell, told from the fields alone: (T, S) of hexadecimal colours."""
    colour = dict(pictures.CELL_TYPES)
    starts = [0, *mask.document_ends.tolist()]  # of the documents
    cells = np.full((mask.query_length, mask.key_length), colour["hidden"])
    for i, j in torch.nonzero(mask.dense()).tolist():
        if mask.own_keys[i] == j:
            cells[i, j] = colour["the token itself"]
        else:
            cells[i, j] = colour["given from the start" if mask.key_start[j] in starts else "visible since its step"]
    return cells


def squares(path: ElementTree.Element) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"M([\d.]+) ([\d.]+)h", path.get("d"))]


@pytest.mark.parametrize("name", PLOTTED)
def test_svg_draws_every_cell_in_its_colour(name, tmp_path):
    mask = PLOTTED[name]
    masks.plot(mask, tmp_path / "mask.svg")
    root = ElementTree.parse(tmp_path / "mask.svg").getroot()
    drawn = {index: path.get("fill") for path in root.iter(f"{SVG}path") for index in squares(path)}
    columns, lines = sorted({x for x, _ in drawn}), sorted({y for _, y in drawn})
    height = float(root.get("viewBox").split()[3])
    lowest = max([0.0, *(float(text.get("y")) for text in root.iter(f"{SVG}text") if text.get("y"))])
    assert not lines or lines[-1] < lowest < height < lowest + 40, "the last line of the legend ends the picture"
    assert (len(lines), len(columns)) == ((mask.query_length, mask.key_length) if drawn else (0, 0))
    expected = colours_of(mask)
    for (x, y), colour in drawn.items():
        assert colour == expected[lines.index(y), columns.index(x)]
    assert len(drawn) == expected.size


@pytest.mark.parametrize("name", PLOTTED)
def test_svg_keeps_everything_inside_its_frame(name):
    mask = PLOTTED[name]
    tokens = [f"token-{i}" for i in range(mask.key_length)]
    root = ElementTree.fromstring(pictures.svg(mask, tokens, title="A mask"))
    _, _, width, height = map(float, root.get("viewBox").split())
    groups = {text: group for group in root.iter(f"{SVG}g") for text in group}
    for text in root.iter(f"{SVG}text"):
        said = {**groups[text].attrib, **text.attrib} if text in groups else text.attrib
        anchor, size = said.get("text-anchor", "start"), 0.55 * float(said["font-size"]) * len(text.text)
        turned = re.match(r"translate\(([\d.]+) ([\d.]+)\) rotate\(-45\)", text.get("transform") or "")
        x, y = map(float, turned.groups()) if turned else (float(text.get("x")), float(text.get("y")))
        if turned:
            ends = [(x, y), (x + size * 0.71, y - size * 0.71)]
        else:
            begin = x - size * {"start": 0, "middle": 0.5, "end": 1}[anchor]
            ends = [(begin, y), (begin + size, y)]
        assert all(0 <= x <= width and 0 <= y <= height for x, y in ends), text.text
    for path in root.iter(f"{SVG}path"):
        assert all(0 < x < width and 0 < y < height for x, y in squares(path))


def test_cells_are_at_least_three_pixels_wide():
    root = ElementTree.fromstring(pictures.svg(masks.left_to_right(400).query_stream([0])))
    assert float(root.get("width")) == 34 + 3 * 400 + 34


def test_svg_labels_stand_where_they_can_be_read():
    assert ">63<" in pictures.svg(masks.bidirectional(64)) and ">64<" not in pictures.svg(masks.bidirectional(65))


def test_svg_labels_are_tokens_and_steps_and_are_escaped():
    tokens = ["<s>", "a & b", '"c"']
    root = ElementTree.fromstring(pictures.svg(masks.seq2seq(1, 2), tokens, title="<mask>"))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts[0] == "<mask>"
    for label in (*tokens, "0", "1", "2"):
        assert texts.count(label) == 2, label  # once per side
    stream = masks.permutation([G, 1]).query_stream([1])
    assert "?" in [text.text for text in ElementTree.fromstring(pictures.svg(stream)).iter(f"{SVG}text")]


@pytest.mark.parametrize(("draw", "most"), [(pictures.png, 40), (pictures.svg, 85)])
def test_a_picture_takes_little_memory_for_each_cell(draw, most):
    """Bytes; a PNG has nine pixels for each of so many cells and took 106, an SVG 30 characters, and took 110."""
    mask = masks.left_to_right(300)
    tracemalloc.start()
    draw(mask)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < most * 300 * 300


def read_png(data: bytes) -> np.ndarray:
    """uint8 (height, width, 3) of a PNG file of unfiltered lines; checks lengths and checksums of its chunks."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, index = {}, 8
    while index < len(data):
        (size,) = struct.unpack(">I", data[index : index + 4])
        kind, body = data[index + 4 : index + 8], data[index + 8 : index + 8 + size]
        assert struct.unpack(">I", data[index + 8 + size : index + 12 + size])[0] == zlib.crc32(kind + body)
        chunks[kind] = body
        index += 12 + size
    assert list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, colour, rest) == (8, 3, [0, 0, 0])
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(height, 1 + width)
    assert not lines[:, 0].any()
    return np.frombuffer(chunks[b"PLTE"], dtype=np.uint8).reshape(-1, 3)[lines[:, 1:]]


@pytest.mark.parametrize("name", PLOTTED)
def test_png_draws_every_cell_in_its_colour(name, tmp_path):
    mask = PLOTTED[name]
    masks.plot(mask, str(tmp_path / "mask.PNG"))
    image = read_png((tmp_path / "mask.PNG").read_bytes())
    expected = colours_of(mask)
    pitch = image.shape[0] // (mask.query_length + 2)  # a margin of one cell all around
    assert image.shape == (pitch * (mask.query_length + 2), pitch * (mask.key_length + 2), 3)
    for (i, j), colour in np.ndenumerate(expected):
        middle = image[pitch * (i + 1) + pitch // 2, pitch * (j + 1) + pitch // 2]
        assert "#" + bytes(middle).hex() == colour


#: Pictures that were looked at and are kept in the folder ``pictures``: (mask, tokens, title, shape of the PNG, the sum
#: over its bytes that the test below takes).
_PACKED = masks.pack([masks.seq2seq(1, 1), masks.sliding_window(3, 1)], 6)
KEPT = {
    "packed": (_PACKED, ["<s>", "a", "b", "long", "c", ""], "Two & padding", (240, 240, 3), 5_083_182_498),
    "batch": (masks.batch([_PACKED, masks.left_to_right(6)]), None, "", (480, 240, 3), 9_887_834_170),
    "stream": (masks.permutation([G, 2, 1]).query_stream([2]), ["x", "y", "z"], "", (90, 150, 3), 1_253_618_220),
    "nothing": (masks.bidirectional(0), None, "", (60, 60, 3), 344_032_230),
    "small_cells": (masks.left_to_right(70).query_stream([0, 69]), None, "", (48, 864, 3), 3_635_029_503),
}


@pytest.mark.parametrize("name", KEPT)
def test_pictures_stay_as_they_were_looked_at(name):
    mask, tokens, title, shape, total = KEPT[name]
    kept = Path(__file__).with_name("pictures") / f"{name}.svg"
    titled = {"title": title} if title else {}
    assert pictures.svg(mask, tokens, **titled) == kept.read_text(encoding="utf-8")
    image = read_png(pictures.png(mask))
    places = np.arange(image.size).reshape(image.shape) % 251  # so that the sum tells where a colour stands
    assert (image.shape, int((image * places).sum())) == (shape, total)


@pytest.mark.parametrize(
    "mask, name, tokens, message",
    [
        (masks.bidirectional(2), "mask.gif", None, "path must end in .svg or .png, got "),
        (masks.bidirectional(2), "mask", None, "path must end in .svg or .png, got "),
        (masks.bidirectional(2), "mask.svg", ["a"], "tokens must name all 2 keys, got 1"),
        (masks.bidirectional(2), "mask.png", ["a", "b"], "tokens are drawn in .svg only"),
    ],
)
def test_plot_refusals_write_nothing(mask, name, tokens, message, tmp_path):
    with pytest.raises(ValueError, match=re.escape(message)):
        masks.plot(mask, tmp_path / name, tokens)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- unified masks

SHOWN = {
    "bidirectional 3": masks.bidirectional(3),
    "left_to_right length=3": masks.left_to_right(3),
    "causal 3": masks.left_to_right(3),
    "right_to_left 3": masks.right_to_left(3),
    "seq2seq 4 3": masks.seq2seq(4, 3),
    "prefix_lm 4 3": masks.seq2seq(4, 3),
    "permutation 0,2,0,1": masks.permutation([G, 2, G, 1]),
    "permutation 0,2,0,1 --query-stream 1,3": masks.permutation([G, 2, G, 1]).query_stream([1, 3]),
    "sliding_window 6 2 none": masks.sliding_window(6, 2, None),
    "sliding_window 6 right=1 left=1 --sinks 1": masks.sliding_window(6, 1, 1).with_sinks(1),
    "block_causal 6 2": masks.block_causal(6, 2),
    "block_diffusion 4 size=2": masks.block_diffusion(4, 2),
    "pseudo_masked 0,2,1": masks.pseudo_masked([G, 2, 1]),
    "tree parents=-1,0,0": masks.tree([-1, 0, 0]),
    "pack 9 seq2seq:2,2 right_to_left:3": masks.pack([masks.seq2seq(2, 2), masks.right_to_left(3)], 9),
    "left_to_right 3 --memory 2 --without-self": masks.left_to_right(3).with_memory(2).without_self(),
    "bidirectional 0": masks.bidirectional(0),
    "tests.support.mask_samples:triangle 3": triangle(3),
}


@pytest.mark.parametrize("arguments", SHOWN)
def test_show_prints_the_mask(arguments, capsys):
    assert main(["masks", "show", *arguments.split()]) == 0
    assert capsys.readouterr().out == f"{SHOWN[arguments]}\n"


@pytest.mark.parametrize("arguments", SHOWN)
def test_plot_writes_the_mask(arguments, capsys, tmp_path):
    for ending in (".svg", ".png"):
        expected, written = tmp_path / f"expected{ending}", tmp_path / f"written{ending}"
        masks.plot(SHOWN[arguments], expected)
        assert main(["masks", "plot", *arguments.split(), "--output", str(written)]) == 0
        assert written.read_bytes() == expected.read_bytes()
        assert str(written) in capsys.readouterr().out


def test_plot_takes_tokens(tmp_path):
    path = tmp_path / "mask.svg"
    arguments = ["masks", "plot", "seq2seq", "2", "1", "--output", str(path)]
    assert main([*arguments, "--tokens", "[CLS] rain [SEP]"]) == 0
    assert ">rain<" in path.read_text()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("show seq2seq source_length=-4 target_length=3", "source_length must be an integer of at least 0, got -4"),
        ("show seq2seq 4", "seq2seq: missing a required argument: 'target_length'; it takes (source_length, target_le"),
        ("show bidirectional 3 4", "bidirectional: too many positional arguments; it takes (length)"),
        ("show permutation 0,x", "permutation: argument 1 must be integers separated by commas, got '0,x'"),
        ("show bidirectional x", "bidirectional: argument 1 must be an integer, got 'x'"),
        ("show permutation 0,1 --query-stream 2", "targets must lie within the row of 2 tokens, got 2"),
        ("show pack 3 seq2seq:2,2", "mask 0 does not fit: masks 0 to 0 have 4 keys, length is 3"),
        ("show pack", "pack needs the length of the row and its documents"),
        ("show pack 9 seqseq:2,1", "mask 'seqseq': no such mask (did you mean 'seq2seq'?)"),
        ("show pack 9 seq2seq:2", "seq2seq: missing a required argument"),
        ("show bidirectional length=x", "bidirectional: length must be an integer, got 'x'"),
        ("show pack 9 seq2seq:a,b", "seq2seq: argument 1 must be an integer, got 'a'"),
        ("show no_such_module:f 3", "mask 'no_such_module:f': module no_such_module cannot be imported"),
        ("show tests.support.mask_samples:no 3", "module tests.support.mask_samples has no 'no'"),
        ("show builtins:abs 3", "must return an AttentionMask of unified.masks, got"),
        ("plot bidirectional 3 --output /dev/null/all.svg", "/dev/null is a file, where a folder should be"),
        ("plot bidirectional 3 --output mask.jpg", ": --output must end in .svg or .png, got 'mask.jpg'"),
        ("plot bidirectional 3 --output path-tokens", ": --output must end in .svg or .png, got 'path-tokens'"),
        ("plot bidirectional 3 --output mask.svg --tokens a", ": --tokens must name all 3 keys, got 1"),
        ("plot bidirectional 1 --output mask.png --tokens a", ": --tokens are drawn in .svg only"),
        (
            "plot sliding_window 4097 1 --memory 1 --output mask.png",
            "a picture of 4,097 queries and 4,098 keys would take too much memory; at most 16,777,216 cells are drawn",
        ),
    ],
)
def test_refusals_are_one_line_and_exit_2(arguments, message, capsys):
    assert main(["masks", *arguments.split()]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("unified masks: error: ") and message in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("arguments", ["", "show", "plot seq2seq 4 3", "show seq2seq 4 3 --memory"])
def test_incomplete_commands_say_what_is_missing(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["masks", *arguments.split()])
    assert stop.value.code == 2
    assert "unified masks" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_runs_as_a_program():
    command = [sys.executable, "-m", "unified.cli", "masks", "show", "left_to_right", "2"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{masks.left_to_right(2)}\n"


def test_the_cells_of_all_rows_that_a_file_may_have_are_limited():
    """A picture of 100,000 tokens took all memory of a machine."""
    for mask, size in (
        (masks.batch([masks.left_to_right(2896)] * 3), "8,688 queries and 2,896 keys"),
        (masks.left_to_right(4096).with_memory(1), "4,096 queries and 4,097 keys"),
    ):
        for name in ("a.png", "a.svg"):
            with pytest.raises(
                ValueError, match=f"^a picture of {size} would take too much memory; at most 16,777,216"
            ):
                pictures.picture_content(mask, name)
    long = masks.left_to_right(100_000).query_stream([3])
    assert pictures.picture_content(long, "a.png").startswith(b"\x89PNG")


def test_a_batch_is_drawn_row_by_row(tmp_path):
    rows = [masks.left_to_right(3), masks.pack([masks.seq2seq(1, 1)], 3)]
    masks.plot(masks.batch(rows), tmp_path / "batch.svg", ["a", "b", "c"])
    root = ElementTree.parse(tmp_path / "batch.svg").getroot()
    drawn = {index: path.get("fill") for path in root.iter(f"{SVG}path") for index in squares(path)}
    expected = np.concatenate(list(map(colours_of, rows)))
    columns, lines = sorted({x for x, _ in drawn}), sorted({y for _, y in drawn})
    assert (len(lines), len(columns)) == expected.shape
    for (x, y), colour in drawn.items():
        assert colour == expected[lines.index(y), columns.index(x)]
    masks.plot(masks.batch(rows), tmp_path / "batch.png")
    each = [read_png(pictures.png(row)) for row in rows]
    assert np.array_equal(read_png((tmp_path / "batch.png").read_bytes()), np.concatenate(each))


def test_notebooks_show_the_picture():
    mask = masks.seq2seq(2, 2)
    assert mask._repr_svg_() == pictures.svg(mask) and mask._repr_svg_().startswith("<svg")
    # Of large masks notebooks show the repr.
    assert masks.left_to_right(256)._repr_svg_() is not None and masks.left_to_right(257)._repr_svg_() is None
    halves = [masks.left_to_right(128)] * 4
    assert masks.batch(halves)._repr_svg_() is not None and masks.batch([*halves, halves[0]])._repr_svg_() is None
    assert masks.batch([mask] * 16)._repr_svg_() is not None and masks.batch([mask] * 17)._repr_svg_() is None
