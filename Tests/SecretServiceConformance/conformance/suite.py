"""Cases, how one is run, and what it may use."""

import time
import uuid

from .bus import COLLECTION, ITEM, NOT_SUPPORTED, PROMPT, ROOT, SERVICE, CallError, Client, NoAnswer
from .transfer import DH, Session

MUST, SHOULD, HABIT = "must", "should", "habit"

CASES = []
# Cases of what goes wrong around a service: they end it, its clients and its bus.
FAULTS = []


class Case:
    def __init__(self, identifier, level, source, expected, function):
        self.identifier = identifier
        self.level = level
        self.source = source
        self.expected = expected
        self.function = function


class Result:
    """The result of a case: its status is `ok`, `failed` or `skipped`."""

    def __init__(self, case, status, found, seconds):
        self.case = case
        self.status = status
        self.found = found
        self.seconds = seconds


class Failed(Exception):
    """A case found something else than it expects."""


class Skipped(Exception):
    """A case can't be run on this service, such as one that needs a person."""


def case(identifier, level, source, expected, cases=CASES):
    """Makes a function a case. `source` is the section of the draft, or the habit of a client."""

    def add(function):
        cases.append(Case(identifier, level, source, expected, function))
        return function

    return add


class Context:
    """The surroundings of a case: a connection, items that are removed after it, and comparisons."""

    def __init__(self, service):
        self.service = service
        self.mark = {"conformance-run": service.run, "conformance-case": uuid.uuid4().hex}
        self.clients = []
        self.later = []
        self.bus = self.client()

    # Connections and sessions

    def client(self):
        client = Client(self.service.address)
        self.clients.append(client)
        return client

    def session(self, algorithm=DH, client=None):
        return Session.open(client or self.bus, algorithm)

    # Collections

    @property
    def default(self):
        path = self.bus.call(ROOT, SERVICE, "ReadAlias", "s", "default")[0]
        if path == "/":
            raise Failed("the alias default names no collection")
        return path

    def new_collection(self, label="conformance", alias="", optional=True):
        """Creates a collection, which is deleted after the case.

        Skips where that needs a person and, if it is `optional`, where the service has no further collections.
        """
        try:
            path, prompt = self.bus.call(
                ROOT, SERVICE, "CreateCollection", "a{sv}s", {f"{COLLECTION}.Label": ("s", label)}, alias
            )
        except CallError as error:
            if error.name != NOT_SUPPORTED or not optional:
                raise
            raise Skipped("the service creates no collections") from None
        if prompt != "/":
            path = self.complete(prompt)[1]
        self.later.append(lambda: self.delete_collection(path))
        return path

    def delete_collection(self, path):
        try:
            prompt = self.bus.call(path, COLLECTION, "Delete")[0]
            if prompt != "/":
                self.complete(prompt)
        except CallError:
            pass  # it is gone

    # Prompts

    def complete(self, prompt, accept=True, client=None, person=True):
        """Performs a prompt and returns its result (signature, value). Skips where it needs a person.

        `person` is false where a service may give a prompt that it completes by itself, as KeePassXC does.
        """
        if not self.service.answers_prompts:
            return self.complete_by_itself(prompt, client or self.bus, person)
        dismissed, result = self.perform(prompt, accept, client)
        if dismissed == accept:
            raise Failed(f"Completed says dismissed = {dismissed}")
        return result

    def complete_by_itself(self, prompt, client, person):
        """Performs a prompt of a service whose questions the suite can't answer."""
        if not person:
            client.call(prompt, PROMPT, "Prompt", "s", "")
            try:
                dismissed, result = client.signal("Completed", path=prompt, timeout=5)
                if dismissed:
                    raise Failed("Completed says dismissed = True")
                return result
            except NoAnswer:
                pass  # it waits for a person
        self.dismiss(prompt, client)
        raise Skipped("the service asks a person, and its prompts can't be answered by the suite")

    def perform(self, prompt, accept, client=None):
        client = client or self.bus
        self.service.will_answer(accept)
        client.call(prompt, PROMPT, "Prompt", "s", "")
        return client.signal("Completed", path=prompt)

    def dismiss(self, prompt, client=None):
        try:
            (client or self.bus).call(prompt, PROMPT, "Dismiss")
        except CallError:
            pass

    # Items

    def create(
        self, secret=b"secret", label="conformance", attributes=None, replace=False, collection=None, session=None,
        content_type="text/plain", client=None,
    ):
        """Creates an item that is removed after the case, and returns its path."""
        client = client or (session.client if session else self.bus)
        session = session or self.session(client=client)
        properties = {
            f"{ITEM}.Label": ("s", label),
            f"{ITEM}.Attributes": ("a{ss}", {**self.mark, **(attributes or {})}),
        }
        return self.create_with(properties, session.encode(secret, content_type), replace, collection, client)

    def create_with(self, properties, secret, replace=False, collection=None, client=None):
        """Creates an item of these properties and this encoded secret, and returns its path."""
        client = client or self.bus
        item, prompt = client.call(
            collection or self.default, COLLECTION, "CreateItem", "a{sv}(oayays)b", properties, secret, replace
        )
        if prompt != "/":
            item = self.complete(prompt, client=client, person=False)[1]
        return item

    def secret(self, item, session=None):
        session = session or self.session()
        return session.decode(session.client.call(item, ITEM, "GetSecret", "o", session.path)[0])

    def search(self, attributes, path=None):
        """All paths that a search finds, of Service (unlocked and locked) or of the collection at `path`."""
        if path:
            return set(self.bus.call(path, COLLECTION, "SearchItems", "a{ss}", attributes)[0])
        unlocked, locked = self.bus.call(ROOT, SERVICE, "SearchItems", "a{ss}", attributes)
        return set(unlocked) | set(locked)

    def delete(self, item, client=None):
        client = client or self.bus
        prompt = client.call(item, ITEM, "Delete")[0]
        if prompt != "/":
            self.complete(prompt, client=client, person=False)

    def label(self, path, interface=ITEM):
        return self.bus.get(path, interface, "Label")

    # Locks

    def lock(self, *paths):
        """Locks collections or items; they are unlocked after the case."""
        if not self.service.may_lock:
            raise Skipped("the service is in use and would be locked")
        self.later.append(self.service.unlock_again)
        locked, prompt = self.bus.call(ROOT, SERVICE, "Lock", "ao", list(paths))
        if prompt != "/":
            locked = locked + list(self.complete(prompt)[1])
        return locked

    def lock_default(self):
        path = self.default
        self.lock(path)
        if self.bus.get(path, COLLECTION, "Locked") is not True:
            raise Failed("after Lock, Locked of the collection is false")
        return path

    def unlock(self, *paths):
        unlocked, prompt = self.bus.call(ROOT, SERVICE, "Unlock", "ao", list(paths))
        if prompt != "/":
            result = self.complete(prompt)
            unlocked = unlocked + list(result[1])
        return unlocked

    # Comparisons

    def equal(self, found, expected, what="value"):
        if found != expected:
            raise Failed(f"{what}: {short(found)} instead of {short(expected)}")

    def true(self, condition, otherwise):
        if not condition:
            raise Failed(otherwise)

    def error(self, names, path, interface, member, signature="", *body, client=None):
        """A call has to fail with one of these errors."""
        names = (names,) if isinstance(names, str) else names
        try:
            answer = (client or self.bus).call(path, interface, member, signature, *body)
        except CallError as error:
            if error.name not in names:
                raise Failed(f"{member}: the error {error}") from None
            return error
        raise Failed(f"{member}: no error; the answer is {short(answer)}")

    def create_error(self, name, properties, secret):
        """CreateItem has to fail with this error, or with any if it is None; or its prompt, with a dismissal."""
        item, prompt = "/", "/"
        try:
            item, prompt = self.bus.call(
                self.default, COLLECTION, "CreateItem", "a{sv}(oayays)b", properties, secret, False
            )
        except CallError as error:
            if name not in (None, error.name):
                raise Failed(f"CreateItem: the error {error}") from None
            return
        if prompt == "/":
            raise Failed(f"CreateItem: no error; the item is {item}")
        self.bus.call(prompt, PROMPT, "Prompt", "s", "")
        dismissed, result = self.bus.signal("Completed", path=prompt)
        if not dismissed and result[1] != "/":
            raise Failed(f"CreateItem: no error; its prompt completed with {short(result)}")

    def some_error(self, path, interface, member, signature="", *body, client=None):
        """A call has to fail, with whatever error."""
        try:
            answer = (client or self.bus).call(path, interface, member, signature, *body)
        except CallError as error:
            return error
        raise Failed(f"{member}: no error; the answer is {short(answer)}")

    def skip(self, reason):
        raise Skipped(reason)

    # Afterwards

    def clean(self):
        client = Client(self.service.address)
        try:
            for step in reversed(self.later):
                step()
            unlocked, locked = client.call(
                ROOT, SERVICE, "SearchItems", "a{ss}", {"conformance-run": self.service.run}
            )
            for item in unlocked + locked:
                try:
                    prompt = client.call(item, ITEM, "Delete")[0]
                    if prompt != "/":
                        self.complete(prompt, client=client, person=False)
                except (CallError, NoAnswer, Skipped):
                    pass  # it went meanwhile
        finally:
            client.close()
            for client in self.clients:
                client.close()


def short(value):
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:120]}… ({len(text)} characters)"


def run_case(case, service):
    """Runs a case. A service that ends, or no longer answers, is started again after it."""
    began = time.monotonic()
    context = None
    status, found = "ok", ""
    try:
        context = Context(service)
        found = case.function(context) or ""
    except Failed as error:
        status, found = "failed", str(error)
    except Skipped as error:
        status, found = "skipped", str(error)
    except NoAnswer as error:
        status, found = "failed", str(error)
    except CallError as error:
        status, found = "failed", f"the error {error}"
    except Exception as error:  # pylint: disable=broad-except  # a case of any other error has failed
        status, found = "failed", f"{type(error).__name__}: {error}"
    seconds = time.monotonic() - began
    try:
        if context:
            context.clean()
        if not service.answers():
            raise NoAnswer("the service no longer answers")
        if service.private and not service.is_open():
            service.unlock_again()
    except Exception as error:  # pylint: disable=broad-except
        if not service.answers():
            status, found = "failed", f"{found + '; ' if found else ''}afterwards the service no longer answers"
        elif status == "ok":
            found = f"{found + '; ' if found else ''}cleaning up: {error}"
        service.restart()
    return Result(case, status, found, seconds)
