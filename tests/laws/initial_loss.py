"""The loss that a fresh model may have: it knows nothing, and uniform chances of all answers cost their log."""

import math

from heedful.models import Spec

TOKENS, CLASSES = 1.15, 1.25  # times that log: the most for one that tells tokens, and for one that tells classes
ERROR = "it tells numbers, and squared errors know no uniform answer"
OTHER_LOSS = {  # families that choose among no fixed answers
    "forecaster": ERROR,
    "mae": ERROR,
    "dvae": ERROR,
    "dino": "it should say what its own moving average says",
    "transformer_encoder": "it answers nothing",
    "transformer_decoder": "it is asked as a part of others",
    "recurrent_encoder": "it answers nothing",
    "recurrent_decoder": "it is asked as a part of others",
    "word_vectors": "it tells for each pair of words whether they were met together",
}


def largest(spec: Spec) -> float:
    """The largest loss that a fresh model may have."""
    classes = getattr(spec, "classes", None)
    return CLASSES * math.log(classes) if classes else TOKENS * math.log(spec.vocab)  # type: ignore[attr-defined]
