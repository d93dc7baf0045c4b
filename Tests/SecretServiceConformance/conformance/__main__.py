"""The command mount-helpers/secret-service-conformance."""

import argparse
import fcntl
import fnmatch
import os
import sys
import termios

from . import cases, faults  # noqa: F401  # the cases register themselves
from .bus import CallError, NoAnswer
from .clients import Missing, python_environment, run_clients
from .deviations import KEYHOLE, judge, read
from .fuzz import fuzz
from .keyhole import Keyhole, found_command
from .measure import measure
from .page import Run, page
from .report import as_json, client_line, summary, tap_line
from .services import GnomeKeyring, KeePassXC, Running, Unavailable
from .suite import CASES, FAULTS, Failed, run_case

SERVICES = {service.name: service for service in (GnomeKeyring, KeePassXC, Keyhole)}

DESCRIPTION = """
Runs cases of the Secret Service API (draft 0.2) against a service of org.freedesktop.secrets, and prints a line each
(TAP). The exit status is 1 when a case of the level `must` failed, 2 when the service could not be started.
"""

EPILOG = """
A service is started on a session bus, a home and XDG folders of its own, below $TMPDIR. With --running the service that
owns the name on the session bus is tested as it is: with items of the suite's own, which it removes, and without locking
anything; what would need a person is left out.

Levels: `must` is what the draft says or D-Bus demands; `should` is what the draft leaves open and a careful service does;
`habit` is what clients that are widely used rely on.
"""


def arguments():
    parser = argparse.ArgumentParser(
        prog="secret-service-conformance", description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--service", choices=sorted(SERVICES), help="start this service and test it")
    which.add_argument("--running", action="store_true", help="test the service that runs on the session bus")
    which.add_argument("--list", action="store_true", help="print the cases and end")
    which.add_argument("--prepare", action="store_true", help="get the packages of PyPI that --clients needs, and end")
    which.add_argument("--markdown", action="store_true", help="test all services and print the page of results")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="only cases whose id matches, such as 'item.*'")
    parser.add_argument("--json", action="store_true", help="print JSON instead of TAP")
    parser.add_argument("--clients", action="store_true", help="also run clients and their own tests")
    parser.add_argument("--client", action="append", metavar="NAME", help="only clients whose name has this in it")
    parser.add_argument("--faults", action="store_true", help="also end the service, its clients and its bus")
    parser.add_argument("--fuzz", type=float, metavar="SECONDS", help="also send hostile messages for a time")
    parser.add_argument("--seed", type=int, default=1, help="of the hostile messages (default: 1)")
    parser.add_argument("--measure", action="store_true", help="also measure, beside gnome-keyring")
    parser.add_argument("--keyhole", metavar="FILE", help="the keyhole command (default: the debug build, whose dialogs can be answered; --markdown --measure: the release build)")
    parser.add_argument(
        "--deviations", metavar="FILE",
        help="cases that fail on purpose, a line each: id and reason (default for keyhole: keyhole.deviations)",
    )
    parser.add_argument("--cache", metavar="FOLDER", help="where clients are built and kept")
    return parser.parse_args()


def matching(cases_of, options):
    return [
        case for case in cases_of
        if not options.only or any(fnmatch.fnmatch(case.identifier, pattern) for pattern in options.only)
    ]


def chosen_cases(options):
    chosen = matching(CASES, options)
    if options.faults or options.markdown or options.list:
        chosen += matching(FAULTS, options)
    return chosen


def new_service(name, options):
    return Keyhole(options.keyhole) if name == "keyhole" else SERVICES[name]()


def cache_folder(options):
    project = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    return os.path.abspath(options.cache or os.path.join(project, ".build", "secret-service-clients"))


def test(service, chosen, show):
    results = []
    for number, case in enumerate(chosen, 1):
        results.append(run_case(case, service))
        show(number, results[-1])
    return results


