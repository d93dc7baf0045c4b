"""The page of results, Documentation/SECRET-SERVICE.md: a fixed text with tables of what was measured."""

import datetime
import os
import platform

from .deviations import KEYHOLE, read
from .report import counts
from .suite import HABIT, MUST, SHOULD

TEXT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "page.md")


def table(header, rows):
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def cell(text):
    return " ".join(str(text).replace("|", "\\|").split())


class Run:
    """All that one service's run gave."""

    def __init__(self, name, version, results, clients):
        self.name = name
        self.version = version
        self.results = results
        self.clients = clients


MARKS = {"ok": "yes", "failed": "**no**", "skipped": "–"}


def system():
    """The release of the distribution and the kernel."""
    name = platform.freedesktop_os_release()
    release = name.get("PRETTY_NAME", "Linux")
    return f"{release}, Linux {'.'.join(platform.release().split('.')[:2])}"


def levels(runs):
    rows = []
    for run in runs:
        found = counts(run.results)
        rows.append([f"{run.name} {run.version}"] + [
            f"{found[level]['ok']} of {found[level]['ok'] + found[level]['failed']}"
            + (f" ({found[level]['skipped']} not run)" if found[level]["skipped"] else "")
            for level in (MUST, SHOULD, HABIT) if level in found
        ])
    return table(["service", "must", "should", "habit"], rows)


def clients(runs):
    rows = []
    for index, result in enumerate(runs[0].clients):
        versions = [run.clients[index].version for run in runs if run.clients[index].version]
        rows.append([f"{result.name} {cell(versions[0]) if versions else ''}".strip()] + [
            MARKS[run.clients[index].status] for run in runs
        ])
    return table(["client", *(run.name for run in runs)], rows)


def client_notes(runs):
    lines = []
    for run in runs:
        for result in run.clients:
            if result.status != "ok":
                what = "not run" if result.status == "skipped" else "failed"
                lines.append(f"- {run.name}, {result.name}: {what}: {cell(result.found)}")
    return "\n".join(lines) or "None."


def cases(runs):
    rows = []
    for index, result in enumerate(runs[0].results):
        case = result.case
        rows.append(
            [f"`{case.identifier}`", case.level, cell(case.source), cell(case.expected)]
            + [MARKS[run.results[index].status] for run in runs]
        )
    return table(["case", "level", "source", "expected", *(run.name for run in runs)], rows)


def failures(runs):
    lines = []
    for run in runs:
        found = [result for result in run.results if result.status == "failed"]
        lines.append(f"**{run.name} {run.version}**" + ("" if found else ": none."))
        lines += [""] + [f"- `{result.case.identifier}` ({result.case.level}): {cell(shortened(result.found))}" for result in found] + [""]
    return "\n".join(lines).rstrip()


def shortened(text):
    """At most 200 characters of a text."""
    return text if len(text) <= 200 else text[:197] + "…"


def speed(measured):
    if not measured:
        return "Not measured in this run."
    ours, theirs, version, ours_version = measured
    rows = [
        [name, f"{ours[name]:,.0f} µs", f"{theirs[name]:,.0f} µs", f"{ours[name] / theirs[name]:.2f}" if name != "Ping" else ""]
        for name in ("SearchItems", "GetSecret", "CreateItem", "Ping")
    ]
    return table(["call", f"Keyhole {ours_version}", f"gnome-keyring {version}", "ratio"], rows)


def deviations():
    """The deliberate failures of Keyhole, as a sentence."""
    known = "; ".join(f"`{name}` ({reason})" for name, reason in read(KEYHOLE).items())
    if not known:
        return "Keyhole has no deviation of the level `must` on purpose."
    return f"Keyhole's failures of the level `must` are on purpose: {known}."


def page(runs, measured, fuzzed):
    """The whole page."""
    with open(TEXT, encoding="utf-8") as file:
        text = file.read()
    values = {
        "DATE": datetime.date.today().isoformat(),
        "SYSTEM": system(),
        "VERSIONS": ", ".join(f"{run.name} {run.version}" for run in runs),
        "COUNT": str(len(runs[0].results)),
        "LEVELS": levels(runs),
        "CLIENTS": clients(runs),
        "CLIENT-NOTES": client_notes(runs),
        "CASES": cases(runs),
        "FAILURES": failures(runs),
        "DEVIATIONS": deviations(),
        "SPEED": speed(measured),
        "FUZZ": "; ".join(fuzzed) or "not run",
    }
    for name, value in values.items():
        text = text.replace("{{" + name + "}}", value)
    return text
