"""Faults: the service, its clients and its bus end at any time, and there are many of them."""

import os
import random
import signal
import subprocess
import sys
import time

from .bus import COLLECTION, ITEM, ROOT, SERVICE, CallError, Client, NoAnswer
from .suite import FAULTS, MUST, SHOULD, case
from .transfer import DH, PLAIN, Session

SEED = int(os.environ.get("CONFORMANCE_SEED", "1"))


def fault(identifier, level, expected):
    return case(f"fault.{identifier}", level, "robustness", expected, FAULTS)


def resident(process):
    """Memory of a process in MiB that is in RAM."""
    with open(f"/proc/{process}/status", encoding="utf-8") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


def descriptors(process):
    """How many descriptors a process has open; 0 where this user can't see it, as of a process that hides its memory."""
    try:
        return len(os.listdir(f"/proc/{process}/fd"))
    except PermissionError:
        return 0


def until(condition, seconds=20):
    """Whether a condition becomes true within a time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.01)
    return True


def private(t):
    if not t.service.private:
        t.skip("the service is in use")


def without_prompts(t):
    """Skips where CreateItem gives a prompt, so that it acknowledges nothing itself."""
    session = t.session()
    properties = {f"{ITEM}.Label": ("s", "conformance"), f"{ITEM}.Attributes": ("a{ss}", t.mark)}
    item, prompt = t.bus.call(
        t.default, COLLECTION, "CreateItem", "a{sv}(oayays)b", properties, session.encode(b"x"), False
    )
    if prompt != "/":
        t.dismiss(prompt)
        t.skip("CreateItem gives a prompt")
    t.delete(item)


def replies_of(client, serials, since):
    """Takes the answers that have arrived, and adds the items of those that are none of an error to `since`."""
    for serial in [serial for serial in serials if serial in client.replies]:
        value = serials.pop(serial)
        try:
            item, prompt = client.answer(serial)
            if prompt == "/":
                since[item] = value
        except CallError:
            pass


def create_until_lost(service, mark, chance, limit):
    """Creates items without waiting until the service is gone. Returns those that were acknowledged.

    The service is killed after `limit` seconds at most, at a moment that `chance` chooses.
    """
    client = Client(service.address)
    session = Session.open(client, PLAIN)
    path = client.call(ROOT, SERVICE, "ReadAlias", "s", "default")[0]
    acknowledged, serials, number = {}, {}, 0
    end = time.monotonic() + chance.uniform(0.02, limit)
    try:
        while time.monotonic() < end:
            value = f"{chance.getrandbits(64):016x}".encode() * (1 + number % 40)
            properties = {
                f"{ITEM}.Label": ("s", f"item {number}"),
                f"{ITEM}.Attributes": ("a{ss}", {**mark, "number": str(number), "value": value.decode()[:16]}),
            }
            serial = client.send(
                path, COLLECTION, "CreateItem", "a{sv}(oayays)b", properties, session.encode(value), False
            )
            serials[serial] = value
            number += 1
            if len(serials) > 8:
                client.receive(time.monotonic() + 20)
            replies_of(client, serials, acknowledged)
        os.kill(service.owner(), signal.SIGKILL)
        while serials:  # answers that were on their way
            client.receive(time.monotonic() + 1)
            replies_of(client, serials, acknowledged)
    except (NoAnswer, OSError, CallError):
        replies_of(client, serials, acknowledged)
    finally:
        client.close()
    return acknowledged


@fault("killed", MUST, "kill -9 of the service while items are created, ten times: no acknowledged item is lost or torn")
def killed(t):
    private(t)
    without_prompts(t)
    chance = random.Random(SEED)
    expected = {}
    for _ in range(10):
        expected.update(create_until_lost(t.service, t.mark, chance, 0.4))
        t.service.restart()
    client = t.client()
    session = t.session(PLAIN, client)
    wrong = []
    for path, value in expected.items():
        try:
            if session.decode(client.call(path, ITEM, "GetSecret", "o", session.path)[0]) != value:
                wrong.append(f"{path} has another secret")
        except CallError as error:
            # The path may be another one after a restart; the attributes are the same.
            found, _ = client.call(ROOT, SERVICE, "SearchItems", "a{ss}", {**t.mark, "value": value.decode()[:16]})
            if len(found) != 1 or session.decode(client.call(found[0], ITEM, "GetSecret", "o", session.path)[0]) != value:
                wrong.append(f"{path}: {error}")
    t.bus = client
    t.true(len(expected) >= 10, f"only {len(expected)} items were acknowledged")
    t.equal(wrong[:3], [], f"{len(wrong)} of {len(expected)} acknowledged items are wrong")
    return f"{len(expected)} acknowledged items"


@fault("bus-restarts", MUST, "the bus ends and comes back: the service ends or comes back, and no item is lost")
def bus_restarts(t):
    private(t)
    t.create(b"stays")
    process = t.service.owner()
    t.service.stop_bus()
    t.service.start_bus()

    def ended():
        return not os.path.exists(f"/proc/{process}") or open(f"/proc/{process}/stat").read().split(")")[-1].split()[0] == "Z"

    def returned():
        client = Client(t.service.address)
        try:
            return client.bus("NameHasOwner", "s", client.name)[0]
        finally:
            client.close()

    until(lambda: ended() or returned(), 10)
    found = "it came back" if returned() else "it ended" if ended() else "it runs on without a bus"
    if not returned():
        t.service.restart()
    t.bus = t.client()
    items = t.search(t.mark)
    t.equal(len(items), 1, "items")
    t.equal(t.secret(items.pop()), b"stays", "the secret")
    t.true("without" not in found, found)
    return found


@fault("collections", MUST, "kill -9 of the service: its collections, their labels, aliases and items are there after the next start")
def collections(t):
    private(t)
    without_prompts(t)
    path = t.new_collection("conformance ✓", "conformance_alias")
    item = t.create(b"stays", collection=path)
    t.service.restart()
    t.bus = t.client()
    t.true(path in t.bus.get(ROOT, SERVICE, "Collections"), "it is not in Collections")
    t.equal(t.label(path, COLLECTION), "conformance ✓", "Label")
    t.equal(t.bus.call(ROOT, SERVICE, "ReadAlias", "s", "conformance_alias")[0], path, "ReadAlias")
    t.equal(t.search(t.mark, path), {item}, "SearchItems of the collection")
    t.equal(t.secret(item), b"stays", "the secret")


WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from conformance.bus import *
from conformance.transfer import Session
client = Client(sys.argv[2])
session = Session.open(client)
path = client.call(ROOT, SERVICE, "ReadAlias", "s", "default")[0]
number = 0
while True:
    properties = {f"{ITEM}.Label": ("s", "x"), f"{ITEM}.Attributes": ("a{ss}", {sys.argv[3]: sys.argv[4], "n": str(number)})}
    client.call(path, COLLECTION, "CreateItem", "a{sv}(oayays)b", properties, session.encode(b"%d" % number), False)
    print(number, flush=True)
    number += 1
"""


