"""Models of the Hugging Face hub, by name: fetched only where `hub:` asks for it, and kept in the hub's own cache."""

from __future__ import annotations

import re
from pathlib import Path

from heedful.errors import Refusal

SCHEME = "hub:"
NAMED = re.compile(r"hub:([\w.-]+(?:/[\w.-]+)?)(?:@([\w./-]+))?")
READ = ["*.json", "*.safetensors", "*.model", "*.spm", "*.txt"]  # pickles and programs are not even fetched


def is_named(folder: str | Path) -> bool:
    """Whether a model is named as one of the hub's: `hub:owner/name`, or `hub:owner/name@revision`."""
    return str(folder).startswith(SCHEME)


def snapshot(name: str) -> Path:
    """The folder in the hub's cache that holds a model; it is fetched where it is not there yet.

    With HF_HUB_OFFLINE set, nothing is fetched.
    """
    found = NAMED.fullmatch(name)
    if found is None:
        raise Refusal(f"{name} is no name of the hub's; write hub:OWNER/NAME, or hub:OWNER/NAME@REVISION")
    try:
        import huggingface_hub
    except ImportError:
        raise Refusal(f"{name} needs the hub's client; pip install huggingface_hub, or name a folder") from None
    try:
        return Path(huggingface_hub.snapshot_download(found[1], revision=found[2], allow_patterns=READ))
    except (OSError, ValueError) as error:  # what its client raises when a name, a network or a cache fails it
        said = " ".join(str(error).split(".")[0].split())[:200] or type(error).__name__
        raise Refusal(f"{name} cannot be fetched: {said}; check the name and the network, or name a folder") from None
