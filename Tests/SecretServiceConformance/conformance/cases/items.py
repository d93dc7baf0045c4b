"""Item: secrets, properties, deletion and signals."""

import time

from ..bus import COLLECTION, ITEM, NO_SUCH_OBJECT, PROPERTIES, ROOT, SERVICE, UNKNOWN_METHOD, UNKNOWN_OBJECT
from ..suite import HABIT, MUST, SHOULD, case
from ..transfer import DH, PLAIN

GONE = (NO_SUCH_OBJECT, UNKNOWN_OBJECT, UNKNOWN_METHOD)


@case("item.secret.plain", MUST, "Item: GetSecret (oo7's case secret_retrieval_plain)",
      "GetSecret of a plain session gives the value, the session's path and no parameters")
def secret_plain(t):
    session = t.session(PLAIN)
    item = t.create(b"in clear", session=session)
    path, parameters, value, _ = t.bus.call(item, ITEM, "GetSecret", "o", session.path)[0]
    t.equal((path, bytes(parameters), bytes(value)), (session.path, b"", b"in clear"))


@case("item.secret.dh", MUST, "Item: GetSecret (oo7's case secret_retrieval_encrypted)",
      "GetSecret of an encrypted session gives the value encrypted with an IV of 16 bytes")
def secret_dh(t):
    session = t.session(DH)
    item = t.create(b"in cipher", session=session)
    secret = t.bus.call(item, ITEM, "GetSecret", "o", session.path)[0]
    t.equal(len(secret[1]), 16, "bytes of the IV")
    t.true(b"in cipher" not in bytes(secret[2]), "the value is not encrypted")
    t.equal(session.decode(secret), b"in cipher", "the secret")


@case("item.secret.fresh-iv", MUST, "7 Transfer of Secrets", "two readings have different IVs")
def secret_fresh_iv(t):
    session = t.session(DH)
    item = t.create(session=session)
    ivs = {bytes(t.bus.call(item, ITEM, "GetSecret", "o", session.path)[0][1]) for _ in range(4)}
    t.equal(len(ivs), 4, "different IVs")


@case("item.secret.set", MUST, "Item: SetSecret", "SetSecret replaces the secret; Label and Attributes stay")
def secret_set(t):
    for algorithm in (PLAIN, DH):
        session = t.session(algorithm)
        item = t.create(b"before", "kept", {"algorithm": algorithm}, session=session)
        attributes = t.bus.get(item, ITEM, "Attributes")
        t.bus.call(item, ITEM, "SetSecret", "(oayays)", session.encode(b"after " + algorithm.encode()))
        t.equal(t.secret(item, session), b"after " + algorithm.encode(), f"the secret by {algorithm}")
        t.equal((t.label(item), t.bus.get(item, ITEM, "Attributes")), ("kept", attributes), "Label and Attributes")


