"""The rules of the code, as tests: layers, import circles, what the core must not touch, sizes,
headers.

Owns: the table of layers (architecture.md in docs/ describes it), the rules, and for each rule a
snippet that must be caught.  Never: imports the code that it reads.
"""

from __future__ import annotations

import ast
import gc
import re
import tomllib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tidy_modules import SOURCE, Module, imports_of, layer_of, nodes_of
from tests.tidy_words import words_are_made_last

ROOT = Path(__file__).parents[1]
MAX_FUNCTION_LINES, MAX_LINE_CHARS = 70, 100
LONG_FILE_LINES = 600
"""A file is as long as its one subject; above this it may have two, which is worth a look."""

_CORE = (
    "json_types contract node_ids packaged timers deaths protocol metadata events config partition"
)
_RUNNING = f"{_CORE} controller broker network faults clients runtime operations drivers"
_JUDGED = f"{_RUNNING} invariants evidence checks runs"
LAYERS = {
    "version": "",
    "collector": "",
    "plain_output": "",
    "json_types": "",
    "node_ids": "",
    "contract": "node_ids",
    "packaged": "",
    "extras": "",
    "timers": "",
    "deaths": "",
    "protocol": "contract packaged timers",
    "metadata": "contract protocol",
    "events": "json_types contract deaths protocol",
    "config": "json_types contract packaged protocol",
    "partition": "contract timers protocol metadata events config",
    "controller": _CORE,
    "broker": _CORE,
    "network": "contract timers protocol events config",
    "faults": f"{_CORE} broker network",
    "clients": "contract timers protocol",
    "runtime": f"{_CORE} controller broker network faults",
    "operations": f"{_CORE} controller network faults runtime",
    "drivers": f"{_CORE} broker network faults clients runtime operations",
    "invariants": f"{_CORE} controller broker runtime",
    "evidence": f"{_CORE} broker network clients runtime operations invariants",
    "checks": f"{_CORE} controller broker clients invariants evidence",
    "runs": f"{_CORE} clients invariants evidence checks",
    "importing": "contract extras protocol config",
    "actions": f"{_CORE} network faults runtime operations",
    "handle": f"version {_JUDGED} actions",
    "scenario": f"version {_JUDGED} actions handle",
    "learn": f"{_JUDGED} actions handle scenario",
    "world": "packaged version timers protocol operations drivers",
    "testing": f"plain_output version {_JUDGED} actions handle scenario world",
    "web": f"version {_JUDGED} actions handle scenario testing",
    "pipeline": f"plain_output collector extras {_JUDGED} actions handle scenario",
    "demo": f"plain_output version extras {_JUDGED} handle scenario pipeline",
    "cli": f"collector plain_output extras {_JUDGED} actions handle importing scenario learn world"
    " testing web pipeline demo",
    "__main__": "collector cli",
}
"""What each part of `kcluster` may import besides itself; no two of them import each other."""

SEEDED = ("runtime", "operations", "drivers", "actions", "scenario")
"""Layers that may make a random.Random, from the seed of a run."""

_DRIVER = "I/O is the driver's (drivers/live.py); return an effect"
BANNED = {
    "gevent": "greenlets are the live driver's; park what waits with a deadline (broker/purgatory)",
    "threading": "a node runs in one thread, one step at a time; handle/cluster.py has the lock",
    "concurrent": "a node runs in one thread, one step at a time",
    "asyncio": "nothing waits in the core; park what waits with a deadline (broker/purgatory)",
    "time": "take `now_ms` as an argument",
    "datetime": "take `now_ms` as an argument",
    "random": "take the node's `rng`, which the driver seeds",
    "secrets": "take the node's `rng`, which the driver seeds",
    "socket": _DRIVER, "select": _DRIVER, "selectors": _DRIVER, "ssl": _DRIVER,
    "os": _DRIVER, "io": _DRIVER, "pathlib": _DRIVER, "subprocess": _DRIVER, "signal": _DRIVER,
    "logging": "leave a Note; events/words/ makes a line of it",
}  # fmt: skip
BANNED_CALLS = {
    "open": _DRIVER,
    "print": "leave a Note; events/words/ makes a line of it",
    "input": _DRIVER,
    "hash": "differs from process to process; zlib.crc32 does not",
    "id": "differs from run to run; number things yourself",
    "uuid1": "take the node's `rng`",
    "uuid4": "take the node's `rng`",
}
ALLOWED = {
    "cluster/kcluster/config/topology/loader.py": {"open"},  # the one file that it is given
    "cluster/kcluster/drivers/serving.py": {"concurrent"},  # who waits for a condition
    "cluster/kcluster/drivers/memory/driver.py": {"concurrent"},
    "cluster/kcluster/packaged.py": {"open", "os"},  # the package's own tables
    "cluster/kcluster/extras.py": {"os"},  # whether the place of an installation is still there
    "cluster/kcluster/scenario/language/scenario.py": {
        "open",
        "os",
    },  # the one file that it is given
    "cluster/kcluster/scenario/language/profiles.py": {"open", "os"},  # the profile it names
    "cluster/kcluster/plain_output.py": {"io", "open", "os"},  # stdout and stderr themselves
    "cluster/kcluster/scenario/search.py": {"pathlib"},  # the files and directories it is given
    "cluster/kcluster/scenario/recorded_file.py": {"pathlib"},  # the one file that it is given
    "cluster/kcluster/scenario/library.py": {"pathlib"},  # the files that ship with the package
    "cluster/kcluster/scenario/play/virtual.py": {"time"},  # how long a run took, for its report
}


