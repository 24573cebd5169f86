"""`heedful completion`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from heedful.errors import unknown_word
from heedful.terminal import say

SCRIPTS = {
    "bash": """_heedful() {
  local IFS=$'\\n' line="${COMP_LINE:0:COMP_POINT}"
  COMPREPLY=($(heedful completion bash --line "$line" 2>/dev/null))
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o default -F _heedful heedful
""",
    "zsh": """#compdef heedful
_heedful() {
  local -a found
  found=("${(@f)$(heedful completion zsh --line "${(j: :)words[1,CURRENT]}" 2>/dev/null)}")
  found=(${found:#})
  (( $#found )) || { _files; return }
  compadd -S '' -- ${(M)found:#*=}
  compadd -- ${found:#*=}
}
compdef _heedful heedful
""",
    "fish": """function __heedful_found
  set -g __heedful_words (heedful completion fish --line (commandline -cp | string collect) 2>/dev/null)
  test -n "$__heedful_words"
end
complete -c heedful -n __heedful_found -f -a '$__heedful_words'
""",
}
SPLIT = {"bash"}  # shells to which a word begins anew behind =
OPTIONS = {"--device": ["cpu", "cuda", "mps"], "--split": ["train", "valid", "test"], "--to": ["heedful", "hf", "onnx"]}
OF_RECIPES = ("train", "plan")  # verbs whose first argument is a recipe, and the others keys of a run


def completion(
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="The shell to complete in.")],
    line: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What is typed so far; says what it may go on with.")
    ] = None,
) -> None:
    """Complete verbs, recipes, keys and their values in a shell: print the script that it reads.

    bash: eval "$(heedful completion bash)" in ~/.bashrc. zsh: the same in ~/.zshrc, behind compinit. fish: heedful
    completion fish > ~/.config/fish/completions/heedful.fish.
    """
    if shell not in SCRIPTS:
        raise unknown_word("shell", shell, SCRIPTS)
    if line is None:
        return say(SCRIPTS[shell], end="")
    *before, current = words_of(line)
    for found in candidates(before, current):
        say(found.partition("=")[2] if shell in SPLIT and "=" in current else found)


def words_of(line: str) -> list[str]:
    """The words of a command line behind its program, the last one as far as it is typed."""
    words = line.split()
    return [*words[1:], ""] if line[-1:].isspace() or len(words) < 2 else words[1:]


def candidates(before: list[str], current: str) -> Iterator[str]:
    """What a word may become behind others; nothing where it is a path, which the shell knows."""
    yield from (one for one in list_known(before, current) if one.startswith(current))


def list_known(before: list[str], current: str) -> list[str]:
    """All that may stand in the place of a word."""
    from heedful.cli import VERBS

    if not before:
        return [*VERBS, "--help", "--version"]
    if before[0] not in VERBS:
        return []
    if before[-1] in OPTIONS:
        return OPTIONS[before[-1]]
    verb, within = verb_of(before)
    if current.startswith("-") or verb is None:
        return options_of(verb) if verb is not None else within
    return arguments_of(before, current)


def verb_of(before: list[str]) -> tuple[Any, list[str]]:
    """The verb that is called, or none and the verbs of its group where that is not said yet."""
    from heedful.cli import Commands

    verb = Commands()[before[0]]
    inside = getattr(verb, "commands", None)
    if inside is None:
        return verb, []
    return (inside[before[1]], []) if before[1:] and before[1] in inside else (None, [*inside])


def options_of(verb: Any) -> list[str]:
    """The options of a verb."""
    return ["--help", *(name for one in verb.params for name in one.opts if name.startswith("--"))]


def arguments_of(before: list[str], current: str) -> list[str]:
    """A recipe, a key or its value, as the place has it."""
    from heedful.cli import known_names

    plain = [word for word in before[1:] if not word.startswith("-")]
    if before[:2] == ["attention", "explain"]:
        return known_names.values("model.mechanism") + known_names.values("model.stack")
    if before[0] not in OF_RECIPES:
        return ["model.mechanism=", "data=", "data.test="] if before[0] == "eval" and plain else []
    if not plain:
        return known_names.recipes()
    key, is_value, _ = current.partition("=")
    if is_value:
        return [f"{key}={value}" for value in known_names.values(key)]
    return [f"{key}=" for key in known_names.keys(plain[0])]
