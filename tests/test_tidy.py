"""The rules of the code that ruff and import-linter (pyproject.toml) do not know, as tests: circles
of imports, what the core must not call, sizes, headers.

Owns: the rules, and for each rule a snippet that must be caught.  Never: imports the code that it
reads.
"""

from __future__ import annotations

import ast
import gc
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tidy_modules import SOURCE, Module, imports_of, nodes_of
from tests.tidy_words import words_are_made_last

ROOT = Path(__file__).parents[1]
MAX_FUNCTION_LINES = 70
MAX_FILE_LINES = 700
"""A file is as long as its one subject; this long it has two."""
ANY_BUDGET = 464
"""How often the package may say `Any` (grep -rwo Any cluster --include=*.py | wc -l); lower it
whenever there are fewer."""

_DRIVER = "I/O is the driver's (drivers/live.py); return an effect"
BANNED_CALLS = {
    "open": _DRIVER,
    "input": _DRIVER,
    "hash": "differs from process to process; zlib.crc32 does not",
    "id": "differs from run to run; number things yourself",
}
MAY_OPEN = (
    "cluster/kcluster/config/files/key_sets.py",
    "cluster/kcluster/config/files/source.py",
    "cluster/kcluster/packaged.py",
    "cluster/kcluster/plain_output.py",
    "cluster/kcluster/scenario/language/profiles.py",
)
"""Modules of the core that open a file: one that they are given, or one of the package."""


COORDINATORS = {
    "coordinator": (
        "join sync heartbeat leave modern_heartbeat commit_offsets commit_in_transaction "
        "fetch_offsets delete_offsets delete_group complete_transaction alter_share_offsets "
        "delete_share_offsets share_partitions describe group groups internal_topics "
        "partition_for led topic create_topic"
    ),
    "transactions": "submit verify transaction all_transactions partition_for topic create_topic",
    "share_state": "serve partition_for topic create_topic",
}
"""What a handler may use of each coordinator of its broker: Kafka's interfaces GroupCoordinator,
TransactionCoordinator and ShareCoordinator."""
BROKERS = ("broker", "self.broker", "self._broker")


# ------------------------------------------------------------------------------------ rules

Rule = Callable[[Module], Iterator[tuple[int, str]]]


def handlers_change_no_group(module: Module) -> Iterator[tuple[int, str]]:
    """A handler parses, calls its coordinator, and shapes the answer.  What it calls returns values
    and views without anything that changes; mypy knows these."""
    if not module.path.startswith(f"{SOURCE}broker/handlers/"):
        return
    for line, name in imports_of(module.tree):
        if name.startswith("kcluster.broker.coordinator.") and name.endswith("Shard"):
            yield line, "sees a shard; give the coordinator a verb"
    known = {f"{broker}.{one}": one for broker in BROKERS for one in COORDINATORS}
    for node in module.walk(ast.Assign):
        assert isinstance(node, ast.Assign)
        if (one := known.get(ast.unparse(node.value))) is not None:
            known |= {ast.unparse(target): one for target in node.targets}
    for node in module.walk(ast.Attribute):
        assert isinstance(node, ast.Attribute)
        one = known.get(ast.unparse(node.value))
        if one is not None and node.attr not in COORDINATORS[one].split():
            yield node.lineno, f"uses {node.attr} of broker.{one}; its verbs are in COORDINATORS"
    for node in module.walk(ast.Call):
        assert isinstance(node, ast.Call)
        if ast.unparse(node.func) == "isinstance" and ast.unparse(node.args[1]).endswith("Group"):
            yield node.lineno, "looks into a group; the coordinator answers questions about it"
    for node in module.walk(ast.Nonlocal):
        assert isinstance(node, ast.Nonlocal)
        yield node.lineno, "keeps state from answer to answer; use gather()"


def the_core_calls_nothing_impure(module: Module) -> Iterator[tuple[int, str]]:
    """Imports are ruff's to check (banned-api in pyproject.toml)."""
    for node in module.walk(ast.Call) if module.is_core else ():
        assert isinstance(node, ast.Call)
        name = ast.unparse(node.func)
        if name == "Random" and not node.args:
            yield node.lineno, "Random() draws its own seed; give it one"
        if name in BANNED_CALLS and not (name == "open" and module.path in MAY_OPEN):
            yield node.lineno, f"calls {name}() in the core: {BANNED_CALLS[name]}"


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


def functions_and_files_are_short(module: Module) -> Iterator[tuple[int, str]]:
    if (lines := module.text.count("\n")) > MAX_FILE_LINES:
        yield lines, f"{lines} lines; at most {MAX_FILE_LINES}"
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


_SILENCED = re.compile(r"#\s*(noqa|type: ignore)(?:: ?[A-Z0-9, ]+|\[[a-z, -]+\])?(?P<why>.*)")


