"""Images: decoded files, arrays and public sets, as numbers of one size."""

from typing import TYPE_CHECKING

from heedful.registry import lazily

if TYPE_CHECKING:
    from heedful.data.images.gallery import Gallery, Picture, Pixels, pixels_of

__getattr__ = lazily(__name__)
__all__ = ["Gallery", "Picture", "Pixels", "pixels_of"]
