"""The rounds of the kill storm: what is killed, and what has to hold for it alone. Each ends with `Storm.check`."""

import base64
import glob
import json
import os
import select
import shutil
import subprocess
import time

import harness

PASSPHRASES = [b"", b"one", b"two"]
# The least that a guess may cost, so that the time goes into what is killed.
COST = ["--cost", "14"]
READING = [["get"], ["ls"], ["doctor"], ["log"], ["attr"], ["watch"], ["completions", "bash"]]


# The mount.

def mount(storm):
    """The mount, under writers."""
    storm.mount()
    storm.write(storm.dice.uniform(0.01, 0.3), ends_process=True)
    storm.kills["process of the mount"] += 1
    storm.home.kill()


def unmount(storm):
    """The mount, while `keyhole unmount` waits for it; or `keyhole unmount`, which leaves the mount or has taken it away."""
    storm.mount()
    storm.write(0.1, ends_process=False)
    if storm.dice.random() < 0.5:
        storm.command("unmount", storm.home.point)
        return storm.home.kill()
    process = storm.home.start("unmount", storm.home.point)
    try:
        process.wait(storm.dice.uniform(0, 0.05))
    except subprocess.TimeoutExpired:
        pass
    storm.kill_mount("process of the mount, at unmount")
    process.communicate()


def start(storm):
    """`keyhole mount` itself, before it is ready."""
    storm.settle()
    for _ in range(3):
        reading, writing = os.pipe()
        storm.command("mount", "-o", f"keychain={storm.engine}", storm.home.point, stdout=writing, stderr=writing)
        os.close(writing)
        # The process of the mount may have begun, and ends with its mount.
        deadline = time.monotonic() + 60
        while is_open(reading) and time.monotonic() < deadline:
            harness.unmount_lazily(storm.home.point)
        os.close(reading)
        # It lets go of the pipe when it is ready, too.
        harness.unmount_lazily(storm.home.point)


def is_open(pipe):
    """Whether a process has the other end, after a moment."""
    return not select.select([pipe], [], [], 0.02)[0] or bool(os.read(pipe, 1 << 16))


# Commands, each several times.

def commands(storm, count=10):
    """Commands that store or read, without a mount."""
    storm.settle()
    some_commands(storm, count)


def commands_mounted(storm, count=10):
    """The same with a mount, which is killed in the end, or taken away."""
    storm.mount()
    some_commands(storm, count)
    storm.settle()


def some_commands(storm, count):
    choices = [set_value, set_value, set_value, remove, edit, edit, change_attribute, change_attribute, read]
    for _ in range(count):
        storm.dice.choice(choices + [reseal] * 2 * (storm.engine == "secret-service"))(storm)


def attempt(storm, slot, value, *command, **more):
    slot.attempt(value)
    if storm.command(*command, **more):
        slot.acknowledge(value)
        storm.acknowledged += 1


def set_value(storm):
    slot = storm.dice.choice(storm.model.all())
    value = slot.next(storm.dice)
    # Sealed by the vault before the service gets it.
    options = ["--sealed"] if slot.is_secret and storm.engine == "secret-service" and storm.dice.random() < 0.5 else []
    attempt(storm, slot, value, "set", *options, slot.path, input=value)


def remove(storm):
    slot = storm.dice.choice(storm.model.all())
    if slot.known is not None and not slot.pending and not slot.is_kept:
        attempt(storm, slot, None, "rm", slot.path)


def edit(storm):
    """With an editor that copies the new value over the file."""
    slot = storm.dice.choice([slot for slot in storm.model.all() if slot.known is not None and not slot.pending] or [None])
    if slot is None:
        return
    value = slot.next(storm.dice)
    path = f"{storm.home.folder}/input"
    with open(path, "wb") as file:
        file.write(value)
    attempt(storm, slot, value, "edit", slot.path, VISUAL=f"cp {path}")


def change_attribute(storm):
    attribute = storm.dice.choice(storm.model.all_attributes())
    if attribute.known is not None and not attribute.pending and storm.dice.random() < 0.3:
        return attempt(storm, attribute, None, "attr", "--remove", attribute.path, attribute.name)
    value = attribute.next(storm.dice)
    attempt(storm, attribute, value, "attr", attribute.path, attribute.name, value.decode())


def reseal(storm):
    """`keyhole attr` that has the vault seal an item of the service, or not any more; its value stays."""
    slots = [slot for slot in storm.model.all() if slot.is_secret and slot.known is not None and not slot.pending]
    if slots:
        storm.command("attr", storm.dice.choice(slots).path, "keyhole.sealed", storm.dice.choice(["true", "false"]))


