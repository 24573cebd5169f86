"""All bad folders, by what is wrong with them."""

from tests.checkpoints.malice.layouts import LAYOUTS
from tests.checkpoints.malice.places import PLACES
from tests.checkpoints.malice.resumed import RESUMED
from tests.checkpoints.malice.texts import TEXTS
from tests.checkpoints.malice.vocabularies import VOCABULARIES
from tests.checkpoints.malice.weights import WEIGHTS_

TABLE = PLACES | WEIGHTS_ | TEXTS | VOCABULARIES | RESUMED | LAYOUTS
