"""What both kinds of children do: answer lines of JSON until their parent is gone."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress

from unity.errors import UnityError

from .child import Message
from .parent import end_with

Handler = Callable[[Message], Message]


def serve(handlers: Mapping[str, Handler]) -> None:
    """Answer each request by the handler its ``do`` names; what it raises is an answer, too.

    What is printed on the way goes to standard error: standard output is for answers.
    """
    parent, *cpus = map(int, sys.argv[1:])
    end_with(parent)
    if cpus and hasattr(os, "sched_setaffinity"):
        with suppress(OSError):
            os.sched_setaffinity(0, cpus)
    answers = os.dup(1)
    os.dup2(2, 1)
    with os.fdopen(answers, "w") as out:
        for line in sys.stdin:
            request: Message = json.loads(line)
            try:
                answer = handlers[str(request["do"])](request)
            except UnityError as error:
                answer = {"error": error.message}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}", "bug": True}
            out.write(json.dumps(answer) + "\n")
            out.flush()
