"""Service: collections, aliases, searches and secrets of several items."""

from ..bus import (
    COLLECTION, INVALID_ARGS, ITEM, NO_SUCH_OBJECT, ROOT, SERVICE, CallError, NOT_SUPPORTED, UNKNOWN_OBJECT,
)
from ..suite import HABIT, MUST, SHOULD, Failed, case

LABEL = f"{COLLECTION}.Label"


@case("service.collections", MUST, "Service: Collections", "Collections has the collection of the alias default")
def collections(t):
    t.true(t.default in t.bus.get(ROOT, SERVICE, "Collections"), "it is not there")


@case("service.read-alias.default", MUST, "4 Aliases: ReadAlias", "the alias default names a collection")
def read_alias_default(t):
    t.bus.get(t.default, COLLECTION, "Label")


@case("service.read-alias.unknown", MUST, "4 Aliases: ReadAlias", "an alias that is not set gives /")
def read_alias_unknown(t):
    t.equal(t.bus.call(ROOT, SERVICE, "ReadAlias", "s", "conformance_none")[0], "/")


@case("service.read-alias.odd", SHOULD, "4 Aliases: ReadAlias",
      "ReadAlias of names that are no element of a path (empty, `../x`, `a/b`, `ä`) gives / or InvalidArgs")
def read_alias_odd(t):
    for name in ("", "../x", "a/b", "ä", "x" * 1000):
        try:
            t.equal(t.bus.call(ROOT, SERVICE, "ReadAlias", "s", name)[0], "/", f"ReadAlias {name[:10]!r}")
        except CallError as error:
            t.equal(error.name, INVALID_ARGS, f"ReadAlias {name[:10]!r}")


@case("service.read-alias.session", HABIT, "libsecret: SECRET_COLLECTION_SESSION",
      "the alias session names a collection")
def read_alias_session(t):
    path = t.bus.call(ROOT, SERVICE, "ReadAlias", "s", "session")[0]
    t.true(path != "/", "it names none")
    t.bus.get(path, COLLECTION, "Label")


@case("service.read-alias.session-item", HABIT, "libsecret: SECRET_COLLECTION_SESSION",
      "an item is created in the collection session, found and read")
def read_alias_session_item(t):
    path = t.bus.call(ROOT, SERVICE, "ReadAlias", "s", "session")[0]
    if path == "/":
        t.skip("there is no collection session")
    item = t.create(secret=b"fleeting", collection=path)
    t.true(item in t.search(t.mark), "SearchItems does not find it")
    t.equal(t.secret(item), b"fleeting", "the secret")


@case("service.read-alias.login", HABIT, "gnome-keyring, KeePassXC: the alias login",
      "the alias login names a collection")
def read_alias_login(t):
    t.true(t.bus.call(ROOT, SERVICE, "ReadAlias", "s", "login")[0] != "/", "it names none")


def set_and_read(t, name, path):
    t.bus.call(ROOT, SERVICE, "SetAlias", "so", name, path)
    return t.bus.call(ROOT, SERVICE, "ReadAlias", "s", name)[0]


@case("service.set-alias", MUST, "4 Aliases: SetAlias",
      "SetAlias sets a further alias of a collection, ReadAlias gives it, and SetAlias to / removes it")
def set_alias(t):
    path = t.default
    try:
        t.equal(set_and_read(t, "conformance_alias", path), path, "ReadAlias")
    finally:
        try:
            gone = set_and_read(t, "conformance_alias", "/")
        except CallError as error:
            gone = str(error)
    t.equal(gone, "/", "ReadAlias after SetAlias to /")
    t.equal(t.default, path, "the alias default")


@case("service.set-alias.path", SHOULD, "12 Object Paths", "the path below aliases/ follows SetAlias")
def set_alias_path(t):
    path = t.default
    try:
        t.equal(set_and_read(t, "conformance_alias", path), path, "ReadAlias")
        t.equal(
            t.bus.get(f"{ROOT}/aliases/conformance_alias", COLLECTION, "Label"), t.label(path, COLLECTION), "Label"
        )
    finally:
        try:
            set_and_read(t, "conformance_alias", "/")
        except CallError:
            pass


