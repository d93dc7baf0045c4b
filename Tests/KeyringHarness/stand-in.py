"""A Secret Service with one collection and one item, that does what real ones can't be made to do in a test.

stand-in.py [plain] [open] [prompt|dismiss] [COUNT]
  COUNT    has so many items: accounts A, A2, A3…
  plain    knows no encrypted session
  prompt   is locked, and its window is answered at once; dismiss: closed at once; open: is not locked yet
  foreign  is no Secret Service, and has the name of one
  fresh    has no collection before one is made, which takes a window that is answered at once
Signals report only that the item is gone.
"""
import sys

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

ROOT = "/org/freedesktop/secrets"
COLLECTION = ROOT + "/collection/c"
SECRET = "org.freedesktop.Secret."
PROPERTIES = "org.freedesktop.DBus.Properties"

dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
words = sys.argv[1:]
paths = [COLLECTION + "/%d" % number for number in range(1, max([1, *(int(w) for w in words if w.isdigit())]) + 1)]
asks = "prompt" in words or "dismiss" in words
state = {
    "locked": asks and "open" not in words,
    "secret": b"s3cret",
    "items": [] if "fresh" in words else list(paths),
    "made": "fresh" not in words,
    "default": ROOT + "/collection/c" if "fresh" not in words else "/",
}


class Refusal(dbus.DBusException):
    _dbus_error_name = "org.freedesktop.DBus.Error.NotSupported"


class IsLocked(dbus.DBusException):
    _dbus_error_name = SECRET + "Error.IsLocked"


def properties(interface, path):
    if interface == SECRET + "Service":
        return {"Collections": objects_of([COLLECTION] if state["made"] else [])}
    if interface == SECRET + "Collection":
        return {"Label": "c", "Locked": state["locked"], "Items": objects_of(state["items"])}
    attributes = dbus.Dictionary({"service": "S", "account": account(path)}, "ss")
    times = {"Created": dbus.UInt64(1), "Modified": dbus.UInt64(1)}
    return {"Label": "item", "Locked": state["locked"], "Attributes": attributes, **times}


def account(path):
    number = path.rpartition("/")[2]
    return "A" + ("" if number == "1" else number)


def objects_of(items):
    return dbus.Array(map(dbus.ObjectPath, items), "o")


class Object(dbus.service.Object):
    @dbus.service.method(PROPERTIES, in_signature="ss", out_signature="v", path_keyword="path")
    def Get(self, interface, name, path):
        return properties(interface, path)[name]

    @dbus.service.method(PROPERTIES, in_signature="s", out_signature="a{sv}", path_keyword="path")
    def GetAll(self, interface, path):
        return properties(interface, path)

    @dbus.service.method(PROPERTIES, in_signature="ssv")
    def Set(self, interface, name, value):
        require_unlocked()


class Service(Object):
    @dbus.service.method(SECRET + "Service", in_signature="sv", out_signature="vo")
    def OpenSession(self, algorithm, _):
        if algorithm != "plain":
            raise Refusal("only plain")
        return dbus.String("", variant_level=1), dbus.ObjectPath(ROOT + "/session/1")

    @dbus.service.method(SECRET + "Service", in_signature="a{ss}", out_signature="aoao")
    def SearchItems(self, wanted):
        has = {"service": "S"}
        found = [path for path in state["items"] if not wanted.items() - (has | {"account": account(path)}).items()]
        nothing = dbus.Array([], "o")
        return (nothing, objects_of(found)) if state["locked"] else (objects_of(found), nothing)

    @dbus.service.method(SECRET + "Service", in_signature="aoo", out_signature="a{o(oayays)}")
    def GetSecrets(self, items, session):
        found = {} if state["locked"] else {item: secret(session) for item in items}
        return dbus.Dictionary(found, "o(oayays)")

    @dbus.service.method(SECRET + "Service", in_signature="ao", out_signature="aoo")
    def Unlock(self, _):
        return dbus.Array([], "o"), dbus.ObjectPath(ROOT + "/prompt/1")

    @dbus.service.method(SECRET + "Service", in_signature="s", out_signature="o")
    def ReadAlias(self, name):
        return dbus.ObjectPath(state["default"] if name == "default" else "/")

    @dbus.service.method(SECRET + "Service", in_signature="a{sv}s", out_signature="oo")
    def CreateCollection(self, properties, alias):
        if "barren" in words:
            raise Refusal("no collection is made here")
        if not properties.get(SECRET + "Collection.Label") or alias != "default":
            raise Refusal("a label and the alias are wanted")
        return dbus.ObjectPath("/"), dbus.ObjectPath(ROOT + "/prompt/make")

    @dbus.service.signal(SECRET + "Service", signature="o")
    def CollectionCreated(self, path):
        pass

    @dbus.service.method(SECRET + "Service", in_signature="ao", out_signature="aoo")
    def Lock(self, paths):
        state["locked"] = True
        return paths, dbus.ObjectPath("/")


