"""The rule that words are made last (docs/decisions/007-facts-first.md), for tests/test_tidy.py.

Owns: what counts as a fact, as its words, and as deciding by words.  Never: imports the code that
it reads.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tests.tidy_modules import Module, imports_of

_WORDS = frozenset(
    (
        "text_of",
        "sentence_of",
        "text_after_subject",
        "short_text",
        "reason_text",
        "election_text",
        "shape_text",
        "entity_text",
        "effect_text",
        "rebalance_text",
        "node_names",
        "note_line",
        "note_values",
        "folded_line",
        "trace_lines",
        "anomaly_text",
        "cause_text",
        "fact_text",
        "observed_text",
        "unsettled_text",
    )
)
_NOTED = frozenset(
    ("note", "event", "entry", "change", "link", "anomaly", "violation", "window", "reason")
)
"""What variables that hold a note, its entry or its event, a link of a chain or what it explains
are called."""
_NAMES = frozenset(
    (
        "action", "api", "apis", "bug", "client", "client_host", "client_id", "client_instance_id",
        "clients", "config", "configs", "distribution", "election", "entity", "error", "feature",
        "group", "host", "instance_id", "listener", "mechanism", "member", "members", "principal",
        "program",
        "queue_topic", "quota", "rack", "resource", "rule", "topic", "transactional_id", "user",
        "users",
    )
)  # fmt: skip
"""Fields of events that are text because they are somebody's or something's name."""
_WORDING = ("words", "render", "timeline")
"""Modules of events/ that make words."""
_QUOTED = frozenset(("client_reason", "refusal"))
"""Fields of events that quote what a client wrote, or what an operation answered its caller."""
_EMITTERS = ("broker", "controller", "metadata", "partition", "clients")


def words_are_made_last(module: Module) -> Iterator[tuple[int, str]]:
    """Facts are read from the fields of events; no code decides by the words made from them."""
    if not module.is_ours:
        return
    if module.layer == "events":
        if module.dotted.rpartition(".")[2] not in _WORDING:
            yield from _fields_that_are_sentences(module)
        return
    problem = "reads the words of an event; read its fields (cluster/kcluster/events)"
    if module.layer in _EMITTERS:
        for line, name in imports_of(module.tree):
            if name.startswith("kcluster.events.words"):
                yield line, "what happens is noted as an event; its words are made elsewhere"
    yield from _events_given_sentences(module)
    for node, rendered in _with_rendered(module.tree, frozenset()):
        if isinstance(node, ast.Compare) and not isinstance(node.ops[0], ast.Is | ast.IsNot):
            sides = (node.left, *node.comparators)
            if any(_is_words(side, rendered) or _is_made_of_words(side) for side in sides):
                yield node.lineno, problem
            kinds = any(ast.unparse(side).endswith("event.kind") for side in sides)
            if kinds and any(isinstance(side, ast.Constant) for side in sides):
                yield node.lineno, "compares a kind with a word; ask isinstance(event, ...)"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of = node.func.value
            is_pattern = ast.unparse(of) == "re" and any(_is_words(x, rendered) for x in node.args)
            if node.func.attr != "join" and (_is_words(of, rendered) or is_pattern):
                yield node.lineno, problem
            elif node.func.attr == "get_json_object":
                yield node.lineno, "reads an untyped value; use pipeline/notes.py"
            elif node.func.attr == "get" and _is_untyped(of):
                yield node.lineno, problem
        elif isinstance(node, ast.Subscript) and (
            _is_words(node.value, rendered) or _is_untyped(node.value)
        ):
            yield node.lineno, problem


def _with_rendered(
    node: ast.AST, rendered: frozenset[str]
) -> Iterator[tuple[ast.AST, frozenset[str]]]:
    """Each node with the names that hold words in its scope: a function, or the module's body."""
    parts: Iterable[ast.AST] = ()
    if isinstance(node, ast.Module):
        parts = node.body
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        parts = ast.walk(node)
    rendered |= {
        target.id
        for part in parts
        if isinstance(part, ast.Assign) and _is_made_of_words(part.value)
        for target in part.targets
        if isinstance(target, ast.Name)
    }
    yield node, rendered
    for child in ast.iter_child_nodes(node):
        yield from _with_rendered(child, rendered)


def _is_words(node: ast.expr, rendered: frozenset[str] = frozenset()) -> bool:
    """The words for an event: a call that makes them, `.text` of a note, a name bound to them."""
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name in _WORDS
        case ast.Attribute(value=ast.Name(id=name), attr="text" | "line"):
            return name in _NOTED
        case ast.Attribute(value=ast.Name(id="verdict"), attr="reason"):
            return True
        case ast.Attribute(value=ast.Attribute(attr=name), attr="text"):
            return name in _NOTED
        case ast.Name(id=name):
            return name in rendered
    return False


def _is_made_of_words(node: ast.expr) -> bool:
    """Words, or text that is joined from them."""
    match node:
        case ast.JoinedStr() | ast.BinOp() | ast.Call(func=ast.Attribute(attr="join")):
            parts = (part for part in ast.walk(node) if isinstance(part, ast.expr))
            return any(_is_words(part) for part in parts)
    return _is_words(node)


def _fields_that_are_sentences(module: Module) -> Iterator[tuple[int, str]]:
    """A fact is a number, a name, an enumeration or a Struct of these."""
    for owner in module.walk(ast.ClassDef):
        assert isinstance(owner, ast.ClassDef)
        for field in owner.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                name, kinds = field.target.id, ast.walk(field.annotation)
                is_text = any(isinstance(x, ast.Name) and x.id == "str" for x in kinds)
                if is_text and name not in _NAMES | _QUOTED:
                    yield field.lineno, f"{name} is text; make it an enumeration or a Struct"


def _events_given_sentences(module: Module) -> Iterator[tuple[int, str]]:
    """An event or a reason is made from values: no sentence, and nothing that str() makes."""
    facts = {
        name.rpartition(".")[2]
        for _, name in imports_of(module.tree)
        if name.startswith("kcluster.events.") and name.split(".")[2] not in _WORDING
    }
    for node in module.walk(ast.Call):
        assert isinstance(node, ast.Call)
        if not (isinstance(node.func, ast.Name) and node.func.id in facts):
            continue
        for given in (*node.args, *(keyword.value for keyword in node.keywords)):
            is_str = isinstance(given, ast.Call) and ast.unparse(given.func) == "str"
            if is_str or isinstance(given, ast.JoinedStr) or _is_words(given):
                yield given.lineno, f"{node.func.id} is given a sentence; give it the value"


def _is_untyped(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "data"
        and (isinstance(node.value, ast.Name) and node.value.id in _NOTED)
    )