def nothing_is_silenced_without_a_reason(module: Module) -> Iterator[tuple[int, str]]:
    if module.path == "tests/test_tidy.py":
        return
    for number, line in enumerate(module.text.splitlines(), 1):
        if "NotImplemented" in line:
            yield number, "NotImplemented: finish it, or make it an issue"
        silenced = _SILENCED.search(line)
        if silenced and len(silenced["why"].strip(" #")) <= 5:
            yield number, f"{silenced[1]} needs the reason, after its code"


VIRTUAL_SLEEPS = ("tests/world/", "tools/program_bugs/programs/")
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


def compiled_structs_take_options_from_a_base(module: Module) -> Iterator[tuple[int, str]]:
    """mypyc drops a class's keywords; the options of a base class are inherited."""
    for node in module.walk(ast.ClassDef) if module.path in COMPILED else ():
        assert isinstance(node, ast.ClassDef)
        if node.keywords and "Struct" in map(ast.unparse, node.bases):
            yield node.lineno, "options that mypyc drops; take a base of kcluster/structs.py"


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


LOADED_LATE = {
    "kcluster.cli.work.": "the work of a heavy verb: one import where it is called",
    "kcluster.cli.foreground.": "what `up` loads; a quick `up` does not come by its verb",
    "kcluster.cli.mcp.server.": "imports mcp, an extra",
    "kcluster.cli.simulate.hash_seed.": "importlib.metadata: 25 ms, not for `simulate --help`",
    "kcluster.cli.watching.": "of `status --watch`, not of `status`",
    "kcluster.demo.spark.": "imports pyspark, an extra",
    "kcluster.pipeline.judge.": "imports pyspark, an extra",
    "kcluster.pipeline.session.": "of `demo --spark`, not of `demo`",
    "kcluster.scenario.library.": "of `scenario list`: 12 ms, where the others need 500 ms",
    "kcluster.scenario.search.": "of `scenario show`: 25 ms, where the others need 500 ms",
    "pyspark.": "an extra",
    "rich.": "for a terminal, not for a pipe",
    "yaml.": "of `client start --keys`, not of `client list`",
}
"""What functions of verbs and of their work import, and why not at the top."""
VERBS = tuple(f"{SOURCE}cli/{room}/" for room in ("verbs", "pipeline", "work", "simulate"))
LATE_IMPORTS_BUDGET = 261
"""Imports inside functions in the whole package: this number only falls."""


def late_imports(module: Module) -> Iterator[tuple[int, str]]:
    """(line, dotted name and a dot) of each import inside a function, once."""
    found = {
        pair
        for function in module.walk(ast.FunctionDef, ast.AsyncFunctionDef)
        for pair in imports_of(function)
    }
    return ((line, f"{name}.") for line, name in sorted(found))


def verbs_import_at_their_top(module: Module) -> Iterator[tuple[int, str]]:
    """The overview imports no verb, so each imports what it needs at its top.  What takes long is
    in cli/work/, so that help and completion of the verb do not wait for it."""
    for line, name in late_imports(module) if module.path.startswith(VERBS) else ():
        if not name.startswith(tuple(LOADED_LATE)):
            yield line, f"imports {name[:-1]} in a function; LOADED_LATE has what may be"


def no_name_stands_for_any(module: Module) -> Iterator[tuple[int, str]]:
    for node in module.walk(ast.Assign):
        assert isinstance(node, ast.Assign)
        if module.is_ours and ast.unparse(node.value) == "Any":
            yield node.lineno, "another name for Any; declare what it is, or say Any where it is"


