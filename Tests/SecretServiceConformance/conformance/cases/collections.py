"""Collection: properties, items, deletion and signals."""

import time

from ..bus import COLLECTION, ITEM, NO_SUCH_OBJECT, PROPERTIES, ROOT, SERVICE, UNKNOWN_METHOD, UNKNOWN_OBJECT, CallError
from ..suite import HABIT, MUST, SHOULD, case

GONE = (NO_SUCH_OBJECT, UNKNOWN_OBJECT, UNKNOWN_METHOD)


@case("collection.items", MUST, "Collection: Items", "Items has a new item, and no longer after Delete")
def items(t):
    item = t.create()
    t.true(item in t.bus.get(t.default, COLLECTION, "Items"), "it is not there")
    t.delete(item)
    t.true(item not in t.bus.get(t.default, COLLECTION, "Items"), "it is there after Delete")


@case("collection.label", MUST, "Collection: Label", "Label of a collection is a text")
def label(t):
    t.equal(t.bus.signature_of(t.default, COLLECTION, "Label"), "s", "signature")


@case("collection.label.set", MUST, "Collection: Label (oo7's case label_property)",
      "Label of a collection is written and read; its path stays")
def label_set(t):
    path = t.default if t.service.private else t.new_collection()
    before = t.label(path, COLLECTION)
    t.bus.set(path, COLLECTION, "Label", "s", "conformance ✓")
    try:
        t.equal(t.label(path, COLLECTION), "conformance ✓", "Label")
    finally:
        t.bus.set(path, COLLECTION, "Label", "s", before)
    t.equal(t.label(path, COLLECTION), before, "Label")


@case("collection.label.signal", MUST, "Service: CollectionChanged (KeePassXC's case testCollectionChange)",
      "CollectionChanged of Service follows a change of Label")
def label_signal(t):
    path = t.default if t.service.private else t.new_collection()
    before = t.label(path, COLLECTION)
    t.bus.clear_signals()
    t.bus.set(path, COLLECTION, "Label", "s", "conformance changed")
    try:
        t.bus.signal("CollectionChanged", path=ROOT, argument=path)
    finally:
        t.bus.set(path, COLLECTION, "Label", "s", before)


@case("collection.label.further", MUST, "Collection: Label",
      "Label of a new collection is written and read, CollectionChanged follows, and its path and items stay")
def label_further(t):
    path = t.new_collection("conformance before")
    item = t.create(collection=path)
    t.bus.clear_signals()
    t.bus.set(path, COLLECTION, "Label", "s", "conformance after ✓")
    t.bus.signal("CollectionChanged", path=ROOT, argument=path)
    t.equal(t.label(path, COLLECTION), "conformance after ✓", "Label")
    t.equal(t.bus.get(path, COLLECTION, "Items"), [item], "Items")


@case("collection.foreign-item", MUST, "12 Object Paths",
      "the path of an item below another collection is no object")
def foreign_item(t):
    path = t.new_collection()
    name = t.create(collection=path).rsplit("/", 1)[1]
    t.error(GONE, f"{t.default}/{name}", PROPERTIES, "Get", "ss", ITEM, "Label")


@case("collection.replace.two-collections", MUST, "Collection: CreateItem: replace",
      "items of the same attributes in two new collections are replaced each in its own")
def replace_two_collections(t):
    first, second = t.new_collection("conformance first"), t.new_collection("conformance second")
    one, two = t.create(b"one", collection=first), t.create(b"two", collection=second)
    t.equal(t.create(b"three", replace=True, collection=second), two, "the path of the replaced item")
    t.equal((t.secret(one), t.secret(two)), (b"one", b"three"), "the secrets")


@case("collection.locked", MUST, "Collection: Locked", "Locked of the default collection, which is open, is false")
def locked(t):
    t.equal(t.bus.get(t.default, COLLECTION, "Locked"), False, "Locked")


@case("collection.timestamps", MUST, "Collection: Created, Modified",
      "Created and Modified are seconds since 1970, not in the future")
def timestamps(t):
    for name in ("Created", "Modified"):
        value = t.bus.get(t.default, COLLECTION, name)
        t.true(0 <= value <= time.time() + 2, f"{name} is {value}")


@case("collection.timestamps.modified", SHOULD, "Collection: Modified",
      "Modified of a collection follows a new item")
def timestamps_modified(t):
    began = int(time.time()) - 1
    t.create()
    modified = t.bus.get(t.default, COLLECTION, "Modified")
    t.true(modified >= began, f"Modified is {began - modified} s before the item")


@case("collection.create.one-of-both", MUST, "Collection: CreateItem; 9 Prompts",
      "CreateItem returns an item or a prompt, and / for the other")
