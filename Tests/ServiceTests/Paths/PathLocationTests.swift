import Testing

@testable import Service

/// The meaning of a word of the command line.
@Suite struct PathLocationTests {
  private func location(
    _ text: String, in folder: String? = "/home/me", links: [String: String] = [:]
  ) -> PathLocation {
    let mounts: Set<String> = ["/home/me/Keyhole", "/mnt"]
    return PathLocation(
      text,
      PathSurroundings(
        currentFolder: folder, isMountPoint: mounts.contains, linkTarget: { links[$0] }))
  }

  private func tree(_ path: String, _ mount: String? = nil) -> PathLocation {
    .tree(TreePath(path), mount: mount)
  }

  @Test(arguments: ["defaults/a/b", "keychain", "defaults/..", "keychain/generic/s/a", ""])
  func fullPathIsOneWhateverTheFolderIs(text: String) {
    for folder in ["/home/me", "/home/me/Keyhole/keychain/generic", nil] {
      #expect(location(text, in: folder) == tree(text))
    }
  }

  @Test func absolutePathIsFullOrInAMount() {
    #expect(location("/defaults/a/b") == tree("defaults/a/b"))
    #expect(location("/") == tree(""))
    #expect(location("/home/me/Keyhole/defaults/a/b") == tree("defaults/a/b", "/home/me/Keyhole"))
    #expect(location("//home/me/./Keyhole//defaults/x/../a") == tree("defaults/a", "/home/me/Keyhole"))
    #expect(location("/mnt") == tree("", "/mnt"))
    #expect(location("/home/me/Keyhole/..") == .outside)
    #expect(location("/etc/passwd") == .outside)
    #expect(location("/home/me/Keyholes/defaults") == .outside)
  }

  @Test func relativePathLeadsIntoAMountFromOutside() {
    #expect(location("Keyhole/defaults/a") == tree("defaults/a", "/home/me/Keyhole"))
    #expect(location("../me/Keyhole/defaults") == tree("defaults", "/home/me/Keyhole"))
    #expect(location("my.service/peter") == .short)
    #expect(location("my.service/peter", in: nil) == .short)
  }

  @Test func relativePathInAMount() {
    let folder = "/home/me/Keyhole/keychain/generic"
    let mount = "/home/me/Keyhole"
    #expect(location("s/a", in: folder) == .relative(TreePath("keychain/generic/s/a"), mount: mount))
    #expect(location("./s/a", in: folder) == tree("keychain/generic/s/a", mount))
    #expect(location("../internet", in: folder) == tree("keychain/internet", mount))
    #expect(location(".", in: folder) == tree("keychain/generic", mount))
    // Above the mount point there is no tree.
    #expect(location("../../../x", in: folder) == tree("../../../x"))
    // At the top a name that is none of the tree's can only be a short one.
    #expect(location("s/a", in: mount) == .short)
    #expect(location("./s", in: mount) == tree("s", mount))
  }

  @Test func symbolicLinksLeadIntoTheMount() {
    let links = ["/home/me/.netrc": "Keyhole/keychain/generic/netrc/me/value", "/home/me/k": "/mnt"]
    #expect(
      location(".netrc", links: links) == tree("keychain/generic/netrc/me/value", "/home/me/Keyhole"))
    #expect(location("/home/me/k/defaults", links: links) == tree("defaults", "/mnt"))
    // None is followed below the mount point: that would ask the mount.
    let inside = ["/home/me/Keyhole/defaults": "/etc"]
    #expect(location("Keyhole/defaults/a", links: inside) == tree("defaults/a", "/home/me/Keyhole"))
  }

  @Test func linksThatLeadToThemselvesEnd() {
    #expect(location("a/b", links: ["/home/me/a": "a"]) == .short)
  }
}
