"""A user's own files, from training to looking: pairs, parallel files, sets and series."""

import gzip
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Program
from tests.cli.workshop import ENGLISH, INVENTED, LINKS, PAIRS, SERIES, SETS

SHORT = ["training.steps=3", "training.batch=16", "model.width=16", "model.depth=1", "model.heads=2", "model.hidden=32"]
TABLES = ("word2vec", "glove")  # of vectors, without layers
SOURCES, TARGETS = zip(*(pair.split("\t") for pair in PAIRS), strict=True)
WINDOWS = ["data.longest=16", "data.horizon=4"]
CROPS = ["data.longest=24", "training.evaluate_every=2"]
BRIEF = ["training.tokens=200", "decoding.beams=2", "decoding.max_new_tokens=9"]


def write(place: Path, name: str, lines: object, end: str = "\n", first: str = "") -> str:
    (place / name).write_bytes(f"{first}{end.join(lines)}{end}".encode())  # type: ignore[arg-type]
    return str(place / name)


def pairs(place: Path) -> list[str]:
    return ["reverse", f"data={write(place, 'pairs.tsv', PAIRS)}"]


def pairs_with_blank_lines(place: Path) -> list[str]:
    return ["sort", f"data={write(place, 'pairs.tsv', ['', *PAIRS[:50], '', '  ', *PAIRS[50:], ''])}"]


def pairs_from_another_system(place: Path) -> list[str]:
    return ["reverse", f"data={write(place, 'pairs.tsv', PAIRS, end=chr(13) + chr(10), first=chr(0xFEFF))}"]


def parallel_files(place: Path) -> list[str]:
    source, target = write(place, "train.en", SOURCES), write(place, "train.de", TARGETS)
    return ["reverse", f"data.train.source={source}", f"data.train.target={target}"]


def a_file_for_each_part(place: Path) -> list[str]:
    parts = {"train": PAIRS[:80], "valid": PAIRS[80:100], "test": PAIRS[100:]}
    return ["sort", *(f"data.{part}={write(place, f'{part}.tsv', lines)}" for part, lines in parts.items())]


def characters_of_the_test_alone(place: Path) -> list[str]:
    parts = {"train": PAIRS[9:], "valid": PAIRS[:9], "test": ["日本\t本日", "ß\tß"]}
    return ["reverse", *(f"data.{part}={write(place, f'{part}.tsv', lines)}" for part, lines in parts.items())]


def sentences(place: Path) -> list[str]:
    lines = map("\t".join, zip(ENGLISH, INVENTED, strict=True))
    return ["translate", f"data={write(place, 'sentences.tsv', lines)}", *BRIEF]


def sentences_in_two_files(place: Path) -> list[str]:
    source, target = write(place, "train.en", ENGLISH), write(place, "train.xx", INVENTED)
    return ["translate", f"data.train.source={source}", f"data.train.target={target}", *BRIEF]


def sentences_in_gzipped_files(place: Path) -> list[str]:
    recipe, source, target, *brief = sentences_in_two_files(place)
    zipped = []
    for change in (source, target):
        path = Path(change.partition("=")[2])
        path.with_suffix(f"{path.suffix}.gz").write_bytes(gzip.compress(path.read_bytes()))
        zipped.append(f"{change}.gz")
    return [recipe, *zipped, *brief]


def sentences_with_links_for_each_part(place: Path) -> list[str]:
    data = []
    for part, lines in {"train": slice(80), "valid": slice(80, 100), "test": slice(100, 120)}.items():
        for side, texts in {"source": ENGLISH, "target": INVENTED, "alignment": LINKS}.items():
            data.append(f"data.{part}.{side}={write(place, f'{part}.{side}', texts[lines])}")
    return ["translate", *data, "objective.guidance=0.5", "data.bleu=char", *BRIEF]


def sets(place: Path) -> list[str]:
    return ["sets", f"data={write(place, 'sets.csv', SETS)}"]


def sets_with_a_header(place: Path) -> list[str]:
    return ["sets", f"data={write(place, 'sets.csv', ['', 'set,label,x,y', *SETS, '', ''], end=chr(13) + chr(10))}"]