@case("service.set-alias.unknown-collection", MUST, "4 Aliases: SetAlias (oo7's case set_alias_invalid_collection)",
      "SetAlias to a collection that does not exist fails with NoSuchObject")
def set_alias_unknown_collection(t):
    t.error(
        (NO_SUCH_OBJECT, UNKNOWN_OBJECT),
        ROOT, SERVICE, "SetAlias", "so", "conformance_alias", f"{ROOT}/collection/conformance_none",
    )


@case("service.set-alias.default-survives", MUST, "4 Aliases: SetAlias",
      "SetAlias of default to the collection that it names changes nothing")
def set_alias_default_survives(t):
    path = t.default
    try:
        t.bus.call(ROOT, SERVICE, "SetAlias", "so", "default", path)
    except CallError as error:
        t.equal(error.name, NOT_SUPPORTED, "the error")
    t.equal(t.default, path, "the alias default")


def requires_settable_default(t):
    """Skips where the alias `default` is in use, or can't be set."""
    if not t.service.private:
        t.skip("the service is in use")
    path = t.default
    t.later.append(lambda: t.bus.call(ROOT, SERVICE, "SetAlias", "so", "default", path))
    return path


@case("service.set-alias.default-moves", MUST, "4 Aliases: SetAlias; libsecret stores at aliases/default",
      "after SetAlias of default to a new collection, an item that is created at the path aliases/default is in that one")
def set_alias_default_moves(t):
    before = requires_settable_default(t)
    path = t.new_collection("conformance default")
    t.equal(set_and_read(t, "default", path), path, "ReadAlias")
    item = t.create(collection=f"{ROOT}/aliases/default")
    t.true(item.startswith(f"{path}/"), f"the item is {item}")
    t.equal(t.search(t.mark, path), {item}, "SearchItems of the collection")
    t.equal(t.search(t.mark, before), set(), "SearchItems of the former default collection")


@case("service.set-alias.default-removed", SHOULD, "4 Aliases: SetAlias",
      "SetAlias of default to / takes the alias away, and it can be set again")
def set_alias_default_removed(t):
    path = requires_settable_default(t)
    t.equal(set_and_read(t, "default", "/"), "/", "ReadAlias after SetAlias to /")
    t.equal(set_and_read(t, "default", path), path, "ReadAlias")


@case("service.create-collection.existing-alias", MUST,
      "Service: CreateCollection (KeePassXC's case testCollectionCreate)",
      "CreateCollection with an alias that is set returns that collection, without a prompt")
def create_collection_existing_alias(t):
    path = t.default
    label = t.label(path, COLLECTION)
    try:
        found = t.bus.call(ROOT, SERVICE, "CreateCollection", "a{sv}s", {LABEL: ("s", label)}, "default")
    finally:
        if t.label(path, COLLECTION) != label:
            t.bus.set(path, COLLECTION, "Label", "s", label)
    t.equal(found, (path, "/"), "collection and prompt")


@case("service.create-collection", MUST, "Service: CreateCollection",
      "CreateCollection creates a collection with the label, or gives a prompt which does")
def create_collection(t):
    path = t.new_collection("conformance new", optional=False)
    t.true(path in t.bus.get(ROOT, SERVICE, "Collections"), "it is not in Collections")
    t.equal(t.label(path, COLLECTION), "conformance new", "Label")
    t.equal(t.bus.get(path, COLLECTION, "Items"), [], "Items")


def create_or_skip(t, label):
    try:
        return t.bus.call(ROOT, SERVICE, "CreateCollection", "a{sv}s", {LABEL: ("s", label)}, "")
    except CallError as error:
        t.equal(error.name, NOT_SUPPORTED, "the error")
        return t.skip("the service creates no collections")


@case("service.create-collection.one-of-both", MUST, "Service: CreateCollection; 9 Prompts",
      "of collection and prompt one is /")
def create_collection_one_of_both(t):
    path, prompt = create_or_skip(t, "conformance both")
    if prompt != "/":
        t.dismiss(prompt)
    else:
        t.later.append(lambda: t.delete_collection(path))
    t.equal((path == "/") + (prompt == "/"), 1, f"of ({path}, {prompt})")


@case("service.create-collection.alias", MUST, "Service: CreateCollection", "a new collection gets the alias")
def create_collection_alias(t):
    path = t.new_collection("conformance alias", "conformance_alias")
    t.equal(t.bus.call(ROOT, SERVICE, "ReadAlias", "s", "conformance_alias")[0], path, "ReadAlias")