class Collection(Object):
    @dbus.service.method(SECRET + "Collection", in_signature="a{sv}(oayays)b", out_signature="oo")
    def CreateItem(self, properties, secret, replace):
        state["secret"] = bytes(secret[2])
        state["items"].append(paths[0])
        self.ItemCreated(dbus.ObjectPath(paths[0]))
        return dbus.ObjectPath(paths[0]), dbus.ObjectPath("/")

    @dbus.service.signal(SECRET + "Collection", signature="o")
    def ItemCreated(self, item):
        pass

    @dbus.service.signal(SECRET + "Collection", signature="o")
    def ItemDeleted(self, item):
        pass


class Item(Object):
    @dbus.service.method(SECRET + "Item", in_signature="o", out_signature="(oayays)")
    def GetSecret(self, session):
        require_unlocked()
        return secret(session)

    @dbus.service.method(SECRET + "Item", in_signature="(oayays)")
    def SetSecret(self, secret):
        require_unlocked()
        state["secret"] = bytes(secret[2])

    @dbus.service.method(SECRET + "Item", out_signature="o", path_keyword="path")
    def Delete(self, path):
        if state["locked"]:
            return dbus.ObjectPath(ROOT + "/prompt/delete" + path.rpartition("/")[2])
        delete(path)
        return dbus.ObjectPath("/")


class Prompt(dbus.service.Object):
    @dbus.service.method(SECRET + "Prompt", in_signature="s", path_keyword="path")
    def Prompt(self, _, path):
        if path.endswith("/make"):
            GLib.idle_add(self.make)
            return
        GLib.idle_add(self.answer, path.partition("delete")[2])

    def make(self):
        dismissed = "dismiss" in words
        if not dismissed:
            state["made"], state["default"] = True, COLLECTION
            service.CollectionCreated(dbus.ObjectPath(COLLECTION))
        path = "/" if dismissed else COLLECTION
        self.Completed(dismissed, dbus.ObjectPath(path, variant_level=1))

    def answer(self, number):
        dismissed = "dismiss" in words
        if number and not dismissed:
            delete(COLLECTION + "/" + number)
        elif not number:
            state["locked"] = dismissed
        self.Completed(dismissed, dbus.Array([dbus.ObjectPath(COLLECTION)], "o", variant_level=1))

    @dbus.service.signal(SECRET + "Prompt", signature="bv")
    def Completed(self, dismissed, result):
        pass


def require_unlocked():
    if state["locked"]:
        raise IsLocked("locked")


def delete(path):
    state["items"].remove(path)
    collection.ItemDeleted(dbus.ObjectPath(path))


def secret(session):
    return dbus.Struct(
        (session, dbus.ByteArray(b""), dbus.ByteArray(state["secret"]), "text/plain"), signature="oayays")


bus = dbus.SessionBus()
if "foreign" not in words:
    service = Service(bus, ROOT)
collection = Collection(bus, COLLECTION)
items = [Item(bus, path) for path in paths]
prompts = [Prompt(bus, ROOT + "/prompt/" + name) for name in ("1", "delete1", "make")]
name = dbus.service.BusName("org.freedesktop.secrets", bus)
print("ready", flush=True)
GLib.MainLoop().run()
