"""Lookup attributes: which items a search finds."""

from ..bus import COLLECTION, ITEM, ROOT, SERVICE, CallError
from ..suite import HABIT, MUST, SHOULD, case


@case("attributes.all-given", MUST, "5 Lookup Attributes (oo7's case search_items_subset_matching)",
      "an item is found by all of its attributes and by a part of them")
def all_given(t):
    item = t.create(attributes={"a": "1", "b": "2"})
    for part in ({}, {"a": "1"}, {"b": "2"}, {"a": "1", "b": "2"}):
        t.equal(t.search({**t.mark, **part}), {item}, f"by {part}")


@case("attributes.one-differs", MUST, "5 Lookup Attributes", "one given attribute that differs, or is missing, hides the item")
def one_differs(t):
    t.create(attributes={"a": "1", "b": "2"})
    for part in ({"a": "2"}, {"a": "1", "b": "3"}, {"c": "1"}, {"a": "1", "b": "2", "c": "3"}):
        t.equal(t.search({**t.mark, **part}), set(), f"by {part}")


@case("attributes.exact", MUST, "5 Lookup Attributes", "values are compared whole: no prefixes, patterns or other case")
def exact(t):
    t.create(attributes={"a": "Value"})
    for text in ("Val", "value", "VALUE", "Value ", "V*", "%", "Val_e", "", ".*"):
        t.equal(t.search({**t.mark, "a": text}), set(), f"by {text!r}")
    t.equal(t.search({**t.mark, "A": "Value"}), set(), "by the name in upper case")


@case("attributes.several", MUST, "5 Lookup Attributes", "several items are found by what they share")
def several(t):
    items = {t.create(attributes={"shared": "yes", "n": str(number)}) for number in range(3)}
    t.create(attributes={"shared": "no"})
    t.equal(t.search({**t.mark, "shared": "yes"}), items)


@case("attributes.unicode", MUST, "5 Lookup Attributes", "names and values of other scripts are kept and found")
def unicode(t):
    for name, value in (("имя", "значение"), ("名前", "値"), ("emoji", "🔑🗝️"), ("accent", "é"), ("rtl", "שלום")):
        item = t.create(attributes={name: value})
        t.equal(t.bus.get(item, ITEM, "Attributes").get(name), value, name)
        t.equal(t.search({**t.mark, name: value}), {item}, f"by {name}")


@case("attributes.normal-forms", SHOULD, "5 Lookup Attributes",
      "é as one character and as two are different values: nothing is normalised")
def normal_forms(t):
    item = t.create(attributes={"a": "\u00e9"})
    t.equal(t.search({**t.mark, "a": "e\u0301"}), set(), "by the other form")
    t.equal(t.search({**t.mark, "a": "\u00e9"}), {item}, "by the same form")


@case("attributes.odd-characters", MUST, "5 Lookup Attributes (KeePassXC's case testCrazyAttributeKey)",
      "names and values with punctuation, spaces, line ends and control characters are kept and found")
def odd_characters(t):
    for name, value in (
        ("_a:bc&-+'-e%12df_d", "[v]al@-ue"), ("with space", " lead and trail "), ("a=b", "c=d"), ("a/b", "../c"),
        ("quote\"'", "\\back\\slash"), ("xml<&>", "<value attr='x'/>"), ("line\nend", "line 1\nline 2\r\n\t"),
        ("sql' OR 1=1 --", "'; DROP TABLE items"), ("control", "\x01\x1f\x7f"),
    ):
        item = t.create(attributes={name: value})
        t.equal(t.bus.get(item, ITEM, "Attributes").get(name), value, f"the value of {name!r}")
        t.equal(t.search({**t.mark, name: value}), {item}, f"by {name!r}")


@case("attributes.empty-value", MUST, "5 Lookup Attributes", "an attribute with an empty value is kept and found")
def empty_value(t):
    item = t.create(attributes={"empty": ""})
    t.equal(t.bus.get(item, ITEM, "Attributes").get("empty"), "", "the value")
    t.equal(t.search({**t.mark, "empty": ""}), {item}, "SearchItems")
    t.equal(t.search({**t.mark, "empty": "x"}), set(), "by another value")
    t.create(attributes={"other": "1"})
    t.equal(t.search({**t.mark, "empty": ""}), {item}, "SearchItems: an item without the attribute doesn't fit")


@case("attributes.empty-name", SHOULD, "5 Lookup Attributes", "an attribute with an empty name is kept, or refused")
def empty_name(t):
    try:
        item = t.create(attributes={"": "value"})
    except CallError:
        t.equal(t.search(t.mark), set(), "items after the error")
        return
    t.equal(t.bus.get(item, ITEM, "Attributes").get(""), "value", "the value")


@case("attributes.long", SHOULD, "5 Lookup Attributes", "a value of 16 KiB and 100 attributes are kept and found")
def long(t):
    value = "v" * 16384
    item = t.create(attributes={"long": value, **{f"name {number}": str(number) for number in range(100)}})
    t.equal(len(t.bus.get(item, ITEM, "Attributes").get("long", "")), 16384, "characters of the value")
    t.equal(t.search({**t.mark, "long": value}), {item}, "by the long value")
    t.equal(t.search({**t.mark, "name 99": "99", "name 0": "0"}), {item}, "by two of 100")


@case("attributes.empty-search", HABIT, "gnome-keyring: no attributes, all items; KeePassXC: none",
      "a search without attributes is answered: with all items or with none")
def empty_search(t):
    item = t.create()
    for found in (t.search({}), t.search({}, t.default)):
        t.true(not found or item in found, "it found some items, but not this one")
    return "all items" if t.search({}) else "none"


@case("attributes.not-the-secret", MUST, "5 Lookup Attributes (KeePassXC's case testServiceSearch)",
      "a secret is not found by its value, whatever the attribute is called")
def not_the_secret(t):
    t.create(b"conformance-needle")
    for name in ("Password", "password", "secret", "Secret", "value"):
        t.equal(t.search({name: "conformance-needle"}), set(), f"by {name}")


@case("attributes.label-is-none", SHOULD, "5 Lookup Attributes", "the label is no attribute")
def label_is_none(t):
    item = t.create(label="conformance-label")
    t.true("conformance-label" not in t.bus.get(item, ITEM, "Attributes").values(), "Attributes has the label")


@case("attributes.only-own-collection", MUST, "Collection: SearchItems", "a collection's search finds its own items only")
def only_own_collection(t):
    path = t.bus.call(ROOT, SERVICE, "ReadAlias", "s", "session")[0]
    if path == "/":
        path = t.new_collection()
    one, two = t.create(), t.create(collection=path)
    t.equal((t.search(t.mark, t.default), t.search(t.mark, path)), ({one}, {two}))


@case("attributes.after-change", MUST, "5 Lookup Attributes", "a replaced item is found once, by its attributes")
def after_change(t):
    t.create(b"one")
    item = t.create(b"two", replace=True)
    t.equal(t.bus.call(t.default, COLLECTION, "SearchItems", "a{ss}", t.mark)[0], [item])
