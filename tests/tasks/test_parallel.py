"""Where parallel text comes from: made on the fly, a public set by name, a user's own files; and its tokenizer."""

import gzip
from pathlib import Path

import pytest

from heedful import tokenizers as text
from heedful.data.parallel_sample import Pair, Sides
from heedful.data.readers.parallel_pairs import PairFiles, PublicPairs
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.pipelines.choose_tokenizer import tokenizer_of
from heedful.pipelines.pairs_learned import PairsLearned
from heedful.tokenizers import SPECIAL

SPLITS = {"train": 5, "val": 2, "test_2016_flickr": 3}
LANGUAGES = ("en", "de", "fr")


def sentence(form: str, split: str, language: str, at: int) -> str:
    return f"{form} {split} {language} {at}"


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """HEEDFUL_DATA as people have it: the folders of Multi30k, its files gzipped; the current folder is empty."""
    for form, name in (("tok", "{}.lc.norm.tok.{}.gz"), ("raw", "{}.{}.gz")):
        (tmp_path / "shelf" / "multi30k" / form).mkdir(parents=True)
        for split, count in SPLITS.items():
            for language in LANGUAGES:
                lines = "".join(f"{sentence(form, split, language, at)}\n" for at in range(count))
                path = tmp_path / "shelf" / "multi30k" / form / name.format(split, language)
                path.write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path / "shelf"))
    return tmp_path / "shelf" / "multi30k"


def opened(languages: str = "en-de", form: str = "tok") -> list[list[Pair]]:
    splits = PublicPairs(name="multi30k", languages=languages, form=form).read(seed=1)  # type: ignore[arg-type]
    return [list(splits.train), list(splits.valid), list(splits.test)]


def refused(**data: object) -> str:
    with pytest.raises(Refusal) as refusal:
        PublicPairs(name="multi30k", **data).read(seed=1)  # type: ignore[arg-type]
    return str(refusal.value)


# ---------------------------------------------------------------------- a public set


@pytest.mark.parametrize("languages", ["en-de", "de-en", "fr-de"])
@pytest.mark.parametrize("form", ["tok", "raw"])
def test_a_public_set_is_read_by_its_name_in_any_languages(shelf: Path, languages: str, form: str) -> None:
    source, target = languages.split("-")
    for found, (split, count) in zip(opened(languages, form), SPLITS.items(), strict=True):
        wanted = [tuple(sentence(form, split, side, at) for side in (source, target)) for at in range(count)]
        assert [(pair.source, pair.target) for pair in found] == wanted


