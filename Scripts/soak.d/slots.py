"""The values of the kill storm, whose every byte is known, and those that may be stored after a kill."""

import errno
import hashlib
import json
import os
import plistlib
import random
import select
import signal
import subprocess
import threading

SHARED, OWN = 2, 4


def generate(name, counter, size, kind):
    """A value that says what it is; `kind` is text or data."""
    head = f"{name} {counter} {size} "
    body = random.Random(head).randbytes(size)
    if kind == "text":
        return (head + body.hex())[:size].ljust(size, "x").encode() if size > len(head) else head.encode()
    return b"\0" + head.encode() + body[:max(0, size - len(head) - 1)]


def read(path):
    """A file's content, or None if there is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


class Slot:
    """A key or a secret, of which only one thread changes the value."""

    def __init__(self, path, kind, largest):
        self.path, self.kind, self.largest = path, kind, largest
        self.known = None
        # A value that may be stored in place of the known one: an attempt that was not acknowledged.
        self.pending = []
        self.counter = 0

    @property
    def is_kept(self):
        """Whether it is never deleted or moved once it is there."""
        return "k1" in self.path or "a1" in self.path

    @property
    def is_secret(self):
        return self.path.startswith("keychain/")

    @property
    def suite(self):
        return None if self.is_secret else self.path.split("/")[1]

    def next(self, dice):
        """Another value: most are small."""
        self.counter += 1
        size = min(self.largest, int(64 * 2 ** (dice.random() ** 2 * 13.6)))
        return generate(self.path, self.counter, size, self.kind)

    def fetch(self, home):
        """The value in the mount now; None if there is none."""
        return read(home.path(self.path))

    def may_be(self, content):
        return self.plain(content) in [self.known, *self.pending]

    def plain(self, content):
        """The value of a file: the file of a string ends with a line's end."""
        if content is not None and self.kind == "text" and content.endswith(b"\n"):
            return content[:-1]
        return content

    def settle(self, content):
        self.known, self.pending = self.plain(content), []

    def is_whole(self, content):
        """Whether this is a value that was once written, and all of it."""
        content = self.plain(content)
        try:
            name, counter, size, _ = content.lstrip(b"\0").split(b" ", 3)
            return content == generate(name.decode(), int(counter), int(size), self.kind)
        except ValueError:
            return False

    def attempt(self, value):
        self.pending = [*self.pending, value]

    def acknowledge(self, value):
        self.known, self.pending = value, []

    def describe(self, content):
        if content is None:
            return "nothing"
        return f"{len(content)} bytes {content[:60]!r} (SHA-256 {hashlib.sha256(content).hexdigest()[:8]})"


class Attribute(Slot):
    """An attribute of an item that is never deleted; its path is that of the item's value."""

    name = "comment"

    def __init__(self, path):
        super().__init__(path, "text", 400)

    def fetch(self, home):
        try:
            return os.getxattr(home.path(self.path), f"user.{self.name}")
        except OSError as error:
            # That the item is gone is no missing attribute.
            if error.errno == errno.ENODATA:
                return None
            raise