RULES: tuple[Rule, ...] = (
    verbs_import_at_their_top,
    handlers_change_no_group,
    compiled_classes_are_collected,
    compiled_structs_take_options_from_a_base,
    caught_errors_have_a_name_each,
    the_core_calls_nothing_impure,
    sets_are_not_iterated,
    functions_and_files_are_short,
    modules_say_what_they_own,
    nothing_is_silenced_without_a_reason,
    no_test_sleeps,
    words_are_made_last,
    nodes_are_read_by_their_views,
    no_name_stands_for_any,
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


def test_tidy__late_imports_become_fewer(all_modules: list[Module]) -> None:
    late = {(m.path, line) for m in all_modules if m.is_ours for line, _ in late_imports(m)}
    assert len(late) <= LATE_IMPORTS_BUDGET


def test_tidy__any_is_said_within_its_budget(all_modules: list[Module]) -> None:
    texts = [module.text for module in all_modules if module.path.startswith("cluster/")]
    assert sum(len(re.findall(r"\bAny\b", text)) for text in texts) <= ANY_BUDGET


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
    (
        handlers_change_no_group,
        "broker/handlers/groups/x.py",
        "def f(broker):\n broker.coordinator.shard_for('g').append([], done, 0)",
        "uses shard_for",
    ),
    (
        handlers_change_no_group,
        "broker/handlers/transactions/x.py",
        "class A:\n def f(self):\n  known = self._broker.transactions\n  known.shards[0]",
        "uses shards",
    ),
    (
        handlers_change_no_group,
        "broker/handlers/share/x.py",
        "from kcluster.broker.coordinator.shard import GroupShard",
        "sees a shard",
    ),
    (
        handlers_change_no_group,
        "broker/handlers/share/x.py",
        "if isinstance(broker.coordinator.group('g'), ShareGroup): pass",
        "looks into a group",
    ),
    (
        handlers_change_no_group,
        "broker/handlers/groups/x.py",
        "def f():\n left = 2\n def answered():\n  nonlocal left\n  left -= 1",
        "use gather()",
    ),
    (
        verbs_import_at_their_top,
        "cli/verbs/x.py",
        "def command():\n import msgspec",
        "imports msgspec in a function",
    ),
    (compiled_classes_are_collected, "contract.py", "@a(acyclic=True)\nclass A: ...", "frees"),
    (
        compiled_structs_take_options_from_a_base,
        "contract.py",
        "class A(Struct, gc=False): ...",
        "mypyc drops",
    ),
    (
        caught_errors_have_a_name_each,
        "contract.py",
        "def f():\n try: g()\n except A as x: h(x)\n except B as x: h(x)",
        "x is a A already",
    ),
    (the_core_calls_nothing_impure, "partition/log/log.py", "open('x')", "driver's"),
    (the_core_calls_nothing_impure, "broker/x.py", "hash('x')", "process"),
    (
        the_core_calls_nothing_impure,
        "runtime/build.py",
        "from random import Random\nRandom()",
        "seed",
    ),
    (sets_are_not_iterated, "broker/x.py", "for x in {1, 2}: pass", "no order"),
    (sets_are_not_iterated, "broker/x.py", "[x for x in set(y)]", "no order"),
    (sets_are_not_iterated, "broker/x.py", "list({x for x in y})", "no order"),
    (functions_and_files_are_short, "x.py", LONG_FUNCTION, "71 lines"),
    (functions_and_files_are_short, "x.py", "x = 1\n" * 701, "701 lines"),
    (modules_say_what_they_own, "x.py", "x = 1", "no docstring"),
    (modules_say_what_they_own, "x.py", '"""Does this and that. Owns: it."""', "'Never:'"),
    (nothing_is_silenced_without_a_reason, "x.py", "raise NotImplementedError", "finish it"),
    (nothing_is_silenced_without_a_reason, "x.py", "x = 1  # noqa", "the reason"),
    (nothing_is_silenced_without_a_reason, "x.py", "x = 1  # noqa: E501", "the reason"),
    (nothing_is_silenced_without_a_reason, "x.py", "x = 1  # type: ignore[a-b]", "the reason"),
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
    (no_name_stands_for_any, "drivers/x.py", "Socket = Any", "another name"),
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


def test_tidy__a_circle_of_imports_is_found() -> None:
    texts = {
        "kcluster.broker.a": "from kcluster.broker import b",
        "kcluster.broker.b": "if TYPE_CHECKING:\n    from kcluster.broker.c import C",
        "kcluster.broker.c": "def f():\n    import kcluster.broker.a",
        "kcluster.broker.d": "from kcluster.broker.a import A",
    }
    found = circles(import_graph({name: ast.parse(text) for name, text in texts.items()}))
    assert found == [["kcluster.broker.a", "kcluster.broker.b", "kcluster.broker.c"]]


RUFF_CATCHES = (
    ("broker/x.py", "import time", "TID251"),
    ("broker/x.py", "def f():\n    from random import random", "TID251"),
    ("network/x.py", "import gevent.event", "TID251"),
    ("broker/x.py", "import uuid\nuuid.uuid4()", "TID251"),
    ("runtime/x.py", "from random import shuffle", "TID251"),
    ("broker/x.py", "from . import node", "TID252"),
    ("cli/x.py", "try:\n    f()\nexcept Exception:\n    g()", "BLE001"),
    ("cli/x.py", "try:\n    f()\nexcept (OSError, Exception):\n    g()", "BLE001"),
    ("cli/x.py", "try:\n    f()\nexcept:\n    g()", "E722"),
    ("broker/x.py", "print(1)", "T201"),
    ("cli/x.py", "x = 1  # TODO later", "FIX002"),
    ("cli/x.py", "x = 1  # noqa", "PGH004"),
    ("cli/x.py", "x = other._own", "SLF001"),
)
"""What its configuration must catch, and where.  Layers are import-linter's (pyproject.toml)."""


@pytest.mark.parametrize(("path", "text", "code"), RUFF_CATCHES)
def test_tidy__ruff_is_configured_to_catch_it(path: str, text: str, code: str) -> None:
    ruff = [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format", "concise"]
    command = [*ruff, "--stdin-filename", str(ROOT / SOURCE / path), "-"]
    ended = subprocess.run(
        command, input=text, capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert f" {code} " in ended.stdout, ended
