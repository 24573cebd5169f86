"""Images: decoded files, arrays and public sets, as numbers of one size."""

from heedful.data.images.gallery import Gallery, Picture, Pixels, pixels_of

__all__ = ["Gallery", "Picture", "Pixels", "pixels_of"]
