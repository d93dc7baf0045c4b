import Glibc
import Model
import Store
import StoreConformance
import Testing
import Tree

@Suite struct TreeCreatingTests {
  @Test(arguments: [
    "x", "defaults/x", "keychain/x", "keychain/generic/x", "keychain/generic/S/x", "keychain/other/x",
    ".keyhole/x",
  ])
  func filesAreMadeInSuitesAndItemsOnly(path: String) throws {
    let fixture = TreeFixture()
    try fixture.makeItem("keychain/generic/S/A")
    #expect(errorNumber { _ = try fixture.create(path) } == EPERM)
    #expect(errorNumber { try fixture.makeLink(path, to: "x") } == EPERM)
    #expect(!fixture.exists(path))
  }

  @Test(arguments: [
    "x", "keychain/x", "keychain/other/x", "keychain/generic/S/A/x", "defaults/s/x", ".keyhole/x",
    ".keyhole/status",
  ])
  func directoriesAreNotMadeElsewhere(path: String) throws {
    let fixture = TreeFixture([:])
    try fixture.makeItem("keychain/generic/S/A")
    #expect(errorNumber { try fixture.makeDirectory(path) } == EPERM)
  }

  @Test(arguments: ["defaults/%2Fa", "defaults/%", "defaults/%41", "keychain/generic/a%2f", "defaults/a%2Fb"])
  func namesThatCanBeNoDirectoryAreInvalid(path: String) throws {
    #expect(errorNumber { try TreeFixture().makeDirectory(path) } == EINVAL)
  }

  @Test(arguments: ["p;x", "p;port=080", "p;port=65536", "p;protocol=ssh;domain=d", ";port=1", "p;auth="])
  func internetLeavesThatAreNoneAreInvalid(leaf: String) throws {
    let fixture = TreeFixture()
    try fixture.makeDirectories("keychain/internet/h")
    #expect(errorNumber { try fixture.makeDirectory("keychain/internet/h/\(leaf)") } == EINVAL)
  }

  @Test(arguments: ["defaults/s", "keychain/generic/S", "keychain/generic/S/A"])
  func whatIsThereIsNotMadeAgain(path: String) throws {
    let fixture = TreeFixture([:])
    try fixture.makeItem("keychain/generic/S/A")
    #expect(errorNumber { try fixture.makeDirectory(path) } == EEXIST)
  }

  @Test func newNamesHaveToBeNames() throws {
    let fixture = TreeFixture([:])
    let long = [UInt8](repeating: 0x78, count: 256)
    for (name, number) in [([0xFF], EILSEQ), (long, ENAMETOOLONG), (Array("%41".utf8), EINVAL)] {
      let (suites, suite) = (try fixture.node("defaults"), try fixture.node("defaults/s"))
      #expect(errorNumber { _ = try fixture.tree.makeDirectory(name, in: suites) } == number)
      #expect(
        errorNumber {
          _ = try fixture.tree.create(name, in: suite, .write, exclusive: false, by: .current)
        } == number)
    }
    #expect(errorNumber { _ = try fixture.create("defaults/s/a%~0123456789abcdef") } == EINVAL)
    #expect(try fixture.list("defaults/s") == [])
  }

  @Test func suiteIsMadeEmpty() throws {
    let fixture = TreeFixture()
    try fixture.makeDirectory("defaults/com.example.app")
    #expect(try fixture.suites.read("com.example.app")?.settings.isEmpty == true)
    #expect(try fixture.list("defaults/com.example.app") == [])
  }

  @Test func touchedKeyIsEmptyDataAndTakesItsTypeFromItsFirstContent() throws {
    let fixture = TreeFixture([:])
    try fixture.create("defaults/s/k").finish()
    #expect(try fixture.stored("k") == .data([]) && fixture.status("defaults/s/k").size == 0)
    #expect(try fixture.attribute("user.keyhole.type", "defaults/s/k") == "data")
    try fixture.write("defaults/s/k", "12\n")
    #expect(try fixture.stored("k") == .integer(12))
  }

  @Test func createdFileShowsBeforeItIsStored() throws {
    let fixture = TreeFixture([:])
    let handle = try fixture.create("defaults/s/k")
    #expect(try fixture.list("defaults/s") == ["k"] && fixture.status("defaults/s/k", for: .other).size == 0)
    #expect(try fixture.stored("k") == nil)
    try handle.finish()
    #expect(try fixture.list("defaults/s") == ["k"] && fixture.stored("k") == .data([]))
  }

  @Test func exclusiveCreationRefusesWhatIsThere() throws {
    let fixture = TreeFixture(["k": .integer(1)])
    #expect(errorNumber { _ = try fixture.create("defaults/s/k", exclusive: true) } == EEXIST)
    let pending = try fixture.create("defaults/s/new", exclusive: true)
    #expect(errorNumber { _ = try fixture.create("defaults/s/new", exclusive: true) } == EEXIST)
    pending.close()
    #expect(try fixture.stored("k") == .integer(1))
  }

  @Test func mknodStoresAtOnce() throws {
    let fixture = TreeFixture([:])
    let (parent, name) = try fixture.parent(of: "defaults/s/k")
    _ = try fixture.tree.makeFile(name.utf8, in: parent, by: .current)
    #expect(try fixture.stored("k") == .data([]))
    #expect(errorNumber { _ = try fixture.tree.makeFile(name.utf8, in: parent, by: .current) } == EEXIST)
  }

  @Test func readOnlySuiteRefusesAtOpen() throws {
    let fixture = TreeFixture(["k": .integer(1)])
    fixture.suites.setReadOnly("s", "for the test")
    #expect(errorNumber { _ = try fixture.create("defaults/s/new") } == EROFS)
    #expect(errorNumber { _ = try fixture.open("defaults/s/k", .write) } == EROFS)
    #expect(errorNumber { try fixture.remove("defaults/s/k") } == EROFS)
    #expect(errorNumber { try fixture.rename("defaults/s/k", "defaults/s/l") } == EROFS)
    #expect(try fixture.read("defaults/s/k") == "1\n")
    #expect(try fixture.list("defaults/s") == ["k"])
  }

  @Test func directoriesCanNotBeOpenedAsFiles() throws {
    let fixture = TreeFixture([:])
    try fixture.makeItem("keychain/generic/S/A")
    for path in ["", "defaults", "defaults/s", "keychain/generic", "keychain/generic/S/A"] {
      #expect(errorNumber { _ = try fixture.open(path, .read) } == EISDIR)
    }
  }

  @Test func statusIsReadOnly() throws {
    var options = FileTree.Options()
    options.status = { Array("{\"pid\":1}\n".utf8) }
    let fixture = TreeFixture(options)
    #expect(try fixture.read(".keyhole/status") == "{\"pid\":1}\n")
    #expect(try fixture.status(".keyhole/status").size == 10)
    #expect(errorNumber { _ = try fixture.open(".keyhole/status", .write) } == EACCES)
    #expect(errorNumber { try fixture.remove(".keyhole/status") } == EPERM)
  }
}

extension TreeFixture {
  func makeDirectory(_ path: String) throws {
    let (parent, name) = try parent(of: path)
    _ = try tree.makeDirectory(name.utf8, in: parent)
  }

  func makeLink(_ path: String, to target: String) throws {
    let (parent, name) = try parent(of: path)
    _ = try tree.makeLink(name.utf8, to: Array(target.utf8), in: parent)
  }
}