def measure_command(options):
    """Medians of the release build and of gnome-keyring; without a release build those of the debug build."""
    service = Keyhole(options.keyhole or found_command(("release", "debug")))
    service.start()
    try:
        return *measure(service), service.version
    finally:
        service.stop()


def print_page(options):
    """Tests every service, and prints the page."""
    runs, measured, fuzzed = [], None, []
    for name in ("keyhole", "gnome-keyring", "keepassxc"):
        service = new_service(name, options)
        service.start()
        try:
            def show(number, result):
                if result.status == "failed":
                    print(f"{name} {result.case.identifier}: {result.found}", file=sys.stderr, flush=True)
            results = test(service, chosen_cases(options), show)
            runs.append(Run(name, service.version, results, run_clients(service, cache_folder(options), options.client)))
            if options.fuzz:
                fuzzed.append(f"{name}: {fuzz_text(service, options)[1]}")
        finally:
            service.stop()
    if options.measure:
        measured = measure_command(options)
    print(page(runs, measured, fuzzed))
    return 0


def fuzz_text(service, options):
    """Whether hostile messages did no harm, and what is to be said of them."""
    try:
        return True, fuzz(service, options.seed, options.fuzz)
    except (Failed, CallError, NoAnswer, OSError) as error:
        return False, str(error)


def further(service, options, say):
    """Runs the parts behind the cases that the options choose. Returns whether nothing failed, and values for JSON."""
    fine, values = True, {}
    if options.clients or options.client:
        results = run_clients(service, cache_folder(options), options.client)
        fine = not any(result.status == "failed" for result in results)
        values["clients"] = [vars(result) for result in results]
        for result in results:
            say(client_line(result))
    if options.fuzz:
        passed, text = fuzz_text(service, options)
        fine = fine and passed
        values["fuzz"] = text
        say(f"# fuzz: {'' if passed else 'FAILED: '}{text}")
    if options.measure:
        ours, theirs, version = measure(service)
        values["measure"] = {"service": ours, "gnome-keyring": theirs, "version": version}
        for name in ours:
            ratio = f", ratio {ours[name] / theirs[name]:.2f}" if name != "Ping" else ""
            say(f"# measure: {name}: {ours[name]:,.0f} µs, gnome-keyring {theirs[name]:,.0f} µs{ratio}")
    return fine, values


def leave_terminal():
    """Gives up the controlling terminal: a service may ask there, as the programs of this command run on it."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return  # there is none
    try:
        fcntl.ioctl(terminal, termios.TIOCNOTTY)
    except OSError:
        pass  # the leader of a session would end its other processes
    finally:
        os.close(terminal)


def reasons(options):
    """The deviations that are known, by the ids of the cases."""
    path = options.deviations or (KEYHOLE if options.service == "keyhole" else None)
    return read(path) if path else {}


def main():
    options = arguments()
    if not options.running and os.getsid(0) != os.getpid():
        leave_terminal()
    chosen = chosen_cases(options)
    if options.list:
        for case in chosen:
            print(f"{case.identifier}\t{case.level}\t{case.source}\t{case.expected}")
        return 0
    if options.prepare:
        try:
            python_environment(cache_folder(options))
        except Missing as error:
            raise Unavailable(str(error)) from None
        return 0
    if options.markdown:
        return print_page(options)

    def say(text):
        if not options.json:
            print(text, flush=True)

    service = Running() if options.running else new_service(options.service, options)
    service.start()
    try:
        say(f"TAP version 13\n1..{len(chosen)}")
        results = test(service, chosen, lambda number, result: say(tap_line(number, result)))
        fine, values = further(service, options, say)
    finally:
        service.stop()
    if options.json:
        print(as_json(service.name, service.version, results, values))
    wrong = judge(results, reasons(options))
    for line in wrong:
        say(f"# {line}")
    say("# " + summary(service.name, service.version, results))
    return int(not fine or bool(wrong))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Unavailable as error:
        print(f"secret-service-conformance: {error}", file=sys.stderr)
        sys.exit(2)
