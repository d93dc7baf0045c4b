"""Keyhole's service, on a vault with a passphrase. A stand-in for pinentry types it, or cancels.

A build that takes no pinentry but root's, as a release does, does not ask the stand-in: it has a vault that its key file opens, and
cases with prompts are not run.
"""

import os
import shutil
import subprocess
import sys

from .bus import PROMPT, ROOT, SERVICE, Client
from .services import Private, Unavailable, run

PASSPHRASE = "conformance"

# Speaks the Assuan protocol of pinentry. The file `answer` says whether the person types the passphrase.
PINENTRY = f"""#!/bin/sh
echo OK ready
while read -r line; do
  case $line in
    "GETINFO flavor") echo "D gtk2"; echo OK ;;
    GETPIN)
      if [ "$(cat "${{0%/*}}/answer")" = yes ]; then echo "D {PASSPHRASE}"; echo OK
      else echo "ERR 83886179 Operation cancelled <Pinentry>"; fi ;;
    CONFIRM*)
      if [ "$(cat "${{0%/*}}/answer")" = yes ]; then echo OK
      else echo "ERR 83886179 Operation cancelled <Pinentry>"; fi ;;
    BYE) echo OK; exit ;;
    *) echo OK ;;
  esac
done
"""


def found_command(kinds=("debug", "release")):
    """The debug build of this checkout, else the release build, else the installed one."""
    project = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    for kind in kinds:
        path = f"{project}/.build/{kind}/keyhole"
        if os.access(path, os.X_OK):
            return path
    return shutil.which("keyhole")


class Keyhole(Private):
    name = "keyhole"

    def __init__(self, command=None):
        super().__init__()
        self.command = os.path.abspath(command) if command else found_command()
        # Whether the suite's own program may have sessions without encryption.
        self.is_allowed = False

    def environment(self):
        values = super().environment()
        # A display, so that a passphrase is asked for in a window: that of the stand-in. No other bus than the suite's own.
        values.update(
            PATH=f"{self.folder}/bin:{values['PATH']}", DISPLAY=":conformance",
            DBUS_SYSTEM_BUS_ADDRESS=f"unix:path={self.folder}/none",
        )
        return values

    def prepare(self):
        if not self.command:
            raise Unavailable("there is no keyhole command: build it, or name it with --keyhole FILE")
        self.version = run([self.command, "--version"], self.environment()).split()[-1]
        folder = f"{self.folder}/bin"
        os.mkdir(folder)
        for name in ("pinentry", "pinentry-gtk-2", "pinentry-qt", "pinentry-gnome3"):
            with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                file.write(PINENTRY)
            os.chmod(f"{folder}/{name}", 0o755)
        self.answers_prompts = self.asks_stand_in()
        if self.answers_prompts:
            self.version += " (its dialogs are answered)"
            self.protect(self.environment())

    def protect(self, environment):
        """Gives the vault a passphrase."""
        run([self.command, "passphrase", "--weak", "--cost", "14"], environment, f"{PASSPHRASE}\n")

    def asks_stand_in(self):
        """Whether a locked vault, of another home, is unlocked by what the stand-in types."""
        environment = self.environment()
        for name in [name for name in environment if name.startswith("XDG_")]:
            environment[name] = f"{self.folder}/probe/{name}"
            os.makedirs(environment[name], 0o700)
        self.protect(environment)
        self.write_answer(True)
        # The item is not there: 3 says that it was looked for, 4 that the vault is locked.
        done = subprocess.run(
            [self.command, "get", "keychain/generic/none/none"], env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=60, check=False, start_new_session=True,
        )
        if done.returncode not in (3, 4):
            raise Unavailable(f"{self.command} get ended with {done.returncode}: {done.stderr.strip()[-500:]}")
        return done.returncode == 3

    def allow_plain(self, program):
        """Lets a program have sessions without encryption, which Keyhole otherwise refuses."""
        run([self.command, "allow", "--plain", program], self.environment())

    def launch_service(self):
        return self.launch([self.command, "service", "--foreground"])

    def wait_until_open(self):
        if not self.answers_prompts:
            super().wait_until_open()
            return
        self.will_answer(True)
        if not self.unlocked():
            raise Unavailable(f"the vault could not be unlocked: {self.last_lines()}")
        super().wait_until_open()
        if not self.is_allowed:
            # The vault has to be open, and the person confirms it.
            self.allow_plain(os.path.realpath(sys.executable))
            self.is_allowed = True

    def will_answer(self, accept):
        if self.answers_prompts:
            self.write_answer(accept)

    def write_answer(self, accept):
        with open(f"{self.folder}/bin/answer", "w", encoding="utf-8") as file:
            file.write("yes" if accept else "no")

    def unlock_again(self):
        if not self.answers_prompts:
            self.restart()
            return
        self.will_answer(True)
        if not self.unlocked():
            # After a refusal it does not ask again at once.
            self.restart()

    def unlocked(self):
        """Has the default collection unlocked, and returns whether it is."""
        client = Client(self.address)
        try:
            path = client.call(ROOT, SERVICE, "ReadAlias", "s", "default")[0]
            prompt = client.call(ROOT, SERVICE, "Unlock", "ao", [path])[1]
            if prompt != "/":
                client.call(prompt, PROMPT, "Prompt", "s", "")
                return not client.signal("Completed", path=prompt)[0]
            return True
        finally:
            client.close()
