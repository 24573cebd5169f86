"""What a public layout is: its config.json as a spec and back, and the names of its tensors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from heedful.formats.foreign_config import Config
from heedful.formats.name_rules import Rule
from heedful.models import Spec


class Layout:
    """A kind of model as others write it. `spec` and `config` are each other's inverse, and so are the rules."""

    kind: ClassVar[str]  # its model_type
    family: ClassVar[str]  # ours
    prefix: ClassVar[str] = ""  # which files of a model without its outputs leave away
    ignored: ClassVar[Sequence[str]] = ()  # patterns of names in older files that hold nothing to learn
    left: ClassVar[Sequence[str]] = ()  # and of what was learned for an output that is not the model's
    compared: ClassVar[bool] = False  # whether its constants in a file must be those that we reckon
    tied: ClassVar[Mapping[str, str]] = {}  # names that a file may hold too, and whose numbers they then are

    @property
    def ends(self) -> tuple[str, ...]:
        """Ends of names of classes that are asked something else than such models mostly are."""
        return ()

    def spec(self, config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
        """Numbers and words of our spec; `there` are the tensors in the files, without their numbers."""
        raise NotImplementedError

    def config(self, spec: Any) -> dict[str, Any]:
        """What config.json says of a spec, as nearly as it can."""
        raise NotImplementedError

    def table(self, spec: Any) -> Sequence[Rule]:
        """The rules of all tensors."""
        raise NotImplementedError

    def ties(self, spec: Any) -> Mapping[str, str]:
        """The names that a file of such a model may hold too, and whose numbers they then are."""
        return self.tied

    def constants(self, spec: Any) -> dict[str, Tensor]:
        """Tensors that the layout has and we reckon: they are written, and ignored or compared when read."""
        return {}

    def generation(self, spec: Any) -> dict[str, Any]:
        """What generation_config.json says: how transformers is to write with this model."""
        return {}

    def suits(self, spec: Spec) -> bool:
        """Whether a spec is of this layout's family and kind."""
        return spec.family == self.family

    def is_ignored(self, name: str) -> bool:
        """Whether a name is one of those that older files hold for nothing, or that have no place here."""
        return self.is_left(name) or any(re.fullmatch(pattern, name) for pattern in self.ignored)

    def is_left(self, name: str) -> bool:
        """Whether a name is of what was learned, for an output that is not the model's."""
        return any(re.fullmatch(pattern, name) for pattern in self.left)

    def named(self, names: Iterable[str]) -> dict[str, str]:
        """The names in a file as the table has them, where the file may leave the prefix away."""
        names = list(names)
        if not self.prefix or any(name.startswith(self.prefix) for name in names):
            return {name: name for name in names}
        return {name: self.prefix + name for name in names}
