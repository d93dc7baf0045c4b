"""Sessions: OpenSession and Close."""

from ..bus import (
    INVALID_ARGS, ITEM, NO_SESSION, NO_SUCH_OBJECT, NOT_SUPPORTED, ROOT, SERVICE, SESSION, CallError,
    UNKNOWN_METHOD, UNKNOWN_OBJECT,
)
from ..suite import HABIT, MUST, SHOULD, case
from ..transfer import DH, PLAIN, PRIME_1024

GONE = (NO_SESSION, NO_SUCH_OBJECT, UNKNOWN_OBJECT, UNKNOWN_METHOD)


@case("session.open.plain", MUST, "7 Transfer of Secrets: plain",
      "OpenSession with `plain` and an empty text returns a path, and an output of an empty text")
def open_plain(t):
    output, path = t.bus.call(ROOT, SERVICE, "OpenSession", "sv", PLAIN, ("s", ""))
    t.equal(output, ("s", ""), "output")
    t.true(path != "/", "the session is /")


@case("session.open.dh", MUST, "7 Transfer of Secrets: dh-ietf1024-sha256-aes128-cbc-pkcs7",
      "OpenSession with the key exchange returns a public key of at most 128 bytes that is no trivial number")
def open_dh(t):
    public = pow(2, 0x1234567890ABCDEF << 700 | 1, PRIME_1024).to_bytes(128, "big")
    (signature, theirs), _ = t.bus.call(ROOT, SERVICE, "OpenSession", "sv", DH, ("ay", public))
    t.equal(signature, "ay", "signature of the output")
    number = int.from_bytes(bytes(theirs), "big")
    t.true(len(theirs) <= 128 and 1 < number < PRIME_1024 - 1, f"a key of {len(theirs)} bytes")


@case("session.open.dh-fresh", MUST, "7 Transfer of Secrets", "two sessions get different public keys")
def open_dh_fresh(t):
    keys = set()
    for _ in range(2):
        (_, theirs), _ = t.bus.call(ROOT, SERVICE, "OpenSession", "sv", DH, ("ay", (4).to_bytes(128, "big")))
        keys.add(bytes(theirs))
    t.equal(len(keys), 2, "different keys")


@case("session.open.dh-short-key", SHOULD, "7 Transfer of Secrets",
      "a public key without leading zero bytes, shorter than 128 bytes, is taken")
def open_dh_short_key(t):
    t.bus.call(ROOT, SERVICE, "OpenSession", "sv", DH, ("ay", b"\x10" + bytes(100)))


@case("session.open.unknown", MUST, "7 Transfer of Secrets: Algorithms",
      "an unknown algorithm fails with org.freedesktop.DBus.Error.NotSupported")
def open_unknown(t):
    t.error(NOT_SUPPORTED, ROOT, SERVICE, "OpenSession", "sv", "conformance-none", ("s", ""))


@case("session.open.empty-name", SHOULD, "7 Transfer of Secrets: Algorithms",
      "an empty name of an algorithm fails with NotSupported or InvalidArgs")
def open_empty_name(t):
    t.error((NOT_SUPPORTED, INVALID_ARGS), ROOT, SERVICE, "OpenSession", "sv", "", ("s", ""))


@case("session.open.dh-wrong-input", MUST, "7 Transfer of Secrets",
      "the key exchange with a text instead of a key fails")
def open_dh_wrong_input(t):
    t.some_error(ROOT, SERVICE, "OpenSession", "sv", DH, ("s", "text"))


@case("session.open.dh-trivial-key", SHOULD, "RFC 2631, 2.1.5",
      "public keys 0, 1 and the prime less one, of which the shared number is known, are refused")
def open_dh_trivial_key(t):
    taken = []
    for name, number in (("0", 0), ("1", 1), ("p-1", PRIME_1024 - 1)):
        try:
            t.bus.call(ROOT, SERVICE, "OpenSession", "sv", DH, ("ay", number.to_bytes(128, "big")))
            taken.append(name)
        except CallError:
            pass
    t.true(not taken, f"taken: {', '.join(taken)}")


@case("session.open.dh-long-key", SHOULD, "7 Transfer of Secrets",
      "a public key of 4,096 bytes is refused, or the session works; the service goes on")
def open_dh_long_key(t):
    try:
        t.bus.call(ROOT, SERVICE, "OpenSession", "sv", DH, ("ay", b"\xff" * 4096))
    except CallError:
        pass
    t.secret(t.create(secret=b"s"))


@case("session.open.both", MUST, "6 Sessions", "a client has a plain and an encrypted session at the same time")
def open_both(t):
    encrypted, plain = t.session(DH), t.session(PLAIN)
    item = t.create(secret=b"one", session=encrypted)
    t.equal(t.secret(item, plain), b"one", "by the plain session")
    t.equal(t.secret(item, encrypted), b"one", "by the encrypted session")


