"""The work of `kcluster search` for users' programs.

Owns: the form of errors of files and programs, the exit code.  Never: searches (cli/simulate/).
Kafka: no counterpart.
"""

from __future__ import annotations

import sys

from kcluster.cli.click_tools import fail
from kcluster.cli.errors import CommandError
from kcluster.cli.interrupts import INTERRUPTED
from kcluster.cli.simulate.options import SimulateOptions
from kcluster.cli.simulate.searching import ProgramSearchOptions, search_programs
from kcluster.config.files.problems import ProblemsError
from kcluster.json_types import JsonObject
from kcluster.operations.errors import ClusterError
from kcluster.scenario.language.loader import ScenarioError


def search_users_programs(simulate: JsonObject, options: JsonObject) -> None:
    """Search; ends the process with the exit code.  The arguments: fields of SimulateOptions and of
    ProgramSearchOptions."""
    try:
        exit_code = search_programs(SimulateOptions(**simulate), ProgramSearchOptions(**options))
    except (ProblemsError, ScenarioError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except CommandError as error:
        fail(error)
    except ClusterError as error:
        fail(CommandError(str(error)))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    sys.exit(exit_code)
