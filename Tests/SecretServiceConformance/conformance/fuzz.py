"""Hostile messages: calls of any shape, from a seed. The service has to go on, and an item of it has to stay as it is."""

import random
import time

from jeepney import DBusAddress, new_method_call

from .bus import (
    COLLECTION, INTROSPECTABLE, ITEM, PEER, PROMPT, PROPERTIES, ROOT, SERVICE, SESSION, CallError, Client, NoAnswer,
)
from .faults import resident
from .suite import Context, Failed, short
from .transfer import DH, PLAIN, Session

INTERFACES = [SERVICE, COLLECTION, ITEM, SESSION, PROMPT, PROPERTIES, INTROSPECTABLE, PEER, "org.example.None", None]
MEMBERS = [
    "OpenSession", "CreateCollection", "SearchItems", "Unlock", "Lock", "GetSecrets", "ReadAlias", "SetAlias",
    "CreateItem", "Delete", "GetSecret", "SetSecret", "Close", "Prompt", "Dismiss", "Get", "Set", "GetAll",
    "Introspect", "Ping", "NoSuchMethod", "GetMachineId",
]
SIGNATURES = [
    "", "s", "o", "v", "ao", "sv", "so", "ss", "ssv", "a{ss}", "a{sv}s", "aoo", "a{sv}(oayays)b", "(oayays)", "b", "t",
    "ay", "a{s(oayays)}", "aav", "(((s)))", "d", "g", "a(oayays)",
]


