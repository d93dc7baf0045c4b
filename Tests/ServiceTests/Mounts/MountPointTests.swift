import Glibc
import KeychainSelection
import Model
import Testing

@testable import Service

/// Which folders a mount may be made on.
@Suite struct MountPointTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private var places: StoragePaths {
    StoragePaths(
      home: folder.path, configuration: folder.path + "/c", vault: folder.path + "/v",
      state: folder.path + "/s",
      runtime: folder.path + "/r")
  }

  private func reason(_ path: String) -> String? {
    do {
      _ = try MountPoint(path, places)
      return nil
    } catch {
      return (error as? Failure)?.reason
    }
  }

  @Test func emptyFolderIsTakenByItsRealPath() throws {
    #expect(try MountPoint("/tmp/../\(folder.path)", places).path == folder.path)
  }

  /// Without an argument it is made.
  @Test func folderOfTheHomeIsMade() throws {
    #expect(try MountPoint(nil, places).path == folder.path + "/Keyhole")
    #expect(folder.names == ["Keyhole"])
  }

  /// The same folder by its name, as messages print it.
  @Test func folderOfTheHomeIsMadeByItsNameToo() throws {
    #expect(try MountPoint(folder.path + "/Keyhole/", places).path == folder.path + "/Keyhole")
    unsafe rmdir(folder.path + "/Keyhole")
    #expect(try MountPoint(folder.path + "/./Keyhole", places).path == folder.path + "/Keyhole")
    #expect(reason(folder.path + "/keyhole") == "there is no such folder; make it with `mkdir -p`")
  }

  /// A file in the place of the home folder: also root can make nothing in it.
  @Test func folderThatCanNotBeMadeSaysWhy() {
    folder.write("file")
    let places = StoragePaths(
      home: folder.path + "/file", configuration: folder.path + "/c", vault: folder.path + "/v",
      state: folder.path + "/s", runtime: folder.path + "/r")
    #expect { try MountPoint(nil, places) } throws: { error in
      (error as? Failure)?.reason == "this folder can't be made: Not a directory"
    }
  }

  @Test func folderThatIsNotEmptyIsRefused() {
    folder.write("file")
    #expect(reason(folder.path) == "it is not empty; use an empty folder")
    #expect(reason(folder.path + "/file") == "it is not a folder")
  }

  @Test func folderThatOthersMayWriteToIsRefused() {
    unsafe chmod(folder.path, 0o720)
    #expect(reason(folder.path) == "others may write to it; `chmod go-w` it first")
  }

  @Test func linkAndMissingFolderAreRefused() {
    unsafe symlink(folder.path, folder.path + "/link")
    #expect(reason(folder.path + "/link") == "it is a symbolic link; name the folder itself")
    #expect(reason(folder.path + "/missing") == "there is no such folder; make it with `mkdir -p`")
    #expect(reason("") == "the mount point is an empty path; name a folder of yours")
  }

  @Test func placeOfAnotherFileSystemIsRefused() {
    #expect(reason("/proc") == "proc is mounted there; use another folder")
  }

  /// Doctor leaves the mounts of edits out.
  @Test(arguments: [
    ("/run/k/edit.12", true), ("edit.7", true), ("/run/k/edit.x", false), ("/home/u/Keyhole", false),
  ])
  func folderOfAnEditIsKnownByItsName(path: String, isOne: Bool) {
    #expect(PrivateFolder.isOne(path) == isOne)
  }
}
