"""Objects: paths, introspection, properties, and what an object answers that it does not know."""

import xml.etree.ElementTree as xml

from ..bus import (
    COLLECTION, INTROSPECTABLE, INVALID_ARGS, ITEM, NO_SUCH_OBJECT, PEER, PROMPT, PROPERTIES, READ_ONLY, ROOT,
    SERVICE, SESSION, UNKNOWN_INTERFACE, UNKNOWN_METHOD, UNKNOWN_OBJECT, UNKNOWN_PROPERTY,
)
from ..suite import HABIT, MUST, SHOULD, case

# The draft's interfaces: methods with the signatures of input and output, signals, properties with their access.
DRAFT = {
    SERVICE: (
        {
            "OpenSession": ("sv", "vo"), "CreateCollection": ("a{sv}s", "oo"), "SearchItems": ("a{ss}", "aoao"),
            "Unlock": ("ao", "aoo"), "Lock": ("ao", "aoo"), "GetSecrets": ("aoo", "a{o(oayays)}"),
            "ReadAlias": ("s", "o"), "SetAlias": ("so", ""),
        },
        {"CollectionCreated": "o", "CollectionDeleted": "o", "CollectionChanged": "o"},
        {"Collections": ("ao", "read")},
    ),
    COLLECTION: (
        {"Delete": ("", "o"), "SearchItems": ("a{ss}", "ao"), "CreateItem": ("a{sv}(oayays)b", "oo")},
        {"ItemCreated": "o", "ItemDeleted": "o", "ItemChanged": "o"},
        {
            "Items": ("ao", "read"), "Label": ("s", "readwrite"), "Locked": ("b", "read"),
            "Created": ("t", "read"), "Modified": ("t", "read"),
        },
    ),
    ITEM: (
        {"Delete": ("", "o"), "GetSecret": ("o", "(oayays)"), "SetSecret": ("(oayays)", "")},
        {},
        {
            "Locked": ("b", "read"), "Attributes": ("a{ss}", "readwrite"), "Label": ("s", "readwrite"),
            "Created": ("t", "read"), "Modified": ("t", "read"),
        },
    ),
    SESSION: ({"Close": ("", "")}, {}, {}),
    PROMPT: ({"Prompt": ("s", ""), "Dismiss": ("", "")}, {"Completed": "bv"}, {}),
}


def described(t, path):
    return xml.fromstring(t.bus.call(path, INTROSPECTABLE, "Introspect")[0])


def compare(t, path, interface):
    """The introspection of an object has the draft's interface with its signatures."""
    element = described(t, path).find(f"interface[@name='{interface}']")
    t.true(element is not None, f"the introspection of {path} has no interface {interface}")
    methods, signals, properties = DRAFT[interface]
    for name, (given, returned) in methods.items():
        method = element.find(f"method[@name='{name}']")
        t.true(method is not None, f"no method {name}")
        inputs = "".join(a.get("type") for a in method.findall("arg") if a.get("direction", "in") == "in")
        outputs = "".join(a.get("type") for a in method.findall("arg") if a.get("direction") == "out")
        t.equal((inputs, outputs), (given, returned), f"signatures of {name}")
    for name, signature in signals.items():
        found = element.find(f"signal[@name='{name}']")
        t.true(found is not None, f"no signal {name}")
        t.equal("".join(a.get("type") for a in found.findall("arg")), signature, f"signature of {name}")
    for name, (signature, access) in properties.items():
        found = element.find(f"property[@name='{name}']")
        t.true(found is not None, f"no property {name}")
        t.equal((found.get("type"), found.get("access")), (signature, access), f"property {name}")


@case("objects.introspect.service", MUST, "13 Interfaces: Service", "Introspect describes the interface Service")
def introspect_service(t):
    compare(t, ROOT, SERVICE)


@case("objects.introspect.collection", MUST, "13 Interfaces: Collection", "Introspect describes a collection")
def introspect_collection(t):
    compare(t, t.default, COLLECTION)


@case("objects.introspect.item", MUST, "13 Interfaces: Item", "Introspect describes an item")
def introspect_item(t):
    compare(t, t.create(), ITEM)


@case("objects.introspect.session", MUST, "13 Interfaces: Session", "Introspect describes a session")
def introspect_session(t):
    compare(t, t.session().path, SESSION)


@case("objects.introspect.prompt", MUST, "13 Interfaces: Prompt", "Introspect describes a prompt")
def introspect_prompt(t):
    path = t.lock_default()
    prompt = t.bus.call(ROOT, SERVICE, "Unlock", "ao", [path])[1]
    if prompt == "/":
        t.skip("Unlock needed no prompt")
    compare(t, prompt, PROMPT)
    t.dismiss(prompt)


