"""Questions, texts and the words of these that answer them: SQuAD's JSON, or JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heedful.data import line_files
from heedful.data.line_files import object_of
from heedful.data.parallel_sample import Sides
from heedful.errors import Refusal
from heedful.safe.plain_data import json_of

HOW = '{"question": "...", "context": "...", "answers": [{"text": "...", "answer_start": 0}]}'
SQUAD = '{"data": [{"paragraphs": [{"context": "...", "qas": [...]}]}]}'


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the text that may answer it, and its answers, each with its first character; none: unanswerable."""

    question: str
    context: str
    answers: tuple[tuple[str, int], ...]
    path: str = ""
    line: int = 0

    @property
    def texts(self) -> tuple[str, str]:
        """The question and the text."""
        return self.question, self.context

    @property
    def place(self) -> str:
        """Where it stands."""
        return f"{self.path}, question {self.line}" if self.line else "a sample"


def read_questions(place: str | Sides) -> list[Question]:
    """The questions of a file."""
    if isinstance(place, Sides):
        raise Refusal("questions are read from one file, not from a source and a target; give data=FILE")
    path = Path(place)
    lines = line_files.lines(path)
    if path.name.removesuffix(".gz").endswith(("jsonl", "ndjson")):
        rows = [(n, object_of(line, path, n)) for n, line in enumerate(lines, 1) if line.strip()]
    else:
        rows = list(enumerate(squad("\n".join(lines), path), 1))
    return [question_of(row, path, number) for number, row in rows]


def squad(text: str, path: Path) -> Iterator[dict[str, Any]]:
    """The questions of a file as SQuAD has them (Rajpurkar et al., 2016)."""
    try:
        whole = json_of(text)
    except (ValueError, RecursionError) as error:
        raise unlike_squad(path, str(error)[:100]) from None
    for article in objects_in_list(whole, "data", path):
        for paragraph in objects_in_list(article, "paragraphs", path):
            for question in objects_in_list(paragraph, "qas", path):
                yield {**question, "context": paragraph.get("context")}


def objects_in_list(whole: Any, name: str, path: Path) -> list[dict[str, Any]]:
    """The objects of a list that an object of a file has by a name."""
    found = whole.get(name) if isinstance(whole, dict) else None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise unlike_squad(path, f"{name!r} is missing or no list of objects, as in {SQUAD}")
    return found


def unlike_squad(path: Path, fault: str) -> Refusal:
    """Refuse a file that is not as SQuAD's are."""
    return Refusal(f"{path} is not as SQuAD's files are: {fault}; or write lines of {HOW}")


def question_of(row: dict[str, Any], path: Path | str, number: int) -> Question:
    """The question of an object."""
    question, context, answers = row.get("question"), row.get("context"), row.get("answers", row.get("answer"))
    if isinstance(answers, dict) and isinstance(answers.get("text"), list):  # two lists, as some write them
        starts = answers.get("answer_start")
        starts = starts if isinstance(starts, list) else [None] * len(answers["text"])
        if len(starts) != len(answers["text"]):
            raise Refusal(f"{path}, question {number}: as many answer_start as answers are needed; mend them")
        answers = [{"text": t, "answer_start": s} for t, s in zip(answers["text"], starts, strict=True)]
    answers = [answers] if isinstance(answers, str | dict) else answers
    if not isinstance(question, str) or not isinstance(context, str) or not isinstance(answers, list):
        texts = {"question": question, "context": context}
        lacking = next((name for name, one in texts.items() if not isinstance(one, str)), "answers")
        raise Refusal(f"{path}, question {number}: {lacking!r} is missing or not as it should be; write {HOW}")
    if not question.strip() or not context.strip():
        raise Refusal(f"{path}, question {number}: the question or the text is empty; fill it or drop it")
    found = Question(question, context, (), str(path), number)
    return replace(found, answers=tuple(place_answer(one, found) for one in answers))


def place_answer(answer: Any, question: Question) -> tuple[str, int]:
    """An answer and its first character: as it says, or where it first stands in the text."""
    text = answer if isinstance(answer, str) else answer.get("text") if isinstance(answer, dict) else None
    start = answer.get("answer_start") if isinstance(answer, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise Refusal(f"{question.place}: an answer is empty; give its words, or no answer where there is none")
    if start is None and text not in question.context:
        raise Refusal(f"{question.place}: {text[:60]!r} does not stand in the text; give words of it, or no answer")
    start = question.context.find(text) if start is None else start
    if type(start) is not int or start < 0 or question.context[start : start + len(text)] != text:
        raise Refusal(f"{question.place}: {text[:60]!r} does not stand in the text where it should; mend answer_start")
    return text, start