@fault("client-killed", MUST, "kill -9 of a client while it creates items, five times: its acknowledged items are there, the rest whole")
def client_killed(t):
    chance = random.Random(SEED)
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    name = "conformance-case"
    acknowledged = 0
    without_prompts(t)
    for round_number in range(5):
        mark = f"{t.mark[name]}-{round_number}"
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, folder, t.service.address, name, mark], stdout=subprocess.PIPE, text=True
        )
        lines = [writer.stdout.readline() for _ in range(chance.randrange(1, 20))]
        writer.kill()
        lines += writer.stdout.readlines()
        writer.wait()
        writer.stdout.close()
        session = t.session()
        for line in filter(None, (line.strip() for line in lines)):
            found = t.search({name: mark, "n": line})
            t.equal(len(found), 1, f"items of number {line}")
            t.equal(t.secret(found.pop(), session), line.encode(), "the secret")
            acknowledged += 1
        for item in t.search({name: mark}):
            t.secret(item, session)
            t.delete(item)
    return f"{acknowledged} acknowledged items"


@fault("sessions-left", MUST, "10,000 sessions that clients open and leave, after the first 10,000, cost no descriptors and at most 32 MiB")
def sessions_left(t):
    process = t.service.owner()

    def open_some(count):
        client = Client(t.service.address)
        public = (4).to_bytes(128, "big")
        for number in range(count):
            if number % 2:
                client.send(ROOT, SERVICE, "OpenSession", "sv", PLAIN, ("s", ""))
            else:
                client.send(ROOT, SERVICE, "OpenSession", "sv", DH, ("ay", public))
        client.ping()
        client.close()

    for _ in range(50):
        open_some(200)
    t.bus.ping()
    memory, files = resident(process), descriptors(process)
    for _ in range(50):
        open_some(200)
    t.bus.ping()
    until(lambda: resident(process) <= memory + 32 and descriptors(process) <= files, 5)
    more, more_files = resident(process) - memory, descriptors(process) - files
    t.true(more <= 32, f"{more:.1f} MiB more")
    t.true(more_files <= 0, f"{more_files} descriptors more")
    return f"{max(more, 0):.1f} MiB more" + ("" if files else "; this user can't see the descriptors of the service")


@fault("clients-200", MUST, "200 clients at once store, find and read an item each")
def clients_200(t):
    clients = [t.client() for _ in range(200)]
    sessions = [Session.open(client, PLAIN) for client in clients]
    path, serials = t.default, []
    for number, session in enumerate(sessions):
        properties = {
            f"{ITEM}.Label": ("s", "conformance"), f"{ITEM}.Attributes": ("a{ss}", {**t.mark, "number": str(number)}),
        }
        serials.append(session.client.send(
            path, COLLECTION, "CreateItem", "a{sv}(oayays)b", properties, session.encode(f"{number}".encode()), False
        ))
    for number, session in enumerate(sessions):
        item, prompt = session.client.answer(serials[number], 60)
        if prompt != "/":
            t.skip("CreateItem gives a prompt")
        t.equal(t.secret(item, session), f"{number}".encode(), "the secret")
    t.equal(len(t.search(t.mark)), 200, "items")


@fault("descriptors", SHOULD, "500 clients that connect, use a session and leave cost no descriptors")
def descriptors_of_clients(t):
    process = t.service.owner()
    before = descriptors(process)
    if not before:
        t.skip("this user can't see the descriptors of the service")
    for _ in range(500):
        client = Client(t.service.address)
        Session.open(client, PLAIN)
        client.close()
    t.bus.ping()
    t.true(descriptors(process) <= before + 2, f"{descriptors(process) - before} descriptors more")


@fault("idle", SHOULD, "without calls the service does not wake up: no thread runs within five seconds")
def idle(t):
    process = t.service.owner()

    def switches():
        found = {}
        for thread in os.listdir(f"/proc/{process}/task"):
            try:
                with open(f"/proc/{process}/task/{thread}/status", encoding="utf-8") as file:
                    found[thread] = sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
            except (FileNotFoundError, ProcessLookupError):
                pass  # it ended meanwhile
        return found

    t.bus.ping()
    # At first there is what follows the last call, such as the end of threads.
    for _ in range(8):
        before = switches()
        time.sleep(5)  # the time that is measured
        after = switches()
        if after == before:
            return
    t.equal(after, before, "context switches of the threads")
