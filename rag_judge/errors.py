"""The exceptions a caller may meet, on one screen.

    RagJudgeError                 whatever the user can mend; carries the exit code of the command line
    ├── InputError                a file, a setting or an argument is wrong: nothing was spent          exit 2
    └── CannotGoOn                endpoint or judge down: what was done is kept                          exit 5
        └── LimitReached          money, calls or time are used up; carries the numbers so far           exit 5

Ctrl-C stays Python's own KeyboardInterrupt (exit 130); what was finished is kept then, too.

What a *model* did wrong is never an exception: it is `records.Unscored` with its evidence.
"""


class RagJudgeError(Exception):
    """Something the user can mend; its text says where, what was found, what was expected and what to do."""

    exit_code = 2


class InputError(RagJudgeError):
    """A file, setting, argument or comparison that cannot be used; nothing was spent."""

    exit_code = 2


class CannotGoOn(RagJudgeError):
    """The run stopped before its end for a cause outside it; what was finished is kept and can be resumed."""

    exit_code = 5


class LimitReached(CannotGoOn):
    """A limit of money, calls or time stands against going on; what was finished is kept and can be resumed."""

    def __init__(self, message: str, finished: frozenset[str] = frozenset(), result: object = None) -> None:
        """`finished`: the cases of which the judge saw all that was needed. `result`: their numbers, a RunResult."""
        super().__init__(message)
        self.finished = finished
        self.result = result
