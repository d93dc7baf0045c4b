"""The cases, in the order in which they run."""

from . import objects, sessions, service, collections, items, attributes, transfer, prompts, locking, clients  # noqa: F401
