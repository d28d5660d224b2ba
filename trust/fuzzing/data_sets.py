"""Official files of data sets, items of heads, answers and predictions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from trust.fuzzing.mutators import JSON, JSON_LINES, TEXT
from trust.fuzzing.reader import Mutator, Reader, sample_file
from unified.tasks.datasets.codah import read_codah
from unified.tasks.datasets.conll2003 import read_conll2003
from unified.tasks.datasets.coqa_json import read_coqa_file
from unified.tasks.datasets.dream import read_dream
from unified.tasks.datasets.glue_tables import GLUE, read_glue
from unified.tasks.datasets.imdb import read_imdb
from unified.tasks.datasets.mrqa import read_mrqa_file
from unified.tasks.datasets.own_files import head_files
from unified.tasks.datasets.race import read_race
from unified.tasks.datasets.semeval2010 import read_semeval2010
from unified.tasks.datasets.sentiment_trees import read_sentiment_trees
from unified.tasks.datasets.squad_json import read_squad_file
from unified.tasks.datasets.summaries.inputs import Inputs
from unified.tasks.datasets.summaries.pairs import PairConverter, write_pairs
from unified.tasks.datasets.swag import read_swag
from unified.tasks.datasets.tacred import read_tacred
from unified.tasks.datasets.wnut17 import read_wnut17
from unified.tasks.heads.choice import ChoiceItem
from unified.tasks.heads.items import Item, TextItem, WordsItem, items_text
from unified.tasks.heads.questions import Answer, QuestionItem
from unified.tasks.heads.registry import TASK_HEADS
from unified.tasks.heads.relation import Entity, RelationItem
from unified.tasks.metrics.answer_files import (
    read_coqa,
    read_coqa_predictions,
    read_mrqa,
    read_predictions,
    read_probabilities,
    read_squad,
)
from unified.tasks.metrics.conll import read_coreference, read_tags
from unified.tasks.metrics.files import read_answers, read_labels, read_numbers, read_tagged
from unified.tasks.metrics.outputs import read_generate_output, read_hypotheses, read_n_best, read_references

_PASSAGE = "Anna Berg built the tower in 1903. It stood for ten years."
_SQUAD = {
    "version": "v2.0",
    "data": [
        {"title": "Tower", "paragraphs": [{"context": _PASSAGE, "qas": [
            {"id": "q1", "question": "Who built it?", "answers": [{"text": "Anna Berg", "answer_start": 0}],
             "is_impossible": False},
            {"id": "q2", "question": "Who fell?", "answers": [], "is_impossible": True},
        ]}]},
    ],
}  # fmt: skip
_COQA = {
    "version": "1.0",
    "data": [
        {"source": "wiki", "id": "s1", "story": _PASSAGE,
         "questions": [{"input_text": "Who built it?", "turn_id": 1}, {"input_text": "When?", "turn_id": 2}],
         "answers": [{"span_start": 0, "span_end": 9, "span_text": "Anna Berg", "input_text": "Anna", "turn_id": 1},
                     {"span_start": 29, "span_end": 33, "span_text": "1903", "input_text": "1903", "turn_id": 2}],
         "additional_answers": {"0": [
             {"span_start": -1, "span_end": -1, "span_text": "unknown", "input_text": "unknown", "turn_id": 1},
             {"span_start": 29, "span_end": 33, "span_text": "1903", "input_text": "in 1903", "turn_id": 2}]}},
    ],
}  # fmt: skip
_ABG = {"data": [{
    "id": "a1", "source": "wiki", "story": _PASSAGE, "history_turns": [{"question": "Who?", "answer": "Anna"}],
    "target_turn": {"turn_id": 2, "question": "When?", "answer": "1903", "rationale": "1903", "span_start": 29,
                    "span_end": 33},
}]}  # fmt: skip
_MRQA = [
    {"header": {"dataset": "SQuAD"}},
    {"context": _PASSAGE, "qas": [{"qid": "q1", "question": "Who built it?", "answers": ["Anna Berg"],
     "detected_answers": [{"text": "Anna Berg", "char_spans": [[0, 8]]}]}]},
]  # fmt: skip
_DREAM = [[["M: Hello.", "W: Hi."], [{"question": "Who?", "choice": ["a man", "a dog", "a cat"], "answer": "a man"}],
           "5-510"]]  # fmt: skip
_RACE = {"article": _PASSAGE, "questions": ["Who?", "When?"], "options": [["Anna", "Bo"], ["1903", "1904"]],
         "answers": ["A", "B"], "id": "high1.txt"}  # fmt: skip
_TACRED = [
    {"id": "t1", "token": ["Anna", "Berg", "built", "-LRB-", "it", "-RRB-"], "subj_start": 0, "subj_end": 1,
     "obj_start": 4, "obj_end": 4, "subj_type": "PERSON", "obj_type": "TOWER", "relation": "no_relation"},
]  # fmt: skip
_SWAG = 'id,sent1,sent2,ending0,ending1,label\n0,A dog runs.,The dog,stops.,"sleeps, then eats.",1\n1,She,He,a,b,0\n'
_CODAH = "a\tA prompt\tone\ttwo\tthree\tfour\t2\nb\tAnother\tone\ttwo\tthree\tfour\t0\n"
_SEMEVAL = (
    '1\t"The <e1>fire</e1> inside was caused by <e2>exploding</e2> fuel."\nCause-Effect(e2,e1)\nComment:\n\n'
    '2\t"A <e1>hand</e1> of a <e2>clock</e2>."\nOther\nComment: none\n\n'
)
_CONLL2003 = "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\nPeter NNP B-NP B-PER\n"
_WNUT = "Anna\tB-person\nBerg\tI-person\nslept\tO\n\nShe\tO\n"
_TREES = "(3 (2 Good) (2 .))\n(1 (2 Bad) (2 film))\n(2 (2 Neutral) (2 .))\n"
_SST = "sentence\tlabel\na fine film \t1\ndull \t0\n"
_STS = (
    "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
    "0\tmain\tMSRvid\t2012\t1\tnone\tnone\tA plane takes off.\tA plane flies.\t5.000\n"
)
_CONLL2012 = (
    "#begin document (a/b); part 000\n"
    + "".join(
        f"a/b\t0\t{i}\t{word}\tNN\t*\t-\t-\t-\tAnna\t*\t{chain}\n"
        for i, (word, chain) in enumerate((("Anna", "(1)"), ("saw", "-"), ("her", "(1)|(2"), ("dog", "2)")))
    )
    + "\n#end document\n"
)
_GENERATED = (
    "S-0\tone two\nT-0\tone\nH-0\t-0.5\ton e\nD-0\t-0.5\tone\nP-0\t-0.5 -0.5\nS-1\tthree\nT-1\tthree\n"
    "H-1\t-0.1\tthr ee\nD-1\t-0.1\tthree\nP-1\t-0.1 -0.1\n"
)
_TAGGED = "EU B-ORG\nrejects O\n\nPeter B-PER\n"
_ITEMS: dict[str, list[Item]] = {
    "classification": [TextItem(str(i), f"text {i}", "second", "ab"[i % 2]) for i in range(3)],
    "regression": [TextItem(str(i), f"text {i}", None, i / 2) for i in range(3)],
    "tagging": [WordsItem(str(i), ("Anna", "slept"), ("B-PER", "O")) for i in range(3)],
    "choice": [ChoiceItem(str(i), "context", ("one", "two"), "question", 1) for i in range(3)],
    "relation": [RelationItem(str(i), ("Anna", "built", "it"), (Entity(0, 1, "P"), Entity(2, 3, "T")), "made")
                 for i in range(3)],
    "span": [QuestionItem(str(i), "Who built it?", _PASSAGE, (Answer("Anna Berg", 0),)) for i in range(3)],
}  # fmt: skip


def _of_text(
    name: str, file: str, content: str, read: Callable[[str], object], mutators: tuple[Mutator, ...]
) -> Reader:
    return Reader(name, file, sample_file(file, content.encode()), lambda: read(file), mutators, inputs=1500)


def _of_json(name: str, value: object, read: Callable[[str], object]) -> Reader:
    return _of_text(name, "data.json", json.dumps(value), read, JSON)


def _lines(values: list[object]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def _items(head: str) -> Reader:
    files = head_files(TASK_HEADS[head])
    return _of_text(f"items of {head}", "train.jsonl", items_text(_ITEMS[head]), files.items, JSON_LINES)


def _summaries(name: str, file: str, content: str, mutators: tuple[Mutator, ...]) -> Reader:
    """Pairs of texts and summaries with the sentences of an extractive summary."""
    inputs = (str(Path(file).parent) if "/" in file else file,)

    def read() -> None:
        write_pairs(PairConverter(Inputs(name, inputs), oracle="greedy"), "pairs.jsonl", overwrite=True)

    kind = "files" if "/" in file else "rows"
    return Reader(f"{kind} of {name}", file, sample_file(file, content.encode()), read, mutators, inputs=1500)


def _make_race() -> None:
    sample_file("train/high/1.txt", json.dumps(_RACE).encode())()
    sample_file("train/middle/2.txt", json.dumps(_RACE).encode())()


def _make_imdb() -> None:
    for label in ("neg", "pos"):
        sample_file(f"train/{label}/1_1.txt", b"A film.<br />It ends.\n")()


def _beside(name: str, gold: str, mutated: str, read: Callable[[str, str], object], content: str) -> Reader:
    """A reader of two files of one content, of which one is damaged."""

    def make() -> None:
        sample_file(gold, content.encode())()
        sample_file(mutated, content.encode())()

    kinds = JSON_LINES if mutated.endswith(".jsonl") else TEXT
    return Reader(name, mutated, make, lambda: read(gold, mutated), kinds, inputs=1500)


READERS: tuple[Reader, ...] = (
    _of_json("SQuAD", _SQUAD, read_squad_file),
    _of_json("CoQA", _COQA, read_coqa_file),
    _of_json("Abg-CoQA", _ABG, read_coqa_file),
    _of_json("DREAM", _DREAM, read_dream),
    _of_json("TACRED", _TACRED, read_tacred),
    _of_text("MRQA", "data.jsonl", _lines(_MRQA), read_mrqa_file, JSON_LINES),
    Reader("RACE", "train/high/1.txt", _make_race, lambda: read_race("train"), JSON, inputs=1500),
    Reader("IMDB", "train/pos/1_1.txt", _make_imdb, lambda: read_imdb("train"), TEXT, inputs=1500),
    _of_text("SWAG", "val.csv", _SWAG, read_swag, TEXT),
    _of_text("CODAH", "dev.tsv", _CODAH, read_codah, TEXT),
    _of_text("SemEval-2010", "TRAIN_FILE.TXT", _SEMEVAL, read_semeval2010, TEXT),
    _of_text("CoNLL-2003", "train.txt", _CONLL2003, read_conll2003, TEXT),
    _of_text("WNUT-17", "train.conll", _WNUT, read_wnut17, TEXT),
    _of_text("trees of SST", "train.txt", _TREES, read_sentiment_trees, TEXT),
    _of_text("SST-2", "train.tsv", _SST, lambda path: read_glue(GLUE["SST-2"], path), TEXT),
    _of_text("STS-B", "train.tsv", _STS, lambda path: read_glue(GLUE["STS-B"], path), TEXT),
    _of_text("CoNLL-2012", "train.conll", _CONLL2012, lambda path: read_coreference(path, words=True), TEXT),
    *map(_items, _ITEMS),
    _summaries("cnn_dailymail", "train.jsonl", _lines([{"article": _PASSAGE, "highlights": "A tower .\nIt stands ."}]),
               JSON_LINES),
    _summaries("cnn_dailymail", "stories/a.story", f"{_PASSAGE}\n\nMore of it\n\n@highlight\n\nA tower\n", TEXT),
    _summaries("xsum", "train.jsonl", _lines([{"document": _PASSAGE, "summary": "A tower."}] * 2), JSON_LINES),
    _summaries("xsum", "xsum/1.summary", f"[SN]FIRST-SENTENCE[SN]\nA tower.\n[SN]RESTBODY[SN]\n{_PASSAGE}", TEXT),
    _summaries("scitldr", "train.jsonl", _lines([{"source": [_PASSAGE, "It ends."], "target": ["A tower.", "Built."]}]),
               JSON_LINES),
    _summaries("aeslc", "train.jsonl", _lines([{"body": _PASSAGE, "subject": "A tower", "annotations": ["Tower"]}]),
               JSON_LINES),
    _of_json("gold answers of SQuAD", _SQUAD, read_squad),
    _of_json("gold answers of CoQA", _COQA, read_coqa),
    _of_text("gold answers of MRQA", "data.jsonl", _lines(_MRQA), read_mrqa, JSON_LINES),
    _of_json("predictions", {"q1": "Anna", "q2": ""}, read_predictions),
    _of_json("probabilities", {"q1": 0.5, "q2": 1}, read_probabilities),
    _of_json("predictions of CoQA", [{"id": "s1", "turn_id": 1, "answer": "Anna"}], read_coqa_predictions),
    _beside("labels", "gold.txt", "found.txt", read_labels, "yes\nno\nyes\n"),
    _beside("labels of rows", "gold.jsonl", "found.jsonl", read_labels,
            _lines([{"id": i, "label": "ab"[i % 2]} for i in range(3)])),
    _beside("numbers", "gold.tsv", "found.tsv", read_numbers, "1\t0.5\n2\t2\n3\t-1\n"),
    _beside("tags of rows", "gold.jsonl", "found.jsonl", read_tagged,
            _lines([{"id": i, "tags": ["O", "B-X"]} for i in range(3)])),
    _of_text("answers of rows", "found.jsonl", _lines([{"id": i, "answer": "a"} for i in range(3)]), read_answers,
             JSON_LINES),
    _of_text("tags in columns", "tags.txt", _TAGGED, read_tags, TEXT),
    _of_text("output of fairseq-generate", "out.txt", _GENERATED, lambda path: read_generate_output([path]), TEXT),
    _of_text("n-best of fairseq-generate", "out.txt", _GENERATED, lambda path: read_n_best([path]), TEXT),
    _of_text("hypotheses", "found.txt", "one two\nthree\n", read_hypotheses, TEXT),
    _of_text("references", "gold.jsonl", _lines([{"source": "a", "target": "b", "references": ["b", "c"]}]),
             read_references, JSON_LINES),
)  # fmt: skip