def read(storm):
    """Commands that change nothing."""
    command = storm.dice.choice(READING + [["status"]] * storm.is_mounted)
    if command in (["get"], ["attr"]):
        slot = storm.dice.choice(storm.model.all_attributes())
        command = [*command, slot.path]
    storm.command(*command)


def export(storm):
    """`keyhole export`, to a file that is there whole or not at all."""
    storm.settle()
    path = f"{storm.home.folder}/home/export"
    for _ in range(4):
        storm.command("export", "--plain", "--format", "json", "-o", path)
        if os.path.exists(path):
            with open(path) as file:
                storm.result.check(json.load(file)["keyhole"] == 1, "the file of an export was cut off")
            os.unlink(path)


# Import.

def import_file(storm):
    """`keyhole import`: everything or nothing, with a mount or without, and into a vault that the mount alone can open."""
    is_the_mounts = False
    if storm.dice.random() < 0.4:
        storm.settle()
    else:
        storm.mount()
        is_the_mounts = storm.engine == "vault" and storm.dice.random() < 0.5
    if is_the_mounts:
        storm.home.must("passphrase", "--weak", *COST, input=b"one\n")
    chosen = storm.dice.sample(storm.model.all(), 12)
    values = {slot.path: slot.next(storm.dice) for slot in chosen}
    old = {slot.path: slot.known for slot in chosen}
    path = f"{storm.home.folder}/import.json"
    with open(path, "w") as file:
        json.dump(as_export(chosen, values), file)
    for slot in chosen:
        slot.attempt(values[slot.path])
    # Items that are replaced in a service one at a time keep what they got: `keyhole import` says so.
    goes_one_by_one = storm.engine == "secret-service"
    bound = [slot.path for slot in chosen if not (goes_one_by_one and slot.is_secret and slot.known is not None)]

    def is_whole(found):
        return all(found[path] == values[path] for path in bound) or all(found[path] == old[path] for path in bound)
    storm.model.require(is_whole, f"{storm.home.folder}: an import was done in part")
    if import_through_mount(storm, path) if is_the_mounts else storm.command("import", "--replace", path):
        for slot in chosen:
            slot.acknowledge(values[slot.path])
        storm.acknowledged += len(chosen)
    # The next command takes back what was killed; a mount that runs already does not.
    storm.home.must("ls", "defaults")
    if is_the_mounts:
        storm.model.verify(storm.home, storm.result)
        remove_passphrase(storm, b"one")