def create_one_of_both(t):
    session = t.session()
    item, prompt = t.bus.call(
        t.default, COLLECTION, "CreateItem", "a{sv}(oayays)b",
        {f"{ITEM}.Label": ("s", "conformance"), f"{ITEM}.Attributes": ("a{ss}", t.mark)}, session.encode(b"x"), False,
    )
    t.equal((item == "/") + (prompt == "/"), 1, f"of ({item}, {prompt})")
    if prompt != "/":
        t.complete(prompt, person=False)


@case("collection.create.no-prompt", HABIT, "go-keyring, docker: CreateItem without a prompt",
      "CreateItem in an unlocked collection returns the item and no prompt")
def create_no_prompt(t):
    session = t.session()
    properties = {f"{ITEM}.Label": ("s", "conformance"), f"{ITEM}.Attributes": ("a{ss}", t.mark)}
    prompt = t.bus.call(
        t.default, COLLECTION, "CreateItem", "a{sv}(oayays)b", properties, session.encode(b"x"), False
    )[1]
    if prompt != "/":
        t.dismiss(prompt)
    t.equal(prompt, "/", "prompt")


@case("collection.create.values", MUST, "Collection: CreateItem (KeePassXC's case testItemCreate)",
      "a new item has the label, the attributes and the secret")
def create_values(t):
    item = t.create(b"Password", "abc", {"application": "conformance", "attr-i[bute]": "![some] -value*"})
    attributes = t.bus.get(item, ITEM, "Attributes")
    t.equal(t.label(item), "abc", "Label")
    t.equal(
        {name: attributes.get(name) for name in ("application", "attr-i[bute]", *t.mark)},
        {"application": "conformance", "attr-i[bute]": "![some] -value*", **t.mark}, "Attributes",
    )
    t.equal(t.secret(item), b"Password", "the secret")


@case("collection.create.signal", MUST, "Collection: ItemCreated", "ItemCreated names the new item")
def create_signal(t):
    t.bus.clear_signals()
    item = t.create()
    t.bus.signal("ItemCreated", path=t.default, argument=item)


@case("collection.create.no-attributes", SHOULD, "Collection: CreateItem",
      "an item without attributes, with a label alone, is created and deleted")
def create_no_attributes(t):
    session = t.session()
    item = t.create_with({f"{ITEM}.Label": ("s", "conformance bare")}, session.encode(b"bare"))
    try:
        t.equal(t.secret(item, session), b"bare", "the secret")
        t.equal(t.label(item), "conformance bare", "Label")
    finally:
        t.delete(item)


@case("collection.create.no-properties", SHOULD, "Collection: CreateItem",
      "CreateItem without any property creates an item, or fails; nothing stays behind in either case")
def create_no_properties(t):
    session = t.session()
    before = set(t.bus.get(t.default, COLLECTION, "Items"))
    try:
        t.delete(t.create_with({}, session.encode(b"x")))
    except CallError:
        pass
    t.equal(set(t.bus.get(t.default, COLLECTION, "Items")), before, "Items")


@case("collection.create.wrong-property", SHOULD, "Collection: CreateItem",
      "CreateItem with Label as a number or Attributes as a text fails and creates nothing, or ignores it")
def create_wrong_property(t):
    session = t.session()
    before = set(t.bus.get(t.default, COLLECTION, "Items"))
    for properties in ({f"{ITEM}.Label": ("u", 7)}, {f"{ITEM}.Attributes": ("s", "text")}):
        try:
            t.delete(t.create_with(properties, session.encode(b"x")))
        except CallError:
            pass
    t.equal(set(t.bus.get(t.default, COLLECTION, "Items")), before, "Items")


@case("collection.create.type-property", HABIT, "libsecret before 0.2 of the draft: Item.Type",
      "CreateItem with the property Type, which older clients send, creates the item")
def create_type_property(t):
    session = t.session()
    item = t.create_with(
        {
            f"{ITEM}.Label": ("s", "conformance"), f"{ITEM}.Attributes": ("a{ss}", t.mark),
            f"{ITEM}.Type": ("s", "org.freedesktop.Secret.Generic"),
        },
        session.encode(b"x"),
    )
    t.equal(t.secret(item, session), b"x", "the secret")


@case("collection.create.same-attributes", MUST, "Collection: CreateItem: replace (KeePassXC's case testItemReplace)",
      "with replace false, an item of the same attributes is created beside the first")
def create_same_attributes(t):
    one, two = t.create(b"one"), t.create(b"two")
    t.true(one != two, "both have the same path")
    t.equal(t.search(t.mark), {one, two}, "SearchItems")
    t.equal((t.secret(one), t.secret(two)), (b"one", b"two"), "the secrets")


