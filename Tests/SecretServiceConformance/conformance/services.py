"""Services under test: each on a session bus, a home and XDG folders of its own, or the one that runs already."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid

from .bus import COLLECTION, NAME, ROOT, SERVICE, CallError, Client, NoAnswer
from .gnome_prompter import GnomePrompter

PASSWORD = "pw"


class Unavailable(Exception):
    """A service can't be tested here, such as one that is not installed."""


def run(arguments, environment, text="", timeout=60):
    """Runs a command that has to succeed, and returns what it printed."""
    done = subprocess.run(
        arguments, env=environment, input=text, capture_output=True, text=True, timeout=timeout, check=False
    )
    if done.returncode != 0:
        raise Unavailable(f"{arguments[0]} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


class Service:
    """A service under test."""

    name = ""
    # Whether the suite can answer the service's prompts.
    answers_prompts = False
    # Whether the service may be locked, and ended.
    may_lock = True
    # Whether the service's data are the suite's own.
    private = True

    def __init__(self):
        self.run = uuid.uuid4().hex
        self.address = ""
        self.version = ""
        self.folder = ""

    def will_answer(self, accept):
        """How the next prompt is answered."""

    def answers(self):
        """Whether the service answers a call to the bus's own interface."""
        try:
            client = Client(self.address)
            try:
                client.call(ROOT, SERVICE, "ReadAlias", "s", "default", timeout=10)
            finally:
                client.close()
            return True
        except CallError:
            return True  # an error is an answer
        except (NoAnswer, OSError):
            return False

    def is_open(self):
        """Whether the default collection is unlocked."""
        client = Client(self.address)
        try:
            path = client.call(ROOT, SERVICE, "ReadAlias", "s", "default")[0]
            return path != "/" and client.get(path, COLLECTION, "Locked") is False
        except CallError:
            return False
        finally:
            client.close()

    def owner(self):
        """The process of the service."""
        client = Client(self.address)
        try:
            return client.bus("GetConnectionUnixProcessID", "s", NAME)[0]
        finally:
            client.close()


class Running(Service):
    """The service that owns the name on the session bus, with the items that it has."""

    name = "running"
    may_lock = False
    private = False

    def __init__(self):
        super().__init__()
        self.address = os.environ.get("DBUS_SESSION_BUS_ADDRESS", "")
        if not self.address and os.environ.get("XDG_RUNTIME_DIR"):
            self.address = f"unix:path={os.environ['XDG_RUNTIME_DIR']}/bus"

    def start(self):
        if not self.address:
            raise Unavailable("no session bus: DBUS_SESSION_BUS_ADDRESS is not set")
        try:
            client = Client(self.address)
        except OSError as error:
            raise Unavailable(f"the session bus {self.address}: {error}") from None
        try:
            # One that runs needs no file of the bus to be started by.
            if not client.bus("NameHasOwner", "s", NAME)[0]:
                client.bus("StartServiceByName", "su", NAME, 0)
            process = client.bus("GetConnectionUnixProcessID", "s", NAME)[0]
            with open(f"/proc/{process}/comm", encoding="utf-8") as file:
                self.version = f"process {file.read().strip()}"
        except CallError as error:
            raise Unavailable(f"no {NAME} on the session bus: {error}") from None
        finally:
            client.close()

    def unlock_again(self):
        pass

    def restart(self):
        pass

    def stop(self):
        pass


class Private(Service):
    """A service on a bus of its own."""

    def __init__(self):
        super().__init__()
        self.bus_process = None
        self.processes = []

    def environment(self):
        folder = self.folder
        return {
            "PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"),
            "HOME": f"{folder}/home",
            "TMPDIR": f"{folder}/tmp",
            "XDG_RUNTIME_DIR": f"{folder}/run",
            "XDG_DATA_HOME": f"{folder}/data",
            "XDG_CONFIG_HOME": f"{folder}/config",
            "XDG_STATE_HOME": f"{folder}/state",
            "XDG_CACHE_HOME": f"{folder}/cache",
            "LC_ALL": "C.UTF-8",
            "DBUS_SESSION_BUS_ADDRESS": self.address,
        }

    def start(self):
        self.folder = tempfile.mkdtemp(prefix="ssc-")
        for name in ("home", "tmp", "run", "data", "config", "state", "cache"):
            os.mkdir(f"{self.folder}/{name}", 0o700)
        self.address = f"unix:path={self.folder}/bus"
        self.start_bus()
        try:
            self.prepare()
            self.start_service()
        except BaseException:
            self.stop()
            raise

    def start_bus(self):
        with open(f"{self.folder}/bus.conf", "w", encoding="utf-8") as file:
            file.write(
                f"<busconfig><type>session</type><listen>{self.address}</listen><auth>EXTERNAL</auth>"
                '<policy context="default"><allow send_destination="*" eavesdrop="true"/>'
                '<allow eavesdrop="true"/><allow own="*"/></policy>'
                '<limit name="max_replies_per_connection">50000</limit>'
                '<limit name="max_completed_connections">100000</limit>'
                '<limit name="max_connections_per_user">100000</limit>'
                '<limit name="max_match_rules_per_connection">50000</limit></busconfig>'
            )
        self.bus_process = subprocess.Popen(
            ["dbus-daemon", f"--config-file={self.folder}/bus.conf", "--nofork", "--nopidfile", "--print-address=1"],
            env=self.environment(), stdout=subprocess.PIPE, stderr=self.log(), stdin=subprocess.DEVNULL,
        )
        if not self.bus_process.stdout.readline():
            raise Unavailable("dbus-daemon did not start")

    def log(self):
        return open(f"{self.folder}/log", "ab")  # pylint: disable=consider-using-with

    def launch(self, arguments, text=None, environment=None):
        process = subprocess.Popen(
            arguments, env=environment or self.environment(), stdout=self.log(), stderr=subprocess.STDOUT,
            stdin=subprocess.PIPE if text else subprocess.DEVNULL, start_new_session=True,
        )
        if text:
            process.stdin.write(text.encode())
            process.stdin.close()
        self.processes.append(process)
        return process

    def prepare(self):
        """Writes what the service needs once, before it starts."""

    def start_service(self):
        """Starts the service and returns when it answers, unlocked."""
        client = Client(self.address)
        try:
            client.bus("AddMatch", "s", f"type='signal',member='NameOwnerChanged',arg0='{NAME}'")
            process = self.launch_service()
            deadline = time.monotonic() + 60
            while not client.bus("NameHasOwner", "s", NAME)[0]:
                if process.poll() is not None:
                    raise Unavailable(f"{self.name} ended with {process.returncode}: {self.last_lines()}")
                try:
                    client.receive(min(deadline, time.monotonic() + 0.2))
                except NoAnswer:
                    if time.monotonic() >= deadline:
                        raise Unavailable(f"{self.name} did not take its name: {self.last_lines()}") from None
        finally:
            client.close()
        self.wait_until_open()

    def wait_until_open(self):
        """Returns when the default collection is unlocked."""
        client = Client(self.address)
        deadline = time.monotonic() + 60
        try:
            while True:
                try:
                    path = client.call(ROOT, SERVICE, "ReadAlias", "s", "default")[0]
                    if path != "/" and client.get(path, COLLECTION, "Locked") is False:
                        return
                except CallError:
                    pass  # it opens its collections after it has the name
                if self.processes and self.processes[-1].poll() is not None:
                    raise Unavailable(f"{self.name} ended with {self.processes[-1].returncode}: {self.last_lines()}")
                if time.monotonic() >= deadline:
                    raise Unavailable(f"{self.name} has no unlocked collection default: {self.last_lines()}")
                try:
                    client.receive(time.monotonic() + 0.1)
                except NoAnswer:
                    pass
        finally:
            client.close()

    def last_lines(self):
        with open(f"{self.folder}/log", encoding="utf-8", errors="replace") as file:
            return file.read().strip()[-500:]

    def kill_service(self, number=signal.SIGKILL):
        """Ends the service and what it started, and returns when its name is free."""
        for process in self.processes:
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                pass
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.processes.clear()
        if self.bus_process and self.bus_process.poll() is None:
            client = Client(self.address)
            try:
                client.bus("AddMatch", "s", f"type='signal',member='NameOwnerChanged',arg0='{NAME}'")
                while client.bus("NameHasOwner", "s", NAME)[0]:
                    client.signal("NameOwnerChanged", argument=NAME)
            finally:
                client.close()

    def restart(self):
        self.kill_service()
        self.start_service()

    unlock_again = restart

    def stop_bus(self):
        if self.bus_process:
            self.bus_process.kill()
            self.bus_process.wait()
            self.bus_process.stdout.close()
            self.bus_process = None

    def stop(self):
        self.kill_service()
        self.stop_bus()
        shutil.rmtree(self.folder, ignore_errors=True)


