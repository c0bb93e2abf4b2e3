"""The chunks of a knowledge base: read in every form, and searched for key points as the rules search."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_judge.corpus import Chunk, Corpus, PairIndex
from rag_judge.demo.rag_service import load_chunks
from rag_judge.errors import InputError
from rag_judge.text import fold, holds_point
from tests.eval_sets import write_rows

ROWS: list[dict[str, Any]] = [
    {"id": "hr#1", "text": "试用期三个月。", "heading": "人事 > 试用期", "tenant": None, "keywords": ["转正"]},
    {"id": "hr#2", "text": "The trial lasts 14", "title": "Trial"},
    {"id": "hr#3", "text": "days for everyone.", "heading": ""},
    {"id": "b", "text": "Costs 1,500 yuan.", "tenant": "b"},
]
CHUNKS = [
    Chunk("hr#1", "试用期三个月。", "人事 > 试用期"),
    Chunk("hr#2", "The trial lasts 14", "Trial"),
    Chunk("hr#3", "days for everyone."),
    Chunk("b", "Costs 1,500 yuan.", tenant="b"),
]


def corpus(folder: Path, *texts: str, **documents: list[str]) -> Corpus:
    """A corpus of one document `d` of these texts, or of several documents."""
    documents = documents or {"d": list(texts)}
    rows = [{"id": f"{name}#{n}", "text": text} for name, parts in documents.items() for n, text in enumerate(parts, 1)]
    return Corpus(write_rows(folder / "corpus.jsonl", rows))


def test_every_form_gives_the_same_chunks_in_order(tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    write_rows(tmp_path / "kb" / "a.jsonl", ROWS[:2])
    write_rows(tmp_path / "kb" / "b.jsonl", ROWS[2:])
    (tmp_path / "kb" / "notes.txt").write_text("no chunk", encoding="utf-8")
    (tmp_path / "array.json").write_text(json.dumps(ROWS), encoding="utf-8")
    (tmp_path / "kb.csv").write_text(
        "id,text,heading,tenant\nhr#1,试用期三个月。,人事 > 试用期,\nhr#2,The trial lasts 14,Trial,\n"
        'hr#3,days for everyone.,,\nb,"Costs 1,500 yuan.",,b\n',
        encoding="utf-8",
    )
    pq.write_table(
        pa.Table.from_pylist([{name: row.get(name) for name in ROWS[0] | ROWS[1]} for row in ROWS]),
        tmp_path / "kb.parquet",
    )
    for form in (tmp_path / "kb", tmp_path / "array.json", tmp_path / "kb.csv", tmp_path / "kb.parquet"):
        found = Corpus(form)
        assert list(found) == CHUNKS, form
        assert (len(found), found.path, "hr#2" in found, "hr" in found) == (4, form, True, False)
        assert found.text_of("b") == "Costs 1,500 yuan."


def test_the_hash_of_a_folder_changes_with_any_file(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", ROWS[:1])
    before = Corpus(tmp_path).sha256
    write_rows(tmp_path / "b.jsonl", ROWS[1:2])
    assert before != Corpus(tmp_path).sha256
    (tmp_path / "b.jsonl").rename(tmp_path / "c.jsonl")
    assert len({before, Corpus(tmp_path).sha256, Corpus(tmp_path / "a.jsonl").sha256}) == 3


def test_the_shipped_knowledge_base_is_read_as_its_service_reads_it() -> None:
    folder = Path(__file__).resolve().parent.parent / "eval" / "kb"
    expected = [Chunk(chunk.id, chunk.text, chunk.heading, chunk.tenant) for chunk in load_chunks(folder)]
    assert list(Corpus(folder)) == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(
            '{"id": "a", "text": "x"}\n\n{"id": "a", "text": "y"}', r":3: id 'a' stands twice, .*:1;", id="id"
        ),
        pytest.param('{"id": "a"}', ":1: text is missing", id="no text"),
        pytest.param('{"text": "a"}', ":1: id is missing", id="no id"),
        pytest.param('{"id": "a", "text": "  "}', ":1: text: found blank text", id="blank text"),
        pytest.param('{"id": "a", "text": ["x"]}', r":1: text: found .*list", id="text of another type"),
        pytest.param('{"id": "a", "text": "x", "heading": 5}', ":1: heading: found 5", id="heading"),
        pytest.param('{"id": "a", "text": "x", "tenant": true}', ":1: tenant: found true", id="tenant"),
        pytest.param('{"id": "a", "text": "x"}\n{', ":2: not valid JSON", id="JSON"),
        pytest.param("", "is empty", id="empty"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "kb.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=f"kb.jsonl.*{message}|kb.jsonl {message}"):
        Corpus(path)


def test_an_id_that_stands_in_two_files_is_named_with_both(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", ROWS)
    write_rows(tmp_path / "b.jsonl", ROWS[1:2])
    with pytest.raises(InputError, match=r"b\.jsonl:1: id 'hr#2' stands twice, first at .*a\.jsonl:2"):
        Corpus(tmp_path)


def test_a_folder_without_chunks_and_a_missing_file_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"found no \*\.jsonl"):
        Corpus(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        Corpus(tmp_path / "none.jsonl")


def test_neighbours_are_of_the_same_document_in_file_order(tmp_path: Path) -> None:
    ids = ["a#1", "b#1", "a#10", "a#2", "c", "c#1#2"]
    found = Corpus(write_rows(tmp_path / "k.jsonl", [{"id": name, "text": "x"} for name in ids]))
    assert [found.neighbours(name) for name in ids] == [
        (None, "a#10"),
        (None, None),
        ("a#1", "a#2"),
        ("a#10", None),
        (None, "c#1#2"),
        ("c", None),
    ]
    assert (found.chunks_of("a"), found.chunks_of("a#2"), found.chunks_of("d")) == (
        ("a#1", "a#10", "a#2"),
        ("a#2",),
        (),
    )
    with pytest.raises(KeyError):
        found.neighbours("d")


@pytest.mark.parametrize(
    ("point", "chunks"),
    [
        pytest.param("三个月", ("hr#1",), id="Chinese"),
        pytest.param("THE  Trial", ("hr#2",), id="folded"),
        pytest.param("1,500", ("b",), id="a number"),
        pytest.param("500", (), id="never inside a longer number"),
        pytest.param("月", ("hr#1",), id="one character"),
        pytest.param("s", ("hr#2", "hr#3", "b"), id="one letter"),
        pytest.param("14 days", (), id="only across a border"),
        pytest.param("没有", (), id="nowhere"),
        pytest.param("", (), id="nothing"),
    ],
)
def test_a_point_is_found_in_the_chunks_that_hold_it(tmp_path: Path, point: str, chunks: tuple[str, ...]) -> None:
    found = Corpus(write_rows(tmp_path / "k.jsonl", ROWS)).holding(fold(point))
    assert found == tuple(row["id"] for row in ROWS if point and holds_point(fold(row["text"]), fold(point)))
    assert found == chunks


@pytest.mark.parametrize(
    ("texts", "point", "pairs"),
    [
        pytest.param(["支持 8", "00 并发"], "800", [("d#1", "d#2")], id="cut inside"),
        pytest.param(["支持 800", "并发 800"], "800", [], id="whole in each"),
        pytest.param(["支持 8", "0", "0 并发"], "800", [], id="not over three"),
        pytest.param(["支持 18", "00 并发"], "800", [], id="a number that began before"),
        pytest.param(["支持 8", "00.5"], "800", [], id="a number that goes on"),
        pytest.param(["试用期三", "个月", "试用期三", "个月"], "三个月", [("d#1", "d#2"), ("d#3", "d#4")], id="twice"),
        pytest.param(["十四天内三", "个月"], "三个月", [("d#1", "d#2")], id="Chinese"),
    ],
)
def test_a_point_over_a_border_names_both_neighbours(
    tmp_path: Path, texts: list[str], point: str, pairs: list[tuple[str, str]]
) -> None:
    assert list(corpus(tmp_path, *texts).holding_across(fold(point))) == pairs


def test_no_point_runs_from_one_document_into_another(tmp_path: Path) -> None:
    assert corpus(tmp_path, a=["支持 8"], b=["00 并发"]).holding_across("800") == ()


@given(st.lists(st.text("ab1.,年\ud800", max_size=12), min_size=1, max_size=30), st.text("ab1年\ud800", max_size=4))
def test_the_index_finds_what_reading_every_text_finds(texts: list[str], point: str) -> None:
    index = PairIndex(texts)
    expected = [place for place, text in enumerate(texts) if point and holds_point(text, point)]
    assert index.holders(point) == expected
    for most in (0, 1, len(texts) / 5):
        assert index.is_common(point, most) is (len(expected) > most)


def test_an_index_of_several_blocks_finds_the_same() -> None:
    texts = [f"{'文' * 900_000}{n}号" for n in range(10)]  # more characters than one block takes
    index = PairIndex(texts)
    assert [index.holders(f"{n}号") for n in range(10)] == [[n] for n in range(10)]
    assert index.holders("文文") == list(range(10))
