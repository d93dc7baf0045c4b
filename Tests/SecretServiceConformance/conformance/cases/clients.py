"""Several clients at once, and clients that misbehave."""

import socket
import threading
import time

from jeepney import DBusAddress, MessageFlag, new_method_call

from ..bus import COLLECTION, ITEM, ROOT, SERVICE, CallError
from ..suite import MUST, SHOULD, case
from ..transfer import PLAIN


@case("clients.two", MUST, "6 Sessions", "what one client stores, another finds and reads")
def two(t):
    other = t.client()
    item = t.create(b"shared")
    t.equal(t.secret(item, t.session(client=other)), b"shared", "the secret")


@case("clients.two.signals", MUST, "Collection: ItemCreated, ItemChanged, ItemDeleted",
      "another client gets the signals of a change")
def two_signals(t):
    other = t.client()
    path = t.default
    item = t.create()
    other.signal("ItemCreated", path=path, argument=item)
    t.bus.set(item, ITEM, "Label", "s", "other")
    other.signal("ItemChanged", path=path, argument=item)
    t.delete(item)
    other.signal("ItemDeleted", path=path, argument=item)


@case("clients.parallel", MUST, "robustness", "eight clients create, read and delete 20 items each at the same time")
def parallel(t):
    path, failures = t.default, []

    def work(client, number):
        try:
            session = t.session(client=client)
            for step in range(20):
                value = f"{number}/{step}".encode()
                item = t.create(value, attributes={"client": str(number), "step": str(step)}, session=session, collection=path)
                if t.secret(item, session) != value:
                    failures.append(f"client {number} read another value")
                if step % 2:
                    t.delete(item, client)
        except Exception as error:  # noqa: BLE001
            failures.append(f"client {number}: {error}")

    threads = [threading.Thread(target=work, args=(t.client(), number)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    t.equal(failures[:3], [], "failures")
    t.equal(len(t.search(t.mark, path)), 80, "items")


@case("clients.replace-race", MUST, "Collection: CreateItem: replace",
      "four clients replace the same item at the same time: one item is left, with one of the secrets")
def replace_race(t):
    clients = [t.client() for _ in range(4)]
    sessions = [t.session(client=client) for client in clients]
    path = t.default
    properties = {f"{ITEM}.Label": ("s", "conformance"), f"{ITEM}.Attributes": ("a{ss}", t.mark)}
    waiting = []
    for round_number in range(10):
        for number, session in enumerate(sessions):
            serial = session.client.send(
                path, COLLECTION, "CreateItem", "a{sv}(oayays)b", properties,
                session.encode(f"{round_number}/{number}".encode()), True,
            )
            waiting.append((session.client, serial))
    for client, serial in waiting:
        if client.answer(serial)[1] != "/":
            t.skip("CreateItem gives a prompt")
    items = t.search(t.mark)
    t.equal(len(items), 1, "items")
    t.true(t.secret(items.pop()).startswith(b"9/"), "the secret is none of the last")


@case("clients.pipelined", MUST, "D-Bus specification: message ordering",
      "200 calls that are sent without waiting are answered, each with its own answer")
def pipelined(t):
    session = t.session()
    items = [t.create(f"{number}".encode(), attributes={"n": str(number)}, session=session) for number in range(20)]
    serials = [
        (number % 20, t.bus.send(items[number % 20], ITEM, "GetSecret", "o", session.path)) for number in range(200)
    ]
    for number, serial in serials:
        t.equal(session.decode(t.bus.answer(serial)[0]), f"{number}".encode(), "the secret")


@case("clients.order", SHOULD, "D-Bus specification: message ordering",
      "calls of one client take effect in the order in which they were sent")
def order(t):
    session = t.session()
    item = t.create(session=session)
    for number in range(50):
        write = t.bus.send(item, ITEM, "SetSecret", "(oayays)", session.encode(f"{number}".encode()))
        read = t.bus.send(item, ITEM, "GetSecret", "o", session.path)
        t.bus.answer(write)
        t.equal(session.decode(t.bus.answer(read)[0]), f"{number}".encode(), "the secret")


@case("clients.vanish", MUST, "robustness", "clients that vanish after a call, before its answer, disturb no other client")
def vanish(t):
    path = t.default
    for number in range(20):
        client = t.client()
        session = t.session(client=client)
        client.send(
            path, COLLECTION, "CreateItem", "a{sv}(oayays)b",
            {f"{ITEM}.Attributes": ("a{ss}", {**t.mark, "n": str(number)})}, session.encode(b"x"), False,
        )
        client.connection.sock.shutdown(socket.SHUT_RDWR)
        client.close()
        t.clients.remove(client)
    item = t.create(b"after")
    t.equal(t.secret(item), b"after", "the secret")
    for found in t.search(t.mark) - {item}:
        t.equal(t.secret(found), b"x", "the secret of an item whose client vanished")


@case("clients.stops-reading", MUST, "robustness",
      "a client that sends calls and reads no answer delays no other: each other answer comes within the limit")
def stops_reading(t):
    client = t.client()
    session = t.session(PLAIN, client)
    item = t.create(b"x" * 60000, session=session)
    client.connection.sock.setblocking(False)
    try:
        for _ in range(2000):
            client.send(item, ITEM, "GetSecret", "o", session.path)
    except BlockingIOError:
        pass  # the bus takes no more of it
    began = time.monotonic()
    for number in range(10):
        t.equal(t.secret(t.create(b"y", attributes={"n": str(number)})), b"y", "the secret")
    return f"10 items in {time.monotonic() - began:.2f} s"


@case("clients.no-reply", SHOULD, "D-Bus specification: NO_REPLY_EXPECTED",
      "a call that wants no reply has its effect")
def no_reply(t):
    item = t.create(label="before")
    address = DBusAddress(item, bus_name=t.bus.name, interface="org.freedesktop.DBus.Properties")
    message = new_method_call(address, "Set", "ssv", (ITEM, "Label", ("s", "after")))
    message.header.flags |= MessageFlag.no_reply_expected
    t.bus.connection.send(message)
    t.equal(t.label(item), "after", "Label")


@case("clients.large-message", SHOULD, "robustness",
      "a secret of 4 MiB is stored whole, or refused with an error; the service goes on")
def large_message(t):
    value = b"0123456789abcdef" * (4 << 16)
    session = t.session(PLAIN)
    try:
        item = t.create(value, session=session, content_type="application/octet-stream")
    except CallError as error:
        t.equal(t.search(t.mark), set(), "items after the error")
        return f"refused: {error}"
    t.true(t.secret(item, session) == value, "the secret is another")
    return "stored"


@case("clients.search-while-writing", MUST, "robustness",
      "a search while another client writes finds each item that was there before and stays")
def search_while_writing(t):
    stays = {t.create(attributes={"stays": "yes", "n": str(number)}) for number in range(5)}
    other = t.client()
    session = t.session(client=other)
    path, ending = t.default, threading.Event()

    def write():
        while not ending.is_set():
            item = t.create(b"x", attributes={"goes": "yes"}, session=session, collection=path)
            t.delete(item, other)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(50):
            unlocked, _ = t.bus.call(ROOT, SERVICE, "SearchItems", "a{ss}", t.mark)
            t.true(stays <= set(unlocked), "an item is missing")
    finally:
        ending.set()
        thread.join()
