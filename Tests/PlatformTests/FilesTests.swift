import Glibc
import Platform
import Testing

@Suite struct FilesTests {
  @Test func whatIsMissingIsNil() throws {
    try withFolder { folder in
      #expect(try Files.status(folder + "/a") == nil)
      try Descriptor(folder + "/file", [.writing, .create]).write([1])
      #expect(try Files.status(folder + "/file/a") == nil)
      #expect(try !Files.remove(folder + "/a"))
      #expect(!Files.exists(folder + "/a") && !Files.hasName(folder + "/a"))
      #expect(throws: Errno.ENOENT) { try Files.names(in: folder + "/a") }
    }
  }

  @Test func aLinkThatLeadsNowhereHasANameOnly() throws {
    try withFolder { folder in
      try Files.makeLink(folder + "/link", to: "nowhere")
      #expect(!Files.exists(folder + "/link"))
      #expect(Files.hasName(folder + "/link"))
      #expect(try Files.target(ofLink: folder + "/link") == "nowhere")
      #expect(throws: Errno.EINVAL) { try Files.target(ofLink: folder) }
      #expect(throws: Errno.ENOENT) { try Files.realPath(folder + "/link") }
      #expect(try Files.realPath(folder + "/../" + Files.name(of: folder)) == Files.realPath(folder))
    }
  }

  @Test func namesAreBytes() throws {
    try withFolder { folder in
      for name in ["b", "é", ".hidden"] { try Files.makeFolder(folder + "/" + name) }
      let foreign: [CChar] = Array(folder.utf8CString.dropLast()) + [0x2F, 0x61, -1, 0]
      #expect(unsafe mkdir(foreign, 0o700) == 0)
      let names = Set(try Files.rawNames(in: folder))
      #expect(names == [Array("b".utf8), Array("é".utf8), Array(".hidden".utf8), [0x61, 0xFF]])
      #expect(try Files.names(in: folder).contains("a\u{FFFD}"))
    }
  }

  @Test func renamesSayWhatTheyReplace() throws {
    try withFolder { folder in
      let (a, b) = (folder + "/a", folder + "/b")
      try Descriptor(a, [.writing, .create]).write([1])
      try Descriptor(b, [.writing, .create]).write([2])
      #expect(throws: Errno.EEXIST) { try Files.renameWithoutReplacing(a, to: b) }
      try Files.exchange(a, with: b)
      #expect(try Files.read(a) == [2] && Files.read(b) == [1])
      try Files.rename(a, to: b)
      #expect(try Files.read(b) == [2] && !Files.hasName(a))
      try Files.link(b, as: a)
      #expect(try Files.status(a)?.id == Files.status(b)?.id)
      #expect(throws: Errno.ENOTEMPTY) { try Files.removeFolder(folder) }
    }
  }

  @Test func textIsReadWholeWhateverItsSize() throws {
    try withFolder { folder in
      try Descriptor(folder + "/a", [.writing, .create]).write([UInt8](repeating: 0x61, count: 17 << 20))
      #expect(readFile(folder + "/a").utf8.count == 17 << 20)
      #expect(readFile(folder + "/b").isEmpty)
    }
  }

  @Test func processesOfOthersTakeNoSignals() {
    #expect(ProcessNumber.isTaken(1) && ProcessNumber.isTaken(CurrentProcess.number))
    #expect(ProcessNumber.takesSignals(CurrentProcess.number))
    #expect(ProcessNumber.takesSignals(1) == User.isRoot)
    for number: Int32 in [0, -1] {
      #expect(!ProcessNumber.isTaken(number) && !ProcessNumber.takesSignals(number))
    }
  }

  @Test(arguments: [
    ("/a/b", "/a", "b"), ("/a", "/", "a"), ("a", ".", "a"), ("a/b", "a", "b"), ("/", "/", ""),
    ("/e/\u{301}x", "/e", "\u{301}x"),
  ])
  func aPathHasAFolderAndAName(path: String, folder: String, name: String) {
    #expect(Files.folder(of: path) == folder)
    #expect(Files.name(of: path) == name)
  }

  @Test func rightsAreThoseOfOpen() throws {
    try withFolder { folder in
      #expect(Files.allows([.read, .write, .execute], folder))
      #expect(throws: Errno.ENOENT) { try Files.require(.read, folder + "/a") }
    }
  }

  @Test func aVolumeHasRoom() throws {
    let volume = try Volume(at: "/")
    #expect(volume.blockSize > 0 && volume.blocks >= volume.freeBlocks)
    #expect(volume.freeBlocks >= volume.availableBlocks)
    #expect(throws: Errno.ENOENT) { try Volume(at: "/nowhere") }
  }

