"""A home of the kill storm: what is known of it, how processes are killed, and what is compared afterwards."""

import collections
import os
import random
import signal
import subprocess
import time

import harness
import slots
from keyring_bus import feed

# Files that may lie beside the vault; `vault-1.db` is the copy that `keyhole upgrade` keeps.
VAULT_FILES = ["vault.db", "vault.db-wal", "vault.db-shm", "vault.key", "vault.reserve"]


class Storm:
    """One home with its engine and its model."""

    def __init__(self, options, result, exclusions, engine, home, model):
        self.options, self.result, self.exclusions = options, result, exclusions
        self.engine, self.home, self.model = engine, home, model
        self.dice = random.Random(f"{options.seed} {engine} {home.folder.rsplit('/', 1)[1]}")
        # Processes that were killed, by what they were: commands that had ended by then do not count.
        self.kills = collections.Counter()
        self.rounds = collections.Counter()
        self.acknowledged = 0
        self.longest_mount = 0
        # How long a command takes until it ends by itself, in seconds, as far as it was seen.
        self.durations = {}
        self.backup_key = None

    @property
    def is_mounted(self):
        return self.home.pidfd is not None

    def mount(self, engine=None):
        if self.is_mounted:
            return
        began = time.monotonic()
        self.home.mount(f"keychain={engine or self.engine}")
        self.longest_mount = max(self.longest_mount, time.monotonic() - began)

    def settle(self):
        """Ends the mount, if there is one, in one of the ways in which a mount may end."""
        if not self.is_mounted:
            return
        if self.dice.random() < 0.5:
            try:
                return self.home.unmount()
            except harness.Failed as error:
                if not self.exclusions.reason(self.engine, "unmount", str(error)):
                    raise
                self.result.exclude()
        self.home.kill()

    def prepare(self):
        """Makes the items whose attributes change, and leaves the mount there."""
        self.mount()
        for attribute in self.model.all_attributes():
            folder = os.path.dirname(self.home.path(attribute.path))
            os.makedirs(folder, exist_ok=True)
            with open(f"{folder}/value", "wb") as file:
                file.write(b"an item with attributes")

    def check(self):
        """Mounts, compares all that is stored, and asks doctor; the mount stays."""
        self.mount()
        self.model.verify(self.home, self.result)
        self.check_leftovers()
        self.ask_doctor()

    def ask_doctor(self):
        """Doctor finds nothing; what it says of mounts of other homes, which are killed at the same time, does not count."""
        doctor = self.home.run("doctor")
        if doctor.returncode == 0:
            return self.result.ok()
        lines = harness.text(doctor.stdout + doctor.stderr, 6000).splitlines()
        problems = [line for line in lines if line.startswith("problem") and not self.is_foreign(line)]
        for line in problems:
            if self.exclusions.reason(self.engine, "doctor", line):
                self.result.exclude()
            else:
                self.result.fail(f"{self.home.folder} doctor: {line}")
        self.result.check(any(line.startswith("problem") for line in lines), f"{self.home.folder} doctor: {lines}")

    def is_foreign(self, message):
        """Whether something is said of another home than this."""
        return self.options.scratch in message and f"{self.home.folder}/" not in message

    def check_leftovers(self):
        folder = self.home.folder
        parts = ["m", "run", "config", "data", "state", "home", "mount.log", "input", "import.json", "sealed", "old"]
        slots.check_names(folder, parts, self.result)
        slots.check_names(f"{folder}/home", [], self.result)
        vault = f"{folder}/data/keyhole"
        if os.path.isdir(vault):
            slots.check_names(vault, VAULT_FILES, self.result)

    def killed(self):
        return sum(self.kills.values())

    def kill_mount(self, name):
        """SIGKILL to the mount's process."""
        if self.home.is_alive():
            self.kills[name] += 1
        self.home.kill()

    def command(self, *command, input=b"", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, is_checked=True,
                **environment):
        """Starts a command, and kills it at some moment up to about its end; whether it had ended well by then.

        Where it `is_checked`, it must not fail.
        """
        name = command[0]
        known = (name, self.is_mounted)
        usual = self.durations.get(known, 0.1)
        home = self.home
        process = home.start(*command, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr,
                             env={**home.environment, **environment})
        began = time.monotonic()
        feed(process, input)
        try:
            # The first part of the time goes into loading the program.
            process.wait(self.dice.uniform(0.3, 1.15) * usual)
            self.durations[known] = 0.8 * usual + 0.2 * (time.monotonic() - began)
        except subprocess.TimeoutExpired:
            # `keyhole watch` never ends.
            self.durations[known] = min(1.02 * usual, 0.2 if name == "watch" else 60)
        process.send_signal(signal.SIGKILL)
        message = process.communicate()[1] or b""
        if is_checked and process.returncode not in (0, -signal.SIGKILL):
            shown = " ".join(command[:2])
            said = harness.text(message)
            if not self.is_foreign(said) and not self.exclusions.reason(self.engine, shown, said):
                self.result.fail(f"{home.folder} keyhole {shown} ended with {process.returncode}: {harness.text(message)}")
        if process.returncode == -signal.SIGKILL:
            self.kills[f"{name}, mounted" if self.is_mounted else name] += 1
        return process.returncode == 0

    def write(self, seconds, ends_process):
        """Writers for so long, and where `ends_process`, the end of the mount in their midst."""
        self.acknowledged += slots.storm(self.home, self.model, self.result, self.exclusions, self.engine,
                                         self.dice.random(), seconds, ends_process)
