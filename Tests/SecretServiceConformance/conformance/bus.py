"""A client of the session bus that keeps every signal and can be made to stop reading."""

import os
import time
from collections import deque

from jeepney import DBusAddress, MessageType, new_method_call
from jeepney.io.blocking import DBusConnection, prep_socket
from jeepney.low_level import HeaderFields

NAME = "org.freedesktop.secrets"
ROOT = "/org/freedesktop/secrets"
SERVICE = "org.freedesktop.Secret.Service"
COLLECTION = "org.freedesktop.Secret.Collection"
ITEM = "org.freedesktop.Secret.Item"
SESSION = "org.freedesktop.Secret.Session"
PROMPT = "org.freedesktop.Secret.Prompt"
PROPERTIES = "org.freedesktop.DBus.Properties"
INTROSPECTABLE = "org.freedesktop.DBus.Introspectable"
PEER = "org.freedesktop.DBus.Peer"

IS_LOCKED = "org.freedesktop.Secret.Error.IsLocked"
NO_SESSION = "org.freedesktop.Secret.Error.NoSession"
NO_SUCH_OBJECT = "org.freedesktop.Secret.Error.NoSuchObject"
NOT_SUPPORTED = "org.freedesktop.DBus.Error.NotSupported"
INVALID_ARGS = "org.freedesktop.DBus.Error.InvalidArgs"
UNKNOWN_METHOD = "org.freedesktop.DBus.Error.UnknownMethod"
UNKNOWN_OBJECT = "org.freedesktop.DBus.Error.UnknownObject"
UNKNOWN_INTERFACE = "org.freedesktop.DBus.Error.UnknownInterface"
UNKNOWN_PROPERTY = "org.freedesktop.DBus.Error.UnknownProperty"
READ_ONLY = "org.freedesktop.DBus.Error.PropertyReadOnly"

# Seconds that a service has for an answer that needs no person.
PATIENCE = float(os.environ.get("CONFORMANCE_PATIENCE", "20"))


class CallError(Exception):
    """An error that was the answer to a call."""

    def __init__(self, name, text):
        super().__init__(f"{name}: {text}" if text else name)
        self.name = name
        self.text = text


class NoAnswer(Exception):
    """Neither an answer nor an error within the time limit."""


class Client:
    """One connection to a bus."""

    def __init__(self, address, name=NAME):
        self.name = name
        path = address.split("unix:path=", 1)[-1].split("unix:abstract=", 1)[-1].split(",")[0].split(";")[0]
        if "unix:abstract=" in address:
            path = "\0" + path
        self.connection = DBusConnection(prep_socket(path, timeout=PATIENCE))
        self.signals = []
        self.replies = {}
        self.bus("AddMatch", "s", f"type='signal',sender='{name}'")

    @property
    def unique_name(self):
        return self.connection.unique_name

    def close(self):
        self.connection.close()

    # Calls

    def send(self, path, interface, member, signature="", *body):
        """Sends a call and returns its serial."""
        address = DBusAddress(path, bus_name=self.name, interface=interface)
        serial = next(self.connection.outgoing_serial)
        self.connection.send(new_method_call(address, member, signature, body), serial=serial)
        return serial

    def answer(self, serial, timeout=None):
        """The body of the answer to a call. Raises CallError or NoAnswer."""
        deadline = time.monotonic() + (timeout or PATIENCE)
        while serial not in self.replies:
            self.receive(deadline)
        message = self.replies.pop(serial)
        if message.header.message_type is MessageType.error:
            text = message.body[0] if message.body and isinstance(message.body[0], str) else ""
            raise CallError(message.header.fields[HeaderFields.error_name], text)
        return message.body

    def call(self, path, interface, member, signature="", *body, timeout=None):
        return self.answer(self.send(path, interface, member, signature, *body), timeout)

    def bus(self, member, signature="", *body):
        """A call to the bus itself."""
        address = DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")
        serial = next(self.connection.outgoing_serial)
        self.connection.send(new_method_call(address, member, signature, body), serial=serial)
        return self.answer(serial)

    def receive(self, deadline):
        """Takes one message: an answer or a signal."""
        try:
            message = self.connection.receive(timeout=max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            raise NoAnswer("no message within the time limit") from None
        kind = message.header.message_type
        if kind is MessageType.signal:
            self.signals.append(message)
        elif kind in (MessageType.method_return, MessageType.error):
            self.replies[message.header.fields[HeaderFields.reply_serial]] = message

    def ping(self):
        """Returns when the service has answered: a Ping of Peer may be answered by its library, before other calls."""
        self.call(ROOT, SERVICE, "ReadAlias", "s", "default")

    # Properties

    def get(self, path, interface, name):
        return self.call(path, PROPERTIES, "Get", "ss", interface, name)[0][1]

    def signature_of(self, path, interface, name):
        return self.call(path, PROPERTIES, "Get", "ss", interface, name)[0][0]

    def get_all(self, path, interface):
        return {name: value for name, (_, value) in self.call(path, PROPERTIES, "GetAll", "s", interface)[0].items()}

    def set(self, path, interface, name, signature, value):
        self.call(path, PROPERTIES, "Set", "ssv", interface, name, (signature, value))

    # Signals

    def clear_signals(self):
        self.signals.clear()

    def signal(self, member, path=None, argument=None, timeout=None, interface=None):
        """The body of the next signal that fits, which is taken out of the list. Raises NoAnswer."""
        deadline = time.monotonic() + (timeout or PATIENCE)
        seen = 0
        while True:
            for message in self.signals[seen:]:
                fields = message.header.fields
                if (
                    fields.get(HeaderFields.member) == member
                    and path in (None, fields.get(HeaderFields.path))
                    and interface in (None, fields.get(HeaderFields.interface))
                    and (argument is None or (message.body and message.body[0] == argument))
                ):
                    self.signals.remove(message)
                    return message.body
            seen = len(self.signals)
            try:
                self.receive(deadline)
            except NoAnswer:
                raise NoAnswer(f"no signal {member} within {timeout or PATIENCE:g} s") from None

    def signals_named(self, member):
        """The bodies of the signals that have arrived, after an answer of the service that follows them."""
        try:
            self.ping()
        except CallError:
            pass
        return [
            message.body for message in self.signals if message.header.fields.get(HeaderFields.member) == member
        ]