class Fuzzer:
    """Sends messages that follow from a seed."""

    def __init__(self, service, seed):
        self.service = service
        self.chance = random.Random(seed)
        self.sent = 0
        self.reconnected = 0
        self.context = Context(service)
        self.client = None
        self.connect()
        self.canary = self.context.create(b"canary")
        self.collection = self.context.default

    def connect(self):
        if self.client:
            self.client.close()
            self.reconnected += 1
        self.client = Client(self.service.address)
        self.sessions = [Session.open(self.client, kind).path for kind in (PLAIN, DH)]

    # Values

    def text(self):
        kind = self.chance.randrange(9)
        if kind < 4:
            return self.chance.choice(
                ["", "default", "session", "login", "plain", DH, SERVICE, ITEM, "Label", "Attributes", "Locked"]
            )
        if kind == 4:
            return "x" * self.chance.choice([1, 255, 4096, 70000])
        if kind == 5:
            return "".join(chr(self.chance.choice([1, 9, 10, 47, 92, 127, 233, 0x2028, 0xFFFD, 0x1F511])) for _ in range(8))
        if kind == 6:
            return "../" * self.chance.randrange(1, 9)
        return f"{self.chance.getrandbits(64):x}"

    def path(self):
        known = [
            ROOT, "/", self.collection, self.canary, f"{ROOT}/aliases/default", f"{ROOT}/collection/session",
            f"{ROOT}/collection", f"{ROOT}/session", f"{ROOT}/prompt", f"{ROOT}/prompt/p1", f"{ROOT}/collection/login/1",
            f"{self.collection}/{self.chance.getrandbits(32)}", f"{ROOT}/" + "a/" * self.chance.randrange(1, 60) + "b",
            f"{ROOT}/collection/" + "x" * 2000, "/org", *self.sessions,
        ]
        return self.chance.choice(known)

    def value(self, signature, depth=0):
        """A value of one complete type."""
        chance = self.chance
        kind = signature[0]
        if kind == "s":
            return self.text()
        if kind == "o":
            return self.path()
        if kind == "g":
            return chance.choice(["", "s", "a{sv}", "(oayays)"])
        if kind == "b":
            return chance.random() < 0.5
        if kind == "t":
            return chance.choice([0, 1, 2**64 - 1, chance.getrandbits(64)])
        if kind == "d":
            return chance.choice([0.0, float("inf"), float("nan"), -1.5])
        if kind == "v":
            inner = chance.choice(["s", "b", "t", "ay", "a{ss}", "o"] if depth > 3 else ["s", "v", "ay", "a{ss}", "o", "av", "(oayays)"])
            return (inner, self.value(inner, depth + 1))
        if kind == "(":
            return tuple(self.value(part, depth + 1) for part in complete_types(signature[1:-1]))
        if signature == "ay":
            return chance.randbytes(chance.choice([0, 1, 15, 16, 17, 32, 128, 129, 5000]))
        if signature.startswith("a{"):
            key, item = complete_types(signature[2:-1])
            return {self.value(key): self.value(item, depth + 1) for _ in range(chance.choice([0, 1, 2, 20]))}
        return [self.value(signature[1:], depth + 1) for _ in range(chance.choice([0, 1, 3, 40 if depth == 0 else 1]))]

    def body(self, signature):
        return tuple(self.value(part) for part in complete_types(signature))

    # Messages

    def message(self):
        chance = self.chance
        path, interface, member = self.path(), chance.choice(INTERFACES), chance.choice(MEMBERS)
        signature = self.fitting(member) if chance.random() < 0.7 else chance.choice(SIGNATURES)
        body = self.body(signature)
        if self.spares(path, member, body):
            member = "NoSuchMethod"
        address = DBusAddress(path, bus_name=self.client.name, interface=interface)
        return new_method_call(address, member, signature or None, body)

    def fitting(self, member):
        return {
            "OpenSession": "sv", "CreateCollection": "a{sv}s", "SearchItems": "a{ss}", "Unlock": "ao", "Lock": "ao",
            "GetSecrets": "aoo", "ReadAlias": "s", "SetAlias": "so", "CreateItem": "a{sv}(oayays)b", "GetSecret": "o",
            "SetSecret": "(oayays)", "Prompt": "s", "Get": "ss", "Set": "ssv", "GetAll": "s",
        }.get(member, "")

    def spares(self, path, member, body):
        """Whether a message would, rightly, change what is compared or lock it."""
        if member in ("Lock", "SetAlias", "CreateCollection"):
            return member == "Lock" or "default" in body
        return path in (self.canary, self.collection, f"{ROOT}/aliases/default") and member in ("Delete", "SetSecret", "Set")

    def send(self):
        """One message, as it is or, of 50 one, with bytes changed behind the lengths. Those the bus mostly refuses itself."""
        message = self.message()
        serial = next(self.client.connection.outgoing_serial)
        data = bytearray(message.serialise(serial=serial))
        if self.chance.random() < 0.02:
            for _ in range(self.chance.randrange(1, 6)):
                data[self.chance.randrange(16, len(data))] = self.chance.randrange(256)
        self.client.connection.sock.settimeout(5)
        self.client.connection.sock.sendall(data)
        self.sent += 1

    def run(self, seconds):
        """Sends for a time. - Raises: Failed."""
        process, memory = self.service.owner(), resident(self.service.owner())
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                for _ in range(100):
                    self.send()
                self.drain()
            except (OSError, NoAnswer):
                self.connect()  # the bus ended the connection, as it does for what is no message
            if self.sent % 1000 < 100:
                self.check(process, memory)
        self.check(process, memory)
        return self

    def drain(self):
        """Takes the answers to all that was sent: an answer of the bus follows them."""
        self.client.connection.sock.settimeout(None)
        self.client.bus("GetId")
        try:
            self.client.ping()
        except CallError:
            pass  # no answer to what the bus refused
        self.client.replies.clear()
        self.client.signals.clear()

    def check(self, process, memory):
        """The same process answers another client, with the same secret, and its memory has not grown without bounds."""
        try:
            if self.service.owner() != process:
                raise Failed("the service is another process")
        except CallError:
            raise Failed("the service ended") from None
        if not self.service.is_open():
            self.service.unlock_again()
        self.context.bus = self.context.client()
        found = self.context.secret(self.canary)
        self.context.bus.close()
        self.context.clients.remove(self.context.bus)
        if found != b"canary":
            raise Failed(f"the secret is {short(found)}")
        if resident(process) > memory + 256:
            raise Failed(f"{resident(process) - memory:.0f} MiB more memory")


def complete_types(signature):
    """The complete types of a signature."""
    types = []
    while signature:
        end = type_length(signature)
        types.append(signature[:end])
        signature = signature[end:]
    return types


def type_length(signature):
    if signature[0] == "a":
        return 1 + type_length(signature[1:])
    if signature[0] in "({":
        depth = 0
        for index, letter in enumerate(signature):
            depth += (letter in "({") - (letter in ")}")
            if depth == 0:
                return index + 1
    return 1


def fuzz(service, seed, seconds):
    """Sends hostile messages for a time. Returns what is to be said of it. - Raises: Failed."""
    fuzzer = Fuzzer(service, seed)
    try:
        fuzzer.run(seconds)
    except Failed as error:
        raise Failed(f"after {fuzzer.sent} messages of the seed {seed}: {error}") from None
    return f"{fuzzer.sent} messages of the seed {seed} in {seconds:g} s, {fuzzer.reconnected} connections ended by the bus"