@case("objects.introspect.standard", SHOULD, "D-Bus specification: standard interfaces",
      "Introspect names Properties and Introspectable of every object that has properties")
def introspect_standard(t):
    for path in (ROOT, t.default, t.create()):
        names = {element.get("name") for element in described(t, path).findall("interface")}
        t.true({PROPERTIES, INTROSPECTABLE} <= names, f"{path} names only {sorted(names)}")


@case("objects.introspect.children", SHOULD, "D-Bus specification: Introspectable",
      "the parents of a collection and of an item list them as child nodes")
def introspect_children(t):
    item = t.create()
    for path in (t.bus.get(ROOT, SERVICE, "Collections")[0], item):
        parent, name = path.rsplit("/", 1)
        children = {element.get("name") for element in described(t, parent).findall("node")}
        t.true(name in children, f"{parent} has no child {name}: {sorted(children)[:8]}")


@case("objects.peer.ping", MUST, "D-Bus specification: Peer", "Ping of org.freedesktop.DBus.Peer is answered")
def peer_ping(t):
    t.bus.call(ROOT, PEER, "Ping")


@case("objects.path.collections", MUST, "12 Object Paths",
      "collections are /org/freedesktop/secrets/collection/NAME")
def path_collections(t):
    collections = t.bus.get(ROOT, SERVICE, "Collections")
    t.true(collections, "Collections is empty")
    for path in collections:
        name = path.removeprefix(f"{ROOT}/collection/")
        t.true(name != path and name and "/" not in name, f"a collection is {path}")


@case("objects.path.item", MUST, "12 Object Paths", "an item is one level below its collection")
def path_item(t):
    collection, item = t.default, t.create()
    parent, name = item.rsplit("/", 1)
    t.equal(parent, collection, "the parent of the item")
    t.true(name, "the item has no name")


@case("objects.path.session", MUST, "12 Object Paths", "a session is /org/freedesktop/secrets/session/NAME")
def path_session(t):
    path = t.session().path
    t.true(path.startswith(f"{ROOT}/session/") and path.count("/") == 5, f"the session is {path}")


@case("objects.path.session-differs", MUST, "6 Sessions", "two sessions of one client have different paths")
def path_session_differs(t):
    t.true(t.session().path != t.session().path, "both have the same path")


@case("objects.path.alias-default", MUST, "12 Object Paths",
      "/org/freedesktop/secrets/aliases/default is the collection that the alias names")
def path_alias_default(t):
    t.equal(
        t.bus.get(f"{ROOT}/aliases/default", COLLECTION, "Items"), t.bus.get(t.default, COLLECTION, "Items"), "Items"
    )


@case("objects.path.alias-create", HABIT, "libsecret: secret_password_store to COLLECTION_DEFAULT",
      "CreateItem at the path aliases/default creates an item, whose path is below the collection's own")
def path_alias_create(t):
    item = t.create(collection=f"{ROOT}/aliases/default")
    t.true(item in t.bus.get(t.default, COLLECTION, "Items"), f"{item} is not in Items of {t.default}")


@case("objects.path.login", HABIT, "go-keyring, libsecret: the collection login",
      "/org/freedesktop/secrets/collection/login is a collection")
def path_login(t):
    t.bus.get(f"{ROOT}/collection/login", COLLECTION, "Label")


@case("objects.unknown.collection", MUST, "15 Errors",
      "a call to a collection that does not exist fails with NoSuchObject, or UnknownObject or UnknownMethod of D-Bus")
def unknown_collection(t):
    t.error(
        (NO_SUCH_OBJECT, UNKNOWN_OBJECT, UNKNOWN_METHOD),
        f"{ROOT}/collection/conformance_none", COLLECTION, "SearchItems", "a{ss}", {},
    )


@case("objects.unknown.item", MUST, "15 Errors",
      "GetSecret of an item that does not exist fails with NoSuchObject, or UnknownObject or UnknownMethod of D-Bus")
def unknown_item(t):
    session = t.session()
    t.error(
        (NO_SUCH_OBJECT, UNKNOWN_OBJECT, UNKNOWN_METHOD),
        f"{t.default}/conformance_none", ITEM, "GetSecret", "o", session.path,
    )


@case("objects.unknown.path", MUST, "D-Bus specification: errors", "a call to any other path fails")
def unknown_path(t):
    t.some_error("/org/example/none", SERVICE, "ReadAlias", "s", "default")


@case("objects.unknown.method", MUST, "D-Bus specification: errors",
      "an unknown method of a known interface fails with UnknownMethod")