@case("service.create-collection.same-label", SHOULD, "Service: CreateCollection",
      "two collections of the same label have different paths")
def create_collection_same_label(t):
    t.true(t.new_collection("conformance same") != t.new_collection("conformance same"), "the paths are the same")


@case("service.create-collection.label", SHOULD, "12 Object Paths",
      "a label that is no element of a path (spaces, slashes, other letters) gives a valid path and stays the label")
def create_collection_label(t):
    label = "Ä b/c ✓ ../d"
    t.equal(t.label(t.new_collection(label), COLLECTION), label, "Label")


@case("service.create-collection.signal", MUST, "Service: CollectionCreated",
      "CollectionCreated names the new collection")
def create_collection_signal(t):
    t.bus.clear_signals()
    path = t.new_collection("conformance signal")
    t.bus.signal("CollectionCreated", path=ROOT, argument=path)


@case("service.create-collection.items", MUST, "3 Collection and Items (oo7's case create_collection_and_add_items)",
      "an item is created in a new collection, and found there and by the service, but not in the default collection")
def create_collection_items(t):
    path = t.new_collection("conformance items")
    item = t.create(collection=path)
    t.equal(t.search(t.mark, path), {item}, "SearchItems of the collection")
    t.equal(t.search(t.mark), {item}, "SearchItems of the service")
    t.equal(t.search(t.mark, t.default), set(), "SearchItems of the default collection")


@case("service.create-collection.dismissed", MUST, "9 Prompts (oo7's case create_collection_dismissed)",
      "a dismissed prompt creates no collection")
def create_collection_dismissed(t):
    before = t.bus.get(ROOT, SERVICE, "Collections")
    path, prompt = create_or_skip(t, "conformance none")
    if prompt == "/":
        t.later.append(lambda: t.delete_collection(path))
        t.skip("CreateCollection needed no prompt")
    t.dismiss(prompt)
    t.bus.signal("Completed", path=prompt)
    t.equal(t.bus.get(ROOT, SERVICE, "Collections"), before, "Collections")


@case("service.create-collection.unknown-property", SHOULD, "Service: CreateCollection",
      "CreateCollection with a property of another interface, or Label of another type, fails or ignores it")
def create_collection_unknown_property(t):
    before = t.bus.get(ROOT, SERVICE, "Collections")
    try:
        path, prompt = t.bus.call(ROOT, SERVICE, "CreateCollection", "a{sv}s", {LABEL: ("u", 7)}, "")
        if prompt != "/":
            t.dismiss(prompt)
        else:
            t.delete_collection(path)
    except CallError:
        pass
    t.equal(t.bus.get(ROOT, SERVICE, "Collections"), before, "Collections")


@case("service.search.unlocked", MUST, "Service: SearchItems", "an item in an unlocked collection is in `unlocked`")
def search_unlocked(t):
    item = t.create()
    t.equal(t.bus.call(ROOT, SERVICE, "SearchItems", "a{ss}", t.mark), ([item], []), "unlocked and locked")


@case("service.search.none", MUST, "Service: SearchItems", "a search that fits nothing gives two empty lists")
def search_none(t):
    t.equal(t.bus.call(ROOT, SERVICE, "SearchItems", "a{ss}", t.mark), ([], []), "unlocked and locked")


@case("service.search.two-collections", MUST,
      "Service: SearchItems (oo7's case search_items_across_collections)", "a search goes through all collections")
def search_two_collections(t):
    path = t.bus.call(ROOT, SERVICE, "ReadAlias", "s", "session")[0]
    if path == "/":
        path = t.new_collection()
    items = {t.create(), t.create(collection=path)}
    t.equal(t.search(t.mark), items)


@case("service.get-secrets", MUST, "Service: GetSecrets", "GetSecrets gives the secret of each item")
def get_secrets(t):
    session = t.session()
    expected = {t.create(secret=f"secret {n}".encode(), attributes={"n": str(n)}): f"secret {n}".encode() for n in range(5)}
    found = t.bus.call(ROOT, SERVICE, "GetSecrets", "aoo", list(expected), session.path)[0]
    t.equal({item: session.decode(secret) for item, secret in found.items()}, expected, "secrets")