# ------------------------------------------------------------------------------------ rules

Rule = Callable[[Module], Iterator[tuple[int, str]]]


def imports_point_one_way(module: Module) -> Iterator[tuple[int, str]]:
    if not module.is_ours or module.path == "cluster/kcluster/__init__.py":
        return
    assert module.layer in LAYERS, f"{module.path}: no layer of this name in tests/test_tidy.py"
    may = {module.layer, *LAYERS[module.layer].split()}
    for line, name in imports_of(module.tree):
        if name.startswith("."):
            yield line, "imports relatively; write kcluster.…"
        elif name.startswith("kcluster."):
            layer = layer_of(name.removeprefix("kcluster."))
            if layer not in may and layer in LAYERS:
                yield line, f"{module.layer} must not see {layer}"


def the_core_touches_nothing(module: Module) -> Iterator[tuple[int, str]]:
    if not module.is_core:
        return
    allowed = ALLOWED.get(module.path, set())
    for line, name in imports_of(without_type_checking(module.tree)):
        root = name.split(".", 1)[0]
        is_seeded = name == "random.Random" and module.layer in SEEDED
        if root in BANNED and root not in allowed and not is_seeded:
            yield line, f"imports {root} in the core: {BANNED[root]}"
    for node in module.walk(ast.Call):
        assert isinstance(node, ast.Call)
        name = ast.unparse(node.func).removeprefix("uuid.")
        if name == "Random" and not node.args:
            yield node.lineno, "Random() draws its own seed; give it one"
        if name in BANNED_CALLS and name not in allowed:
            yield node.lineno, f"calls {name}() in the core: {BANNED_CALLS[name]}"


def without_type_checking(tree: ast.Module) -> ast.Module:
    """The module without `if TYPE_CHECKING:`, which never runs."""

    def runs(node: ast.stmt) -> bool:
        return not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")

    return ast.Module([node for node in tree.body if runs(node)], [])


def sets_are_not_iterated(module: Module) -> Iterator[tuple[int, str]]:
    if not module.is_core:
        return
    for node in module.walk(ast.For, ast.comprehension, ast.Call):
        sources: list[ast.expr] = []
        if isinstance(node, (ast.For, ast.comprehension)):
            sources = [node.iter]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("list", "tuple", "next"):
            sources = node.args[:1]
        for source in sources:
            is_call = isinstance(source, ast.Call)
            if isinstance(source, (ast.Set, ast.SetComp)) or (
                is_call and ast.unparse(source).startswith(("set(", "frozenset("))
            ):
                yield source.lineno, "goes through a set: no order; sorted() or dict.fromkeys()"


def functions_and_lines_are_short(module: Module) -> Iterator[tuple[int, str]]:
    lines = module.text.splitlines()
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE_CHARS:
            yield number, f"{len(line)} characters; at most {MAX_LINE_CHARS}"
    for node in module.walk(ast.FunctionDef, ast.AsyncFunctionDef):
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > MAX_FUNCTION_LINES:
            yield node.lineno, f"{node.name} has {length} lines; at most {MAX_FUNCTION_LINES}"


def modules_say_what_they_own(module: Module) -> Iterator[tuple[int, str]]:
    docstring = ast.get_docstring(module.tree) or ""
    if module.path.startswith("tests/"):
        return  # the names of the tests say it
    if len(docstring) < 20:
        yield 1, "has no docstring"
    elif module.is_ours and not module.path.endswith("/__init__.py"):
        for word in ("Owns:", "Never:"):
            if word not in docstring:
                yield 1, f"its docstring does not say '{word}'"


