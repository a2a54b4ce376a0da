"""Whole programs in a world, each as if it had an interpreter of its own.

Owns: a program's surroundings (arguments, `__main__`, its folder on sys.path), its end, its exit
code.  Never: enters a world, chooses the other programs, prints more than Python would. Kafka: no
counterpart; `python app.py`.

Each program runs in a thread of the world.  Programs share imported modules, the environment, the
working directory, and the settings of `logging`.
"""

from __future__ import annotations

import builtins
import concurrent.futures.thread as pools
import importlib.machinery
import importlib.util
import io
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Final

from msgspec import Struct, structs

from kcluster.packaged import is_packaged
from kcluster.world.active import app_here, is_dying
from kcluster.world.errors import NotInVirtualTime, WorldEnded
from kcluster.world.imports import own_modules, program_file
from kcluster.world.interleaving import is_users_code
from kcluster.world.replacing import set_attribute
from kcluster.world.signals import EndedBySignal, ProgramSignals, exit_code_of
from kcluster.world.waits import WaitFor, Waiting
from kcluster.world.world import World

FAILED: Final = 1
"""The exit code of a program that an exception ended."""
RESTART_LOOK_US: Final = 100_000
"""The interval at which is checked whether a killed program may still be started again."""
GRACE_S: Final = 30
"""The virtual time that a program has to end after SIGTERM, if it handles it; 30 s, as in
Kubernetes."""
_FOR_PROGRAMS: Final = Waiting(WaitFor.LOCK, "programs to end")
_FOR_TIME: Final = Waiting(WaitFor.CLUSTER, "programs to end, or time to be up")


class Program(Struct, frozen=True):
    """A program.  `target`: a file, or the name of a module if `is_module`; `arguments`: its
    sys.argv without the first item."""

    name: str
    target: str
    is_module: bool = False
    arguments: tuple[str, ...] = ()


class ProgramEnd(Struct, frozen=True):
    """A program's end.  `reason`: the exception that ended it, in a line; "" if none did."""

    name: str
    exit_code: int
    at_us: int
    reason: str = ""


class ProgramKill(Struct, frozen=True):
    """A program was killed.  `restarted_us`: when it was started again, -1 if it was not."""

    name: str
    at_us: int
    restarted_us: int = -1


def _never_awaited() -> bool:
    return False