def test_a_public_set_may_be_gzipped_or_plain_and_lie_under_data(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gzipped = opened()
    for path in shelf.rglob("*.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    texts = [[(pair.source, pair.target) for pair in part] for part in gzipped]
    assert [[(pair.source, pair.target) for pair in part] for part in opened()] == texts
    Path("data").mkdir()
    shelf.rename(Path("data") / "multi30k")  # where `heedful data get` puts it
    assert [[(pair.source, pair.target) for pair in part] for part in opened()] == texts
    monkeypatch.delenv("HEEDFUL_DATA")
    assert [[(pair.source, pair.target) for pair in part] for part in opened()] == texts


def test_a_fault_in_a_public_set_is_named_with_file_and_line(shelf: Path) -> None:
    path = shelf / "tok" / "val.lc.norm.tok.de.gz"
    path.write_bytes(gzip.compress(b"eins\n\n"))
    assert refused(languages="en-de", form="tok") == f"{path}, line 2: the target is empty; fill it or drop the line"


def test_a_language_that_is_not_there_is_refused_with_those_that_are(shelf: Path) -> None:
    assert refused(languages="en-dee", form="tok") == (
        "unknown language of multi30k (tok) 'dee'; did you mean 'de'? known: de, en, fr"
    )


def test_a_language_that_lacks_one_split_is_refused_too(shelf: Path) -> None:
    (shelf / "raw" / "val.fr.gz").unlink()
    assert refused(languages="fr-en") == "unknown language of multi30k (raw) 'fr'; known: de, en"


@pytest.mark.parametrize("languages", ["", "en", "en-en", "en-de-fr", "-", "ende"])
def test_what_names_no_two_languages_is_refused(shelf: Path, languages: str) -> None:
    said = refused(languages=languages)
    assert "language" in said and ("data.languages=en-de" in said or "known: de, en, fr" in said)


def test_a_set_that_is_not_here_is_refused_with_the_command_that_fetches_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    said = "data=multi30k is not here; fetch it with `heedful data get multi30k`, or set HEEDFUL_DATA"
    assert refused(languages="en-de") == said
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    assert refused(languages="en-de") == said


def test_a_form_that_is_not_here_is_refused_with_what_is(shelf: Path) -> None:
    for path in (shelf / "tok").iterdir():
        path.unlink()
    said = refused(languages="en-de", form="tok")
    assert "multi30k" in said and "tok" in said and "\n" not in said


# ---------------------------------------------------------------------- a user's own files


def file(folder: Path, name: str, lines: list[str]) -> str:
    (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(folder / name)


def test_one_file_is_divided_by_source_and_another_seed_divides_it_otherwise(tmp_path: Path) -> None:
    path = file(tmp_path, "a.tsv", [f"source {at % 150}\ttarget {at}" for at in range(300)])
    made = []
    for seed in (0, 1, 1):
        splits = PairFiles(name=path, split_seed=seed).read(seed=9)
        parts = [{pair.source for pair in part} for part in (splits.train, splits.valid, splits.test)]
        assert not parts[0] & parts[1] and not parts[0] & parts[2] and not parts[1] & parts[2]
        assert sum(map(len, (splits.train, splits.valid, splits.test))) == 300
        made.append(parts)
    assert made[0] != made[1] == made[2]


def test_the_seed_of_a_run_does_not_divide_a_file(tmp_path: Path) -> None:
    path = file(tmp_path, "a.tsv", [f"source {at}\ttarget {at}" for at in range(300)])
    assert PairFiles(name=path).read(seed=1) == PairFiles(name=path).read(seed=2)


def test_two_files_are_divided_as_one_with_tabs_and_keep_their_alignments(tmp_path: Path) -> None:
    source, target = [f"source {at}" for at in range(300)], [f"target {at}" for at in range(300)]
    links = file(tmp_path, "a.links", [f"{at % 2}-0" for at in range(300)])
    sides = Sides(source=file(tmp_path, "a.en", source), target=file(tmp_path, "a.de", target), alignment=links)
    tabs = file(tmp_path, "a.tsv", [f"{s}\t{t}" for s, t in zip(source, target, strict=True)])
    two, one = PairFiles(train=sides).read(seed=1), PairFiles(name=tabs).read(seed=1)
    for part in ("train", "valid", "test"):
        pairs = getattr(two, part)
        assert [pair.source for pair in pairs] == [pair.source for pair in getattr(one, part)]
        for pair in pairs:
            assert pair.links is not None and pair.links.sure == {(int(pair.source.split()[1]) % 2, 0)}


# ---------------------------------------------------------------------- the tokenizer


PAIRS = [Pair(f"the dog runs {at}", f"der Hund läuft {at}") for at in range(40)]


def chosen(reader: PairFiles, pairs: list[Pair]) -> text.Tokenizer:
    """The tokenizer that is learned with pairs."""
    return PairsLearned.fit(tokenizer_of, Splits(pairs, [], []), reader, 1).tokenizer


@pytest.mark.parametrize("kind", ["bpe", "bpe_characters", "wordpiece", "unigram", "words"])
def test_a_tokenizer_is_trained_on_both_sides_of_what_is_learned_from(kind: str) -> None:
    made = chosen(PairFiles(tokenizer=f"{kind}(size=350)"), PAIRS)
    both = [text for pair in PAIRS for text in (pair.source, pair.target)]
    assert made.layout.text == text.train(both, kind, 350).layout.text
    assert SPECIAL.index("<unknown>") not in made.encode("the Hund läuft")


def test_a_tokenizer_of_characters_is_the_default() -> None:
    made = chosen(PairFiles(), PAIRS)
    assert made.kind == "characters"
    assert len(made) == len(SPECIAL) + len({sign for pair in PAIRS for sign in pair.source + pair.target})


def test_a_tokenizer_is_read_from_a_file(tmp_path: Path) -> None:
    made = text.train(["the dog runs"] * 3, "bpe", 300)
    made.write(tmp_path / "mine.json")
    read = chosen(PairFiles(tokenizer=str(tmp_path / "mine.json")), PAIRS)
    assert read.encode("the dog") == made.encode("the dog") and len(read) == len(made)


def test_a_file_whose_first_tokens_are_others_is_refused(tmp_path: Path) -> None:
    made = text.train(["the dog runs"] * 3, "words", 20)
    path = tmp_path / "other.json"
    path.write_text(made.layout.text.replace("<begin>", "<s>"), encoding="utf-8")
    with pytest.raises(Refusal, match=r"does not begin with <pad> <begin> <end> <unknown>; train one with") as refusal:
        chosen(PairFiles(tokenizer=str(path)), PAIRS)
    assert str(path) in str(refusal.value)


BAD = {
    "bpee": r"^data\.tokenizer=bpee: unknown kind of tokenizer 'bpee'; did you mean 'bpe'\?",
    "bpe(size=9)": r"^data\.tokenizer=bpe\(size=9\): a size of 9 is too small: .*; give at least 260",
    "bpe(size=0)": r"^data\.tokenizer=bpe\(size=0\): a size of 0 is no size for a vocabulary; ",
    "bpe(sise=9)": r"^data\.tokenizer='bpe\(sise=9\)' cannot be made; write, for instance, bpe\(size=8000\)",
    "bpe(size='many')": r"^data\.tokenizer=.* cannot be made; ",
    "bpe(size=400.5)": r"^data\.tokenizer=.* cannot be made; ",
    "bpe(digits=3)": r"^data\.tokenizer=.* cannot be made; ",
    "bpe(digits='whole')": r"^data\.tokenizer=.*: unknown way to split digits 'whole'; known: ",
    "bpe(size": r"cannot be read; write a word",
    "open('x')": r"cannot be read; write a word",
    "nowhere.json": r"^data\.tokenizer: nowhere\.json .*; train one with `heedful tokenizer train`$",
    "nowhere.model": r"^data\.tokenizer: nowhere\.model .*; train one with `heedful tokenizer train`$",
}


@pytest.mark.parametrize("said", BAD)
def test_a_tokenizer_that_cannot_be_had_is_refused_in_one_line(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refusal, match=BAD[said]) as refusal:
        chosen(PairFiles(tokenizer=said), PAIRS)
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.json"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(Refusal, match=r"^data\.tokenizer: .*notes\.json is no tokenizer: .*; train one with"):
        chosen(PairFiles(tokenizer=str(path)), PAIRS)


def test_sources_that_differ_in_blanks_case_or_form_stay_on_one_side(tmp_path: Path) -> None:
    lines = [f"caf\u00e9 {at}" for at in range(200)]
    others = [line.upper().replace(" ", "  ") + " " for line in lines] + [
        line.replace("\u00e9", "e\u0301") for line in lines
    ]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{line}\tx\n" for line in (*lines, *others)), encoding="utf-8")
    splits = PairFiles(name=str(path)).read(0)
    numbers = [{pair.source.split()[-1] for pair in part} for part in (splits.train, splits.valid, splits.test)]
    assert sum(map(len, numbers)) == 200 and all(numbers)