class Model:
    """All slots of a home, and conditions that hold for several together."""

    def __init__(self, writers, largest_key, largest_secret):
        self.lock = threading.Lock()
        self.slots, self.attributes = {}, {}
        self.together = []
        for writer in range(writers):
            self.slots[writer] = [
                Slot(f"defaults/{suite}/w{writer}k{index}", "data" if index % 2 else "text", largest_key)
                for suite in [f"own{writer}"] + [f"shared{number}" for number in range(SHARED)] for index in range(OWN)
            ] + [
                Slot(f"keychain/generic/{service}/w{writer}a{index}/value", "data" if index % 2 else "text", largest_secret)
                for service in (f"own{writer}", "shared") for index in range(3)
            ]
            self.attributes[writer] = [Attribute(f"keychain/generic/attributes/w{writer}i{index}/value") for index in range(2)]

    def all(self):
        return [slot for slots in self.slots.values() for slot in slots]

    def all_attributes(self):
        return [attribute for attributes in self.attributes.values() for attribute in attributes]

    def require(self, condition, message):
        """A condition on what is found after the kill; it gets a dictionary of values by path."""
        with self.lock:
            self.together.append((condition, message))

    def withdraw(self, condition):
        with self.lock:
            self.together = [entry for entry in self.together if entry[0] is not condition]

    def verify(self, home, result):
        """Compares all that is stored with what is known, through the mount and in the property lists."""
        found = {}
        for slot in self.all() + self.all_attributes():
            content = slot.fetch(home)
            found[slot.path] = slot.plain(content)
            allowed = [slot.describe(value) for value in [slot.known, *slot.pending]]
            result.check(slot.may_be(content),
                         f"{home.folder} {slot.path} is {slot.describe(content)}, not {' or '.join(allowed)}")
            slot.settle(content)
        for condition, message in self.together:
            result.check(condition(found), message)
        self.together = []
        self.verify_property_lists(home, result)

    def verify_property_lists(self, home, result):
        suites = {slot.suite for slot in self.all() if slot.suite}
        for suite in suites:
            data = read(f"{home.folder}/config/{suite}.plist")
            try:
                stored = plistlib.loads(data) if data else {}
            except Exception as error:  # Any of those that plistlib and expat raise.
                result.fail(f"{suite}.plist can't be read: {error!r}")
                continue
            for slot in self.all():
                if slot.suite == suite:
                    value = stored.get(os.path.basename(slot.path))
                    value = value.encode() if isinstance(value, str) else value
                    result.check(value == slot.known, f"{suite}.plist: {slot.path} is {slot.describe(value)}")
        check_names(f"{home.folder}/config", [f"{suite}.plist" for suite in suites] + [".keyhole-reserve", "keyhole"],
                    result)


def check_names(folder, expected, result):
    """Nothing lies in a folder but what belongs there; what does is a failure once."""
    left = sorted(set(os.listdir(folder)) - set(expected))
    result.check(not left, f"left in {folder}: {left}")
    for name in left:
        subprocess.run(["rm", "-rf", "--", f"{folder}/{name}"], check=True)


class Writer(threading.Thread):
    """Changes its own slots through the mount in all ways, until the mount is gone."""

    def __init__(self, home, model, number, seed, is_killed):
        super().__init__(daemon=True)
        self.home, self.model, self.number, self.is_killed = home, model, number, is_killed
        self.dice = random.Random(seed)
        self.acknowledged = 0
        self.trouble = []

    def run(self):
        while not self.is_killed.is_set():
            slot = self.dice.choice(self.model.slots[self.number])
            ways = [self.in_place, self.in_place, self.with_fsync, self.by_scratch, self.by_scratch, self.delete, self.move,
                    self.set_attribute]
            way = self.dice.choice(ways)
            try:
                way(slot)
            except OSError as error:
                if self.is_killed.is_set() or not self.home.is_alive():
                    return
                self.trouble.append((slot.path, way.__name__, error))

    def write(self, path, flags, value, commit=lambda descriptor: None):
        descriptor = os.open(path, flags | os.O_CREAT, 0o600)
        try:
            for start in range(0, len(value), 1 << 16):
                os.write(descriptor, value[start:start + (1 << 16)])
            commit(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)

    def folder(self, slot):
        os.makedirs(os.path.dirname(self.home.path(slot.path)), exist_ok=True)

    def done(self, slot, value):
        slot.acknowledge(value)
        self.acknowledged += 1

    def in_place(self, slot):
        value = slot.next(self.dice)
        self.folder(slot)
        slot.attempt(value)
        self.write(self.home.path(slot.path), os.O_WRONLY | os.O_TRUNC, value)
        self.done(slot, value)

    def with_fsync(self, slot):
        value = slot.next(self.dice)
        self.folder(slot)
        slot.attempt(value)

        def commit(descriptor):
            os.fsync(descriptor)
            self.done(slot, value)
        self.write(self.home.path(slot.path), os.O_WRONLY | os.O_TRUNC, value, commit)

    def by_scratch(self, slot):
        value = slot.next(self.dice)
        self.folder(slot)
        scratch = os.path.join(os.path.dirname(self.home.path(slot.path)), f".s{self.number}")
        self.write(scratch, os.O_WRONLY | os.O_TRUNC, value)
        slot.attempt(value)
        os.rename(scratch, self.home.path(slot.path))
        self.done(slot, value)

    def set_attribute(self, _):
        attribute = self.dice.choice(self.model.attributes[self.number])
        value = attribute.next(self.dice)
        attribute.attempt(value)
        os.setxattr(self.home.path(attribute.path), f"user.{attribute.name}", value)
        self.done(attribute, value)

    def delete(self, slot):
        if slot.known is not None and not slot.is_kept:
            slot.attempt(None)
            os.unlink(self.home.path(slot.path))
            self.done(slot, None)

    def move(self, slot):
        """Renames a key, also into another suite, over what is there."""
        others = [other for other in self.model.slots[self.number] if other.kind == slot.kind and other is not slot]
        target = self.dice.choice([other for other in others if not other.is_secret] or [slot])
        if slot.is_secret or slot.is_kept or target is slot or slot.known is None:
            return self.in_place(slot)
        value = slot.known
        self.folder(target)

        def is_somewhere(found):
            return value in (found[slot.path], found[target.path])
        self.model.require(is_somewhere, f"{slot.path} was lost on the way to {target.path}")
        slot.attempt(None)
        target.attempt(value)
        os.rename(self.home.path(slot.path), self.home.path(target.path))
        self.model.withdraw(is_somewhere)
        self.done(slot, None)
        target.acknowledge(value)