class Programs:
    """The programs of one world.  `is_timed`: whether `time_is_up` will be called; `may_restart`:
    whether a program that was killed may still be started again."""

    def __init__(
        self,
        programs: Sequence[Program],
        world: World,
        is_timed: bool = False,
        may_restart: Callable[[], bool] = _never_awaited,
    ) -> None:
        self.ends: list[ProgramEnd] = []
        """The ends so far, in their order."""
        self.kills: list[ProgramKill] = []
        """The kills so far, in their order."""
        self._world = world
        self._may_restart = may_restart
        self._lives = {program.name: _Life(program, world, self._on_end) for program in programs}
        self._killed: dict[str, None] = {}
        """The programs that were killed and not started again."""
        self._signals = ProgramSignals(world, self._on_handler)
        self._is_timed = is_timed
        self._is_over = False
        self._is_time_up = False
        self._news: list[ProgramEnd | None] = []
        """The ends that `run` has not seen yet; None stands for the end of the time."""

    @property
    def running(self) -> list[str]:
        """The names of the programs that have not ended."""
        over = {end.name for end in self.ends} | {*self._killed}
        return [name for name in self._lives if name not in over]

    @property
    def names(self) -> Sequence[str]:
        """The names of all programs."""
        return tuple(self._lives)

    def is_running(self, name: str) -> bool:
        """Whether a program has neither ended nor been killed."""
        return name in self.running and all(end is None or end.name != name for end in self._news)

    def kill(self, name: str) -> None:
        """Kill a program as SIGKILL does; it may be started again.  Called while the cluster
        runs."""
        self._killed[name] = None
        self.kills.append(ProgramKill(name, self._world.scheduler.now_us))
        self._signals.forget(name)
        self._world.kill(name)
        self._wake()

    def start(self, name: str) -> None:
        """Start a program again that was killed or has ended, with modules of its own; called while
        the cluster runs.  Without effect once `run` has returned."""
        if self._is_over:
            return
        self._killed.pop(name, None)
        self.ends[:] = [end for end in self.ends if end.name != name]
        for at, kill in enumerate(self.kills):
            if kill.name == name and kill.restarted_us < 0:
                now_us = self._world.scheduler.now_us
                self.kills[at] = structs.replace(kill, restarted_us=now_us)
        life = _Life(self._lives[name].program, self._world, self._on_end)
        self._lives[name] = life
        self._forget_modules(life.program)
        if len(self._lives) == 1:
            sys.argv, sys.modules["__main__"] = life.arguments, life.main
        self._world.scheduler.spawn(life.thread.start, (), {}, app=name)

    def pause(self, name: str) -> None:
        """Pause a program; see Scheduler.pause."""
        self._world.scheduler.pause(name)

    def resume(self, name: str) -> bool:
        """Let a program go on; returns whether it was paused."""
        was_paused = name in self._world.scheduler.paused
        self._world.scheduler.resume(name)
        return was_paused

    def stall(self, name: str, share: float, longest_us: int, line: str = "") -> None:
        """Let threads of a program ("": of all) stand still; see World.stall."""
        self._world.stall(name, share, longest_us, line)

    def when_line(self, line: str, number: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back when a program is about to execute a line; see World.when_line."""
        return self._world.when_line(line, number, callback)

    def _forget_modules(self, program: Program) -> None:
        """Have a program's own modules run again, as in a new process; not those that it shares
        with other programs."""
        others = [life.program for life in self._lives.values() if life.program is not program]
        shared = {name for other in others for name in _modules_of(other)}
        for name in _modules_of(program):
            if name not in shared:
                sys.modules.pop(name, None)

    def time_is_up(self) -> None:
        """End programs by SIGTERM: programs that handle it have GRACE_S to end, the others end at
        once.  Called while the cluster runs; without effect once `run` has returned."""
        if not self._is_over:
            self._is_time_up = True
            self._tell(None)

    def run(self) -> None:
        """Run all programs until each has ended, or one has failed, or time is up.  Called by the
        world's first thread."""
        with ExitStack() as undo:
            undo.callback(setattr, self, "_is_over", True)
            undo.callback(self._world.at_exit.forget)
            self._signals.replace(undo)
            set_attribute(undo, sys, "stdin", io.StringIO())
            undo.callback(sys.path.__setitem__, slice(None), sys.path[:])
            lives = self._lives.values()
            sys.path[:0] = list(dict.fromkeys(folder_of(life.program) for life in lives))
            _give_each_its_own(undo, self._lives)
            for life in tuple(lives):
                life.thread.start()
            while self.running or (self._killed and self._may_restart()):
                look_us = self._world.scheduler.now_us + RESTART_LOOK_US
                news = self._next_news(None if self.running else look_us)
                if self._is_time_up:
                    self._terminate()
                    return
                if news is None:
                    continue  # a program was killed, and may be started again
                self.ends.append(news)
                if news.exit_code:
                    return

    def _next_news(self, deadline_us: int | None = None) -> ProgramEnd | None:
        """The next end; None at the deadline, after a kill, and when the time is up."""
        scheduler, kills = self._world.scheduler, len(self.kills)
        while not self._news:
            # A program that waits only for SIGTERM is no deadlock if SIGTERM will come.
            wait = _FOR_TIME if self._is_timed and self._signals.is_handled else _FOR_PROGRAMS
            scheduler.park(deadline_us, wait)
            if len(self.kills) > kills:
                return None
            if deadline_us is not None and scheduler.now_us >= deadline_us:
                return None
        return self._news.pop(0)

    def _on_handler(self) -> None:
        self._wake()

    def _tell(self, news: ProgramEnd | None) -> None:
        self._news.append(news)
        self._wake()

    def _wake(self) -> None:
        scheduler = self._world.scheduler
        scheduler.wake(scheduler.threads[0])

    def _terminate(self) -> None:
        handling = [x for x in self.running if self._signals.handles(x, signal.SIGTERM)]
        for life in self._lives.values():
            if life.program.name in handling:
                threading.Thread(target=self._deliver, args=(life,), name="SIGTERM").start()
        deadline_us = self._world.scheduler.now_us + GRACE_S * 1_000_000
        while set(handling) & set(self.running):
            news = self._next_news(deadline_us)
            if news is None:
                return
            self.ends.append(_as_asked(news))

    def _deliver(self, life: _Life) -> None:
        name = life.program.name
        exit_code, reason = life.run_in(lambda: self._signals.deliver(name, signal.SIGTERM))
        if exit_code is not None:
            self._on_end(ProgramEnd(name, exit_code, self._world.scheduler.now_us, reason))

    def _on_end(self, end: ProgramEnd) -> None:
        self._tell(end)


def _as_asked(end: ProgramEnd) -> ProgramEnd:
    """The end of a program that was asked to end: web servers send SIGTERM to themselves again
    after closing their connections."""
    is_by_signal = end.exit_code == exit_code_of(signal.SIGTERM)
    return structs.replace(end, exit_code=0, reason="") if is_by_signal else end


class _Life:
    """One program, from its first line to its end."""

    def __init__(
        self, program: Program, world: World, on_end: Callable[[ProgramEnd], None]
    ) -> None:
        self.program = program
        self.main = ModuleType("__main__")
        self.arguments = [program.target, *program.arguments]
        self.thread = threading.Thread(target=self.live, name=program.name)
        """The program's first thread."""
        self._world = world
        self._on_end = on_end

    def live(self) -> None:
        """Run the program, in a thread of its own."""
        exit_code, reason = self.run_in(self._execute)
        late_code, late_reason = self.run_in(self._wind_up)
        end_us = self._world.scheduler.now_us
        code = exit_code or late_code or 0
        self._on_end(ProgramEnd(self.program.name, code, end_us, reason or late_reason))

    def run_in(self, work: Callable[[], None]) -> tuple[int | None, str]:
        """Call a function as this program.  Returns Python's exit code and the reason for the end;
        None if the program goes on."""
        self._world.scheduler.here.app = self.program.name
        ending = _ProgramEnding()
        with ending:
            work()
        return ending.exit_code, ending.reason

    def _execute(self) -> None:
        program, namespace = self.program, self.main.__dict__
        namespace["__builtins__"] = builtins
        if program.is_module:
            spec = _module_to_run(program.target)
            assert isinstance(spec.loader, importlib.machinery.SourceFileLoader)
            code = spec.loader.get_code(spec.name)
            self.arguments[0] = spec.origin or program.target
            namespace.update(__spec__=spec, __package__=spec.parent, __loader__=spec.loader)
        else:
            code = _compiled(program.target)
            namespace.update(__spec__=None, __package__=None)
        assert code is not None
        namespace.update(__file__=code.co_filename, __cached__=None)
        exec(code, namespace)

    def _wind_up(self) -> None:
        """End the program as an interpreter does: end thread pools, wait for threads that are not
        daemons, then make the calls registered with atexit."""
        self._end_pools()
        while others := [each for each in self._threads() if not each.daemon]:
            others[0].join()
        self._world.at_exit.run(self.program.name)

    def _threads(self) -> list[threading.Thread]:
        app, here = self.program.name, threading.current_thread()
        mine = {each.ident for each in self._world.scheduler.threads if each.app == app}
        return [x for x in threading.enumerate() if x.ident in mine and x is not here]

    def _end_pools(self) -> None:
        mine = [thread for thread in self._threads() if thread in pools._threads_queues]
        if not mine:
            return
        was_over, pools._shutdown = pools._shutdown, True
        try:
            for thread in mine:
                pools._threads_queues[thread].put(None)
            for thread in mine:
                thread.join()
        finally:
            pools._shutdown = was_over


class _ProgramEnding:
    """Turns an exception of a program into its end, as an interpreter does."""

    def __init__(self) -> None:
        self.exit_code: int | None = None
        self.reason = ""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is None or isinstance(error, WorldEnded) or is_dying():
            return False
        if isinstance(error, SystemExit):
            self._exit(error.code)
            if isinstance(error, EndedBySignal):
                self.reason = error.name
            return True
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        self.exit_code = FAILED
        if isinstance(error, NotInVirtualTime):
            self.reason = f"{_line_of(trace)}{error}"
            print(self.reason, file=sys.stderr)
        else:
            self.reason = f"{type(error).__name__}: {error}".partition("\n")[0]
            sys.excepthook(type(error), error.with_traceback(trace), trace)
        return True

    def _exit(self, code: object) -> None:
        """End as a process does after `sys.exit(code)`."""
        if code is None or isinstance(code, int):
            self.exit_code = (code or 0) & 0xFF
        else:
            print(code, file=sys.stderr)
            self.exit_code = FAILED
            self.reason = str(code).partition("\n")[0]


def _line_of(trace: TracebackType | None) -> str:
    """The place of an error, `app.py:12: `: the innermost line of users' code, or else of a
    library."""
    of_user = of_library = ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        place = f"{os.path.relpath(file)}:{trace.tb_lineno}: "
        if is_users_code(file):
            of_user = place
        elif not is_packaged(file):
            of_library = place
        trace = trace.tb_next
    return of_user or of_library


def _module_to_run(name: str) -> importlib.machinery.ModuleSpec:
    """The module that `python -m name` runs, after the import of its packages."""
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{name}.__main__")
    assert spec is not None, "checked before the world began"
    return spec


def _compiled(file: str) -> CodeType:
    with io.open_code(os.path.abspath(file)) as opened:
        return compile(opened.read(), file, "exec", dont_inherit=True)


def folder_of(program: Program) -> str:
    """The folder that Python puts first into sys.path."""
    return os.getcwd() if program.is_module else os.path.dirname(os.path.realpath(program.target))


# ------------------------------------------------------------------- what each program has of its
# own


def _give_each_its_own(undo: ExitStack, lives: dict[str, _Life]) -> None:
    """Give each program its own sys.argv, `__main__` and main thread, found by the calling
    thread.  `lives`: the present life of each, by name."""
    real = threading.main_thread

    def main_thread() -> threading.Thread:
        life = lives.get(app_here())
        return real() if life is None else life.thread

    set_attribute(undo, threading, "main_thread", main_thread)
    if len(lives) == 1:
        only = next(iter(lives.values()))
        set_attribute(undo, sys, "argv", only.arguments)
        main: ModuleType = only.main
    else:
        main = _MainOfEach(lives)
        undo.callback(setattr, sys, "__class__", type(sys))
        sys.__class__ = _sys_of_each(lives)
    undo.callback(sys.modules.__setitem__, "__main__", sys.modules["__main__"])
    sys.modules["__main__"] = main


def _here(lives: dict[str, _Life]) -> _Life:
    return lives.get(app_here()) or next(iter(lives.values()))


class _MainOfEach(ModuleType):
    """The sys.modules["__main__"] of several programs: each program finds its own."""

    def __init__(self, lives: dict[str, _Life]) -> None:
        super().__init__("__main__")
        object.__setattr__(self, "_lives", lives)

    def __getattribute__(self, name: str) -> object:
        return getattr(_here(object.__getattribute__(self, "_lives")).main, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(_here(object.__getattribute__(self, "_lives")).main, name, value)


def _sys_of_each(lives: dict[str, _Life]) -> type[ModuleType]:
    def set_argv(module: ModuleType, arguments: list[str]) -> None:
        _here(lives).arguments = arguments

    argv = property(lambda module: _here(lives).arguments, set_argv)
    return types.new_class("sys", (ModuleType,), exec_body=lambda body: body.update(argv=argv))


def _modules_of(program: Program) -> Iterable[str]:
    """The modules of a program's own code, by name."""
    file = program_file(program.target) if program.is_module else Path(program.target)
    return own_modules([file], folder_of(program)) if file is not None else ()


def names_of(targets: Iterable[str]) -> list[str]:
    """A name for each program that has none: the file's name, with a number if it is taken."""
    names: list[str] = []
    for target in targets:
        stem = os.path.basename(target).removesuffix(".py")
        taken = sum(name.partition("-")[0] == stem for name in names)
        names.append(f"{stem}-{taken + 1}" if taken else stem)
    return names