class GnomeKeyring(Private):
    name = "gnome-keyring"
    answers_prompts = True

    def prepare(self):
        program = shutil.which("gnome-keyring-daemon")
        if not program:
            raise Unavailable("gnome-keyring-daemon is not installed")
        self.version = run([program, "--version"], self.environment()).split("\n")[0].split()[-1]
        self.prompter = GnomePrompter(self.address, PASSWORD)

    def launch_service(self):
        return self.launch(
            ["gnome-keyring-daemon", "--unlock", "--foreground", "--components=secrets"], PASSWORD
        )

    def will_answer(self, accept):
        self.prompter.accept = accept

    def unlock_again(self):
        client = Client(self.address)
        try:
            self.prompter.accept = True
            path = client.call(ROOT, SERVICE, "ReadAlias", "s", "default")[0]
            prompt = client.call(ROOT, SERVICE, "Unlock", "ao", [path])[1]
            if prompt != "/":
                client.call(prompt, "org.freedesktop.Secret.Prompt", "Prompt", "s", "")
                client.signal("Completed", path=prompt)
        finally:
            client.close()

    def stop(self):
        if getattr(self, "prompter", None):
            self.prompter.close()
        super().stop()


class KeePassXC(Private):
    """KeePassXC without a screen, on a new database. Its windows can't be answered."""

    name = "keepassxc"

    DATABASE = (
        '<?xml version="1.0" encoding="UTF-8"?><KeePassFile><Meta><DatabaseName>db</DatabaseName>'
        "<RecycleBinEnabled>False</RecycleBinEnabled><CustomData><Item><Key>FDO_SECRETS_EXPOSED_GROUP</Key>"
        "<Value>{01010101-0101-0101-0101-010101010101}</Value></Item></CustomData></Meta>"
        "<Root><Group><UUID>AQEBAQEBAQEBAQEBAQEBAQ==</UUID><Name>Root</Name></Group></Root></KeePassFile>"
    )
    SETTINGS = (
        "[General]\nConfigVersion=2\n"
        "[FdoSecrets]\nEnabled=true\nShowNotification=false\nConfirmDeleteItem=false\nConfirmAccessItem=false\n"
    )

    def environment(self):
        # It takes one that has the same folder for temporary files for itself, and ends.
        return {**super().environment(), "QT_QPA_PLATFORM": "offscreen"}

    def prepare(self):
        if not (shutil.which("keepassxc") and shutil.which("keepassxc-cli")):
            raise Unavailable("keepassxc is not installed")
        self.version = run(["keepassxc-cli", "--version"], self.environment()).strip()
        os.makedirs(f"{self.folder}/config/keepassxc", exist_ok=True)
        with open(f"{self.folder}/config/keepassxc/keepassxc.ini", "w", encoding="utf-8") as file:
            file.write(self.SETTINGS)
        with open(f"{self.folder}/db.xml", "w", encoding="utf-8") as file:
            file.write(self.DATABASE)
        run(
            ["keepassxc-cli", "import", "-q", "-p", f"{self.folder}/db.xml", f"{self.folder}/db.kdbx"],
            self.environment(), f"{PASSWORD}\n{PASSWORD}\n",
        )

    def launch_service(self):
        return self.launch(["keepassxc", "--pw-stdin", f"{self.folder}/db.kdbx"], f"{PASSWORD}\n")
