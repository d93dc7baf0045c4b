"""A Secret Service with one collection and one item, that does what real ones can't be made to do in a test.

stand-in.py [plain] [prompt|dismiss]
  plain    knows no encrypted session
  prompt   is locked, and its window is answered at once; dismiss: closed at once
"""
import sys

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

ROOT = "/org/freedesktop/secrets"
COLLECTION = ROOT + "/collection/c"
ITEM = COLLECTION + "/1"
SECRET = "org.freedesktop.Secret."
PROPERTIES = "org.freedesktop.DBus.Properties"

dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
words = sys.argv[1:]
state = {"locked": "prompt" in words or "dismiss" in words}


class Refusal(dbus.DBusException):
    _dbus_error_name = "org.freedesktop.DBus.Error.NotSupported"


def properties(interface):
    if interface == SECRET + "Service":
        return {"Collections": dbus.Array([dbus.ObjectPath(COLLECTION)], "o")}
    if interface == SECRET + "Collection":
        return {"Label": "c", "Locked": state["locked"], "Items": dbus.Array([dbus.ObjectPath(ITEM)], "o")}
    attributes = dbus.Dictionary({"service": "S", "account": "A"}, "ss")
    times = {"Created": dbus.UInt64(1), "Modified": dbus.UInt64(1)}
    return {"Label": "item", "Locked": state["locked"], "Attributes": attributes, **times}


class Object(dbus.service.Object):
    @dbus.service.method(PROPERTIES, in_signature="ss", out_signature="v")
    def Get(self, interface, name):
        return properties(interface)[name]

    @dbus.service.method(PROPERTIES, in_signature="s", out_signature="a{sv}")
    def GetAll(self, interface):
        return properties(interface)


class Service(Object):
    @dbus.service.method(SECRET + "Service", in_signature="sv", out_signature="vo")
    def OpenSession(self, algorithm, _):
        if algorithm != "plain":
            raise Refusal("only plain")
        return dbus.String("", variant_level=1), dbus.ObjectPath(ROOT + "/session/1")

    @dbus.service.method(SECRET + "Service", in_signature="aoo", out_signature="a{o(oayays)}")
    def GetSecrets(self, items, session):
        found = {} if state["locked"] else {item: secret(session) for item in items}
        return dbus.Dictionary(found, "o(oayays)")

    @dbus.service.method(SECRET + "Service", in_signature="ao", out_signature="aoo")
    def Unlock(self, _):
        return dbus.Array([], "o"), dbus.ObjectPath(ROOT + "/prompt/1")

    @dbus.service.method(SECRET + "Service", in_signature="ao", out_signature="aoo")
    def Lock(self, paths):
        state["locked"] = True
        return paths, dbus.ObjectPath("/")


class Item(Object):
    @dbus.service.method(SECRET + "Item", in_signature="o", out_signature="(oayays)")
    def GetSecret(self, session):
        return secret(session)


class Prompt(dbus.service.Object):
    @dbus.service.method(SECRET + "Prompt", in_signature="s")
    def Prompt(self, _):
        GLib.idle_add(self.answer)

    def answer(self):
        state["locked"] = "dismiss" in words
        self.Completed(state["locked"], dbus.Array([dbus.ObjectPath(COLLECTION)], "o", variant_level=1))

    @dbus.service.signal(SECRET + "Prompt", signature="bv")
    def Completed(self, dismissed, result):
        pass


def secret(session):
    return dbus.Struct(
        (session, dbus.ByteArray(b""), dbus.ByteArray(b"s3cret"), "text/plain"), signature="oayays")


bus = dbus.SessionBus()
objects = [kind(bus, path) for kind, path in [
    (Service, ROOT), (Object, COLLECTION), (Item, ITEM), (Prompt, ROOT + "/prompt/1")]]
name = dbus.service.BusName("org.freedesktop.secrets", bus)
print("ready", flush=True)
GLib.MainLoop().run()