@case("item.secret.sizes", MUST, "2 Secrets", "secrets of 0, 1, 15, 16, 17, 255, 4,096 and 65,536 bytes come back as they were")
def secret_sizes(t):
    for algorithm in (PLAIN, DH):
        session = t.session(algorithm)
        for size in (0, 1, 15, 16, 17, 255, 4096, 65536):
            value = (bytes(range(1, 256)) * (size // 255 + 1))[:size]
            item = t.create(
                value, attributes={"size": f"{algorithm}{size}"}, session=session,
                content_type="application/octet-stream",
            )
            t.equal(t.secret(item, session), value, f"{size} bytes by {algorithm}")


@case("item.secret.nul", MUST, "2 Secrets", "NUL bytes at the begin, in the middle and at the end of a secret stay")
def secret_nul(t):
    for number, value in enumerate((b"\0", b"a\0b", b"\0\0a\0", bytes(64), bytes(range(256)))):
        item = t.create(value, attributes={"n": str(number)}, content_type="application/octet-stream")
        t.equal(t.secret(item), value, "the secret")


@case("item.secret.text", MUST, "2 Secrets", "UTF-8 text with line ends, tabs and letters of other scripts stays")
def secret_text(t):
    value = "Zeile 1\r\nZeile 2\n\tпароль 密码 🔑 é é".encode()
    item = t.create(value, content_type="text/plain; charset=utf8")
    t.equal(t.secret(item), value, "the secret")


@case("item.secret.not-utf8", SHOULD, "2 Secrets",
      "bytes that are no UTF-8 stay as they were although the content type says text/plain")
def secret_not_utf8(t):
    value = b"\xff\xfe\x00caf\xe9"
    t.equal(t.secret(t.create(value, content_type="text/plain")), value, "the secret")


@case("item.content-type", SHOULD, "14 Types: Secret", "the content type of a secret is given back")
def content_type(t):
    session = t.session()
    for name in ("text/plain", "application/octet-stream", "image/png"):
        item = t.create(b"x", attributes={"type": name}, session=session, content_type=name)
        t.equal(t.bus.call(item, ITEM, "GetSecret", "o", session.path)[0][3], name, "content type")


@case("item.content-type.go", HABIT, "libsecret: secret_value_get_text takes text/plain only; go-keyring names the charset",
      "a secret of type `text/plain; charset=utf8` is `text/plain` when it is read, so that libsecret shows it")
def content_type_go(t):
    session = t.session()
    item = t.create(b"x", session=session, content_type="text/plain; charset=utf8")
    t.equal(t.bus.call(item, ITEM, "GetSecret", "o", session.path)[0][3], "text/plain", "content type")


@case("item.content-type.text", HABIT, "libsecret: secret_password_lookup returns nothing for other types",
      "a secret of type text/plain has a content type that begins with text/plain when it is read")
def content_type_text(t):
    session = t.session()
    item = t.create(b"x", session=session, content_type="text/plain")
    found = t.bus.call(item, ITEM, "GetSecret", "o", session.path)[0][3]
    t.true(found.startswith("text/plain"), f"it is {found!r}")


@case("item.content-type.empty", SHOULD, "14 Types: Secret", "a secret with an empty content type is stored and read")
def content_type_empty(t):
    t.equal(t.secret(t.create(b"x", content_type="")), b"x", "the secret")


@case("item.label", MUST, "Item: Label (oo7's case label_property)", "Label is written and read")
def label(t):
    item = t.create(label="before")
    t.bus.set(item, ITEM, "Label", "s", "after ✓")
    t.equal(t.label(item), "after ✓", "Label")
    t.equal(t.secret(item), b"secret", "the secret")


@case("item.label.odd", SHOULD, "Item: Label", "labels that are empty, long, or have slashes and line ends, stay")
def label_odd(t):
    item = t.create()
    for text in ("", "a/b/../c", "x" * 4096, "line 1\nline 2", ". ", "Ünï🔑"):
        t.bus.set(item, ITEM, "Label", "s", text)
        t.equal(t.label(item), text, "Label")


@case("item.label.same", MUST, "3 Collection and Items", "two items of the same label are two items")
def label_same(t):
    one, two = t.create(b"one", "same", {"n": "1"}), t.create(b"two", "same", {"n": "2"})
    t.equal((t.secret(one), t.secret(two)), (b"one", b"two"), "the secrets")
    t.equal((t.label(one), t.label(two)), ("same", "same"), "Label")


@case("item.attributes", MUST, "Item: Attributes (oo7's case attributes_property)",
      "Attributes are written as a whole, and searches follow")
def attributes(t):
    item = t.create(attributes={"old": "1"})
    t.bus.set(item, ITEM, "Attributes", "a{ss}", {**t.mark, "new": "2"})
    found = t.bus.get(item, ITEM, "Attributes")
    t.equal((found.get("old"), found.get("new")), (None, "2"), "old and new")
    t.equal(t.search({**t.mark, "new": "2"}), {item}, "SearchItems of the new attribute")
    t.equal(t.search({**t.mark, "old": "1"}), set(), "SearchItems of the old attribute")
    t.equal(t.secret(item), b"secret", "the secret")


@case("item.attributes.no-further", SHOULD, "5 Lookup Attributes", "Attributes has what was given and nothing else")
def attributes_no_further(t):
    item = t.create(attributes={"a": "1"})
    t.equal(t.bus.get(item, ITEM, "Attributes"), {**t.mark, "a": "1"}, "Attributes")


@case("item.attributes.schema", HABIT, "libsecret: xdg:schema",
      "the attribute xdg:schema, which libsecret adds, is kept and found")
def attributes_schema(t):
    item = t.create(attributes={"xdg:schema": "org.example.Conformance"})
    t.equal(t.bus.get(item, ITEM, "Attributes").get("xdg:schema"), "org.example.Conformance", "xdg:schema")
    t.equal(t.search({**t.mark, "xdg:schema": "org.example.Conformance"}), {item}, "SearchItems")


@case("item.attributes.schema-wifi", HABIT, "libsecret: known schemas",
      "items of org.gnome.keyring.NetworkPassword and org.freedesktop.Secret.Generic keep the schema")
def attributes_schema_known(t):
    for schema in ("org.freedesktop.Secret.Generic", "org.gnome.keyring.NetworkPassword", "chrome_libsecret_os_crypt_password_v2"):
        item = t.create(attributes={"xdg:schema": schema, "server": "example.org", "protocol": "https"})
        t.equal(t.bus.get(item, ITEM, "Attributes").get("xdg:schema"), schema, "xdg:schema")


@case("item.attributes.clear", SHOULD, "Item: Attributes", "Attributes set to nothing leave an item without any")
def attributes_clear(t):
    item = t.create()
    t.bus.set(item, ITEM, "Attributes", "a{ss}", {})
    t.equal(t.bus.get(item, ITEM, "Attributes"), {}, "Attributes")
    t.bus.set(item, ITEM, "Attributes", "a{ss}", t.mark)


@case("item.locked", MUST, "Item: Locked", "Locked of an item in an unlocked collection is false")
def locked(t):
    t.equal(t.bus.get(t.create(), ITEM, "Locked"), False, "Locked")


@case("item.created", MUST, "Item: Created (oo7's case timestamps)", "Created is the time of CreateItem, in seconds")
def created(t):
    began = int(time.time())
    value = t.bus.get(t.create(), ITEM, "Created")
    t.true(began - 2 <= value <= time.time() + 2, f"it is {value}, {value - began} s after")


@case("item.modified", MUST, "Item: Modified", "Modified of a new item is not before Created")
def modified(t):
    item = t.create()
    created_at, modified_at = (t.bus.get(item, ITEM, name) for name in ("Created", "Modified"))
    t.true(created_at <= modified_at <= time.time() + 2, f"Created is {created_at}, Modified {modified_at}")


def until_next_second():
    """Returns when the clock's second has changed: timestamps have no smaller unit."""
    second = int(time.time())
    while int(time.time()) == second:
        time.sleep(second + 1.002 - time.time() if second + 1 > time.time() else 0.001)


@case("item.modified.changes", MUST, "Item: Modified (oo7's case set_secret_plain)",
      "Modified grows with a change of the secret and of the label, and Created stays")
def modified_changes(t):
    session = t.session()
    item = t.create(session=session)
    created_at = t.bus.get(item, ITEM, "Created")
    last = t.bus.get(item, ITEM, "Modified")
    until_next_second()
    t.bus.call(item, ITEM, "SetSecret", "(oayays)", session.encode(b"after"))
    value = t.bus.get(item, ITEM, "Modified")
    t.true(value > last, f"after SetSecret it is still {value}")
    until_next_second()
    t.bus.set(item, ITEM, "Label", "s", "after")
    last, value = value, t.bus.get(item, ITEM, "Modified")
    t.true(value > last, f"after Set of Label it is still {value}")
    t.equal(t.bus.get(item, ITEM, "Created"), created_at, "Created")


@case("item.delete", MUST, "Item: Delete (oo7's case delete_item)",
      "a deleted item is gone: from searches, from Items and from the bus")
def delete(t):
    session = t.session()
    item = t.create(session=session)
    t.delete(item)
    t.equal(t.search(t.mark), set(), "SearchItems")
    t.error(GONE, item, ITEM, "GetSecret", "o", session.path)
    t.error(GONE, item, ITEM, "Delete")
    t.some_error(item, PROPERTIES, "Get", "ss", ITEM, "Label")


@case("item.delete.signal", MUST, "Collection: ItemDeleted (oo7's case item_deleted_signal)",
      "ItemDeleted of the collection names the item")
def delete_signal(t):
    item = t.create()
    t.bus.clear_signals()
    t.delete(item)
    t.bus.signal("ItemDeleted", path=t.default, argument=item)


@case("item.delete.no-reuse", SHOULD, "12 Object Paths", "the path of a deleted item is not given to the next item")
def delete_no_reuse(t):
    item = t.create()
    t.delete(item)
    t.true(t.create() != item, "the next item has the same path")


@case("item.delete.others-stay", MUST, "Item: Delete", "the other item of the same attributes stays")
def delete_others_stay(t):
    one, two = t.create(b"one"), t.create(b"two")
    t.delete(one)
    t.equal(t.search(t.mark), {two}, "SearchItems")
    t.equal(t.secret(two), b"two", "the secret")


def changed(t, item, change):
    t.bus.clear_signals()
    change()
    t.bus.signal("ItemChanged", path=t.default, argument=item)


@case("item.changed.label", MUST, "Collection: ItemChanged (KeePassXC's case testItemChange)",
      "ItemChanged follows a change of the label")
def changed_label(t):
    item = t.create()
    changed(t, item, lambda: t.bus.set(item, ITEM, "Label", "s", "other"))


@case("item.changed.attributes", MUST, "Collection: ItemChanged (KeePassXC's case testItemChange)",
      "ItemChanged follows a change of the attributes")
def changed_attributes(t):
    item = t.create()
    changed(t, item, lambda: t.bus.set(item, ITEM, "Attributes", "a{ss}", {**t.mark, "abc": "def"}))


@case("item.changed.secret", MUST, "Collection: ItemChanged (oo7's case item_changed_signal)",
      "ItemChanged follows SetSecret")
def changed_secret(t):
    session = t.session()
    item = t.create(session=session)
    changed(t, item, lambda: t.bus.call(item, ITEM, "SetSecret", "(oayays)", session.encode(b"other")))


@case("item.changed.not-by-reading", MUST, "Collection: ItemChanged",
      "reading a secret, properties and searching sends no signal")
def changed_not_by_reading(t):
    t.bus.clear_signals()
    item = t.create()
    # It may come after the answer.
    t.bus.signal("ItemCreated", argument=item)
    t.bus.clear_signals()
    t.secret(item)
    t.label(item)
    t.search(t.mark)
    for member in ("ItemChanged", "ItemCreated", "ItemDeleted", "CollectionChanged"):
        t.equal(t.bus.signals_named(member), [], member)


@case("item.properties-changed", SHOULD, "D-Bus specification: PropertiesChanged",
      "PropertiesChanged of the item follows a change of its label")
def properties_changed(t):
    item = t.create()
    t.bus.clear_signals()
    t.bus.set(item, ITEM, "Label", "s", "other")
    t.bus.signal("PropertiesChanged", path=item, argument=ITEM, timeout=3)


@case("item.signals.no-secret", MUST, "7 Transfer of Secrets", "no signal has a secret in it")
def signals_no_secret(t):
    session = t.session()
    t.bus.clear_signals()
    item = t.create(b"conformance-needle-1", session=session)
    t.bus.call(item, ITEM, "SetSecret", "(oayays)", session.encode(b"conformance-needle-2"))
    t.delete(item)
    t.bus.signals_named("ItemDeleted")
    t.true("conformance-needle" not in repr([message.body for message in t.bus.signals]), "a signal has it")


@case("item.set-secret.unknown-object", MUST, "15 Errors", "SetSecret of a deleted item fails and creates nothing")
def set_secret_unknown_object(t):
    session = t.session()
    item = t.create(session=session)
    t.delete(item)
    t.error(GONE, item, ITEM, "SetSecret", "(oayays)", session.encode(b"x"))
    t.equal(t.search(t.mark), set(), "SearchItems")
    t.true(item not in t.bus.get(t.default, COLLECTION, "Items"), "it is in Items")


@case("item.empty-collection-path", MUST, "12 Object Paths", "Items of all collections are below their collection")
def empty_collection_path(t):
    t.create()
    for path in t.bus.get(ROOT, SERVICE, "Collections"):
        for item in t.bus.get(path, COLLECTION, "Items"):
            t.true(item.startswith(f"{path}/"), f"{item} in Items of {path}")
