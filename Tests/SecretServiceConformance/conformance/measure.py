"""How long a search among 5,000 items, GetSecret and CreateItem take, beside gnome-keyring.

Each service is on a bus of its own, of the same program; the batches take turns, so that a change of the machine's speed
hits both. From each time that of a Ping of the same service over the same bus is subtracted.
"""

import os
import statistics
import time

from .bus import COLLECTION, ITEM, PEER, ROOT, SERVICE, Client
from .services import GnomeKeyring
from .transfer import DH, Session

ITEMS = 5000
BATCHES, CALLS = 20, 25


class FilledGnomeKeyring(GnomeKeyring):
    """gnome-keyring on a keyring of 5,000 items: its own CreateItem of so many would take minutes.

    The keyring has no password, so it is not encrypted when it is stored: that is the faster case.
    """

    def prepare(self):
        super().prepare()
        keyrings = f"{self.folder}/data/keyrings"
        os.makedirs(keyrings)
        parts = ["[keyring]\ndisplay-name=measure\nctime=0\nmtime=0\nlock-on-idle=false\nlock-after=false\n"]
        for number in range(1, ITEMS + 1):
            parts.append(f"\n[{number}]\nitem-type=0\ndisplay-name=item {number}\nsecret=secret {number}\nmtime=1\nctime=1\n")
            for index, (name, value) in enumerate(attributes(number).items()):
                parts.append(f"\n[{number}:attribute{index}]\nname={name}\ntype=string\nvalue={value}\n")
        with open(f"{keyrings}/measure.keyring", "w", encoding="utf-8") as file:
            file.write("\n".join(parts))
        with open(f"{keyrings}/default", "w", encoding="utf-8") as file:
            file.write("measure")

    def wait_until_open(self):
        client = Client(self.address)
        try:
            prompt = client.call(ROOT, SERVICE, "Unlock", "ao", [f"{ROOT}/collection/measure"], timeout=120)[1]
            if prompt != "/":
                client.call(prompt, "org.freedesktop.Secret.Prompt", "Prompt", "s", "")
                client.signal("Completed", path=prompt)
        finally:
            client.close()
        super().wait_until_open()


def attributes(number):
    return {"service": f"example-{number % 50}.org", "account": f"user {number}", "xdg:schema": "org.example.Measure"}


class Side:
    """A service with 5,000 items, and the times of its calls in µs."""

    def __init__(self, service):
        self.service = service
        self.client = Client(service.address)
        self.session = Session.open(self.client, DH)
        self.path = self.client.call(ROOT, SERVICE, "ReadAlias", "s", "default")[0]
        self.times = {"Ping": [], "SearchItems": [], "GetSecret": [], "CreateItem": []}
        self.created = 0
        self.fill()

    def fill(self):
        items = self.client.call(self.path, COLLECTION, "SearchItems", "a{ss}", {"xdg:schema": "org.example.Measure"}, timeout=120)[0]
        for number in range(len(items) + 1, ITEMS + 1):
            self.create(f"item {number}", f"secret {number}".encode(), attributes(number))
        items = self.client.call(self.path, COLLECTION, "SearchItems", "a{ss}", {"xdg:schema": "org.example.Measure"}, timeout=120)[0]
        if len(items) != ITEMS:
            raise AssertionError(f"{self.service.name} has {len(items)} items instead of {ITEMS}")
        self.items = items

    def create(self, label, secret, values):
        properties = {f"{ITEM}.Label": ("s", label), f"{ITEM}.Attributes": ("a{ss}", values)}
        item, prompt = self.client.call(
            self.path, COLLECTION, "CreateItem", "a{sv}(oayays)b", properties, self.session.encode(secret), False, timeout=120
        )
        if prompt != "/":
            raise AssertionError("CreateItem gives a prompt")
        return item

    def timed(self, name, function):
        began = time.perf_counter()
        result = function()
        self.times[name].append((time.perf_counter() - began) * 1e6)
        return result

    def batch(self, batch):
        client = self.client
        for call in range(CALLS):
            number = (batch * CALLS + call) * 7919 % ITEMS + 1
            self.timed("Ping", lambda: client.call(ROOT, PEER, "Ping"))
            found = self.timed("SearchItems", lambda: client.call(ROOT, SERVICE, "SearchItems", "a{ss}", attributes(number)))
            if len(found[0]) != 1:
                raise AssertionError(f"a search found {len(found[0])} items")
            secret = self.timed("GetSecret", lambda: client.call(found[0][0], ITEM, "GetSecret", "o", self.session.path))
            if self.session.decode(secret[0]) != f"secret {number}".encode():
                raise AssertionError("GetSecret gave another secret")
        # With 5,000 items one takes gnome-keyring some seconds.
        if batch % 4 == 3:
            self.created += 1
            values = {"measured": str(self.created)}
            self.timed("CreateItem", lambda: self.create(f"measured {self.created}", b"measured", values))

    def medians(self):
        ping = statistics.median(self.times["Ping"])
        return {
            name: statistics.median(times) - (0 if name == "Ping" else ping) for name, times in self.times.items()
        }


def measure(service):
    """The medians in µs of a started service and of gnome-keyring, less those of Ping, and gnome-keyring's version."""
    other = FilledGnomeKeyring()
    other.start()
    try:
        sides = [Side(service), Side(other)]
        for batch in range(BATCHES):
            for side in sides if batch % 2 else reversed(sides):
                side.batch(batch)
        return sides[0].medians(), sides[1].medians(), other.version
    finally:
        other.stop()
