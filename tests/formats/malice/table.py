"""All bad folders, by what is wrong with them."""

from tests.formats.malice.layouts import LAYOUTS
from tests.formats.malice.places import PLACES
from tests.formats.malice.resumed import RESUMED
from tests.formats.malice.texts import TEXTS
from tests.formats.malice.vocabularies import VOCABULARIES
from tests.formats.malice.weights import WEIGHTS_

TABLE = PLACES | WEIGHTS_ | TEXTS | VOCABULARIES | RESUMED | LAYOUTS
