"""Images: drawn on the fly, of public sets and of a user's own files, as numbers of one size."""

from heedful.data.images.gallery import Gallery, Picture, Pixels
from heedful.data.images.sources import SETS, opened_pictures

__all__ = ["SETS", "Gallery", "Picture", "Pixels", "opened_pictures"]
