"""A prompter for gnome-keyring: answers its questions for a password as a person at a screen would.

The interface is org.gnome.keyring.internal.Prompter of GNOME's gcr; passwords cross the bus encrypted.
"""

import base64
import os
import threading

from jeepney import DBusAddress, MessageType, new_error, new_method_call, new_method_return
from jeepney.low_level import HeaderFields

from .bus import Client
from .transfer import PRIME_1536, derive, encrypt

CALLBACK = "org.gnome.keyring.internal.Prompter.Callback"


class GnomePrompter:
    def __init__(self, address, password):
        self.password = password
        self.accept = True
        self.ending = False
        self.client = Client(address)
        self.client.bus("RequestName", "su", "org.gnome.keyring.SystemPrompter", 4)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def close(self):
        self.ending = True
        self.thread.join()
        self.client.close()

    def serve(self):
        connection = self.client.connection
        while not self.ending:
            try:
                message = connection.receive(timeout=0.2)
            except TimeoutError:
                continue
            except OSError:
                return  # the bus ended
            if message.header.message_type is MessageType.method_call:
                self.called(connection, message)

    def called(self, connection, message):
        fields = message.header.fields
        member, sender = fields.get(HeaderFields.member), fields.get(HeaderFields.sender)
        if member not in ("BeginPrompting", "PerformPrompt", "StopPrompting"):
            connection.send(new_error(message, "org.freedesktop.DBus.Error.UnknownMethod"))
            return
        connection.send(new_method_return(message))
        path = message.body[0]
        if member == "BeginPrompting":
            self.back(sender, path, "PromptReady", "sa{sv}s", "", {}, "")
        elif member == "StopPrompting":
            self.back(sender, path, "PromptDone", "")
        else:
            self.answer(sender, path, message.body[1], message.body[3])

    def answer(self, sender, path, kind, exchange):
        if not self.accept:
            self.back(sender, path, "PromptReady", "sa{sv}s", "no", {}, "")
        elif kind == "password":
            self.back(sender, path, "PromptReady", "sa{sv}s", "yes", {}, self.encode(exchange))
        else:
            self.back(sender, path, "PromptReady", "sa{sv}s", "yes", {}, "")

    def back(self, sender, path, member, signature, *body):
        address = DBusAddress(path, sender, CALLBACK)
        self.client.connection.send(new_method_call(address, member, signature or None, body))

    def encode(self, exchange):
        """The password, for the key that the exchange agrees on."""
        values = dict(line.split("=", 1) for line in exchange.splitlines() if "=" in line)
        theirs = int.from_bytes(base64.b64decode(values["public"]), "big")
        private = int.from_bytes(os.urandom(192), "big")
        key = derive(pow(theirs, private, PRIME_1536), 192)
        iv = os.urandom(16)
        parts = {
            "public": pow(2, private, PRIME_1536).to_bytes(192, "big"),
            "secret": encrypt(key, iv, self.password.encode()),
            "iv": iv,
        }
        lines = [f"{name}={base64.b64encode(value).decode()}" for name, value in parts.items()]
        return "\n".join(["[sx-aes-1]", *lines, ""])
