internal import CSecret
import Model

/// A value of D-Bus: GVariant, immutable.
///
/// @unchecked: GLib counts references atomically, and nothing else of it changes.
@safe final class Variant: @unchecked Sendable {
  let pointer: OpaquePointer

  /// Takes over a floating reference, or adds one of its own.
  init(_ pointer: OpaquePointer) {
    unsafe self.pointer = g_variant_ref_sink(pointer)
  }

  /// Takes over the caller's reference.
  init(owned pointer: OpaquePointer) {
    unsafe self.pointer = pointer
  }

  deinit {
    unsafe g_variant_unref(pointer)
  }
}

extension Variant {
  convenience init(_ string: String) {
    unsafe self.init(g_variant_new_string(string))
  }

  convenience init(path: String) {
    unsafe self.init(g_variant_new_object_path(path))
  }

  convenience init(_ bool: Bool) {
    unsafe self.init(g_variant_new_boolean(bool ? 1 : 0))
  }

  convenience init(number: UInt32) {
    unsafe self.init(g_variant_new_uint32(number))
  }

  /// A value of any type in a box: `v`.
  convenience init(boxed value: Variant) {
    unsafe self.init(withExtendedLifetime(value) { unsafe g_variant_new_variant(value.pointer) })
  }

  convenience init(tuple values: [Variant]) {
    let pointers = unsafe values.map { unsafe Optional($0.pointer) }
    unsafe self.init(
      withExtendedLifetime(values) { unsafe g_variant_new_tuple(pointers, gsize(values.count)) })
  }

  convenience init(paths: [String]) {
    let values = paths.map { Variant(path: $0) }
    self.init(array: values, of: "o")
  }

  /// `a{ss}`.
  convenience init(strings: [(name: String, value: String)]) {
    let entries = strings.map { Variant(key: $0.name, value: Variant($0.value)) }
    self.init(array: entries, of: "{ss}")
  }

  /// `a{sv}`.
  convenience init(properties: [(name: String, value: Variant)]) {
    let entries = properties.map { Variant(key: $0.name, value: Variant(boxed: $0.value)) }
    self.init(array: entries, of: "{sv}")
  }

  private convenience init(key: String, value: Variant) {
    let key = Variant(key)
    unsafe self.init(
      withExtendedLifetime((key, value)) { unsafe g_variant_new_dict_entry(key.pointer, value.pointer) })
  }

  private convenience init(array values: [Variant], of type: String) {
    let pointers = unsafe values.map { unsafe Optional($0.pointer) }
    // SAFETY: the type is copied by the call, and a well-formed one of this file.
    let type = unsafe g_variant_type_new(type)
    defer { unsafe g_variant_type_free(type) }
    unsafe self.init(
      withExtendedLifetime(values) { unsafe g_variant_new_array(type, pointers, gsize(values.count)) })
  }
}

extension Variant {
  func has(type: String) -> Bool {
    unsafe String(cString: g_variant_get_type_string(pointer)) == type
  }

  var count: Int {
    unsafe g_variant_is_container(pointer) != 0 ? Int(g_variant_n_children(pointer)) : 0
  }

  /// nil: there are fewer.
  subscript(index: Int) -> Variant? {
    guard index >= 0, index < count else { return nil }
    return unsafe Variant(owned: g_variant_get_child_value(pointer, gsize(index)))
  }

  var children: [Variant] { (0..<count).compactMap { self[$0] } }

  /// The content of a `v`; else the value itself.
  var unboxed: Variant {
    has(type: "v") ? unsafe Variant(owned: g_variant_get_variant(pointer)) : self
  }

  /// A string or an object path.
  var string: String? {
    guard has(type: "s") || has(type: "o"), let text = unsafe g_variant_get_string(pointer, nil) else {
      return nil
    }
    return unsafe String(cString: text)
  }

  var bool: Bool? { has(type: "b") ? unsafe g_variant_get_boolean(pointer) != 0 : nil }

  var number: UInt64? { has(type: "t") ? UInt64(unsafe g_variant_get_uint64(pointer)) : nil }

  /// `ao` or `as`.
  var strings: [String] { children.compactMap(\.string) }

  /// The entries of a dictionary with strings for keys.
  var entries: [(key: String, value: Variant)] {
    children.compactMap { entry in
      guard let key = entry[0]?.string, let value = entry[1] else { return nil }
      return (key, value.unboxed)
    }
  }

  /// A dictionary's value; nil: it has none of this name.
  subscript(name: String) -> Variant? {
    entries.first { $0.key == name }?.value
  }
}
