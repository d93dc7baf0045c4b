import ImportExport
import Platform
import Testing

/// The file of `keyhole export --output`.
@Suite struct OutputFileTests {
  @Test func fileIsThereWholeOrNotAtAll() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/export"
    do {
      let file = try OutputFile(path)
      try Files.write("half".utf8.span, to: file.descriptor)
    }
    #expect(try Files.names(in: folder.path).isEmpty)
    var file = try OutputFile(path)
    try Files.write("whole".utf8.span, to: file.descriptor)
    #expect(!Files.exists(path))
    try file.finish()
    #expect(try Files.names(in: folder.path) == ["export"])
    #expect(try Files.read(path) == Array("whole".utf8))
    #expect(try Files.status(path)?.permissions == 0o600)
  }

  @Test func anotherFileStaysUntilTheNewOneIsComplete() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/export"
    try Descriptor(path, [.writing, .create]).write(Array("old".utf8))
    var file = try OutputFile(path)
    try Files.write("new".utf8.span, to: file.descriptor)
    #expect(try Files.read(path) == Array("old".utf8))
    try file.finish()
    #expect(try Files.read(path) == Array("new".utf8))
  }

  @Test func folderThatIsMissingIsAFailure() throws {
    let folder = try TemporaryFolder()
    let refusal = reason { _ = try OutputFile(folder.path + "/a/export") }
    #expect(refusal == "it can't be written: \(Errno.ENOENT)")
  }
}