def series(place: Path) -> list[str]:
    return ["series", f"data={write(place, 'series.csv', SERIES)}", *WINDOWS]


def series_with_a_header(place: Path) -> list[str]:
    return ["series", f"data={write(place, 'series.csv', ['monday,tuesday', *SERIES])}", *WINDOWS]


def series_of_one_channel_in_parts(place: Path) -> list[str]:
    one = [line.split(",")[1] for line in SERIES]
    parts = {"train": one[:400], "valid": one[400:500], "test": one[500:]}
    files = [f"data.{part}={write(place, f'{part}.csv', lines)}" for part, lines in parts.items()]
    return ["series", *files, *WINDOWS]


def a_constant_series(place: Path) -> list[str]:
    return ["series", f"data={write(place, 'series.csv', ['5,-7e14'] * 600)}", *WINDOWS]


def a_book(place: Path) -> list[str]:
    return ["gpt-text", f"data={write(place, 'book.txt', ENGLISH)}", "data.tokenizer=words(size=300)", *CROPS]


def a_book_in_parts(place: Path) -> list[str]:
    parts = {"train": ENGLISH[:80], "valid": ENGLISH[80:100], "test": ENGLISH[100:]}
    return [
        "gpt-shakespeare-small",
        *(f"data.{part}={write(place, f'{part}.txt', lines)}" for part, lines in parts.items()),
        *CROPS,
    ]


def a_folder_of_books(place: Path) -> list[str]:
    (place / "books").mkdir()
    for at in range(24):
        write(place / "books", f"{at}.txt", ENGLISH[5 * at : 5 * at + 5])
    return ["bert-text", f"data={place / 'books'}", "data.document=line", "data.whole_words=true", *CROPS]


def a_book_with_gaps(place: Path) -> list[str]:
    return ["t5-text", f"data={write(place, 'book.txt', ENGLISH)}", *CROPS]


def a_book_masked(place: Path) -> list[str]:
    return ["bart-text", f"data={write(place, 'book.txt', ENGLISH)}", *CROPS]


def words_of_a_book(place: Path) -> list[str]:
    return ["word2vec", f"data={write(place, 'book.txt', ENGLISH)}", *CROPS]


def counts_of_a_book(place: Path) -> list[str]:
    return ["glove", f"data={write(place, 'book.txt', ENGLISH)}", "training.evaluate_every=2"]


