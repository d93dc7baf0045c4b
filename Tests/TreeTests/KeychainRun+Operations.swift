import Model
import Store
import Tree

extension KeychainRun {
  private mutating func one(_ names: String...) -> String { names.randomElement(using: &random) ?? "" }

  private mutating func name() -> Name { Name(service: one("S", "S", "T"), account: one("A", "B")) }

  private mutating func text() -> String {
    one("1", "line\n", "two\nlines\n", "\n", " ", "é\n", "\u{FFFD}", "a\0\n")
  }

  mutating func directory() {
    let (name, fixture) = (name(), fixture)
    let folder = "keychain/generic/\(name.service)"
    switch Int.random(in: 0..<8, using: &random) {
    case 0:
      compare(
        "rmdir \(folder)", { try fixture.removeDirectory(folder) }, { try $0.removeFolder(name.service) })
    case 1: compare("rmdir \(name)", { try fixture.removeDirectory(name.path) }, { try $0.removeItem(name) })
    case 2...4:
      compare("mkdir \(folder)", { try fixture.makeDirectory(folder) }, { try $0.makeFolder(name.service) })
    default: compare("mkdir \(name)", { try fixture.makeDirectory(name.path) }, { try $0.makeItem(name) })
    }
  }

  mutating func move() {
    let (old, new, fixture) = (name(), name(), fixture)
    guard Bool.random(using: &random) else {
      return compare(
        "mv \(old) \(new)", { try fixture.rename(old.path, new.path) }, { try $0.moveItem(old, new) })
    }
    compare("mv \(old.service) \(new.service)") {
      try fixture.rename("keychain/generic/\(old.service)", "keychain/generic/\(new.service)")
    } _: {
      try $0.moveFolder(old.service, new.service)
    }
  }

  mutating func openFile() {
    let (name, fixture) = (name(), fixture)
    guard open.count < 3, model.items[name]?.file == nil else { return }
    let (truncating, exclusive) = (Bool.random(using: &random), Int.random(in: 0..<4, using: &random) == 0)
    let mode: OpenMode = truncating ? [.read, .write, .truncate] : [.read, .write]
    var (handle, file): (Handle?, KeychainModel.File?)
    compare("open \(name) truncating: \(truncating) exclusive: \(exclusive)") {
      handle = try fixture.create(name.path + "/value", mode, exclusive: exclusive)
    } _: {
      file = try $0.open(name, truncating: truncating, exclusive: exclusive)
    }
    if let handle, let file { open.append((handle, file, name)) }
  }

  mutating func write() {
    guard let (handle, file, name) = open.randomElement(using: &random) else { return }
    let (text, offset) = (text(), Int.random(in: 0...4, using: &random))
    switch Int.random(in: 0..<5, using: &random) {
    case 0:
      compare(
        "truncate \(name) \(offset)", { try handle.truncate(to: offset, by: .current) },
        { $0.truncate(offset, file) })
    case 1:
      compare(
        "write \(name) \(text.debugDescription) at \(offset)", { try handle.write(text, at: offset) },
        { $0.write(Array(text.utf8), at: offset, file) })
    default:
      compare(
        "append \(name) \(text.debugDescription)", { try handle.write(text, at: nil) },
        { $0.write(Array(text.utf8), at: nil, file) })
    }
  }

  mutating func flush() {
    guard let (handle, file, name) = open.randomElement(using: &random) else { return }
    compare("flush \(name)", { try handle.flush(by: .current) }, { $0.flush(file) })
  }

  mutating func close(_ index: Int) {
    guard !open.isEmpty else { return }
    let (handle, file, name) = open.remove(at: index % open.count)
    compare("close \(name)", { handle.close() }, { $0.close(file) })
  }

  mutating func scratch() {
    let (name, scratch, text, fixture) = (name(), one(".x", "value~"), text(), fixture)
    compare(
      "write \(name)/\(scratch)", { try fixture.write(name.path + "/" + scratch, text) },
      {
        try $0.item(name).scratch[scratch] = Array(text.utf8)
      })
  }

  /// Not specified: a value that is set aside while it is written or onto other scratch.
  mutating func rename() {
    let (name, scratch, fixture) = (name(), one(".x", "value~"), fixture)
    let item = model.items[name]
    let (value, other) = (name.path + "/value", name.path + "/" + scratch)
    guard Bool.random(using: &random) else {
      return compare(
        "save \(name)/\(scratch)", { try fixture.rename(other, value) }, { try $0.save(scratch, name) })
    }
    guard item?.isPending != true, item?.file == nil, item?.scratch[scratch] == nil else { return }
    compare(
      "set aside \(name) \(scratch)", { try fixture.rename(value, other) },
      { try $0.setAside(name, as: scratch) })
  }

  /// Not specified: scratch that is removed while the value it stands for is being created.
  mutating func remove() {
    let (name, file, fixture) = (name(), one("value", ".x", "value~"), fixture)
    if let item = model.items[name], item.isPending, item.aside == file { return }
    compare(
      "rm \(name)/\(file)", { try fixture.remove(name.path + "/" + file) },
      {
        if file == "value" { try $0.removeValue(name) } else { try $0.removeScratch(file, name) }
      })
  }

  mutating func attribute() {
    let (name, text, fixture) = (name(), one("x", "y"), fixture)
    guard Bool.random(using: &random) else {
      return compare(
        "eol \(name)", { try fixture.setAttribute("user.keyhole.eol", "exact", name.path) },
        {
          try $0.item(name).keepsLineEnd = true
        })
    }
    compare(
      "comment \(name)", { try fixture.setAttribute("user.comment", text, name.path) },
      {
        try $0.item(name).comment = text
      })
  }
}
