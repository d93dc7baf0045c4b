"""fsx of xfstests: random operations on one file, each reading compared with what has to be there."""

import os
import re
import subprocess

import harness

FSX = os.path.join(os.path.dirname(__file__), "xfstests/fsx")
KEY, SECRET, SCRATCH = "defaults/fsx/key", "keychain/generic/fsx/item/value", "keychain/generic/fsx/item/scratch"
# The message of fsx for a call that it tries once and then leaves out.
LEFT_OUT = re.compile(rb"main: (.*not support.*)")
# Name, file, divisor of the count, options. -W and -R: without mmap; -c 10: closes and opens the file at each tenth operation.
RUNS = [
    ("key", KEY, 1, ["-W", "-R", "-l", "262144"]),
    ("secret", SECRET, 1, ["-W", "-R", "-l", "65536"]),
    ("scratch", SCRATCH, 3, ["-W", "-R", "-l", "65536"]),
    ("key reopened", KEY, 10, ["-W", "-R", "-l", "65536", "-c", "10"]),
    ("secret reopened", SECRET, 10, ["-W", "-R", "-l", "65536", "-c", "10"]),
    ("key mapped", KEY, 10, ["-l", "65536"]),
    ("secret mapped", SECRET, 10, ["-l", "65536"]),
]


def make(home):
    """A key of the type data and an item whose secret is stored exactly."""
    os.makedirs(home.path("defaults/fsx"))
    os.makedirs(home.path("keychain/generic/fsx/item"))
    with open(home.path(KEY), "wb") as file:
        file.write(b"\0")
    with open(home.path(SECRET), "wb") as file:
        file.write(b"\0")
    os.setxattr(os.path.dirname(home.path(SECRET)), "user.keyhole.eol", b"exact")


def content(path):
    with open(path, "rb") as file:
        return file.read()


def run(options, home, result, exclusions, name, file, divisor, flags):
    count = max(100, (options.count or 1000) // divisor)
    logs = os.path.join(options.scratch, "logs")
    os.makedirs(logs, exist_ok=True)
    command = [FSX, "-N", str(count), "-S", str(options.seed), "-P", logs, *flags, home.path(file)]
    try:
        ended = subprocess.run(command, cwd=logs, capture_output=True, timeout=options.seconds or 1800)
        output, code = ended.stdout + ended.stderr, ended.returncode
    except subprocess.TimeoutExpired as error:
        output, code = (error.stdout or b"") + b"\nsoak: not done in time", -1
    for message in sorted(set(LEFT_OUT.findall(output))):
        message = message.decode(errors="replace")
        if exclusions.reason(name, message):
            result.exclude()
        else:
            result.fail(f"{name}: {message}")
    if not home.is_alive():
        result.fail(f"{name}: the process of the mount ended")
    elif code == 0 and b"completed A-OK" in output:
        result.ok(count)
        print(f"{name}: {count} operations, {result.seconds():.0f} s since the beginning", flush=True)
    elif exclusions.reason(name, output.decode(errors="replace")):
        result.exclude()
    else:
        lines = [line for line in output.decode(errors="replace").splitlines() if "SKIPPED" not in line]
        result.fail("\n  ".join([f"{name}: fsx ended with {code}:", *lines[-40:]]))


def main():
    options = harness.arguments()
    result = harness.Result("fsx")
    exclusions = harness.Exclusions("fsx")
    with harness.Home(options) as home:
        home.mount("keychain=vault")
        make(home)
        for arguments in RUNS:
            if home.is_alive() and (not options.only or arguments[0] in options.only):
                run(options, home, result, exclusions, *arguments)
        if home.is_alive():
            before = [content(home.path(file)) for file in (KEY, SECRET)]
            home.unmount()
            home.mount("keychain=vault")
            after = [content(home.path(file)) for file in (KEY, SECRET)]
            result.check(before == after, "what fsx left is another value after unmount and mount")
            doctor = home.run("doctor")
            result.check(doctor.returncode == 0, f"doctor: {harness.text(doctor.stdout)}")
            home.unmount()
    if not options.only:
        for line in exclusions.stale():
            print(f"no longer applies: {line}")
    result.end()


main()
