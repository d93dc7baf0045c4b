"""Encoded secrets that are damaged, and what must not come of them."""

import os

from ..bus import ITEM, NO_SESSION
from ..suite import MUST, SHOULD, case
from ..transfer import DH, PLAIN, encrypt


def refused(t, secret, *, session):
    """SetSecret and CreateItem of a damaged secret fail, and nothing changes."""
    item = t.create(b"before", session=session)
    t.some_error(item, ITEM, "SetSecret", "(oayays)", secret)
    t.equal(t.secret(item, session), b"before", "the secret after SetSecret")
    attributes = {**t.mark, "damaged": "yes"}
    t.create_error(None, {f"{ITEM}.Label": ("s", "damaged"), f"{ITEM}.Attributes": ("a{ss}", attributes)}, secret)
    t.equal(t.search({**t.mark, "damaged": "yes"}), set(), "items after CreateItem")


@case("transfer.padding", MUST, "7 Transfer of Secrets", "a value whose padding is wrong is refused and changes nothing")
def padding(t):
    session = t.session(DH)
    iv = os.urandom(16)
    for block in (b"a" * 15 + b"\0", b"a" * 15 + b"\x11", b"a" * 14 + b"\x03\x02", b"a" * 15 + b"\xff"):
        refused(t, (session.path, iv, encrypt(session.key, iv, block, pad=False), "text/plain"), session=session)


@case("transfer.iv-length", MUST, "7 Transfer of Secrets", "an IV of 0, 15, 17 or 32 bytes is refused and changes nothing")
def iv_length(t):
    session = t.session(DH)
    _, iv, value, kind = session.encode(b"after")
    for length in (0, 15, 17, 32):
        refused(t, (session.path, (iv * 2)[:length], value, kind), session=session)


@case("transfer.value-length", MUST, "7 Transfer of Secrets",
      "a value that is no whole number of blocks is refused and changes nothing")
def value_length(t):
    session = t.session(DH)
    _, iv, value, kind = session.encode(b"after")
    for length in (1, 15):
        refused(t, (session.path, iv, value[:length], kind), session=session)


@case("transfer.value-empty", MUST, "7 Transfer of Secrets",
      "an encrypted value of no bytes, which has no padding, is refused and changes nothing")
def value_empty(t):
    session = t.session(DH)
    refused(t, (session.path, os.urandom(16), b"", "text/plain"), session=session)


@case("transfer.other-key", MUST, "7 Transfer of Secrets",
      "a value for another session's key does not become a secret in clear: it is refused, or what is stored is another")
def other_key(t):
    session, other = t.session(DH), t.session(DH)
    item = t.create(b"before", session=session)
    _, iv, value, kind = other.encode(b"conformance-needle")
    try:
        t.bus.call(item, ITEM, "SetSecret", "(oayays)", (session.path, iv, value, kind))
    except Exception:  # noqa: BLE001  # an error is right
        t.equal(t.secret(item, session), b"before", "the secret")
        return
    t.true(t.secret(item, session) != b"conformance-needle", "the value was decrypted with another session's key")


@case("transfer.other-session", MUST, "6 Sessions", "another client's session and key are refused: NoSession")
def other_session(t):
    other = t.session(client=t.client())
    item = t.create(b"before")
    t.error(NO_SESSION, item, ITEM, "SetSecret", "(oayays)", other.encode(b"after"))
    t.equal(t.secret(item), b"before", "the secret")


@case("transfer.plain-with-parameters", SHOULD, "7 Transfer of Secrets: plain",
      "parameters in a plain session, which has none, are ignored or refused")
def plain_with_parameters(t):
    session = t.session(PLAIN)
    item = t.create(b"before", session=session)
    try:
        t.bus.call(item, ITEM, "SetSecret", "(oayays)", (session.path, b"x" * 16, b"after", "text/plain"))
        expected = b"after"
    except Exception:  # noqa: BLE001  # an error is right
        expected = b"before"
    t.equal(t.secret(item, session), expected, "the secret")


@case("transfer.across-sessions", MUST, "7 Transfer of Secrets",
      "what is written by one kind of session is read by the other")
def across_sessions(t):
    plain, encrypted = t.session(PLAIN), t.session(DH)
    one, two = t.create(b"one", session=plain), t.create(b"two", session=encrypted)
    t.equal((t.secret(one, encrypted), t.secret(two, plain)), (b"one", b"two"), "the secrets")


@case("transfer.block-sizes", MUST, "7 Transfer of Secrets",
      "every length of 0 to 48 bytes is encrypted with a whole block of padding where it ends on a block")
def block_sizes(t):
    session = t.session(DH)
    item = t.create(session=session)
    for size in range(49):
        value = os.urandom(size)
        t.bus.call(item, ITEM, "SetSecret", "(oayays)", session.encode(value, "application/octet-stream"))
        secret = t.bus.call(item, ITEM, "GetSecret", "o", session.path)[0]
        t.equal(len(secret[2]), (size // 16 + 1) * 16, f"bytes of the value of {size}")
        t.equal(session.decode(secret), value, f"a secret of {size} bytes")
