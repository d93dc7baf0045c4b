"""A session bus with a Secret Service on it, of the suite's own."""

import os
import subprocess

POLICY = """<busconfig><type>session</type><listen>{}</listen><auth>EXTERNAL</auth>
    <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
    <allow own="*"/></policy></busconfig>"""


class Bus:
    """gnome-keyring, unlocked, on a bus whose address is `address`."""

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

    def __enter__(self):
        configuration = f"{self.folder}/bus.conf"
        with open(configuration, "w") as file:
            file.write(POLICY.format(self.address))
        bus = self.start("dbus-daemon", f"--config-file={configuration}", "--nofork", "--nopidfile", "--print-address=1",
                         stdout=subprocess.PIPE)
        bus.stdout.readline()
        keyring = self.start("gnome-keyring-daemon", "--unlock", "--foreground", "--components=secrets",
                             stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        feed(keyring, b"pw")
        subprocess.run(["gdbus", "wait", "--session", "--timeout", "60", "org.freedesktop.secrets"], env=self.environment,
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


def feed(process, input):
    """Writes a process its input, which it need not take."""
    try:
        process.stdin.write(input)
        process.stdin.close()
    except BrokenPipeError:
        pass
    process.stdin = None
