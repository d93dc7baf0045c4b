"""Shared by the suites: a mount with folders of its own, exclusions, and the line with the result."""

import argparse
import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import time


def arguments(**more):
    """The options of `Scripts/soak`; `more` names further ones with their defaults."""
    parser = argparse.ArgumentParser()
    for name in ("keyhole", "scratch"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--count", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=lambda text: text.split(","))
    for name, default in more.items():
        parser.add_argument(f"--{name}", default=default)
    # A suite that is ended takes its mounts away, as one that ends by itself does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    return parser.parse_args()


class Failed(Exception):
    """A command that had to succeed did not."""


class Home:
    """A home with stores and a runtime folder of its own, and at most one mount."""

    def __init__(self, options, name="h", **environment):
        self.keyhole = options.keyhole
        self.folder = os.path.join(options.scratch, name)
        self.point = f"{self.folder}/m"
        self.pid = None
        self.pidfd = None
        for part in ("", "/m", "/run", "/config", "/data", "/state", "/home"):
            os.mkdir(self.folder + part, 0o700)
        self.environment = {
            "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": f"{self.folder}/home", "TMPDIR": self.folder,
            "XDG_RUNTIME_DIR": f"{self.folder}/run", "XDG_CONFIG_HOME": f"{self.folder}/config",
            "XDG_DATA_HOME": f"{self.folder}/data", "XDG_STATE_HOME": f"{self.folder}/state",
            # An address that leads nowhere, so that the session bus of the person who runs this is left alone.
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.folder}/no-bus", **environment,
        }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def path(self, *parts):
        return os.path.join(self.point, *parts)

    def start(self, *command, **more):
        """Starts a command of Keyhole's."""
        more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": self.environment,
                **more}
        return subprocess.Popen([self.keyhole, *command], cwd="/", **more)

    def run(self, *command, input=b"", seconds=120, env=None):
        """Runs a command of Keyhole's to its end."""
        return subprocess.run([self.keyhole, *command], env=env or self.environment, cwd="/", input=input,
                              capture_output=True, timeout=seconds)

    def must(self, *command, **more):
        """Runs a command that has to succeed, and returns what it prints."""
        result = self.run(*command, **more)
        if result.returncode:
            raise Failed(f"keyhole {shlex.join(command)} ended with {result.returncode}: {text(result.stderr)}")
        return result.stdout

    def mount(self, *options):
        """Mounts; returns when the mount is ready."""
        arguments = [word for option in options for word in ("-o", option)]
        # A pipe would stay open in the process of the mount.
        with open(f"{self.folder}/mount.log", "ab") as log:
            process = self.start("mount", *arguments, self.point, stdout=log, stderr=log)
            if process.wait(timeout=120):
                with open(log.name, errors="replace") as lines:
                    raise Failed(f"keyhole mount ended with {process.returncode}: {lines.read()[-500:]}")
        with open(self.path(".keyhole/status")) as status:
            self.pid = json.load(status)["pid"]
        self.pidfd = os.pidfd_open(self.pid)

    def is_alive(self):
        if self.pidfd is None or select.select([self.pidfd], [], [], 0)[0]:
            return False
        try:
            # A process that is ending has closed the connection before it is seen to be gone.
            os.statvfs(self.point)
            return True
        except OSError:
            return False

    def signal(self, number):
        try:
            signal.pidfd_send_signal(self.pidfd, number)
        except ProcessLookupError:
            pass

    def end_process(self):
        """Ends the process of the mount by SIGKILL; the mount, which is dead then, stays."""
        if self.pidfd is not None:
            self.signal(signal.SIGKILL)
            select.select([self.pidfd], [], [], 30)
            os.close(self.pidfd)
            self.pidfd = None

    def kill(self):
        """Ends the process of the mount by SIGKILL, and takes the mount away."""
        self.end_process()
        unmount_lazily(self.point)

    def unmount(self):
        self.must("unmount", self.point)
        if not select.select([self.pidfd], [], [], 30)[0]:
            raise Failed("the process of the mount goes on 30 s after keyhole unmount")
        os.close(self.pidfd)
        self.pidfd = None

    def descriptors(self):
        """How many descriptors the process of the mount has room for.

        Its table grows in powers of two and never shrinks. A count is not to be had: proc(5) shows the descriptors of a
        process that keeps secrets to root alone.
        """
        with open(f"/proc/{self.pid}/status") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("FDSize:"))

    def check_descriptors(self, result, place):
        """At most 256: sixteen times what a mount without open files has, and less than a leak of one for each call."""
        result.check(self.descriptors() <= 256, f"{place}: the process of the mount has {self.descriptors()} descriptors")


def unmount_lazily(point):
    def is_mounted():
        with open("/proc/self/mountinfo") as table:
            return any(line.split()[4] == point for line in table)
    # It may end by itself between the two.
    while is_mounted():
        if subprocess.run(["fusermount3", "-u", "-z", point], capture_output=True).returncode \
                and subprocess.run(["umount", "-l", point], capture_output=True).returncode and is_mounted():
            raise Failed(f"{point} can't be unmounted")


def text(data, longest=600):
    return data.decode(errors="replace").strip()[:longest]


def empty(folder, keeping=()):
    """Removes what is in a folder; a folder that can't be removed is left empty."""
    for entry in os.listdir(folder):
        if entry not in keeping:
            subprocess.run(["rm", "-rf", "--", os.path.join(folder, entry)], capture_output=True)


class Exclusions:
    """Lines of `FIELD... REASON`, where each field is a regular expression for all of a field, and `#` begins a comment.

    A failure that fits none is a failure; a line that fits no failure of a whole run is reported, because it no longer
    applies.
    """

    def __init__(self, suite):
        path = os.path.join(os.path.dirname(__file__), f"{suite}.exclusions")
        self.rules = []
        with open(path) as lines:
            for line in lines:
                words = shlex.split(line, comments=True)
                if words:
                    self.rules.append([[re.compile(word, re.DOTALL) for word in words[:-1]], words[-1], 0])

    def reason(self, *fields):
        for rule in self.rules:
            patterns, reason, _ = rule
            if len(patterns) == len(fields) and all(p.fullmatch(f) for p, f in zip(patterns, fields)):
                rule[2] += 1
                return reason
        return None

    def stale(self, first="", before=""):
        """Rules that met no failure, of those whose first field fits a letter of `first` and none of `before`."""
        for patterns, reason, count in self.rules:
            def fits(letters):
                return any(patterns[0].fullmatch(letter) for letter in letters)
            if count == 0 and (not first or fits(first)) and not fits(before):
                yield " ".join(pattern.pattern for pattern in patterns) + f": {reason}"


class Result:
    """Counts what passed, and prints what did not."""

    def __init__(self, suite):
        self.suite = suite
        self.passed = self.failed = self.excluded = 0
        self.began = time.monotonic()

    def ok(self, count=1):
        self.passed += count

    def fail(self, message):
        self.failed += 1
        print(f"FAILED {message}", flush=True)

    def exclude(self, count=1):
        self.excluded += count

    def check(self, condition, message):
        if condition:
            self.ok()
        else:
            self.fail(message)
        return condition

    def seconds(self):
        return time.monotonic() - self.began

    def line(self):
        return (f"{self.suite}: {self.passed} passed, {self.failed} failed, {self.excluded} excluded"
                f" ({self.seconds():.0f} s)")

    def end(self):
        """Prints the line with the result, and ends the program."""
        print(self.line(), flush=True)
        sys.exit(1 if self.failed else 0)