@case("collection.replace", MUST, "Collection: CreateItem: replace (oo7's case create_item_with_replace)",
      "with replace true, an item of the same attributes gets the new label and secret, and there is still one")
def replace(t):
    t.create(b"one", "label one")
    after = t.create(b"two", "label two", replace=True)
    t.equal(t.search(t.mark), {after}, "SearchItems")
    t.equal((t.secret(after), t.label(after)), (b"two", "label two"), "the secret and Label")


@case("collection.replace.path", HABIT, "KeePassXC's case testItemReplace", "a replaced item keeps its path")
def replace_path(t):
    before = t.create(b"one")
    t.equal(t.create(b"two", replace=True), before, "the path")


@case("collection.replace.none", MUST, "Collection: CreateItem: replace",
      "with replace true and no item of the same attributes, one is created")
def replace_none(t):
    item = t.create(b"one", replace=True)
    t.equal(t.search(t.mark), {item}, "SearchItems")


@case("collection.replace.superset", SHOULD, "Collection: CreateItem: replace",
      "an item that has more attributes than the new one is not replaced: only the same attributes count")
def replace_superset(t):
    more = t.create(b"more", attributes={"further": "yes"})
    fewer = t.create(b"fewer", replace=True)
    t.true(more != fewer, "it was replaced")
    t.equal((t.secret(more), t.secret(fewer)), (b"more", b"fewer"), "the secrets")


@case("collection.replace.superset-password", SHOULD, "Collection: CreateItem: replace",
      "an item of another program for the same service and user, with an attribute more, is not replaced")
def replace_superset_password(t):
    for password in ({"service": "conformance", "username": "me"}, {"service": "conformance", "account": "me", "username": "me"},
                     {"server": "conformance.example", "user": "me", "protocol": "https"}):
        more = t.create(b"more", attributes={**password, "application": "another"})
        fewer = t.create(b"fewer", attributes=password, replace=True)
        t.true(more != fewer, f"it was replaced: {', '.join(password)}")
        t.equal((t.secret(more), t.secret(fewer)), (b"more", b"fewer"), "the secrets")
        again = t.create(b"again", attributes=password, replace=True)
        t.equal((t.secret(more), t.secret(again)), (b"more", b"again"), "the secrets after a second replacement")
        t.equal(again, fewer, "the item of the second replacement")
        t.delete(more)
        t.delete(fewer)


@case("collection.replace.subset", MUST, "Collection: CreateItem: replace",
      "an item that has fewer attributes than the new one is not replaced")
def replace_subset(t):
    fewer = t.create(b"fewer")
    more = t.create(b"more", attributes={"further": "yes"}, replace=True)
    t.true(more != fewer, "it was replaced")
    t.equal((t.secret(more), t.secret(fewer)), (b"more", b"fewer"), "the secrets")


@case("collection.replace.no-attributes", MUST, "Collection: CreateItem: replace",
      "with replace true, an item without attributes replaces none that has some")
def replace_no_attributes(t):
    if not t.service.private:
        t.skip("the service is in use, and another item might be replaced")
    session = t.session()
    one = t.create(b"one")
    before = set(t.bus.get(t.default, COLLECTION, "Items"))
    for properties in ({}, {f"{ITEM}.Label": ("s", "conformance")}, {f"{ITEM}.Attributes": ("a{ss}", {})}):
        try:
            t.create_with(properties, session.encode(b"two"), replace=True)
        except CallError:
            pass  # an item of no properties may be refused
    for item in set(t.bus.get(t.default, COLLECTION, "Items")) - before:
        t.delete(item)
    t.equal(t.secret(one), b"one", "the secret of the item with attributes")


@case("collection.replace.signal", MUST, "Collection: ItemChanged (KeePassXC's case testItemReplace)",
      "a replacement that keeps the path sends ItemChanged and no ItemCreated; one of another path ItemDeleted and "
      "ItemCreated")
def replace_signal(t):
    before = t.create(b"one")
    t.bus.signal("ItemCreated", argument=before)
    t.bus.clear_signals()
    after = t.create(b"two", "other", replace=True)
    if after == before:
        t.bus.signal("ItemChanged", path=t.default, argument=after)
        t.equal(t.bus.signals_named("ItemCreated"), [], "ItemCreated")
    else:
        t.bus.signal("ItemDeleted", path=t.default, argument=before)
        t.bus.signal("ItemCreated", path=t.default, argument=after)


@case("collection.replace.other-collection", MUST, "Collection: CreateItem: replace",
      "an item of the same attributes in another collection is not replaced")
