"""Locks: what can be done with locked collections and items."""

from ..bus import COLLECTION, IS_LOCKED, ITEM, PROMPT, PROPERTIES, ROOT, SERVICE, CallError
from ..suite import HABIT, MUST, SHOULD, case


@case("lock.collection", MUST, "8 Locking: Lock", "Lock of a collection returns it, and Locked is true")
def collection(t):
    path = t.default
    t.equal(t.lock(path), [path], "locked")
    t.equal(t.bus.get(path, COLLECTION, "Locked"), True, "Locked")


@case("lock.collection.signal", MUST, "Service: CollectionChanged (KeePassXC's case testServiceLock)",
      "CollectionChanged follows Lock")
def collection_signal(t):
    path = t.default
    t.bus.clear_signals()
    t.lock(path)
    t.bus.signal("CollectionChanged", path=ROOT, argument=path)


@case("lock.collection.stays", MUST, "4 Aliases (KeePassXC's case testDefaultAliasAlwaysPresent)",
      "a locked collection stays in Collections, and the alias default names it")
def collection_stays(t):
    path = t.lock_default()
    t.true(path in t.bus.get(ROOT, SERVICE, "Collections"), "it is not in Collections")
    t.equal(t.default, path, "the alias default")


@case("lock.properties-changed", SHOULD, "D-Bus specification: PropertiesChanged",
      "PropertiesChanged of the collection follows Lock")
def properties_changed(t):
    t.bus.clear_signals()
    path = t.lock_default()
    t.bus.signal("PropertiesChanged", path=path, argument=COLLECTION, timeout=3)


@case("lock.item-locked", MUST, "8 Locking", "an item of a locked collection, if it is shown, is locked")
def item_locked(t):
    item = t.create()
    path = t.lock_default()
    if item not in t.bus.get(path, COLLECTION, "Items"):
        return "locked items are not shown"
    t.equal(t.bus.get(item, ITEM, "Locked"), True, "Locked")
    return ""


@case("lock.get-secret", MUST, "8 Locking; 15 Errors: IsLocked (oo7's case locked_item_operations)",
      "GetSecret of a locked item fails with IsLocked")
def get_secret(t):
    session = t.session()
    item = t.create(session=session)
    path = t.lock_default()
    if item not in t.bus.get(path, COLLECTION, "Items"):
        t.some_error(item, ITEM, "GetSecret", "o", session.path)
        t.skip("locked items are not shown")
    t.error(IS_LOCKED, item, ITEM, "GetSecret", "o", session.path)


@case("lock.set-secret", MUST, "8 Locking; 15 Errors: IsLocked", "SetSecret of a locked item fails with IsLocked")
def set_secret(t):
    session = t.session()
    item = t.create(session=session)
    path = t.lock_default()
    if item not in t.bus.get(path, COLLECTION, "Items"):
        t.skip("locked items are not shown")
    t.error(IS_LOCKED, item, ITEM, "SetSecret", "(oayays)", session.encode(b"after"))


@case("lock.get-secrets", SHOULD, "8 Locking: GetSecrets", "GetSecrets leaves out locked items, or fails with IsLocked")
def get_secrets(t):
    session = t.session()
    item = t.create(session=session)
    t.lock_default()
    try:
        found = t.bus.call(ROOT, SERVICE, "GetSecrets", "aoo", [item], session.path)[0]
    except Exception as error:  # noqa: BLE001
        t.equal(getattr(error, "name", str(error)), IS_LOCKED, "the error")
        return
    t.equal(found, {}, "secrets")


@case("lock.search", MUST, "Service: SearchItems", "a search finds items of a locked collection as locked, or not at all")
def search(t):
    item = t.create()
    t.lock_default()
    unlocked, locked = t.bus.call(ROOT, SERVICE, "SearchItems", "a{ss}", t.mark)
    t.equal(unlocked, [], "unlocked")
    t.true(locked in ([item], []), f"locked: {locked}")
    return "" if locked else "locked items are not found"


@case("lock.search.found", HABIT, "libsecret: SECRET_SEARCH_UNLOCK",
      "a search finds items of a locked collection as locked, so that a client can unlock them")
def search_found(t):
    item = t.create()
    t.lock_default()
    t.equal(t.bus.call(ROOT, SERVICE, "SearchItems", "a{ss}", t.mark), ([], [item]), "unlocked and locked")


@case("lock.create", MUST, "8 Locking (oo7's case create_item_in_locked_collection)",
      "CreateItem in a locked collection fails with IsLocked, or returns a prompt and creates nothing before it")
def create(t):
    session = t.session()
    path = t.lock_default()
    try:
        item, prompt = t.bus.call(
            path, COLLECTION, "CreateItem", "a{sv}(oayays)b",
            {f"{ITEM}.Label": ("s", "conformance"), f"{ITEM}.Attributes": ("a{ss}", t.mark)}, session.encode(b"x"), False,
        )
    except Exception as error:  # noqa: BLE001
        t.equal(getattr(error, "name", str(error)), IS_LOCKED, "the error")
        return
    t.equal(item, "/", "the item")
    t.true(prompt != "/", "neither an item nor a prompt")
    t.bus.call(prompt, PROMPT, "Dismiss")
    t.bus.signal("Completed", path=prompt)
    t.unlock(path)
    t.equal(t.search(t.mark), set(), "items after the prompt was dismissed")


