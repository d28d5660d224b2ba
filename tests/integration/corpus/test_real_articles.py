"""README's commands on real articles: news of Reuters with their headlines, and a meeting of QMSum."""

from __future__ import annotations

import json
import lzma
from itertools import islice

import pytest

from tests.support.corpora import jsonl
from tests.support.readme_commands import run_readme
from unified import UnifiedLM
from unified.cli import main
from unified.tasks.metrics.outputs import read_generate_output


def records(path):
    with lzma.open(path, "rt", encoding="utf-8") as stream:
        yield from map(json.loads, stream)


@pytest.fixture(scope="module")
def news(unified_data, tmp_path_factory):
    """The folder in which all commands of the README have run, what each said, and the rows of the pairs."""
    folder, news = tmp_path_factory.mktemp("news"), records(unified_data / "reuters21578" / "train.jsonl.xz")
    for name, count in (("corpus.txt", 150), ("valid.txt", 10)):
        texts = [row["body"] for row in islice(news, count)]
        (folder / name).write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    long = ({"article": " ".join(row["body"].split()), "summary": row["title"]} for row in news)
    long = (row for row in long if 120 <= len(row["article"].split()) <= 700)
    parts = {name: list(islice(long, count)) for name, count in (("train", 40), ("valid", 8), ("test", 6))}
    for name, rows in parts.items():
        jsonl(folder / f"{name}.jsonl", rows)
    return folder, run_readme(folder), parts


def test_what_does_not_fit_is_cut_counted_and_cut_alike_by_all_that_generates(news):
    folder, done, parts = news
    lm = UnifiedLM.from_pretrained(folder / "models" / "summaries", folder / "data" / "summaries")
    headlines = [len(lm.encode(row["summary"])) for row in parts["train"]]
    most = 512 - 3 - max(headlines)
    assert (lm.lengths.max_source, lm.lengths.max_target) == (most, max(headlines)) and max(headlines) < 128
    for number, names in ((3, ("train", "valid")), (4, ("test",))):
        log = done[number][1] + done[number][2]
        for name in names:
            lengths = [len(lm.encode(row["article"])) for row in parts[name]]
            longer = sum(length > most for length in lengths)
            assert 0 < longer < len(lengths) or name != "train"
            said = f"{name}: {longer} of {len(lengths)} sources are cut to their first {most} tokens"
            assert log.count(said) == 1 and log.count("targets are cut") == 0
    written, _ = read_generate_output([folder / "generated.txt"])
    articles = [row["article"] for row in parts["test"]]
    assert written == lm.generate(articles, max_source=most, no_repeat_ngram_size=3)
    assert "ROUGE-L" in done[5][1]


def test_windows_read_whole_articles_and_meetings(news, unified_data, tmp_path, capsys, monkeypatch):
    folder, _, parts = news
    monkeypatch.chdir(folder)  # the checkpoint names its data folder as the command did
    model = "models/summaries"
    lm = UnifiedLM.from_pretrained(model)
    articles = [row["article"] for row in parts["test"]]
    (tmp_path / "articles.txt").write_text("".join(f"{article}\n" for article in articles), encoding="utf-8")
    words = ["generate", "--input", str(tmp_path / "articles.txt"), "--model", model, "--windows"]
    assert main([*words, "--output", str(tmp_path / "out.txt"), "--beam", "2"]) == 0
    longer = sum(len(lm.encode(article)) > lm.lengths.max_source for article in articles)
    assert longer and f"{longer} of these 6 sources were divided into windows" in capsys.readouterr().err
    written = read_generate_output([tmp_path / "out.txt"], need_references=False)[0]
    assert written == lm.generate(articles, windows=True, beam=2)

    meeting = next(records(unified_data / "qmsum" / "val.jsonl.xz"))
    text = " ".join(turn["content"] for turn in meeting["meeting_transcripts"][:60])
    query = meeting["specific_query_list"][0]["query"]
    assert main(["predict", "texts", "--model", model, "--windows", json.dumps({"source": [query, text]})]) == 0
    found = json.loads(capsys.readouterr().out)
    room = lm.lengths.max_source - len(lm.encode(query)) - 1
    assert found["windows"] >= len(lm.encode(text)) / room > 4 and "cut" not in found