_QUOTED = re.compile(r"`[^`]*`")
_FILE_NAMED = re.compile(r"(?<![\w/.])(?:[a-z_]+/)*[a-z][a-z_]*\.py\b")


def heads_name_files_that_exist(modules: list[Module]) -> Iterator[str]:
    """A head names a file by its path in the package, or by the end of one in its own room."""
    ours = {module.path.removeprefix(SOURCE) for module in modules if module.is_ours}
    for module in modules:
        if not module.is_ours:
            continue
        place = module.path.removeprefix(SOURCE)
        room = [path for path in ours if path.split("/")[0] == place.split("/")[0]]
        head = _QUOTED.sub("", ast.get_docstring(module.tree) or "")
        for name in _FILE_NAMED.findall(head):
            is_here = any(f"/{path}".endswith(f"/{name}") for path in room)
            if not (is_here or name in ours or (ROOT / name).exists()):
                yield f"{place}: {name}"


def errors_are_named(module: Module) -> Iterator[tuple[int, str]]:
    for node in module.walk(ast.ExceptHandler):
        assert isinstance(node, ast.ExceptHandler)
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        for kind in kinds:
            name = "everything" if kind is None else ast.unparse(kind)
            if name in ("everything", "Exception", "BaseException"):
                yield node.lineno, f"catches {name}; name what can happen here"


_UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK|NotImplementedError|NotImplemented)\b")
_SILENCED = re.compile(
    r"#\s*(noqa|type:\s*ignore)(?P<code>(:\s*[A-Z]+[0-9]+|\[[a-z-]+\]))?(?P<why>.*)"
)


def nothing_is_left_unfinished_or_silenced(module: Module) -> Iterator[tuple[int, str]]:
    if module.path == "tests/test_tidy.py":
        return
    for number, line in enumerate(module.text.splitlines(), 1):
        if found := _UNFINISHED.search(line):
            yield number, f"{found[0]}: finish it, or make it an issue"
        silenced = _SILENCED.search(line)
        if silenced and not (silenced["code"] and len(silenced["why"].strip(" #")) > 5):
            yield number, f"{silenced[1]} needs its code, and after it the reason"


VIRTUAL_SLEEPS = ("tests/world/",)
"""Tests of code that sleeps in virtual time, which costs nothing."""


def no_test_sleeps(module: Module) -> Iterator[tuple[int, str]]:
    if not module.path.startswith("tests/") or module.path.startswith(VIRTUAL_SLEEPS):
        return
    for node in module.walk(ast.Call):
        assert isinstance(node, ast.Call)
        if ast.unparse(node.func) in ("time.sleep", "sleep", "gevent.sleep"):
            yield node.lineno, "sleeps; wait for what should happen (Cluster.wait_for, an Event)"


COMPILED = frozenset(
    tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"][
        "targets"
    ]["wheel"]["hooks"]["mypyc"]["include"]
)
"""The modules that `make compiled` compiles."""


def compiled_classes_are_collected(module: Module) -> Iterator[tuple[int, str]]:
    for node in module.walk(ast.Call):
        assert isinstance(node, ast.Call)
        if any(keyword.arg == "acyclic" for keyword in node.keywords):
            yield node.lineno, "acyclic: mypyc frees such objects wrongly (docs/decisions/003)"


def caught_errors_have_a_name_each(module: Module) -> Iterator[tuple[int, str]]:
    """mypyc gives a variable the type of the first handler; another error is a TypeError then."""
    for function in module.walk(ast.FunctionDef) if module.path in COMPILED else ():
        types: dict[str, str] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.ExceptHandler) and node.name and node.type is not None:
                kind = ast.unparse(node.type)
                if types.setdefault(node.name, kind) != kind:
                    yield node.lineno, f"{node.name} is a {types[node.name]} already; name it apart"


NODES = ("kcluster.broker.node.", "kcluster.controller.node.")