@case("service.get-secrets.none", MUST, "Service: GetSecrets", "GetSecrets of no item gives none")
def get_secrets_none(t):
    t.equal(t.bus.call(ROOT, SERVICE, "GetSecrets", "aoo", [], t.session().path)[0], {})


@case("service.get-secrets.unknown-item", HABIT,
      "oo7's case get_secrets_with_non_existent_items", "GetSecrets leaves out items that do not exist")
def get_secrets_unknown_item(t):
    session = t.session()
    item = t.create(secret=b"one")
    found = t.bus.call(ROOT, SERVICE, "GetSecrets", "aoo", [item, f"{t.default}/conformance_none"], session.path)[0]
    t.equal(set(found), {item}, "items")


@case("service.get-secrets.twice", SHOULD, "Service: GetSecrets", "an item that is named twice is answered")
def get_secrets_twice(t):
    session = t.session()
    item = t.create(secret=b"one")
    found = t.bus.call(ROOT, SERVICE, "GetSecrets", "aoo", [item, item], session.path)[0]
    t.equal(session.decode(found[item]), b"one", "the secret")


@case("service.get-secrets.alias-path", HABIT, "libsecret reads by the path that a search gave",
      "an item's path below aliases/default gives its secret, or is no object")
def get_secrets_alias_path(t):
    session = t.session()
    item = t.create(secret=b"one")
    path = f"{ROOT}/aliases/default/{item.rsplit('/', 1)[1]}"
    try:
        t.equal(session.decode(t.bus.call(path, ITEM, "GetSecret", "o", session.path)[0]), b"one", "the secret")
    except CallError:
        pass


@case("service.unlock.unlocked", MUST, "8 Locking: Unlock (oo7's case unlock_edge_cases)",
      "Unlock of what is unlocked returns it without a prompt")
def unlock_unlocked(t):
    path, item = t.default, t.create()
    for object_path in (path, item):
        t.equal(t.bus.call(ROOT, SERVICE, "Unlock", "ao", [object_path]), ([object_path], "/"), "unlocked and prompt")


@case("service.unlock.none", MUST, "8 Locking: Unlock (oo7's case unlock_edge_cases)",
      "Unlock of nothing returns nothing, without a prompt")
def unlock_none(t):
    t.equal(t.bus.call(ROOT, SERVICE, "Unlock", "ao", []), ([], "/"), "unlocked and prompt")


def unknown_objects(t, method):
    if not t.service.may_lock:
        t.skip("the service is in use and might be locked")
    paths = [f"{ROOT}/collection/conformance_none", f"{t.default}/conformance_none"]
    try:
        return t.bus.call(ROOT, SERVICE, method, "ao", paths)
    except CallError as error:
        if error.name in (NO_SUCH_OBJECT, UNKNOWN_OBJECT):
            return ([], "/")
        raise Failed(f"the error {error}") from None


@case("service.unlock.unknown", SHOULD, "8 Locking: Unlock (oo7's case unlock_edge_cases)",
      "Unlock of what does not exist returns nothing without a prompt, or NoSuchObject")
def unlock_unknown(t):
    t.equal(unknown_objects(t, "Unlock"), ([], "/"), "unlocked and prompt")


@case("service.lock.none", MUST, "8 Locking: Lock (oo7's case lock_non_existent_objects)",
      "Lock of nothing returns nothing, without a prompt")
def lock_none(t):
    t.equal(t.bus.call(ROOT, SERVICE, "Lock", "ao", []), ([], "/"), "locked and prompt")


@case("service.lock.unknown", SHOULD, "8 Locking: Lock (oo7's case lock_non_existent_objects)",
      "Lock of what does not exist returns nothing without a prompt, or NoSuchObject")
def lock_unknown(t):
    t.equal(unknown_objects(t, "Lock"), ([], "/"), "locked and prompt")


@case("service.properties-changed.collections", SHOULD, "D-Bus specification: PropertiesChanged",
      "PropertiesChanged of Service follows a new collection")
def properties_changed_collections(t):
    t.bus.clear_signals()
    t.new_collection("conformance changed")
    t.bus.signal("PropertiesChanged", path=ROOT, argument=SERVICE, timeout=3)