@case("lock.create-collection", MUST, "Service: CreateCollection; 9 Prompts",
      "CreateCollection while everything is locked fails with IsLocked, creates a collection, or gives a prompt that does")
def create_collection_locked(t):
    t.lock_default()
    try:
        path = t.new_collection("conformance locked")
    except CallError as error:
        t.equal(error.name, IS_LOCKED, "the error")
        return
    t.equal(t.label(path, COLLECTION), "conformance locked", "Label")


@case("lock.collections", MUST, "8 Locking: Lock",
      "after Lock of a new collection it and its item are locked; after Unlock the item's secret is as it was")
def collections(t):
    path = t.new_collection("conformance further")
    item = t.create(b"further", collection=path)
    t.lock(path)
    t.equal(t.bus.get(path, COLLECTION, "Locked"), True, "Locked")
    t.true(path in t.unlock(path), "Unlock does not return it")
    t.equal(t.bus.get(path, COLLECTION, "Locked"), False, "Locked after Unlock")
    t.equal(t.secret(item), b"further", "the secret")


@case("lock.set-label", SHOULD, "8 Locking", "Set of Label and Attributes of a locked item fails, and they stay")
def set_label(t):
    item = t.create(label="before")
    path = t.lock_default()
    if item not in t.bus.get(path, COLLECTION, "Items"):
        t.skip("locked items are not shown")
    t.some_error(item, PROPERTIES, "Set", "ssv", ITEM, "Label", ("s", "after"))
    t.some_error(item, PROPERTIES, "Set", "ssv", ITEM, "Attributes", ("a{ss}", {**t.mark, "after": "1"}))
    t.unlock(path)
    t.equal(t.label(item), "before", "Label")


@case("lock.delete", SHOULD, "8 Locking (oo7's case delete_locked_item_with_prompt)",
      "Delete of a locked item fails with IsLocked or returns a prompt; nothing is deleted before")
def delete(t):
    item = t.create(b"stays")
    path = t.lock_default()
    if item not in t.bus.get(path, COLLECTION, "Items"):
        t.skip("locked items are not shown")
    try:
        prompt = t.bus.call(item, ITEM, "Delete")[0]
        t.true(prompt != "/", "it was deleted without a prompt")
        t.dismiss(prompt)
    except Exception as error:  # noqa: BLE001
        t.equal(getattr(error, "name", str(error)), IS_LOCKED, "the error")
    t.unlock(path)
    t.equal(t.secret(item), b"stays", "the secret")


@case("lock.open-session", MUST, "6 Sessions", "sessions are opened and closed while everything is locked")
def open_session(t):
    t.lock_default()
    t.session().close()


@case("lock.unlock-item", MUST, "8 Locking: Unlock (oo7's case unlock_item_prompt)",
      "Unlock of a locked item gives it, by a prompt, and its secret is as it was")
def unlock_item(t):
    item = t.create(b"kept")
    path = t.lock_default()
    if item not in t.bus.get(path, COLLECTION, "Items"):
        t.skip("locked items are not shown")
    t.equal(t.unlock(item), [item], "unlocked")
    t.equal(t.bus.get(item, ITEM, "Locked"), False, "Locked")
    t.equal(t.secret(item), b"kept", "the secret")


@case("lock.unlock.signal", MUST, "Service: CollectionChanged", "CollectionChanged follows an unlocking")
def unlock_signal(t):
    path = t.lock_default()
    t.bus.signals_named("CollectionChanged")
    t.bus.clear_signals()
    t.equal(t.unlock(path), [path], "unlocked")
    t.bus.signal("CollectionChanged", path=ROOT, argument=path)


@case("lock.items-after", MUST, "8 Locking", "after Lock and Unlock the items have their paths, secrets and attributes")
def items_after(t):
    expected = {t.create(f"{n}".encode(), attributes={"n": str(n)}): f"{n}".encode() for n in range(3)}
    path = t.lock_default()
    t.unlock(path)
    t.equal(t.search(t.mark), set(expected), "SearchItems")
    t.equal({item: t.secret(item) for item in expected}, expected, "secrets")


@case("lock.twice", SHOULD, "8 Locking: Lock", "Lock of what is locked returns it, or nothing, without a prompt")
def twice(t):
    path = t.lock_default()
    locked, prompt = t.bus.call(ROOT, SERVICE, "Lock", "ao", [path])
    t.equal(prompt, "/", "prompt")
    t.true(locked in ([path], []), f"locked: {locked}")


@case("lock.item", SHOULD, "8 Locking: Lock (oo7's case lock_item_in_unlocked_collection)",
      "Lock of an item locks it, or its collection, or nothing: the answer says which")
def item(t):
    path, one = t.default, t.create()
    locked = t.lock(one)
    states = {one: t.bus.get(one, ITEM, "Locked"), path: t.bus.get(path, COLLECTION, "Locked")}
    t.equal(states[one], bool(locked), f"Locked of the item, while Lock returned {locked}")


@case("lock.lock-service", HABIT, "libsecret: secret_service_lock; seahorse",
      "Lock of the path /org/freedesktop/secrets is answered, with an error or not")
def lock_service(t):
    if not t.service.may_lock:
        t.skip("the service is in use and would be locked")
    t.later.append(t.service.unlock_again)
    try:
        t.bus.call(ROOT, SERVICE, "Lock", "ao", [ROOT])
    except Exception as error:  # noqa: BLE001
        t.true(hasattr(error, "name"), str(error))
