"""The output of a run: TAP, or JSON."""

import json

from .suite import MUST


def tap_line(number, result):
    """One line of the Test Anything Protocol, version 13."""
    case = result.case
    state = "not ok" if result.status == "failed" else "ok"
    line = f"{state} {number} - [{case.level}] {case.identifier}: {case.expected}"
    if result.status == "skipped":
        return f"{line} # SKIP {one_line(result.found)}"
    if result.status == "failed" and case.level != MUST:
        line += f" # TODO {case.level}"
    details = [f"  source: {case.source}"]
    if result.found:
        details.append(f"  found: {one_line(result.found)}")
    if result.status == "failed" or result.found:
        return "\n".join([line, *(f"  # {detail.strip()}" for detail in details)])
    return line


def one_line(text):
    return " ".join(str(text).replace("#", "\\#").split())


def counts(results):
    """Of each level: how many cases passed, failed and were not run."""
    table = {}
    for result in results:
        level = table.setdefault(result.case.level, {"ok": 0, "failed": 0, "skipped": 0})
        level[result.status] += 1
    return table


def summary(name, version, results):
    parts = [
        f"{level}: {count['ok']} passed, {count['failed']} failed, {count['skipped']} not run"
        for level, count in counts(results).items()
    ]
    return f"{name} {version}: " + "; ".join(parts)


def as_json(name, version, results, further):
    return json.dumps(
        {
            "service": name, "version": version,
            "cases": [
                {
                    "id": result.case.identifier, "level": result.case.level, "source": result.case.source,
                    "expected": result.case.expected, "status": result.status, "found": result.found,
                    "seconds": round(result.seconds, 3),
                }
                for result in results
            ],
            **further,
        },
        indent=2, ensure_ascii=False,
    )


def client_line(result):
    state = {"ok": "ok", "failed": "not ok", "skipped": "ok"}[result.status]
    line = f"# client: {state} - {result.name} {result.version}".rstrip()
    if result.status == "skipped":
        line += " # SKIP"
    return f"{line}: {one_line(result.found)}" if result.found else line
