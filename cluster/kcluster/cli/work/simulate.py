"""The work of `kcluster simulate`.

Owns: the form of errors of files and programs, the exit code.  Never: runs a program
(cli/simulate/).
Kafka: no counterpart.
"""

from __future__ import annotations

import sys

from kcluster.cli.click_tools import fail
from kcluster.cli.errors import CommandError
from kcluster.cli.simulate.command import run
from kcluster.cli.simulate.options import SimulateOptions
from kcluster.config.files.problems import ProblemsError
from kcluster.json_types import JsonObject
from kcluster.operations.errors import ClusterError
from kcluster.scenario.language.loader import ScenarioError


def simulate_programs(options: JsonObject) -> None:
    """Run programs; ends the process with the exit code.  `options`: fields of SimulateOptions."""
    try:
        exit_code = run(SimulateOptions(**options))
    except (ProblemsError, ScenarioError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the pipe has closed it
        sys.exit(1)
    except CommandError as error:
        fail(error)
    except ClusterError as error:
        fail(CommandError(str(error)))
    sys.exit(exit_code)
