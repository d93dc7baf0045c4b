"""fsstress of xfstests: four processes make random calls in one folder."""

import os
import subprocess

import harness

FSSTRESS = os.path.join(os.path.dirname(__file__), "xfstests/fsstress")
# Place and divisor of the count: in `defaults` each process makes suites of many large values, and a suite is written
# whole at each change of a key.
PLACES = [("keychain/generic", 1), ("keychain/generic/service", 1), ("keychain/generic/service/item", 1),
          ("defaults/suite", 1), ("defaults", 20)]


def run(options, home, result, place, divisor):
    folder = home.path(place)
    os.makedirs(folder, exist_ok=True)
    count = max(20, (options.count or 500) // divisor)
    command = [FSSTRESS, "-d", folder, "-p", "4", "-n", str(count), "-s", str(options.seed)]
    try:
        ended = subprocess.run(command, cwd=options.scratch, capture_output=True, timeout=options.seconds or 1800)
        output, code = ended.stdout + ended.stderr, ended.returncode
    except subprocess.TimeoutExpired:
        output, code = b"not done in time", -1
    if not home.is_alive():
        return result.fail(f"{place}: the process of the mount ended")
    if result.check(code == 0, f"{place}: fsstress ended with {code}: {output[-1500:].decode(errors='replace')}"):
        result.ok(4 * count - 1)
    doctor = home.run("doctor")
    result.check(doctor.returncode == 0, f"{place}: doctor: {harness.text(doctor.stdout)}")
    harness.empty(folder)
    result.check(not os.listdir(folder), f"{place}: left behind: {os.listdir(folder)[:5]}")
    home.check_descriptors(result, place)
    print(f"{place}: 4 times {count} operations, {result.seconds():.0f} s since the beginning", flush=True)


def main():
    options = harness.arguments()
    result = harness.Result("fsstress")
    with harness.Home(options) as home:
        home.mount("keychain=vault")
        for place, divisor in PLACES:
            if home.is_alive() and (not options.only or place in options.only):
                run(options, home, result, place, divisor)
        if home.is_alive():
            home.unmount()
    result.end()


main()
