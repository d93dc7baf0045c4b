"""kill -9 of the mount and of commands while they store: what was acknowledged is there, nothing is torn or left over.

Each round ends with a new mount, in which every value is compared with what may be stored.
"""

import base64
import collections
import json
import os
import random
import signal
import subprocess
import time

import harness
import slots

PASSPHRASES = [b"", b"one", b"two"]
ENGINES = ["vault", "secret-service"]


def name_of(round):
    return round.__name__.removeprefix("of_").replace("_", "-")


class Storm:
    """One home with its engines, its model, and the rounds on them."""

    def __init__(self, options, result, exclusions, engine, home, model):
        self.options, self.result, self.exclusions = options, result, exclusions
        self.engine, self.home, self.model = engine, home, model
        self.dice = random.Random(f"{options.seed} {engine}")
        self.passphrase = b""
        self.rounds = collections.Counter()
        # Processes that were killed while they stored; commands that had ended by then do not count.
        self.kills = 0
        self.acknowledged = 0
        self.longest_mount = 0

    def mount(self):
        began = time.monotonic()
        self.home.mount(f"keychain={self.engine}")
        self.longest_mount = max(self.longest_mount, time.monotonic() - began)

    def check(self):
        """Mounts, compares all, asks doctor, and takes the mount away."""
        self.mount()
        self.model.verify(self.home, self.result)
        doctor = self.home.run("doctor")
        self.result.check(doctor.returncode == 0, f"doctor: {harness.text(doctor.stdout + doctor.stderr)}")

    def settle(self):
        """Ends the mount, in one of the ways in which a mount may end."""
        if self.dice.random() < 0.5:
            self.home.unmount()
        else:
            self.home.kill()

    # Rounds.

    def of_mount(self):
        """The mount, under writers."""
        self.mount()
        self.write(self.dice.uniform(0.02, 0.72), ends_process=True)
        self.kills += 1
        self.home.kill()

    def of_unmount(self):
        """The mount, while `keyhole unmount` waits for it."""
        self.mount()
        self.write(0.2, ends_process=False)
        process = self.home.start("unmount", self.home.point)
        self.wait(process, 0.05)
        self.kills += self.home.is_alive()
        self.home.kill()
        process.communicate()

    def write(self, seconds, ends_process):
        self.acknowledged += slots.storm(self.home, self.model, self.result, self.exclusions, self.engine,
                                         self.dice.random(), seconds, ends_process)

    def of_set(self):
        """`keyhole set`, without a mount."""
        slot = self.dice.choice(self.model.all())
        value = slot.next(self.dice)
        slot.attempt(value)
        if self.command(0.12, "set", slot.path, input=value):
            slot.acknowledge(value)
            self.acknowledged += 1

    def of_set_with_mount(self):
        """`keyhole set`, with a mount that is killed in the end."""
        self.mount()
        self.of_set()
        self.settle()

    def of_rm(self):
        """`keyhole rm`, without a mount."""
        slot = self.dice.choice([slot for slot in self.model.all() if slot.known is not None and not slot.is_kept] or [None])
        if slot:
            slot.attempt(None)
            if self.command(0.12, "rm", slot.path):
                slot.acknowledge(None)
                self.acknowledged += 1

    def of_import(self):
        """`keyhole import`: everything or nothing."""
        chosen = self.dice.sample(self.model.all(), 12)
        values = {slot.path: slot.next(self.dice) for slot in chosen}
        old = {slot.path: slot.known for slot in chosen}
        path = f"{self.home.folder}/import.json"
        with open(path, "w") as file:
            json.dump(as_export(chosen, values), file)
        for slot in chosen:
            slot.attempt(values[slot.path])

        def is_one(found):
            now = {path: found[path] for path in values}
            if now in (values, old):
                return True
            changed = sum(now[path] == values[path] for path in values)
            is_excluded = self.exclusions.reason(self.engine, "import", f"{changed} of {len(values)}")
            if is_excluded:
                self.result.exclude()
            return bool(is_excluded)
        self.model.require(is_one, "an import was done in part")
        if self.command(0.5, "import", "--replace", path):
            for slot in chosen:
                slot.acknowledge(values[slot.path])
            self.acknowledged += len(chosen)

    def of_export(self):
        """`keyhole export`: changes nothing."""
        self.command(0.2, "export", "--plain", "--format", self.dice.choice(["json", "tar", "plist"]))

    def of_passphrase(self):
        """`keyhole passphrase`: the old one opens the vault or the new one; then there is none again."""
        new = self.dice.choice([word for word in PASSPHRASES if word != self.passphrase])
        old, was = self.passphrase, self.passphrase + b"\n" if self.passphrase else b""
        done = self.command(0.6, "passphrase", input=was + new + b"\n")
        self.mount()
        # The empty one first: where there is no passphrase, any opens the vault.
        tried = [new] if done else sorted([new, old])
        self.passphrase = next((word for word in tried if self.opens(word)), None)
        if not self.result.check(self.passphrase is not None, "no passphrase opens the vault after keyhole passphrase"):
            raise harness.Failed("the vault is locked for good")
        self.model.verify(self.home, self.result)
        if self.passphrase:
            # Through the mount, which alone has the keys.
            self.of_set()
        self.settle()
        if self.passphrase:
            self.home.must("passphrase", input=self.passphrase + b"\n\n")
            self.passphrase = b""

    def of_migrate(self):
        """`keyhole migrate` to the vault: run again, it ends, and all items are there; then back."""
        there = ["migrate", "--from", "secret-service", "--to", "vault"]
        self.command(0.6, *there)
        self.home.must(*there)
        self.home.mount("keychain=vault")
        self.model.verify(self.home, self.result)
        self.settle()
        self.home.must("migrate", "--from", "vault", "--to", "secret-service")

    def opens(self, passphrase):
        """Whether the mount can be unlocked so; without a passphrase it comes up open."""
        if passphrase == b"":
            return '"locked": false' in self.home.must("status", "--json").decode()
        return self.home.run("unlock", input=passphrase + b"\n").returncode == 0 and self.opens(b"")

    # Parts of rounds.

    def command(self, longest, *command, input=b""):
        """Starts a command and kills it within `longest` seconds; whether it had ended well by then."""
        process = self.home.start(*command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        feed(process, input)
        self.wait(process, longest * self.options.slowness)
        process.send_signal(signal.SIGKILL)
        message = process.communicate()[1]
        if process.returncode not in (0, -signal.SIGKILL):
            name = " ".join(command[:2])
            if not self.exclusions.reason(self.engine, name, harness.text(message)):
                self.result.fail(f"{self.engine} keyhole {name} ended with {process.returncode}: {harness.text(message)}")
        self.kills += process.returncode == -signal.SIGKILL
        return process.returncode == 0

    def wait(self, process, longest):
        try:
            process.wait(self.dice.uniform(0, longest))
        except subprocess.TimeoutExpired:
            pass

    def round(self):
        rounds = [self.of_mount] * 10 + [self.of_unmount, self.of_set, self.of_set_with_mount, self.of_rm, self.of_import,
                                         self.of_export]
        rounds.append(self.of_passphrase if self.engine == "vault" else self.of_migrate)
        wanted = set(self.options.only or []) - set(ENGINES)
        chosen = self.dice.choice([round for round in rounds if not wanted or name_of(round) in wanted])
        name = name_of(chosen)
        self.rounds[name] += 1
        try:
            chosen()
            self.check()
            self.settle()
        except (harness.Failed, OSError, subprocess.TimeoutExpired) as error:
            self.result.fail(f"{self.engine}, round of {name}: {error!r}")
            self.home.kill()


def feed(process, input):
    try:
        process.stdin.write(input)
        process.stdin.close()
    except BrokenPipeError:
        pass
    process.stdin = None


def as_export(chosen, values):
    """A file as `keyhole export --format json` writes it."""
    export = {"keyhole": 1, "defaults": {}, "keychain": []}
    for slot in chosen:
        value = values[slot.path]
        stored = {"value": value.decode()} if slot.kind == "text" else {"base64": base64.b64encode(value).decode()}
        if slot.is_secret:
            _, _, service, account, _ = slot.path.split("/")
            export["keychain"].append({"class": "generic", "attributes": {"account": account, "service": service}, **stored})
        else:
            type = {"text": "string", "data": "data"}[slot.kind]
            export["defaults"].setdefault(slot.suite, {})[slot.path.split("/")[2]] = {"type": type, **stored}
    return export


class Bus:
    """A session bus with gnome-keyring on it, of this suite's own."""

    def __init__(self, options):
        self.folder = f"{options.scratch}/bus"
        os.mkdir(self.folder, 0o700)
        for part in ("home", "run", "data", "config"):
            os.mkdir(f"{self.folder}/{part}", 0o700)
        self.address = f"unix:path={self.folder}/bus"
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": f"{self.folder}/home", "XDG_RUNTIME_DIR": f"{self.folder}/run",
            "XDG_DATA_HOME": f"{self.folder}/data", "XDG_CONFIG_HOME": f"{self.folder}/config", "LC_ALL": "C.UTF-8",
            "DBUS_SESSION_BUS_ADDRESS": self.address}
        self.processes = []

    def __enter__(self):
        configuration = f"{self.folder}/bus.conf"
        with open(configuration, "w") as file:
            file.write(f"""<busconfig><type>session</type><listen>{self.address}</listen><auth>EXTERNAL</auth>
                <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
                <allow own="*"/></policy></busconfig>""")
        bus = self.start("dbus-daemon", f"--config-file={configuration}", "--nofork", "--nopidfile", "--print-address=1",
                         stdout=subprocess.PIPE)
        bus.stdout.readline()
        keyring = self.start("gnome-keyring-daemon", "--unlock", "--foreground", "--components=secrets",
                             stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        feed(keyring, b"pw")
        subprocess.run(["gdbus", "wait", "--session", "--timeout", "20", "org.freedesktop.secrets"], env=self.environment,
                       check=True)
        return self

    def start(self, *command, **more):
        process = subprocess.Popen(command, env=self.environment, cwd="/", stderr=subprocess.DEVNULL, **more)
        self.processes.append(process)
        return process

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.kill()
            process.wait()


def run(options, result, storms):
    """Rounds until the count of kills or the time is reached; nine of ten are of the vault."""
    count = options.count or 30
    deadline = result.began + (options.seconds or 3600 * 24)
    dice = random.Random(options.seed)

    def killed():
        return sum(storm.kills for storm in storms)
    step = max(50, count // 20)
    shown = 0
    while killed() < count and time.monotonic() < deadline and result.failed < 100:
        dice.choices(storms, [9, 1][:len(storms)])[0].round()
        if killed() >= shown + step:
            shown = killed()
            print(f"{shown} kills, {result.failed} failures, {result.seconds():.0f} s", flush=True)
    for storm in storms:
        print(f"{storm.engine}: {storm.kills} kills in {sum(storm.rounds.values())} rounds {dict(storm.rounds)}, "
              f"{storm.acknowledged} writes acknowledged, longest mount {storm.longest_mount:.2f} s", flush=True)


def main():
    options = harness.arguments()
    # A command takes longer on a slow machine, and is to be met in its midst there too.
    options.slowness = 1
    result = harness.Result("kill-storm")
    exclusions = harness.Exclusions("kill-storm")
    engines = set(ENGINES) & set(options.only or []) or ENGINES
    with Bus(options) as bus, harness.Home(options, "v") as vault, \
            harness.Home(options, "s", DBUS_SESSION_BUS_ADDRESS=bus.address) as service:
        storms = []
        if "vault" in engines:
            storms.append(Storm(options, result, exclusions, "vault", vault, slots.Model(4, 780_000, 200_000)))
        if "secret-service" in engines:
            storms.append(Storm(options, result, exclusions, "secret-service", service, slots.Model(2, 20_000, 4_000)))
        for storm in storms:
            began = time.monotonic()
            storm.mount()
            storm.home.unmount()
            options.slowness = max(1, (time.monotonic() - began) / 0.3)
        run(options, result, storms)
    if not options.only and (options.count or 0) >= 300:
        for line in exclusions.stale():
            print(f"no longer applies: {line}")
    result.end()


main()