def nodes_are_read_by_their_views(module: Module) -> Iterator[tuple[int, str]]:
    """Above runtime/, which builds the nodes, only `Process.broker` and `Process.controller` are
    read: typed, and without a method that changes a partition."""
    if not module.is_ours or module.layer in ("broker", "controller", "runtime"):
        return
    for line, name in imports_of(module.tree):
        if f"{name}.".startswith(NODES):
            yield line, "imports a node; read its view (broker/node_view.py)"
    for node in module.walk(ast.AnnAssign):
        assert isinstance(node, ast.AnnAssign)
        value = "" if node.value is None else ast.unparse(node.value)
        if ast.unparse(node.annotation) == "Any" and re.search(r"\.(last_)?node\b", value):
            yield node.lineno, "an untyped node; read Process.broker (broker/node_view.py)"


RULES: tuple[Rule, ...] = (
    compiled_classes_are_collected,
    caught_errors_have_a_name_each,
    imports_point_one_way,
    the_core_touches_nothing,
    sets_are_not_iterated,
    functions_and_lines_are_short,
    modules_say_what_they_own,
    errors_are_named,
    nothing_is_left_unfinished_or_silenced,
    no_test_sleeps,
    words_are_made_last,
    nodes_are_read_by_their_views,
)


def twins(modules: list[Module]) -> dict[str, list[str]]:
    """Names of classes that two modules of ours define, with these modules."""
    homes: dict[str, list[str]] = {}
    for module in modules:
        for node in module.tree.body if module.is_ours else ():
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(module.path)
    return {name: paths for name, paths in homes.items() if len(paths) > 1}


# ---------------------------------------------------------------------------------- circles