ASKED = {
    "gpt-text": "The dog",
    "gpt-shakespeare-small": "The dog",
    "bert-text": "The <mask> runs .",
    "t5-text": "The <gap_0> runs .",
    "bart-text": "The <mask> runs .",
    "word2vec": "dog",
    "glove": "dog",
    "reverse": "012",
    "sort": "012",
    "sets": "1,2; 3,4",
    "series": "1,2; 3,4",
    "translate": "A dog runs .",
}
OTHERS: dict[object, str] = {series_of_one_channel_in_parts: "1; 2", a_constant_series: "5,-7e14; 5,-7e14"}
KINDS = [
    pairs,
    pairs_with_blank_lines,
    pairs_from_another_system,
    parallel_files,
    a_file_for_each_part,
    characters_of_the_test_alone,
    sentences,
    sentences_in_two_files,
    sentences_in_gzipped_files,
    sentences_with_links_for_each_part,
    sets,
    sets_with_a_header,
    series,
    series_with_a_header,
    series_of_one_channel_in_parts,
    a_constant_series,
    a_book,
    a_book_in_parts,
    a_folder_of_books,
    a_book_with_gaps,
    a_book_masked,
    words_of_a_book,
    counts_of_a_book,
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_own_files_are_trained_on_scored_asked_and_looked_into(heedful: Program, tmp_path: Path, kind: object) -> None:
    recipe, *data = kind(tmp_path)  # type: ignore[operator]
    run = tmp_path / "run"
    small = [change for change in SHORT if recipe not in TABLES or "width" in change or "model" not in change]
    trained = heedful("train", recipe, *data, *small, "--out", run)
    assert trained.status == 0, trained.err
    scored = heedful("eval", run)
    assert scored.status == 0, scored.err
    result = json.loads((run / "result.json").read_text())
    said = json.loads(scored.out)
    assert {name: said[name] for name in result["scores"]} == pytest.approx(result["scores"])
    asked = OTHERS.get(kind, ASKED[recipe])
    answer = heedful("predict", run, asked)
    assert answer.status == 0 and len(answer.lines) == 1
    assert heedful("look", run, asked, "--out", tmp_path / "seen.html").status == 0
    assert (run / "report.html").stat().st_size > 1000


def test_a_forecast_that_is_not_finite_is_refused(heedful: Program, tmp_path: Path) -> None:
    assert heedful("train", *a_constant_series(tmp_path), *SHORT, "--out", tmp_path / "run").status == 0
    said = "the forecast is not finite; give steps more like those that the model was trained on\n"
    for words, place in ((["predict"], "input 1: "), (["look", "--out", tmp_path / "seen.html"], "")):
        answer = heedful(*words, tmp_path / "run", "5,7e14; 5,7e14")
        assert (answer.status, answer.out, answer.err) == (2, "", f"heedful: {place}{said}")


@pytest.mark.parametrize(
    "kinds",
    [
        (pairs, pairs_from_another_system, parallel_files),
        (sentences, sentences_in_two_files, sentences_in_gzipped_files),
    ],
)
def test_files_that_mean_the_same_are_read_the_same(
    heedful: Program, tmp_path: Path, kinds: tuple[object, ...]
) -> None:
    models = []
    for kind in kinds:
        place = tmp_path / kind.__name__  # type: ignore[attr-defined]
        place.mkdir()
        assert heedful("train", *kind(place), *SHORT, "--out", place / "run").status == 0  # type: ignore[operator]
        models.append((place / "run" / "model" / "model.safetensors").read_bytes())
    assert models[0] == models[1] == models[2]


def test_a_recipe_of_one_s_own_is_trained(heedful: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "pairs.tsv", PAIRS)
    write(tmp_path, "sets.csv", SETS)
    write(tmp_path, "mine.yaml", ["task: pairs", "data: pairs.tsv", "model: {width: 16}", "training: {steps: 2}"])
    write(tmp_path, "ours.yml", ["task: sets", "data: {name: sets.csv}", "model: {width: 16, position: none}"])
    assert heedful("train", "mine.yaml", "model.depth=1").status == 0
    assert (tmp_path / "runs" / "mine" / "report.html").is_file()
    assert heedful("train", "ours.yml", "training.steps=2", "--out", "ours").status == 0
    assert json.loads(heedful("eval", "ours").out)["task"] == "sets"  # and the model is of the family that sets need


def test_eval_needs_only_the_file_that_it_scores(heedful: Program, tmp_path: Path) -> None:
    assert heedful("train", *a_file_for_each_part(tmp_path), *SHORT, "--out", tmp_path / "run").status == 0
    for part in ("train", "valid"):
        (tmp_path / f"{part}.tsv").unlink()
    assert json.loads(heedful("eval", tmp_path / "run").out)["samples"] == 20
    other = write(tmp_path, "other.tsv", PAIRS[:7])
    assert json.loads(heedful("eval", tmp_path / "run", f"data.test={other}").out)["samples"] == 7


def test_one_file_is_divided_the_same_way_when_lines_are_added(heedful: Program, tmp_path: Path) -> None:
    counts = []
    for lines in (PAIRS, [*PAIRS, *(f"a{line}" for line in PAIRS)]):
        file = write(tmp_path, f"{len(lines)}.tsv", lines)
        run = tmp_path / f"run{len(lines)}"
        assert heedful("train", "reverse", f"data={file}", *SHORT, "--out", run).status == 0
        counts.append([json.loads(heedful("eval", run, "--split", part).out)["samples"] for part in ("train", "test")])
    assert sum(counts[0]) < 120 < sum(counts[1])
    assert all(few < many for few, many in zip(*counts, strict=True))
