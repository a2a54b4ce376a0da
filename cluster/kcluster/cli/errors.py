"""The error of a command.

Owns: CommandError.  Never: prints it (click_tools.py does).
Kafka: no counterpart.
"""

from __future__ import annotations


class CommandError(Exception):
    """The error for a command that cannot be carried out; the text has the reason, for the person
    who typed it.

    `exit_code`: 1 if the cluster cannot do it in its present state, or no cluster runs; 2 if the
    command itself is wrong.
    """

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code