def replace_other_collection(t):
    path = t.bus.call(ROOT, SERVICE, "ReadAlias", "s", "session")[0]
    if path == "/":
        path = t.new_collection()
    one = t.create(b"one")
    two = t.create(b"two", collection=path, replace=True)
    t.equal((t.secret(one), t.secret(two)), (b"one", b"two"), "the secrets")


@case("collection.search", MUST, "Collection: SearchItems", "SearchItems of a collection finds its item")
def search(t):
    item = t.create()
    t.equal(t.search(t.mark, t.default), {item})


@case("collection.search.none", MUST, "Collection: SearchItems", "a search that fits nothing gives an empty list")
def search_none(t):
    t.equal(t.search(t.mark, t.default), set())


@case("collection.delete", MUST, "Collection: Delete (oo7's case delete_collection)",
      "Delete removes the collection with its items: from Collections, from searches and from the bus")
def delete(t):
    path = t.new_collection("conformance delete")
    item = t.create(collection=path)
    prompt = t.bus.call(path, COLLECTION, "Delete")[0]
    if prompt != "/":
        t.complete(prompt)
    t.true(path not in t.bus.get(ROOT, SERVICE, "Collections"), "it is in Collections")
    t.equal(t.search(t.mark), set(), "SearchItems")
    t.error(GONE, path, PROPERTIES, "Get", "ss", COLLECTION, "Label")
    t.error(GONE, item, ITEM, "Delete")


@case("collection.delete.others", MUST, "Collection: Delete",
      "Delete leaves items of the same attributes and the same label in other collections")
def delete_others(t):
    path = t.new_collection("conformance delete")
    item = t.create(b"stays")
    t.create(b"goes", collection=path)
    t.delete_collection(path)
    t.equal(t.search(t.mark), {item}, "SearchItems")
    t.equal(t.secret(item), b"stays", "the secret")


@case("collection.delete.default", SHOULD, "4 Aliases",
      "after Delete of the collection that the alias default names, the alias names none or another one that exists")
def delete_default(t):
    if not t.service.private:
        t.skip("the service is in use")
    before, path = t.default, t.new_collection("conformance delete")
    t.later.append(lambda: t.bus.call(ROOT, SERVICE, "SetAlias", "so", "default", before))
    t.bus.call(ROOT, SERVICE, "SetAlias", "so", "default", path)
    t.delete_collection(path)
    found = t.bus.call(ROOT, SERVICE, "ReadAlias", "s", "default")[0]
    t.true(found == "/" or found in t.bus.get(ROOT, SERVICE, "Collections"), f"it names {found}")


@case("collection.delete.signal", MUST, "Service: CollectionDeleted (oo7's case collection_deleted_signal)",
      "CollectionDeleted names the collection")
def delete_signal(t):
    path = t.new_collection("conformance delete")
    t.bus.clear_signals()
    prompt = t.bus.call(path, COLLECTION, "Delete")[0]
    if prompt != "/":
        t.complete(prompt)
    t.bus.signal("CollectionDeleted", path=ROOT, argument=path)


@case("collection.delete.alias", SHOULD, "4 Aliases", "an alias of a deleted collection gives /")
def delete_alias(t):
    path = t.new_collection("conformance delete", "conformance_alias")
    prompt = t.bus.call(path, COLLECTION, "Delete")[0]
    if prompt != "/":
        t.complete(prompt)
    t.equal(t.bus.call(ROOT, SERVICE, "ReadAlias", "s", "conformance_alias")[0], "/", "ReadAlias")


@case("collection.properties-changed", SHOULD, "D-Bus specification: PropertiesChanged",
      "PropertiesChanged of a collection follows a new item")
def properties_changed(t):
    t.bus.clear_signals()
    t.create()
    t.bus.signal("PropertiesChanged", path=t.default, argument=COLLECTION, timeout=3)


@case("collection.many-items", MUST, "3 Collection and Items",
      "1,000 items are created, all are found by one search, one by another, and all secrets are right")
def many_items(t):
    session = t.session()
    created = {}
    for number in range(1000):
        secret = f"secret {number}".encode()
        created[t.create(secret, f"item {number}", {"number": str(number)}, session=session, collection=t.default)] = secret
    t.equal(len(created), 1000, "different paths")
    t.equal(t.search(t.mark), set(created), "SearchItems")
    t.equal(len(t.search({**t.mark, "number": "789"})), 1, "items of one search")
    found = t.bus.call(ROOT, SERVICE, "GetSecrets", "aoo", list(created), session.path)[0]
    t.equal({item: session.decode(secret) for item, secret in found.items()}, created, "secrets")
