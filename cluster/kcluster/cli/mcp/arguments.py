"""The arguments of a tool: their JSON Schema, their checks, and the command line that they mean.

Owns: the way from click's parameters to a schema, and from JSON values to words.  Never: knows a
verb, runs one.  Kafka: no counterpart.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import click

from kcluster.cli.mcp.tools import Tool
from kcluster.config.files.problems import MAX_SHOWN, unknown
from kcluster.json_types import JsonObject

MAX_WORD: Final = 10_000
"""The most characters of an argument."""
MAX_TEXT: Final = 1_000_000
"""The most characters of a file's text."""
MAX_WORDS: Final = 100
"""The most values of an argument that takes several."""


class WrongArguments(Exception):
    """Arguments that a tool does not take, with every problem."""


def schema_of(tool: Tool) -> JsonObject:
    """The JSON Schema of a tool's arguments."""
    parameters = tool.parameters()
    return {
        "type": "object",
        "properties": {name: _schema(tool, one) for name, one in parameters.items()},
        "required": [name for name, one in parameters.items() if one.required],
        "additionalProperties": False,
    }


def _schema(tool: Tool, parameter: click.Parameter) -> JsonObject:
    schema = _schema_of_type(parameter)
    if _is_several(parameter):
        schema = {"type": ["array", "string"], "items": schema}
    words = getattr(parameter, "help", None) or _metavar(parameter)
    if str(parameter.name) in tool.texts:
        words = f"{words}: a path, a name that ships with kcluster, or the YAML text itself"
    return {**schema, "description": words} if words else schema


def _schema_of_type(parameter: click.Parameter) -> JsonObject:
    kind = parameter.type
    if _is_flag(parameter):
        return {"type": "boolean"}
    if isinstance(kind, click.Choice):
        return {"enum": [str(one) for one in kind.choices]}
    if isinstance(kind, (click.IntRange, click.FloatRange)):
        bounds = {"minimum": kind.min, "maximum": kind.max}
        known = {key: value for key, value in bounds.items() if value is not None}
        return {"type": "integer" if isinstance(kind, click.IntRange) else "number", **known}
    return {"type": "string"}


def _metavar(parameter: click.Parameter) -> str:
    """What an argument is, by the word that stands for it in the verb's usage."""
    return (parameter.metavar or str(parameter.name).upper()).strip("[].")


def _is_flag(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option) and parameter.is_flag


def _is_several(parameter: click.Parameter) -> bool:
    return parameter.nargs == -1 or parameter.multiple


# ------------------------------------------------------------------------- from values to words


def command_line(
    tool: Tool, values: Mapping[str, object], path_of: Callable[[str, str], str]
) -> list[str]:
    """The words after `kcluster` that the values mean; WrongArguments with every problem.
    `path_of`: writes the text of a file, and returns its path."""
    known = tool.parameters()
    strange = [name for name in values if name not in known]
    problems = [unknown("argument", name, known) for name in strange[:MAX_SHOWN]]
    options: list[str] = []
    arguments: list[str] = []
    for name, parameter in known.items():
        if values.get(name) is None:
            if parameter.required:
                problems.append(f"{name}: is missing: {_metavar(parameter)}")
            continue
        try:
            words = [*_words(tool, parameter, values[name], path_of)]
        except ValueError as error:
            problems.append(f"{name}: {error}")
            continue
        if isinstance(parameter, click.Argument):
            arguments += words
        else:
            options += words
    if problems:
        raise WrongArguments("\n".join(problems[:MAX_SHOWN]))
    return [*tool.words_of_verb, *options, *(["--", *arguments] if arguments else ())]


def _words(
    tool: Tool, parameter: click.Parameter, value: object, path_of: Callable[[str, str], str]
) -> Iterator[str]:
    """The words of one argument; ValueError if the value is wrong."""
    if _is_flag(parameter):
        if not isinstance(value, bool):
            raise ValueError(f"takes true or false, not {_shown(value)}")
        flags = parameter.opts if value else parameter.secondary_opts
        yield from flags[:1]
        return
    several: Sequence[object] = (value,)
    if isinstance(value, list):
        if not _is_several(parameter):
            raise ValueError("takes one value, not a list")
        if len(value) > MAX_WORDS:
            raise ValueError(f"{len(value)} values; at most {MAX_WORDS}")
        several = value
    for one in several:
        word = _text(parameter, one)
        called = tool.texts.get(str(parameter.name))
        if called is not None and "\n" in word:
            word = path_of(called, word)
        elif len(word) > MAX_WORD:
            raise ValueError(f"{len(word)} characters; at most {MAX_WORD}")
        if isinstance(parameter, click.Argument):
            yield word
        elif (flag := max(parameter.opts, key=len)).startswith("--"):
            yield f"{flag}={word}"
        else:
            yield from (flag, word)


def _text(parameter: click.Parameter, value: object) -> str:
    """A value as it is typed; ValueError if the verb does not take it."""
    kind = parameter.type
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(value, dict) and isinstance(parameter, click.Argument):
        text = json.dumps(value)  # an action, as in a scenario file
    elif isinstance(kind, (click.IntRange, click.FloatRange)):
        if not is_number:
            raise ValueError(f"takes a number, not {_shown(value)}")
        text = str(value)
    elif isinstance(value, str) or is_number:
        text = str(value)
    else:
        raise ValueError(f"takes text, not {_shown(value)}")
    if "\0" in text:
        raise ValueError("has a NUL character")
    if len(text) > MAX_TEXT:
        raise ValueError(f"{len(text)} characters; at most {MAX_TEXT}")
    if not text.strip():
        raise ValueError("is empty")
    try:
        text.encode()
        kind.convert(text, parameter, None)
    except UnicodeEncodeError:
        raise ValueError("has half of a character") from None
    except click.BadParameter as error:
        raise ValueError(error.message) from None
    return text


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) < 60 else f"{text[:60]}..."