@case("session.close", MUST, "6 Sessions: Close", "Close returns, and the session is of no use afterwards: NoSession")
def close(t):
    session = t.session()
    item = t.create()
    session.close()
    t.error(NO_SESSION, item, ITEM, "GetSecret", "o", session.path)


@case("session.close.create", MUST, "6 Sessions: Close", "CreateItem with a closed session fails with NoSession")
def close_create(t):
    session = t.session()
    secret = session.encode(b"secret")
    session.close()
    t.create_error(NO_SESSION, {f"{ITEM}.Attributes": ("a{ss}", t.mark)}, secret)
    t.equal(t.search(t.mark), set(), "items afterwards")


@case("session.close.set-secret", MUST, "6 Sessions: Close",
      "SetSecret with a closed session fails with NoSession, and the secret stays")
def close_set_secret(t):
    session = t.session()
    item = t.create(secret=b"before")
    secret = session.encode(b"after")
    session.close()
    t.error(NO_SESSION, item, ITEM, "SetSecret", "(oayays)", secret)
    t.equal(t.secret(item), b"before", "the secret")


@case("session.close.get-secrets", MUST, "6 Sessions: Close", "GetSecrets with a closed session fails with NoSession")
def close_get_secrets(t):
    session = t.session()
    item = t.create()
    session.close()
    t.error(NO_SESSION, ROOT, SERVICE, "GetSecrets", "aoo", [item], session.path)


@case("session.close.twice", MUST, "6 Sessions: Close", "a second Close fails: the object is gone")
def close_twice(t):
    session = t.session()
    session.close()
    t.error(GONE, session.path, SESSION, "Close")


@case("session.close.of-other-client", MUST, "6 Sessions",
      "a session can't be closed by another client, and works afterwards")
def close_of_other_client(t):
    session = t.session()
    item = t.create(secret=b"one")
    t.some_error(session.path, SESSION, "Close", client=t.client())
    t.equal(t.secret(item, session), b"one", "the secret")


@case("session.foreign", MUST, "6 Sessions", "another client's session is no session: GetSecret fails with NoSession")
def foreign(t):
    item = t.create()
    other = t.session(client=t.client())
    t.error(NO_SESSION, item, ITEM, "GetSecret", "o", other.path)


@case("session.foreign.set", MUST, "6 Sessions",
      "SetSecret with another client's session fails with NoSession, and the secret stays")
def foreign_set(t):
    item = t.create(secret=b"before")
    other = t.session(client=t.client())
    t.error(NO_SESSION, item, ITEM, "SetSecret", "(oayays)", other.encode(b"after"))
    t.equal(t.secret(item), b"before", "the secret")


@case("session.unknown", MUST, "15 Errors (oo7's case get_secret_invalid_session)",
      "GetSecret, GetSecrets, SetSecret and CreateItem with a session that never was fail with NoSession")
def unknown(t):
    item = t.create()
    path = f"{ROOT}/session/conformance_none"
    secret = (path, b"", b"x", "text/plain")
    t.error(NO_SESSION, item, ITEM, "GetSecret", "o", path)
    t.error(NO_SESSION, ROOT, SERVICE, "GetSecrets", "aoo", [item], path)
    t.error(NO_SESSION, item, ITEM, "SetSecret", "(oayays)", secret)
    t.create_error(NO_SESSION, {}, secret)


@case("session.of-other-kind", MUST, "6 Sessions", "the path of a collection is no session: NoSession")
def of_other_kind(t):
    t.error(NO_SESSION, t.create(), ITEM, "GetSecret", "o", t.default)


@case("session.ends-with-client", MUST, "6 Sessions",
      "when a client disconnects, its session is gone, also for a client that comes after it")
def ends_with_client(t):
    client = t.client()
    session = t.session(client=client)
    client.close()
    t.clients.remove(client)
    t.bus.ping()
    t.error(GONE, session.path, SESSION, "Close")


@case("session.items-outlive", MUST, "6 Sessions", "an item outlives the session and the client that made it")
def items_outlive(t):
    client = t.client()
    item = t.create(secret=b"stays", client=client)
    client.close()
    t.clients.remove(client)
    t.equal(t.secret(item), b"stays", "the secret")


@case("session.many", SHOULD, "6 Sessions", "one client opens 200 sessions, uses the first and closes all")
def many(t):
    sessions = [t.session(PLAIN) for _ in range(200)]
    t.equal(len({session.path for session in sessions}), 200, "different paths")
    t.equal(t.secret(t.create(secret=b"s", session=sessions[0]), sessions[199]), b"s", "the secret")
    for session in sessions:
        session.close()


@case("session.open.plain-other-input", HABIT, "clients send an empty text; some send another",
      "OpenSession with `plain` and a text that is not empty is answered, with a session or an error")
def open_plain_other_input(t):
    try:
        t.bus.call(ROOT, SERVICE, "OpenSession", "sv", PLAIN, ("s", "text"))
    except CallError:
        pass
