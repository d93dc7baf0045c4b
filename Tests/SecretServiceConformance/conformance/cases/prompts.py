"""Prompts: Prompt, Dismiss and Completed."""

from ..bus import (
    COLLECTION, NO_SUCH_OBJECT, PROMPT, ROOT, SERVICE, UNKNOWN_METHOD, UNKNOWN_OBJECT, CallError,
)
from ..suite import HABIT, MUST, SHOULD, case

GONE = (NO_SUCH_OBJECT, UNKNOWN_OBJECT, UNKNOWN_METHOD)


def a_prompt(t, client=None):
    """A prompt that unlocks the default collection, and that collection."""
    path = t.lock_default()
    unlocked, prompt = (client or t.bus).call(ROOT, SERVICE, "Unlock", "ao", [path])
    if prompt == "/":
        t.skip("Unlock needed no prompt")
    t.equal(unlocked, [], "what is unlocked before the prompt")
    return prompt, path


@case("prompt.path", SHOULD, "12 Object Paths", "a prompt is /org/freedesktop/secrets/prompt/NAME")
def path_of_prompt(t):
    prompt, _ = a_prompt(t)
    t.dismiss(prompt)
    t.true(prompt.startswith(f"{ROOT}/prompt"), f"it is {prompt}")


@case("prompt.waits", MUST, "9 Prompts", "nothing is asked, unlocked or completed before Prompt is called")
def waits(t):
    prompt, path = a_prompt(t)
    t.equal(t.bus.signals_named("Completed"), [], "Completed")
    t.equal(t.bus.get(path, COLLECTION, "Locked"), True, "Locked")
    t.dismiss(prompt)


@case("prompt.dismiss", MUST, "9 Prompts: Dismiss",
      "Dismiss before Prompt sends Completed with dismissed = true, and unlocks nothing")
def dismiss(t):
    prompt, path = a_prompt(t)
    t.bus.call(prompt, PROMPT, "Dismiss")
    t.equal(t.bus.signal("Completed", path=prompt)[0], True, "dismissed")
    t.equal(t.bus.get(path, COLLECTION, "Locked"), True, "Locked")


@case("prompt.dismiss.object-gone", SHOULD, "9 Prompts (oo7's case dismiss_prompt_cleanup)",
      "after Completed the prompt is no object any more")
def dismiss_object_gone(t):
    prompt, _ = a_prompt(t)
    t.bus.call(prompt, PROMPT, "Dismiss")
    t.bus.signal("Completed", path=prompt)
    t.error(GONE, prompt, PROMPT, "Prompt", "s", "")


@case("prompt.completed", MUST, "9 Prompts: Prompt, Completed (KeePassXC's case testServiceUnlock)",
      "an answered prompt sends Completed with dismissed = false and, for Unlock, the unlocked paths")
def completed(t):
    prompt, path = a_prompt(t)
    t.equal(t.complete(prompt), ("ao", [path]), "result")
    t.equal(t.bus.get(path, COLLECTION, "Locked"), False, "Locked")


@case("prompt.refused", MUST, "9 Prompts", "a question that the person refuses sends Completed with dismissed = true")
def refused(t):
    prompt, path = a_prompt(t)
    t.complete(prompt, accept=False)
    t.equal(t.bus.get(path, COLLECTION, "Locked"), True, "Locked")


@case("prompt.refused.result", SHOULD, "9 Prompts; libsecret reads it", "the result of a dismissed Unlock is a list of paths, or a text")
def refused_result(t):
    prompt, _ = a_prompt(t)
    t.bus.call(prompt, PROMPT, "Dismiss")
    signature = t.bus.signal("Completed", path=prompt)[1][0]
    t.true(signature in ("ao", "s", "o"), f"its signature is {signature}")


@case("prompt.window-id", HABIT, "libsecret and Chromium send a number of a window",
      "Prompt with `x11:1234`, `wayland:abc`, a number and an empty text is answered")
def window_id(t):
    for window in ("x11:1234", "wayland:abc", "4194305", ""):
        prompt, _ = a_prompt(t)
        if not t.service.answers_prompts:
            t.dismiss(prompt)
            t.skip("the prompt needs a person")
        t.service.will_answer(True)
        t.bus.call(prompt, PROMPT, "Prompt", "s", window)
        t.equal(t.bus.signal("Completed", path=prompt)[0], False, "dismissed")


@case("prompt.twice", SHOULD, "9 Prompts (oo7's case prompt_called_twice_error)",
      "a second Prompt while the question waits, or after it, fails; Completed comes once")
def twice(t):
    prompt, _ = a_prompt(t)
    t.complete(prompt)
    t.some_error(prompt, PROMPT, "Prompt", "s", "")
    t.equal(t.bus.signals_named("Completed"), [], "a second Completed")


@case("prompt.foreign", MUST, "9 Prompts", "another client can neither perform nor dismiss a prompt")
def foreign(t):
    prompt, path = a_prompt(t)
    other = t.client()
    t.some_error(prompt, PROMPT, "Dismiss", client=other)
    t.some_error(prompt, PROMPT, "Prompt", "s", "", client=other)
    t.equal(t.bus.get(path, COLLECTION, "Locked"), True, "Locked")
    t.bus.call(prompt, PROMPT, "Dismiss")
    t.equal(t.bus.signal("Completed", path=prompt)[0], True, "dismissed")


@case("prompt.ends-with-client", MUST, "9 Prompts", "when a client disconnects, its prompts are gone")
def ends_with_client(t):
    client = t.client()
    prompt, _ = a_prompt(t, client)
    client.close()
    t.clients.remove(client)
    t.bus.ping()
    t.some_error(prompt, PROMPT, "Dismiss")


@case("prompt.unknown", MUST, "15 Errors", "Prompt and Dismiss of a path that is no prompt fail")
def unknown(t):
    t.some_error(f"{ROOT}/prompt/conformance_none", PROMPT, "Prompt", "s", "")
    t.some_error(f"{ROOT}/prompt/conformance_none", PROMPT, "Dismiss")
    t.some_error(t.default, PROMPT, "Prompt", "s", "")


@case("prompt.two-clients", MUST, "9 Prompts (KeePassXC's case testServiceUnlockDatabaseConcurrent)",
      "two clients unlock the same collection with a prompt each, one after the other; both get Completed")
def two_clients(t):
    other = t.client()
    path = t.lock_default()
    prompts = [(client, client.call(ROOT, SERVICE, "Unlock", "ao", [path])[1]) for client in (t.bus, other)]
    for client, prompt in prompts:
        if prompt == "/":
            t.skip("Unlock needed no prompt")
        t.complete(prompt, client=client)
    t.equal(t.bus.get(path, COLLECTION, "Locked"), False, "Locked")


@case("prompt.delete-item", HABIT, "KeePassXC's case testItemDelete", "Delete of an item returns / or a prompt that can be completed")
def delete_item(t):
    t.delete(t.create())
    t.equal(t.search(t.mark), set(), "SearchItems")


@case("prompt.many", SHOULD, "9 Prompts", "100 prompts that are dismissed leave none behind, and the service goes on")
def many(t):
    path = t.lock_default()
    for _ in range(100):
        prompt = t.bus.call(ROOT, SERVICE, "Unlock", "ao", [path])[1]
        if prompt == "/":
            t.skip("Unlock needed no prompt")
        try:
            t.bus.call(prompt, PROMPT, "Dismiss")
        except CallError as error:
            t.true(False, f"Dismiss: the error {error}")
        t.bus.signal("Completed", path=prompt)