def import_graph(texts: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Per module the others that it imports: at its top, in a function, or to name a type."""
    graph: dict[str, set[str]] = {}
    for name, tree in texts.items():
        seen: set[str] = set()
        for _, full in imports_of(tree):
            found = full if full in texts else full.rpartition(".")[0]
            seen |= {found} & texts.keys() - {name}
        graph[name] = seen
    return graph


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The sets of modules that reach each other."""
    import networkx

    components = networkx.strongly_connected_components(networkx.DiGraph(graph))
    return sorted(sorted(names) for names in components if len(names) > 1)


# ------------------------------------------------------------------------------------ tests


def modules() -> Iterator[Module]:
    for folder in ("cluster", "tests", "bench", "compare", "tools"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text("utf-8")
            yield Module(path.relative_to(ROOT).as_posix(), text, ast.parse(text))


@pytest.fixture(scope="module")
def all_modules() -> Iterator[list[Module]]:
    """All modules, without the garbage collector, which would scan the trees over and over: it
    would take most of the time."""
    gc.disable()
    yield list(modules())
    nodes_of.cache_clear()
    gc.enable()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_tidy__the_code_keeps_the_rule(rule: Rule, all_modules: list[Module]) -> None:
    broken = [
        f"{module.path}:{line}: {text}" for module in all_modules for line, text in rule(module)
    ]
    assert not broken, "\n" + "\n".join(broken)


class LongFileWarning(UserWarning):
    """A file may have more than one subject."""


def test_tidy__long_files_are_pointed_out(all_modules: list[Module]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("default", LongFileWarning)
        for module in all_modules:
            if (lines := module.text.count("\n")) > LONG_FILE_LINES:
                warnings.warn(f"{module.path}: {lines} lines", LongFileWarning, stacklevel=1)


def test_tidy__heads_name_files_that_exist(all_modules: list[Module]) -> None:
    assert list(heads_name_files_that_exist(all_modules)) == []


def test_tidy__a_head_that_names_a_file_of_old_is_caught() -> None:
    text = '"""What this is.\n\nOwns: a (b.py).  Never: c (old.py, node.py does), `app.py`.\n"""\n'
    made = [Module(f"{SOURCE}broker/{name}", text, ast.parse(text)) for name in ("x.py", "b.py")]
    other = Module(f"{SOURCE}controller/node.py", "", ast.parse(""))
    found = list(heads_name_files_that_exist([*made, other]))
    assert found[:2] == ["broker/x.py: old.py", "broker/x.py: node.py"]


def test_tidy__a_class_name_has_one_home(all_modules: list[Module]) -> None:
    assert twins(all_modules) == {}


def test_tidy__a_second_home_of_a_class_name_is_caught() -> None:
    text = "class Gate:\n    pass\n"
    paths = ["cluster/kcluster/network/x.py", "cluster/kcluster/runtime/x.py"]
    assert twins([Module(path, text, ast.parse(text)) for path in paths]) == {"Gate": paths}


GOOD_HEADER = '"""What this is, in one line.\n\nOwns: a.  Never: b.\n"""\n'
LONG_FUNCTION = "def long():\n" + "    pass\n" * MAX_FUNCTION_LINES
BAD: tuple[tuple[Rule, str, str, str], ...] = (
    (imports_point_one_way, "partition/x.py", "import kcluster.broker.node", "must not see broker"),
    (
        imports_point_one_way,
        "broker/x.py",
        "from kcluster.controller import node",
        "see controller",
    ),
    (imports_point_one_way, "broker/x.py", "from . import node", "relatively"),
    (imports_point_one_way, "config/x.py", "def f():\n import kcluster.cli.main", "see cli"),
    (compiled_classes_are_collected, "contract.py", "@a(acyclic=True)\nclass A: ...", "frees"),
    (
        caught_errors_have_a_name_each,
        "contract.py",
        "def f():\n try: g()\n except A as x: h(x)\n except B as x: h(x)",
        "x is a A already",
    ),
    (the_core_touches_nothing, "broker/x.py", "import time", "now_ms"),
    (the_core_touches_nothing, "broker/x.py", "def f():\n from random import random", "rng"),
    (the_core_touches_nothing, "network/fabric.py", "import gevent.event", "greenlets"),
    (the_core_touches_nothing, "partition/log/log.py", "open('x')", "driver's"),
    (the_core_touches_nothing, "broker/x.py", "import uuid\nuuid.uuid4()", "rng"),
    (the_core_touches_nothing, "broker/x.py", "hash('x')", "process"),
    (the_core_touches_nothing, "runtime/build.py", "import time", "now_ms"),
    (the_core_touches_nothing, "runtime/build.py", "from random import shuffle", "rng"),
    (the_core_touches_nothing, "runtime/build.py", "from random import Random\nRandom()", "seed"),
    (sets_are_not_iterated, "broker/x.py", "for x in {1, 2}: pass", "no order"),
    (sets_are_not_iterated, "broker/x.py", "[x for x in set(y)]", "no order"),
    (sets_are_not_iterated, "broker/x.py", "list({x for x in y})", "no order"),
    (functions_and_lines_are_short, "x.py", "x = " + "1" * 97, "101 characters"),
    (functions_and_lines_are_short, "x.py", LONG_FUNCTION, "71 lines"),
    (modules_say_what_they_own, "x.py", "x = 1", "no docstring"),
    (modules_say_what_they_own, "x.py", '"""Does this and that. Owns: it."""', "'Never:'"),
    (errors_are_named, "x.py", "try: pass\nexcept: pass", "everything"),
    (errors_are_named, "x.py", "try: pass\nexcept (OSError, Exception): pass", "Exception"),
    (nothing_is_left_unfinished_or_silenced, "x.py", "x = 1  # TODO later", "finish it"),
    (nothing_is_left_unfinished_or_silenced, "x.py", "raise NotImplementedError", "finish it"),
    (nothing_is_left_unfinished_or_silenced, "x.py", "x = 1  # noqa", "its code"),
    (nothing_is_left_unfinished_or_silenced, "x.py", "x = 1  # noqa: E501", "the reason"),
    (nothing_is_left_unfinished_or_silenced, "x.py", "x = 1  # type: ignore", "its code"),
    (no_test_sleeps, "../tests/x.py", "import time\ntime.sleep(1)", "wait for"),
    (words_are_made_last, "checks/x.py", "UNCLEAN in note.text", "read its fields"),
    (words_are_made_last, "checks/x.py", "text = text_of(note.event)\n'a' in text", "its fields"),
    (words_are_made_last, "checks/x.py", "text_of(event).partition(': ')", "read its fields"),
    (words_are_made_last, "runs/x.py", "re.search('a', entry.text)", "read its fields"),
    (words_are_made_last, "runs/x.py", "note.data['new']", "read its fields"),
    (words_are_made_last, "runs/x.py", "note.data.get('new')", "read its fields"),
    (words_are_made_last, "scenario/x.py", "note.event.kind == 'broker_down'", "isinstance"),
    (words_are_made_last, "pipeline/x.py", "F.get_json_object('data', '$.new')", "untyped"),
    (words_are_made_last, "broker/x.py", "from kcluster.events.words import text_of", "elsewhere"),
    (
        words_are_made_last,
        "scenario/x.py",
        "text = '\\n'.join(link.text for link in anomaly.chain)\nif words not in text: pass",
        "read its fields",
    ),
    (words_are_made_last, "scenario/x.py", "'disk' in f'{anomaly.text}, {x}'", "read its fields"),
    (words_are_made_last, "scenario/x.py", "words in link.text", "read its fields"),
    (words_are_made_last, "events/x.py", "class E(T):\n    trigger: str", "trigger is text"),
    (words_are_made_last, "events/x.py", "class E(T):\n    effect: str | None", "effect is text"),
    (
        words_are_made_last,
        "runtime/x.py",
        "from kcluster.events.network import RuleHit\nRuleHit('r', effect=str(rule.effect))",
        "RuleHit is given a sentence",
    ),
    (
        words_are_made_last,
        "broker/x.py",
        "from kcluster.events.clients import GroupRebalanced\n"
        "GroupRebalanced(g, 1, (), f'member {member} expired')",
        "GroupRebalanced is given a sentence",
    ),
    (
        nodes_are_read_by_their_views,
        "checks/x.py",
        "from kcluster.broker.node import BrokerNode",
        "read its view",
    ),
    (nodes_are_read_by_their_views, "web/x.py", "node: Any = process.node", "Process.broker"),
)


@pytest.mark.parametrize(("rule", "path", "text", "expected"), BAD)
def test_tidy__a_breach_is_caught(rule: Rule, path: str, text: str, expected: str) -> None:
    where = path.removeprefix("../") if path.startswith("../") else SOURCE + path
    found = [message for _, message in rule(Module(where, text, ast.parse(text)))]
    assert any(expected in message for message in found), found


def test_tidy__every_rule_has_a_breach_that_it_catches() -> None:
    assert {rule for rule, *_ in BAD} == set(RULES)


def test_tidy__good_code_is_not_caught() -> None:
    text = GOOD_HEADER + (
        "import uuid\nfrom kcluster.metadata.image import X\nfrom kcluster.protocol import m\n"
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from os import PathLike\n"
        "for x in sorted({1, 2}): uuid.UUID(int=x)\n"
        "y = z  # type: ignore[attr-defined]  # its stub lacks it\n"
        "try: pass\nexcept OSError: pass\n"
    )
    module = Module("cluster/kcluster/broker/x.py", text, ast.parse(text))
    assert [message for rule in RULES for _, message in rule(module)] == []


@pytest.fixture(scope="module")
def graph(all_modules: list[Module]) -> dict[str, set[str]]:
    return import_graph({module.dotted: module.tree for module in all_modules if module.is_ours})


def test_tidy__modules_do_not_import_each_other(graph: dict[str, set[str]]) -> None:
    """Not even to name a type: knowledge has one direction, within a package too."""
    found = circles(graph)
    assert not found, "\n" + "\n".join(" <-> ".join(circle) for circle in found)


@pytest.mark.parametrize(("room", "parts"), [("broker", 12), ("controller", 6)])
def test_tidy__packages_within_a_room_do_not_import_each_other(
    graph: dict[str, set[str]], room: str, parts: int
) -> None:
    packages: dict[str, set[str]] = {}
    inside = f"kcluster.{room}."
    for name, seen in graph.items():
        if name.startswith(inside):
            packages.setdefault(part_of_room(name), set()).update(
                part_of_room(other) for other in seen if other.startswith(inside)
            )
    forward = {name: seen - {name} for name, seen in packages.items()}
    assert len(forward) > parts
    assert circles(forward) == []


def part_of_room(name: str) -> str:
    """`kcluster.broker.serving.reading` -> `kcluster.broker.serving`."""
    return ".".join(name.split(".")[:3])


def test_tidy__a_circle_of_imports_is_found() -> None:
    texts = {
        "kcluster.broker.a": "from kcluster.broker import b",
        "kcluster.broker.b": "if TYPE_CHECKING:\n    from kcluster.broker.c import C",
        "kcluster.broker.c": "def f():\n    import kcluster.broker.a",
        "kcluster.broker.d": "from kcluster.broker.a import A",
    }
    found = circles(import_graph({name: ast.parse(text) for name, text in texts.items()}))
    assert found == [["kcluster.broker.a", "kcluster.broker.b", "kcluster.broker.c"]]


def test_tidy__layers_have_no_cycle() -> None:
    seen: set[str] = set()
    for layer, below in LAYERS.items():
        assert set(below.split()) <= seen | {layer}, f"{layer} imports a later layer"
        seen.add(layer)


def test_tidy__every_part_of_the_package_has_a_layer() -> None:
    entries = {
        path.stem for path in (ROOT / SOURCE).iterdir() if path.is_dir() or path.suffix == ".py"
    }
    assert entries - {"__init__", "__pycache__"} <= set(LAYERS)