def unknown_method(t):
    t.error(UNKNOWN_METHOD, ROOT, SERVICE, "NoSuchMethod")


@case("objects.unknown.interface", MUST, "D-Bus specification: errors",
      "a method of an unknown interface fails with UnknownMethod or UnknownInterface")
def unknown_interface(t):
    t.error((UNKNOWN_METHOD, UNKNOWN_INTERFACE), ROOT, "org.example.None", "Method")


@case("objects.unknown.interface-of-other-object", MUST, "13 Interfaces",
      "a method of Item at a collection fails")
def unknown_interface_of_other_object(t):
    session = t.session()
    t.some_error(t.default, ITEM, "GetSecret", "o", session.path)


@case("objects.arguments.signature", MUST, "D-Bus specification: errors",
      "arguments of another signature are refused with InvalidArgs or UnknownMethod")
def arguments_signature(t):
    t.error((INVALID_ARGS, UNKNOWN_METHOD), ROOT, SERVICE, "SearchItems", "s", "text")
    t.error((INVALID_ARGS, UNKNOWN_METHOD), ROOT, SERVICE, "ReadAlias", "")
    t.error((INVALID_ARGS, UNKNOWN_METHOD), ROOT, SERVICE, "ReadAlias", "ss", "default", "further")


@case("objects.no-interface", SHOULD, "D-Bus specification: message format",
      "a call without an interface finds the method by its name")
def no_interface(t):
    t.equal(t.bus.call(ROOT, None, "ReadAlias", "s", "default")[0], t.default)


@case("objects.properties.get-all", MUST, "13 Interfaces", "GetAll has each property of the draft with its signature")
def properties_get_all(t):
    for path, interface in ((ROOT, SERVICE), (t.default, COLLECTION), (t.create(), ITEM)):
        found = t.bus.call(path, PROPERTIES, "GetAll", "s", interface)[0]
        for name, (signature, _) in DRAFT[interface][2].items():
            t.true(name in found, f"{interface} has no {name}")
            t.equal(found[name][0], signature, f"signature of {name}")


@case("objects.properties.unknown", MUST, "D-Bus specification: Properties", "Get of an unknown property fails")
def properties_unknown(t):
    t.error(
        (UNKNOWN_PROPERTY, INVALID_ARGS, UNKNOWN_METHOD, "org.freedesktop.DBus.Error.Failed"),
        ROOT, PROPERTIES, "Get", "ss", SERVICE, "NoSuchProperty",
    )


@case("objects.properties.unknown-interface", MUST, "D-Bus specification: Properties",
      "Get of a property of an unknown interface fails")
def properties_unknown_interface(t):
    t.some_error(ROOT, PROPERTIES, "Get", "ss", "org.example.None", "Collections")


@case("objects.properties.read-only", MUST, "13 Interfaces: READ properties",
      "Set of Locked, Created, Modified and Items fails, and they stay")
def properties_read_only(t):
    item = t.create()
    for path, interface, name, signature, value in (
        (item, ITEM, "Created", "t", 1), (item, ITEM, "Modified", "t", 1), (item, ITEM, "Locked", "b", True),
        (t.default, COLLECTION, "Created", "t", 1), (t.default, COLLECTION, "Items", "ao", []),
        (t.default, COLLECTION, "Locked", "b", True), (ROOT, SERVICE, "Collections", "ao", []),
    ):
        before = t.bus.get(path, interface, name)
        t.some_error(path, PROPERTIES, "Set", "ssv", interface, name, (signature, value))
        t.equal(t.bus.get(path, interface, name), before, f"{name} afterwards")


@case("objects.properties.read-only-error", SHOULD, "D-Bus specification: Properties",
      "Set of a property that can't be written fails with PropertyReadOnly or InvalidArgs")
def properties_read_only_error(t):
    t.error(
        (READ_ONLY, INVALID_ARGS, "org.freedesktop.DBus.Error.AccessDenied"),
        t.create(), PROPERTIES, "Set", "ssv", ITEM, "Created", ("t", 1),
    )


@case("objects.properties.wrong-type", MUST, "D-Bus specification: Properties",
      "Set of Label with a number, and of Attributes with a text, fails, and they stay")
def properties_wrong_type(t):
    item = t.create(label="before")
    attributes = t.bus.get(item, ITEM, "Attributes")
    t.some_error(item, PROPERTIES, "Set", "ssv", ITEM, "Label", ("u", 1))
    t.some_error(item, PROPERTIES, "Set", "ssv", ITEM, "Attributes", ("s", "text"))
    t.equal(t.label(item), "before", "Label")
    t.equal(t.bus.get(item, ITEM, "Attributes"), attributes, "Attributes")
