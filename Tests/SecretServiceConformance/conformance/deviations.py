"""Cases that a service fails on purpose: a file with a line each, the id of the case and the reason."""

import os

from .suite import MUST

KEYHOLE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "keyhole.deviations")


def read(path):
    """The reasons by the ids of the cases."""
    with open(path, encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    return dict(line.split(None, 1) for line in lines)


def judge(results, reasons):
    """A line for each required case that failed without a reason, and for each reason that no longer applies."""
    wrong = []
    for result in results:
        name, failed = result.case.identifier, result.status == "failed"
        if failed and result.case.level == MUST and name not in reasons:
            wrong.append(f"{name} failed")
        if name in reasons and result.status == "ok":
            wrong.append(f"the deviation of {name} no longer applies: it passes")
    return wrong