def import_through_mount(storm, path):
    """Kills the command, or the mount's process, which has the items by then or not; whether the import ended well."""
    if storm.dice.random() < 0.6:
        return storm.command("import", "--replace", path)
    process = storm.home.start("import", "--replace", path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        process.wait(storm.dice.uniform(0.3, 1.1) * storm.durations.get(("import", True), 0.2))
    except subprocess.TimeoutExpired:
        pass
    storm.kill_mount("process of the mount, at import")
    process.communicate()
    storm.mount()
    storm.result.check(opens(storm, b"one"), "the passphrase does not open the vault after an import")
    return process.returncode == 0


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


# Backup.

def backup(storm):
    """`keyhole backup`, with a mount or without: its file is there whole or not at all, and the next one clears up."""
    if storm.dice.random() < 0.5:
        storm.settle()
    else:
        storm.mount()
    key = backup_key(storm)
    file = f"{storm.home.folder}/home/backup"
    for _ in range(3):
        storm.command("backup", *BACKUP[storm.engine], file)
        if os.path.exists(file):
            storm.home.must("restore", "--dry-run", file, input=key)
            os.unlink(file)
    storm.home.must("backup", *BACKUP[storm.engine], file)
    os.unlink(file)


def restore(storm):
    """`keyhole restore`: everything is as in the backup, or as it was before."""
    storm.settle()
    key = backup_key(storm)
    file = f"{storm.home.folder}/home/backup"
    storm.home.must("backup", *BACKUP[storm.engine], file)
    # Items of the Secret Service are in no backup.
    slots = [slot for slot in storm.model.all() if not slot.is_secret or storm.engine == "vault"]
    inside = {slot.path: slot.known for slot in slots}
    suites = os.listdir(f"{storm.home.folder}/config")
    for slot in storm.dice.sample(slots, 4):
        value = slot.next(storm.dice)
        storm.home.must("set", slot.path, input=value)
        slot.settle(value)
    before = {slot.path: slot.known for slot in slots}
    # A suite that the backup does not hold stays as it is (BACKUP.md).
    inside.update((slot.path, slot.known) for slot in slots if not slot.is_secret and f"{slot.suite}.plist" not in suites)
    for slot in slots:
        if inside[slot.path] != before[slot.path]:
            slot.attempt(inside[slot.path])

    def is_whole(found):
        return all(found[path] == inside[path] for path in inside) or all(found[path] == before[path] for path in before)
    storm.model.require(is_whole, f"{storm.home.folder}: a restore was done in part")
    if storm.command("restore", "--yes", file, input=key):
        for slot in slots:
            slot.acknowledge(inside[slot.path])
    # A vault that is older than what was seen last can only be read until a person has said so.
    storm.command("accept", "--yes", is_checked=False)
    storm.home.run("accept", "--yes")
    storm.mount()
    storm.home.unmount()
    os.unlink(file)
    for path in glob.glob(f"{storm.home.folder}/*/*set-aside*") + glob.glob(f"{storm.home.folder}/data/keyhole/*set-aside*"):
        subprocess.run(["rm", "-rf", "--", path], check=True)


BACKUP = {"vault": [], "secret-service": ["--without-secret-service"]}


def backup_key(storm):
    """The private key of the home's backups, which take no passphrase then."""
    if storm.backup_key is None:
        storm.backup_key = storm.home.must("backup", "--init")
    return storm.backup_key


# The vault alone.

def passphrase(storm):
    """`keyhole passphrase`: the old one opens the vault or the new one; then there is none again."""
    old = storm.dice.choice(PASSPHRASES)
    new = storm.dice.choice([word for word in PASSPHRASES if word != old])
    storm.settle()
    if old:
        storm.home.must("passphrase", "--weak", *COST, input=old + b"\n")
    given = old + b"\n" + new + b"\n" if old else new + b"\n"
    done = storm.command("passphrase", "--weak", *COST, input=given)
    storm.mount()
    # The empty one first: where there is no passphrase, any opens the vault.
    present = next((word for word in ([new] if done else sorted([new, old])) if opens(storm, word)), None)
    if not storm.result.check(present is not None, "no passphrase opens the vault after keyhole passphrase"):
        raise harness.Failed("the vault is locked for good")
    storm.model.verify(storm.home, storm.result)
    if present:
        # Through the mount, which alone has the keys.
        set_value(storm)
    remove_passphrase(storm, present)


ITEM_PASSWORDS = [b"staple", b"battery"]


def item_password(storm):
    """`keyhole passphrase ITEM`, which the mount does: the old password opens the item or the new one."""
    storm.settle()
    item = "keychain/generic/item password/storm"
    answers = make_asker(storm)
    storm.home.mount(f"keychain={storm.engine}", f"auth-command={storm.home.folder}/asker")
    os.makedirs(storm.home.path(item))
    with open(storm.home.path(item, "value"), "wb") as file:
        file.write(b"secret of an item")
    present = ITEM_PASSWORDS[0]
    answers(present)
    os.setxattr(storm.home.path(item), "user.keyhole.access", b"applicationPassword")
    for _ in range(4):
        new = next(word for word in ITEM_PASSWORDS if word != present)
        answers(present, new)
        if storm.dice.random() < 0.5:
            done = storm.command("passphrase", item)
        else:
            process = storm.home.start("passphrase", item)
            usual = storm.durations.get(("passphrase", True), 1)
            try:
                done = process.wait(storm.dice.uniform(0.1, 1.1) * usual) == 0
            except subprocess.TimeoutExpired:
                done = False
            storm.kill_mount("process of the mount, at passphrase ITEM")
            process.communicate()
        # A command that was killed leaves the change to the mount.
        storm.home.kill()
        storm.home.mount(f"keychain={storm.engine}", f"auth-command={storm.home.folder}/asker")
        wanted = [new] if done else [present, new]
        present = next((word for word in wanted if reads(storm, item, answers, word)), None)
        if not storm.result.check(present is not None, "no password opens the item after keyhole passphrase ITEM"):
            raise harness.Failed("the item is locked for good")
    os.remove(storm.home.path(item, "value"))
    shutil.rmtree(storm.home.path("keychain/generic/item password"), ignore_errors=True)
    for name in ("asker", "answers"):
        os.remove(f"{storm.home.folder}/{name}")


def make_asker(storm):
    """A program for `auth-command=` that prints one of the answers each time; they are given to what is returned."""
    path = f"{storm.home.folder}/answers"
    with open(f"{storm.home.folder}/asker", "w") as file:
        file.write(f"#!/bin/sh\nIFS= read -r line < {path}; sed -i 1d {path}; printf '%s\\n' \"$line\"\n")
    os.chmod(file.name, 0o700)

    def give(*words):
        with open(path, "wb") as answers:
            answers.write(b"".join(word + b"\n" for word in words))
    return give


def reads(storm, item, answers, password):
    """Whether the password opens the item, whose secret is what was stored then."""
    answers(password)
    read = subprocess.run(["cat", storm.home.path(item, "value")], capture_output=True, timeout=120)
    if read.returncode == 0:
        storm.result.check(read.stdout == b"secret of an item", f"another secret after passphrase ITEM: {read.stdout!r}")
    return read.returncode == 0


def lock(storm):
    """`keyhole lock` and `keyhole unlock`, and the mount while one of them waits for it."""
    storm.settle()
    storm.home.must("passphrase", "--weak", *COST, input=b"one\n")
    storm.mount()
    for _ in range(4):
        storm.command("unlock", input=b"one\n")
        storm.command("lock")
    if storm.dice.random() < 0.5:
        process = storm.home.start(storm.dice.choice(["lock", "unlock"]))
        try:
            process.wait(storm.dice.uniform(0, 0.05))
        except subprocess.TimeoutExpired:
            pass
        storm.kill_mount("process of the mount, at lock")
        process.communicate()
        storm.mount()
    storm.result.check(opens(storm, b"one"), "the passphrase does not open the vault after keyhole lock")
    storm.model.verify(storm.home, storm.result)
    set_value(storm)
    remove_passphrase(storm, b"one")


def remove_passphrase(storm, present):
    storm.settle()
    if present:
        storm.home.must("passphrase", input=present + b"\n\n")


def opens(storm, passphrase):
    """Whether the mount can be unlocked so; without a passphrase it comes up open."""
    if passphrase:
        return storm.home.run("unlock", input=passphrase + b"\n").returncode == 0 and opens(storm, b"")
    with open(storm.home.path(".keyhole/status")) as status:
        return not json.load(status)["locked"]


def upgrade(storm):
    """`keyhole upgrade` of a vault of 0.1: all items are there before and after, and run again it ends."""
    storm.settle()
    folder = f"{storm.home.folder}/old"
    vault, state = f"{folder}/data/keyhole", f"{folder}/state/keyhole"
    shutil.rmtree(folder, ignore_errors=True)
    for part in (vault, state, f"{folder}/config"):
        os.makedirs(part, 0o700)
    for path in glob.glob(f"{storm.options.fixtures}/*"):
        name = os.path.basename(path)
        if name != "expected.txt":
            shutil.copy(path, vault if name.startswith("vault.") else state)
    for path in glob.glob(f"{vault}/*") + glob.glob(f"{state}/*"):
        os.chmod(path, 0o600)
    there = {"XDG_DATA_HOME": f"{folder}/data", "XDG_STATE_HOME": f"{folder}/state", "XDG_CONFIG_HOME": f"{folder}/config"}

    def items():
        return storm.home.must("export", "--plain", "keychain/generic", env={**storm.home.environment, **there})
    before = items()
    for _ in range(4):
        if storm.command("upgrade", **there):
            break
        storm.result.check(items() == before, "other items after keyhole upgrade was killed")
    storm.home.must("upgrade", env={**storm.home.environment, **there})
    storm.result.check(items() == before, "other items after keyhole upgrade")
    shutil.rmtree(folder)


# A Secret Service alone.

def migrate(storm):
    """`keyhole migrate` to the vault: run again, it ends, and all items are there; then back, likewise."""
    storm.settle()
    for source, target in (("secret-service", "vault"), ("vault", "secret-service")):
        way = ["migrate", "--from", source, "--to", target]
        if target == "secret-service" and storm.dice.random() < 0.5:
            way.append("--sealed")
        storm.command(*way)
        storm.home.must(*way)
        storm.mount(target)
        storm.model.verify(storm.home, storm.result)
        storm.settle()


BOTH = {"mount": (mount, 8), "unmount": (unmount, 2), "start": (start, 1), "commands": (commands, 4),
        "commands-mounted": (commands_mounted, 4), "export": (export, 1), "import": (import_file, 3),
        "backup": (backup, 1), "restore": (restore, 2)}
ROUNDS = {
    "vault": {**BOTH, "passphrase": (passphrase, 1),
              "item-password": (item_password, 1), "lock": (lock, 1), "upgrade": (upgrade, 1)},
    "secret-service": {**BOTH, "migrate": (migrate, 1)},
}