  @Test func errorsHaveTheSystemsText() {
    #expect("\(Errno.ENOENT)" == "No such file or directory")
    #expect(throws: Errno.EBADF) { try Descriptor(owning: -1).synchronize() }
  }

  @Test func bytesAreFoundAndCompared() {
    #expect(offset(of: 0, in: [1, 0, 2, 0]) == 1)
    #expect(offset(of: 0, in: [1, 0, 2, 0], from: 2) == 3)
    #expect(offset(of: 9, in: [1, 0, 2, 0]) == nil)
    #expect(offset(of: 0, in: [1, 0, 2, 0], from: 4) == nil)
    #expect(offset(of: 0, in: []) == nil)
    #expect(areEqual([1, 0, 2, 0], [1, 0, 2, 0]))
    #expect(!areEqual([1, 0, 2, 0], [1, 0, 2, 1]))
    #expect(!areEqual([1, 0, 2, 0], [1, 0, 2]))
    #expect(areEqual([], []))
  }

  private func offset(of byte: UInt8, in bytes: [UInt8], from start: Int = 0) -> Int? {
    bytes.span.firstOffset(of: byte, from: start)
  }

  private func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.span.hasSameBytes(as: right.span)
  }

  @Test func fileWithoutANameGetsOne() throws {
    try withFolder { folder in
      let file = try Descriptor(unnamedIn: folder)
      try file.write([7])
      #expect(try Files.names(in: folder).isEmpty)
      try file.giveName(folder + "/a")
      #expect(try Files.read(folder + "/a") == [7])
      #expect(throws: Errno.EEXIST) { try file.giveName(folder + "/a") }
    }
  }

  @Test func linkIsOfTheLinkOrOfItsFile() throws {
    try withFolder { folder in
      try Descriptor(folder + "/file", [.writing, .create]).write([1])
      try Files.makeLink(folder + "/link", to: "file")
      try Files.link(folder + "/link", as: folder + "/again")
      try Files.link(folder + "/link", as: folder + "/further", followingLinks: true)
      #expect(try Files.status(folder + "/again", followingLinks: false)?.isLink == true)
      #expect(try Files.status(folder + "/further", followingLinks: false)?.isRegular == true)
    }
  }

  @Test func bytesOfANumberAreReadOnce() throws {
    try withFolder { folder in
      try Descriptor(folder + "/a", [.writing, .create]).write([1, 2, 3])
      let file = try Descriptor(folder + "/a", .reading)
      var bytes: [UInt8] = [0, 0]
      var room = bytes.mutableSpan
      #expect(try Files.read(into: &room, from: file.number) == 2)
      #expect(try Files.read(into: &room, from: file.number) == 1)
      #expect(try Files.read(into: &room, from: file.number) == 0)
      #expect(throws: Errno.EBADF) { try Files.read(into: &room, from: -1) }
    }
  }

  @Test func statusAndDescriptorAreHadAsAUser() throws {
    try withFolder { folder in
      #expect(Files.statusError(folder, asUser: User.real, group: User.realGroup) == nil)
      #expect(Files.statusError(folder + "/a", asUser: User.real, group: User.realGroup) == .ENOENT)
      try Files.makeFolder(folder + "/b")
      try Files.makeLink(folder + "/link", to: "b")
      let descriptor = try Descriptor(path: folder + "/b", asUser: User.real, group: User.realGroup)
      #expect(try descriptor.status.isFolder)
      #expect(throws: Errno.ELOOP) {
        _ = try Descriptor(path: folder + "/link", asUser: User.real, group: User.realGroup)
      }
      #expect(throws: Errno.ENOENT) {
        _ = try Descriptor(path: folder + "/c", asUser: User.real, group: User.realGroup)
      }
    }
  }

  @Test func clocksGoForward() {
    let (boot, monotonic) = (SystemTime.sinceBoot, SystemTime.monotonic)
    #expect(SystemTime.now.seconds > 1_600_000_000)
    #expect(boot <= SystemTime.sinceBoot && monotonic <= SystemTime.monotonic)
  }
}

/// A folder below the system's for temporary files, removed afterwards.
func withFolder(_ body: (String) throws -> Void) throws {
  var template = Array("/tmp/kh-platform.XXXXXX".utf8CString)
  guard unsafe mkdtemp(&template) != nil else { throw Errno.current }
  let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  defer { removeTree(folder) }
  try body(folder)
}

// By bytes: a name need not be UTF-8.
private func removeTree(_ path: String) {
  for name in (try? Files.rawNames(in: path)) ?? [] {
    let child = Array(path.utf8) + Array("/".utf8) + name + [0]
    let bytes = child.map { CChar(bitPattern: $0) }
    if unsafe unlink(bytes) != 0 { unsafe rmdir(bytes) }
  }
  try? Files.removeFolder(path)
}
