"""Sessions, and how the draft encodes secrets for transfer."""

import hashlib
import hmac
import os

from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from .bus import ROOT, SERVICE, SESSION

PLAIN = "plain"
DH = "dh-ietf1024-sha256-aes128-cbc-pkcs7"

# The second Oakley group (RFC 2409, section 6.2), whose generator is 2.
PRIME_1024 = int(
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD"
    "EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7ED"
    "EE386BFB5A899FA5AE9F24117C4B1FE649286651ECE65381FFFFFFFFFFFFFFFF",
    16,
)
# The fifth (RFC 3526, section 2), which GNOME's prompter uses.
PRIME_1536 = int(
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD"
    "EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7ED"
    "EE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F"
    "83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E4ABC9804F1746C08CA237327FFFFFFFFFFFFFFFF",
    16,
)


def derive(shared, length):
    """The AES key of a shared number: HKDF with SHA-256, a salt of zeros and no information."""
    extracted = hmac.new(bytes(32), shared.to_bytes(length, "big"), hashlib.sha256).digest()
    return hmac.new(extracted, b"\x01", hashlib.sha256).digest()[:16]


def encrypt(key, iv, value, pad=True):
    if pad:
        padder = padding.PKCS7(128).padder()
        value = padder.update(value) + padder.finalize()
    encryptor = Cipher(algorithms.AES(key), modes.CBC(iv)).encryptor()
    return encryptor.update(value) + encryptor.finalize()


def decrypt(key, iv, value):
    decryptor = Cipher(algorithms.AES(key), modes.CBC(iv)).decryptor()
    padded = decryptor.update(value) + decryptor.finalize()
    unpadder = padding.PKCS7(128).unpadder()
    return unpadder.update(padded) + unpadder.finalize()


class Session:
    """A session of a client: its path, and its key unless it is plain."""

    def __init__(self, client, path, key=None):
        self.client = client
        self.path = path
        self.key = key

    @staticmethod
    def open(client, algorithm=DH):
        if algorithm == PLAIN:
            _, path = client.call(ROOT, SERVICE, "OpenSession", "sv", PLAIN, ("s", ""))
            return Session(client, path)
        private = int.from_bytes(os.urandom(128), "big")
        public = pow(2, private, PRIME_1024).to_bytes(128, "big")
        (signature, theirs), path = client.call(ROOT, SERVICE, "OpenSession", "sv", DH, ("ay", public))
        if signature != "ay":
            raise AssertionError(f"the output of OpenSession has the signature {signature}, not ay")
        shared = pow(int.from_bytes(bytes(theirs), "big"), private, PRIME_1024)
        return Session(client, path, derive(shared, 128))

    def encode(self, value, content_type="text/plain"):
        """The structure of a secret: (session, parameters, value, content type)."""
        if self.key is None:
            return (self.path, b"", value, content_type)
        iv = os.urandom(16)
        return (self.path, iv, encrypt(self.key, iv, value), content_type)

    def decode(self, secret):
        """The value of a structure that the service sent."""
        path, parameters, value, _ = secret
        if path != self.path:
            raise AssertionError(f"the secret names the session {path}, not {self.path}")
        if self.key is None:
            return bytes(value)
        return decrypt(self.key, bytes(parameters), bytes(value))

    def close(self):
        self.client.call(self.path, SESSION, "Close")