class Watcher:
    """A process that reads while others write: each value has to be whole.

    A process of its own, because the one that writes sees what it has not committed. A file that is being created is empty
    until its writer closes it, so that an empty one counts only where a value had been seen and is never deleted.
    """

    def __init__(self, home, model, seed):
        self.home, self.slots = home, model.all()
        self.dice = random.Random(seed)
        self.count, self.torn, self.seen = 0, [], set()
        self.is_stopped = False
        self.report, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            signal.signal(signal.SIGTERM, self.stop)
            self.read_until_the_end()
            os.write(writing, json.dumps([self.count, self.torn[:20]]).encode())
            os._exit(0)
        os.close(writing)

    def stop(self, *_):
        self.is_stopped = True

    def read_until_the_end(self):
        while not self.is_stopped:
            slot = self.dice.choice(self.slots)
            try:
                content = read(self.home.path(slot.path))
            except OSError as error:
                if error.errno in (errno.ENOTCONN, errno.ECONNABORTED):
                    return
                continue
            self.count += 1
            if content:
                self.seen.add(slot)
            is_torn = not slot.is_whole(content) if content else content == b"" and slot.is_kept and slot in self.seen
            if is_torn:
                self.torn.append(f"{slot.path} was torn: {slot.describe(content)}")

    def end(self, result, exclusions, engine):
        os.kill(self.pid, signal.SIGTERM)
        if select.select([self.report], [], [], 60)[0]:
            report = os.read(self.report, 1 << 16)
        else:
            report = b""
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.report)
        os.waitpid(self.pid, 0)
        if not report:
            return result.fail("the process that reads did not end well")
        count, torn = json.loads(report)
        result.ok(count - len(torn))
        for line in torn:
            if exclusions.reason(engine, f"read {line.split()[0]}", line):
                result.exclude()
            else:
                result.fail(line)


def storm(home, model, result, exclusions, engine, seed, seconds, ends_process):
    """Writers and a reader for so long, and where `ends_process`, kill -9 in their midst; how many writes were acknowledged.

    The dead mount stays while there are writers: they would write into the folder below it.
    """
    is_killed = threading.Event()
    writers = [Writer(home, model, number, f"{seed} {number}", is_killed) for number in model.slots]
    watcher = Watcher(home, model, seed)
    for thread in writers:
        thread.start()
    is_killed.wait(seconds)
    is_killed.set()
    if ends_process:
        home.end_process()
    for thread in writers:
        thread.join(60)
        if thread.is_alive():
            result.fail(f"{thread} hangs 60 s after the kill")
    watcher.end(result, exclusions, engine)
    for writer in writers:
        for path, way, error in writer.trouble:
            if exclusions.reason(engine, f"{way} {path}", str(error)):
                result.exclude()
            else:
                result.fail(f"{engine} {way} {path}: {error}")
    return sum(writer.acknowledged for writer in writers)
