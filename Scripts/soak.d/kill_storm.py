"""kill -9 of the mount and of commands while they store: what was acknowledged is there, nothing is torn or left over.

Several homes are stormed at the same time, each by a process of its own. Each round ends with a mount, in which every
value is compared with what may be stored.
"""

import collections
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time

import harness
import rounds
import slots
from keyring_bus import Bus
from storm import Storm

VALUES = ["passed", "failed", "excluded", "acknowledged"]


def play(options, result, storm, bus):
    """One round of those that are wanted. What fails while the service ends by itself is not counted."""
    ends, failed = bus.ends() if bus else 0, result.failed
    play_round(options, result, storm)
    if bus and bus.ends() > ends:
        result.exclude(result.failed - failed)
        result.failed = failed


def play_round(options, result, storm):
    """One round, whatever becomes of the service."""
    table = rounds.ROUNDS[storm.engine]
    wanted = set(options.only or []) - set(rounds.ROUNDS)
    names = [name for name in table if not wanted or name in wanted]
    name = storm.dice.choices(names, [table[name][1] for name in names])[0]
    storm.rounds[name] += 1
    try:
        table[name][0](storm)
        storm.check()
    except (harness.Failed, OSError, KeyError, ValueError, subprocess.SubprocessError) as error:
        result.fail(f"{storm.home.folder}, round of {name}: {error!r}")
        storm.home.kill()


def storm_home(options, exclusions, engine, number, bus, go, report):
    """Rounds on one home until `go` is closed; a line of counts after each."""
    result = harness.Result("kill-storm")
    environment = {"DBUS_SESSION_BUS_ADDRESS": bus.address} if bus else {}
    model = slots.Model(4, 780_000, 200_000) if engine == "vault" else slots.Model(2, 20_000, 4_000)
    with harness.Home(options, f"{engine[0]}{number}", **environment) as home:
        storm = Storm(options, result, exclusions, engine, home, model)
        for left in range(9, -1, -1):
            try:
                storm.prepare()
                break
            except harness.Failed as error:
                # A service that does not answer in time on a machine that is busy.
                if not left:
                    raise
                print(f"{home.folder}: once more, because {error}", flush=True)
        while not select.select([go], [], [], 0)[0] and result.failed < 50:
            play(options, result, storm, bus)
            line = {name: getattr(result if name != "acknowledged" else storm, name) for name in VALUES}
            line |= {"kills": storm.kills, "rounds": storm.rounds, "longest_mount": storm.longest_mount,
                     "used": [rule[2] for rule in exclusions.rules]}
            os.write(report, json.dumps(line).encode() + b"\n")


class Worker:
    """A process that storms one home."""

    def __init__(self, options, exclusions, engine, number, bus, go):
        self.engine, self.state, self.rest = engine, {}, b""
        self.report, writing = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.close(go[1])
                storm_home(options, exclusions, engine, number, bus, go[0], writing)
                status = 0
            except SystemExit as error:
                status = error.code
            except BaseException as error:
                print(f"FAILED {engine} {number}: {error!r}", flush=True)
            finally:
                os._exit(status)
        os.close(writing)

    def read(self):
        """Takes the counts that have come. False: it has ended."""
        data = os.read(self.report, 1 << 16)
        *lines, self.rest = (self.rest + data).split(b"\n")
        if lines:
            self.state = json.loads(lines[-1])
        return bool(data)

    def killed(self):
        return sum(self.state.get("kills", {}).values())

    def wait(self):
        """Its exit code, or minus the signal that ended it."""
        pid, self.pid = self.pid, None
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def end(self):
        """Ends it before its time; it takes its mount away."""
        if self.pid is not None:
            os.kill(self.pid, signal.SIGTERM)
            self.wait()


def watch(options, result, workers, go):
    """Shows how far it is, and ends the rounds at the count of kills or the time; then waits for the workers."""
    count = options.count or 100
    deadline = result.began + (options.seconds or 3600 * 24)
    shown, step, running = 0, max(50, count // 20), list(workers)
    while running:
        ready = select.select([worker.report for worker in running], [], [], 1)[0]
        running = [worker for worker in running if worker.report not in ready or worker.read()]
        killed = sum(worker.killed() for worker in workers)
        failed = sum(worker.state.get("failed", 0) for worker in workers)
        if killed >= shown + step:
            shown = killed
            print(f"{killed} kills, {failed} failures, {result.seconds():.0f} s", flush=True)
        if len(go) > 1 and (killed >= count or time.monotonic() > deadline or failed >= 100):
            os.close(go.pop())
    for worker in workers:
        if worker.wait():
            result.fail(f"a process that storms the {worker.engine} did not end well")


def report(result, exclusions, workers):
    """Kills and rounds of each engine."""
    for engine in rounds.ROUNDS:
        states = [worker.state for worker in workers if worker.engine == engine and worker.state]
        if not states:
            continue
        kills, played = collections.Counter(), collections.Counter()
        for state in states:
            kills.update(state["kills"])
            played.update(state["rounds"])
        print(f"{engine}: {sum(kills.values())} kills in {sum(played.values())} rounds, "
              f"{sum(state['acknowledged'] for state in states)} writes acknowledged, "
              f"longest mount {max(state['longest_mount'] for state in states):.2f} s")
        print("  kills: " + ", ".join(f"{name} {number}" for name, number in sorted(kills.items())))
        print("  rounds: " + ", ".join(f"{name} {number}" for name, number in sorted(played.items())))
        for state in states:
            result.passed += state["passed"]
            result.failed += state["failed"]
            result.excluded += state["excluded"]
            for rule, used in zip(exclusions.rules, state["used"]):
                rule[2] += used
    sys.stdout.flush()


def main():
    options = harness.arguments(parallel=2, fixtures="")
    result = harness.Result("kill-storm")
    exclusions = harness.Exclusions("kill-storm")
    engines = set(rounds.ROUNDS) & set(options.only or []) or set(rounds.ROUNDS)
    go, workers = list(os.pipe()), []
    with contextlib.ExitStack() as stack:
        bus = stack.enter_context(Bus(f"{options.scratch}/bus")) if "secret-service" in engines else None
        for number in range(int(options.parallel) if "vault" in engines else 0):
            workers.append(Worker(options, exclusions, "vault", number, None, go))
        if bus:
            workers.append(Worker(options, exclusions, "secret-service", 0, bus, go))
        try:
            watch(options, result, workers, go)
        finally:
            for worker in workers:
                worker.end()
            report(result, exclusions, workers)
    if not options.only and (options.count or 0) >= 1000:
        for line in exclusions.stale():
            print(f"no longer applies: {line}")
    result.end()


main()
