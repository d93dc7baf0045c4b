"""A session bus with a Secret Service on it, of the suite's own."""

import os
import subprocess
import threading

POLICY = """<busconfig><type>session</type><listen>{}</listen><auth>EXTERNAL</auth>
    <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
    <allow own="*"/></policy></busconfig>"""


class Bus:
    """gnome-keyring, unlocked, on a bus whose address is `address`; where it ends by itself, it is started again."""

    def __init__(self, folder):
        self.folder = folder
        for part in ("", "/home", "/run", "/data", "/config"):
            os.mkdir(folder + part, 0o700)
        self.address = f"unix:path={folder}/bus"
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": f"{folder}/home", "XDG_RUNTIME_DIR": f"{folder}/run",
            "XDG_DATA_HOME": f"{folder}/data", "XDG_CONFIG_HOME": f"{folder}/config", "LC_ALL": "C.UTF-8",
            "DBUS_SESSION_BUS_ADDRESS": self.address}
        self.processes = []
        self.is_ending = False

    def __enter__(self):
        configuration = f"{self.folder}/bus.conf"
        with open(configuration, "w") as file:
            file.write(POLICY.format(self.address))
        bus = self.start("dbus-daemon", f"--config-file={configuration}", "--nofork", "--nopidfile", "--print-address=1",
                         stdout=subprocess.PIPE)
        bus.stdout.readline()
        self.start_keyring()
        threading.Thread(target=self.watch, daemon=True).start()
        return self

    def start_keyring(self):
        with open(f"{self.folder}/keyring.log", "ab") as log:
            self.keyring = self.start("gnome-keyring-daemon", "--unlock", "--foreground", "--components=secrets",
                                      stdin=subprocess.PIPE, stdout=log, stderr=log)
        feed(self.keyring, b"pw")
        subprocess.run(["gdbus", "wait", "--session", "--timeout", "60", "org.freedesktop.secrets"], env=self.environment,
                       check=True)

    def watch(self):
        """Starts the service again where it ended, and says so."""
        while True:
            status = self.keyring.wait()
            if self.is_ending:
                return
            with open(f"{self.folder}/ends", "ab") as file:
                file.write(b".")
            with open(f"{self.folder}/keyring.log", "rb") as log:
                words = log.read()[-400:].decode(errors="replace").strip()
            print(f"gnome-keyring ended by itself ({status}): {words}", flush=True)
            self.start_keyring()

    def ends(self):
        """How often the service has ended by itself; in any process."""
        try:
            return os.path.getsize(f"{self.folder}/ends")
        except FileNotFoundError:
            return 0

    def start(self, *command, **more):
        process = subprocess.Popen(command, env=self.environment, cwd="/", **{"stderr": subprocess.DEVNULL, **more})
        self.processes.append(process)
        return process

    def __exit__(self, *_):
        self.is_ending = True
        for process in reversed(self.processes):
            process.kill()
            process.wait()


def feed(process, input):
    """Writes a process its input, which it need not take."""
    try:
        process.stdin.write(input)
        process.stdin.close()
    except BrokenPipeError:
        pass
    process.stdin = None
