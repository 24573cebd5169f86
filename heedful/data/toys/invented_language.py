"""An invented language: captions in English, their one right translation, and which words belong together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from heedful.data.parallel_sample import Link
from heedful.data.splits import Splits
from heedful.data.texts_on_disk import Text
from heedful.errors import Refusal

Forms = tuple[str, ...]
Piece = tuple[str, tuple[int, ...]]  # a word of the invented language, and the places of those that it stands for
Option = TypeVar("Option")


def _forms(words: str) -> tuple[Forms, ...]:
    return tuple(tuple(word.split("/")) for word in words.split())


ACTORS = _forms(  # one and many
    "dog/dogs cat/cats bird/birds horse/horses boy/boys girl/girls man/men woman/women child/children farmer/farmers"
)
THINGS = (*ACTORS, *_forms("ball/balls box/boxes kite/kites bicycle/bicycles"))
PLACES = _forms("house/houses bridge/bridges garden/gardens tree/trees")
ALONE = _forms("runs/run/ran walks/walk/walked jumps/jump/jumped sleeps/sleep/slept waits/wait/waited")
ACTING = _forms("carries/carry/carried watches/watch/watched follows/follow/followed finds/find/found")
PREPOSITIONS = (("in",), ("near",), ("behind",), ("next", "to"))
ADJECTIVES = ("small", "big", "old", "young", "red", "blue", "happy", "quiet", "wet", "orange")
ADVERBS, NUMBERS = ("slowly", "quickly"), ("two", "three", "four")
INFLECTED = (*THINGS, *PLACES, *ALONE, *ACTING, *PREPOSITIONS)
LEMMAS = (*(forms[0] for forms in INFLECTED), *ADJECTIVES, *ADVERBS, *NUMBERS, "and", "wheel")

CONSONANTS, VOWELS = "ptkbdgmnlr", "aeiou"
PLURAL, DEFINITE, PRESENT, PAST = "sho", "fe", "zu", "vi"  # endings, with sounds that no root has
LONGEST = 14  # words of a caption


@dataclass(frozen=True)
class Phrase:
    """A caption, the same in the invented language, and which of their words belong together."""

    source: str
    target: str
    links: list[Link]


def sentences(count: int, seed: int) -> list[Phrase]:
    """So many captions, no two alike, as a pure function of the seed: 4 to 14 words with blanks between them.

    The invented language has no capitals and no word for `a`; `the` is an ending of the noun, as number is, and tense
    one of the verb. Adjectives, numbers and prepositions follow their noun, and a verb ends its clause. `next to` is
    one word there, and `bicycle` two.
    """
    random, tries = Random(seed), 0
    made: dict[str, Phrase] = {}  # in the order of making, each once: what is tested was never seen
    while len(made) < count and tries < 20 * count:
        phrase = _Caption(random).phrase()
        made.setdefault(phrase.source, phrase)
        tries += 1
    if len(made) < count:
        raise Refusal(f"only {len(made):,} different captions were found, not {count:,}; lower data.samples")
    return list(made.values())


def root(lemma: str) -> str:
    """The root of a word in the invented language: two syllables, by its place in the list of all words."""
    at = LEMMAS.index(lemma)
    return _syllable(7 * at + 3) + _syllable(19 * at + 11)  # of 50 such pairs no two are alike


def _syllable(at: int) -> str:
    return CONSONANTS[at % 10] + VOWELS[at // 10 % 5]


class _Caption:
    """A caption in the making: source words are said in order, and what they mean is put in another order."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.source: list[str] = []
        self.named: set[Forms] = set()  # nouns, of which none comes twice

    def phrase(self) -> Phrase:
        target = self.clause()
        if self.chance(0.15):
            target += [(root("and"), self.say("and")), *self.clause()]
        target += [(".", self.say("."))]
        if len(self.source) > LONGEST:
            return _Caption(self.random).phrase()
        source = " ".join(self.source)
        links = sorted((at, place) for place, (_, places) in enumerate(target) for at in places)
        return Phrase(source[0].upper() + source[1:], " ".join(piece for piece, _ in target), links)

    def clause(self) -> list[Piece]:
        many, subject = self.noun(ACTORS)
        acting, past = self.chance(0.5), self.chance(0.5)
        forms = self.choose(ACTING if acting else ALONE)
        verb = [(root(forms[0]) + (PAST if past else PRESENT), self.say(forms[2 if past else many]))]
        thing = self.noun(THINGS)[1] if acting else []
        place = self.place() if self.chance(0.5) else []
        if self.chance(0.2):
            adverb = self.choose(ADVERBS)
            verb = [(root(adverb), self.say(adverb)), *verb]
        return [*subject, *place, *thing, *verb]

    def place(self) -> list[Piece]:
        words = self.choose(PREPOSITIONS)
        said = self.say(*words)
        return [*self.noun(PLACES)[1], (root(words[0]), said)]

    def noun(self, nouns: Sequence[Forms]) -> tuple[bool, list[Piece]]:
        """Whether a noun means more than one, and the noun with all that belongs to it."""
        forms = self.choose([forms for forms in nouns if forms not in self.named])
        self.named.add(forms)
        many, adjectives = self.chance(0.4), [self.choose(ADJECTIVES)] if self.chance(0.5) else []
        article, number = self.determiner(many, (*adjectives, forms[0])[0])
        after = [(root(adjective), self.say(adjective)) for adjective in adjectives] + number
        said = self.say(forms[many])
        ending = PLURAL * many + DEFINITE * bool(article)
        before = [(root("wheel"), said)] if forms[0] == "bicycle" else []
        return many, [*before, (root(forms[0]) + ending, (*article, *said)), *after]

    def determiner(self, many: bool, next: str) -> tuple[tuple[int, ...], list[Piece]]:
        """Says an article or a number: the place of `the`, where it is that, and the number's own word."""
        if self.chance(0.3):
            return self.say("the"), []
        if many:
            number = self.choose(NUMBERS)
            return (), [(root(number), self.say(number))]
        self.say("an" if next[0] in "aeio" else "a")
        return (), []

    def say(self, *words: str) -> tuple[int, ...]:
        self.source += words
        return tuple(range(len(self.source) - len(words), len(self.source)))

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def choose(self, options: Sequence[Option]) -> Option:
        return options[int(self.random.random() * len(options))]


def captions(data: Any, seed: int) -> Splits[Text]:
    """Captions in English, each a text of its own; no two are alike."""
    counts = [max(data.held_out // 4, 1), data.held_out, data.samples]
    made = [Text(phrase.source, "a caption") for phrase in sentences(sum(counts), seed)]
    valid, test = counts[0], counts[0] + counts[1]
    return Splits(made[test:], made[:valid], made[valid:test])
