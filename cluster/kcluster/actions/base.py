"""What an action is: a Struct whose fields are its keys, performed on a site.

Owns: Action, the table of actions by name.  Never: performs one.
Kafka: Trogdor's FaultSpec and TaskSpec.

To add an action: a class with `@action("name", short="field", example="name: 1")` in a file of this
directory.  Its YAML form, its checks, its JSON Schema, its page in the reference, its forms in
Python and on the command line follow from its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final, TypeVar

from msgspec import Struct

from kcluster.actions.site import Site

Undo = Callable[[], None]


class Action(Struct, frozen=True):
    """Something to do to a cluster; a subclass per kind.

    `do` and its undo run in the driver's thread and do not wait.  They raise ClusterError if the
    action cannot be performed.
    """

    VERB: ClassVar[str] = ""
    IS_FAULT: ClassVar[bool] = True
    """Undone when everything is repaired at the scenario's end; otherwise only after `for`."""
    SHORT: ClassVar[str] = ""
    """The field that is meant if the value in the file is not a mapping."""
    EXAMPLE: ClassVar[str] = ""
    """A step of a scenario with this action, for the reference; a test plays it."""

    def do(self, site: Site) -> Undo | None:
        """Perform it now; returns the function that undoes it, None if it cannot be undone."""
        raise AssertionError(f"{type(self).__name__} cannot be performed")

    def problems(self) -> Iterator[tuple[str, str]]:
        """Why fields cannot be combined, where each is correct by itself: a field's key, and the
        reason."""
        yield from ()

    def affected(self, site: Site) -> tuple[int, ...]:
        """The nodes to which `as` gives a name; it may draw them."""
        return ()

    def about_to_affect(self, site: Site) -> tuple[int, ...]:
        """The nodes on which `do`, called next, acts: what is drawn here, `do` draws again."""
        state = site.rng.getstate()
        try:
            return self.affected(site)
        finally:
            site.rng.setstate(state)


ACTIONS: Final[dict[str, type[Action]]] = {}
"""By the verb in files."""

A = TypeVar("A", bound=type[Any])


def action(verb: str, short: str = "", *, example: str) -> Callable[[A], A]:
    """Register an action under its verb."""

    def register(cls: A) -> A:
        assert verb not in ACTIONS, verb
        cls.VERB, cls.SHORT, cls.EXAMPLE = verb, short, example
        ACTIONS[verb] = cls
        return cls

    return register
