import Glibc
import Testing

private let k = "defaults/s/k"
private let value = "keychain/generic/s/p/value"
private let long = String(repeating: "n", count: 256)
private let most = String(repeating: "n", count: 255)

/// A table of what POSIX, and sections 1, 2, 5 and 6, say of each call, in the manner of pjdfstest.
@Suite(.timeLimit(.minutes(1))) struct PosixTests {
  /// One call on a tree that is the same for all; nil: it succeeds.
  struct Row: Sendable {
    let name: String
    let expected: Errno?
    let call: @Sendable (MountedKeyhole) throws -> Void

    init(_ name: String, _ expected: Errno?, _ call: @escaping @Sendable (MountedKeyhole) throws -> Void) {
      self.name = name
      self.expected = expected
      self.call = call
    }
  }

  static let before = """
    mkdir defaults/s defaults/empty; cd defaults/s; echo 50 > k; echo text > t; echo '{}' > d; printf '\\1\\2\\377' > b; echo x > .scratch
    ln -s k .link; ln -s .loop .loop
    cd "$MOUNT/keychain"; mkdir -p generic/s/p generic/s/staged generic/empty internet/h/u; echo x > generic/s/p/value; echo x > internet/h/u/value
    echo x > generic/s/p/scratch
    """

  private static func check(_ rows: [Row]) async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(before)
      for row in rows {
        let got = failure { try row.call(keyhole) }
        #expect(got == row.expected, "\(row.name)")
      }
      // Nothing of this ended it, and what is not named in a row is as it was.
      try keyhole.check("cat defaults/s/t", prints: "text\n")
    }
  }

  // MARK: open

  static let opens: [(String, String, Int32, Errno?)] = [
    ("a file", k, O_RDONLY, nil), ("to read and write", k, O_RDWR, nil), ("a secret", value, O_RDWR, nil),
    ("scratch", "defaults/s/.scratch", O_RDWR, nil), ("an O_PATH", k, 0o10_000_000, nil),
    ("what is missing", "defaults/s/missing", O_RDONLY, .missing),
    ("in what is missing", "defaults/missing/k", O_RDONLY | O_CREAT, .missing),
    ("below a file", k + "/x", O_RDONLY, .notDirectory),
    ("below a file to create", k + "/x", O_RDWR | O_CREAT, .notDirectory),
    ("a file as a directory", k, O_RDONLY | O_DIRECTORY, .notDirectory),
    ("a file with a slash", k + "/", O_RDONLY, .notDirectory),
    ("a directory", "defaults/s", O_RDONLY, nil),
    ("a directory to write", "defaults/s", O_WRONLY, .isDirectory),
    ("an item's directory to write", "keychain/generic/s/p", O_RDWR, .isDirectory),
    ("a directory to create", "defaults/s", O_RDONLY | O_CREAT, .isDirectory),
    ("exclusively what exists", k, O_WRONLY | O_CREAT | O_EXCL, .exists),
    ("exclusively a secret that exists", value, O_WRONLY | O_CREAT | O_EXCL, .exists),
    ("exclusively scratch that exists", "defaults/s/.scratch", O_WRONLY | O_CREAT | O_EXCL, .exists),
    ("exclusively a link", "defaults/s/.link", O_WRONLY | O_CREAT | O_EXCL, .exists),
    ("a link", "defaults/s/.link", O_RDONLY, nil),
    ("a link without following", "defaults/s/.link", O_RDONLY | O_NOFOLLOW, .init(code: ELOOP)),
    ("a link to itself", "defaults/s/.loop", O_RDONLY, .init(code: ELOOP)),
    ("a name of 255 bytes", "defaults/s/" + most, O_RDWR | O_CREAT, nil),
    ("a name of 256", "defaults/s/" + long, O_RDWR | O_CREAT, .nameTooLong),
    ("a missing name of 256", "defaults/s/" + long, O_RDONLY, .nameTooLong),
    ("scratch of 256", "keychain/generic/s/p/" + long, O_RDWR | O_CREAT, .nameTooLong),
    ("a needless escape", "defaults/s/%41", O_RDWR | O_CREAT, .invalid),
    ("a needless escape to look up", "defaults/s/%41", O_RDONLY, .missing),
    ("a small escape", "defaults/s/%2f", O_RDWR | O_CREAT, .invalid),
    ("half an escape", "defaults/s/%2", O_RDWR | O_CREAT, .invalid),
    ("a file at the top", "x", O_RDWR | O_CREAT, .notPermitted),
    ("a file among the suites", "defaults/x", O_RDWR | O_CREAT, .notPermitted),
    ("a file in a class", "keychain/generic/x", O_RDWR | O_CREAT, .notPermitted),
    ("a file in a service", "keychain/generic/s/x", O_RDWR | O_CREAT, .notPermitted),
    ("the status to write", ".keyhole/status", O_WRONLY, .denied),
    ("the status", ".keyhole/status", O_RDONLY, nil),
    ("an unnamed file", "defaults/s", O_RDWR | System.temporaryFile, .notSupported),
    ("a new value of a staged item", "keychain/generic/s/staged/value", O_RDONLY, .missing),
  ]

  @Test func open() async throws {
    try await Self.check(
      Self.opens.map { row in Row("open \(row.0)", row.3) { _ = try OpenFile($0 / row.1, row.2) } })
  }

  @Test func descriptorsKnowWhatTheyMay() async throws {
    try await Self.check([
      Row("write to a reader", .badDescriptor) { try OpenFile($0 / k, O_RDONLY).write("1") },
      Row("read from a writer", .badDescriptor) { _ = try OpenFile($0 / k, O_WRONLY).read() },
      Row("ftruncate of a reader", .invalid) { try OpenFile($0 / k, O_RDONLY).truncate(1) },
      Row("read of a directory", .isDirectory) { _ = try OpenFile($0 / "defaults/s", O_RDONLY).read() },
      Row("write at a negative offset", .invalid) { try OpenFile($0 / k, O_WRONLY).write([1], at: -1) },
      Row("seek before the beginning", .invalid) {
        _ = try System.seek(OpenFile($0 / k, O_RDONLY), -1, SEEK_SET)
      },
      Row("a shared mapping of a secret", .noDevice) {
        _ = try OpenFile($0 / value, O_RDONLY).mapped(1, MAP_SHARED)
      },
      Row("fsync of a reader", nil) { try OpenFile($0 / k, O_RDONLY).sync() },
      Row("fsync of a directory", nil) { try OpenFile($0 / "defaults/s", O_RDONLY).sync() },
      Row("fsync of an item's directory", nil) { try OpenFile($0 / "keychain/generic/s/p", O_RDONLY).sync() },
      Row("fallocate of a reader", .badDescriptor) { try System.allocate(OpenFile($0 / k, O_RDONLY), 100) },
      Row("fallocate of nothing", .invalid) { try System.allocate(OpenFile($0 / k, O_RDWR), 0) },
    ])
  }

  // MARK: mkdir, rmdir, unlink

  static let mkdirs: [(String, Errno?)] = [
    ("defaults/new", nil), ("defaults/s", .exists), (k, .exists), ("defaults/s/.link", .exists),
    ("defaults/missing/x", .missing), (k + "/x", .notDirectory),
    ("defaults/s/x", .notPermitted), ("x", .notPermitted), ("keychain/x", .notPermitted),
    ("keychain/generic/s/p/x", .notPermitted),
    ("keychain/generic/new", nil), ("keychain/generic/s/new", nil), ("keychain/generic/s", .exists),
    ("keychain/generic/s/p", .exists),
    ("keychain/generic", .exists), ("keychain/other/x", .notPermitted), (".keyhole/x", .notPermitted),
    (".keyhole", .exists), ("defaults/" + long, .nameTooLong),
    ("defaults/a%2Fb", .invalid), ("defaults/%", .invalid), ("defaults/.hidden", .invalid),
    ("defaults/%2Ehidden", nil),
    ("keychain/internet/h/u;port=080", .invalid), ("keychain/internet/h/u;port=80", nil),
    ("keychain/internet/h/u;x=1", .invalid), (".", .exists), ("defaults/..", .exists),
  ]

  @Test func mkdir() async throws {
    try await Self.check(
      Self.mkdirs.map { row in Row("mkdir \(row.0)", row.1) { try System.mkdir($0 / row.0) } })
  }

  @Test func modesOfNewDirectoriesAndFilesAreFixed() async throws {
    try await Self.check([
      Row("mkdir with 0777", nil) { try System.mkdir($0 / "defaults/open", mode: 0o777) },
      Row("its mode", nil) {
        let status = try System.status($0 / "defaults/open"); #expect(status.st_mode == S_IFDIR | 0o700)
      },
      Row("open with 0777", nil) {
        _ = try OpenFile($0 / "defaults/s/open", O_WRONLY | O_CREAT, mode: 0o777)
      },
      Row("its mode", nil) {
        let status = try System.status($0 / "defaults/s/open"); #expect(status.st_mode == S_IFREG | 0o600)
      },
      Row("access to execute a file", .denied) { try System.access($0 / k, X_OK) },
      Row("access to write a file", nil) { try System.access($0 / k, R_OK | W_OK) },
      Row("access to search a directory", nil) { try System.access($0 / "defaults/s", X_OK) },
    ])
  }

  static let rmdirs: [(String, Errno?)] = [
    ("defaults/empty", nil), ("defaults/empty", .missing), ("defaults/s", .notEmpty), (k, .notDirectory),
    ("defaults/s/.link", .notDirectory), ("defaults/missing", .missing),
    (k + "/x", .notDirectory), ("defaults/s/.", .invalid), ("defaults/s/..", .notEmpty),
    ("defaults", .notPermitted), ("keychain", .notPermitted), ("keychain/generic", .notPermitted),
    (".keyhole", .notPermitted), ("keychain/generic/s", .notEmpty), ("keychain/generic/s/p", .notEmpty),
    ("keychain/generic/s/staged", nil), ("keychain/generic/empty", nil),
    ("defaults/" + long, .nameTooLong),
  ]

  @Test func rmdir() async throws {
    try await Self.check(
      Self.rmdirs.map { row in Row("rmdir \(row.0)", row.1) { try System.rmdir($0 / row.0) } })
  }

  static let unlinks: [(String, Errno?)] = [
    (k, nil), (k, .missing), ("defaults/s/missing", .missing), ("defaults/missing/k", .missing),
    ("defaults/s/t/x", .notDirectory), ("defaults/s", .isDirectory),
    ("keychain/generic/s/p", .isDirectory), ("defaults", .isDirectory), ("defaults/s/.link", nil),
    ("defaults/s/.scratch", nil), (value, nil), (value, .missing),
    ("keychain/generic/s/p/scratch", nil), (".keyhole/status", .notPermitted),
    ("defaults/s/" + long, .nameTooLong), ("defaults/s/t/", .notDirectory),
  ]

  @Test func unlink() async throws {
    try await Self.check(
      Self.unlinks.map { row in Row("unlink \(row.0)", row.1) { try System.unlink($0 / row.0) } })
  }

  // MARK: rename

  static let renames: [(String, String, Errno?)] = [
    (k, k, nil), (k, "defaults/s/k2", nil), ("defaults/s/k2", k, nil),
    ("defaults/s/missing", "defaults/s/x", .missing), (k, "defaults/missing/k", .missing),
    (k, "defaults/s/t/x", .notDirectory),
    (k, "defaults/empty", .isDirectory), ("defaults/empty", k, .notDirectory),
    ("defaults/empty", "defaults/s", .notEmpty), ("defaults/s", "defaults/s/x", .invalid),
    ("defaults/s/k", "defaults/s", .notEmpty),
    ("defaults/s/", "defaults/r", nil), ("defaults/r", "defaults/s", nil),
    (k + "/", "defaults/s/x", .notDirectory), (k, "x", .notPermitted), (k, "defaults/x", .notPermitted),
    (k, value, .crossDevice),
    (value, "defaults/s/x", .crossDevice), (value, "keychain/internet/h/u/value", .crossDevice),
    ("keychain/generic/s/p", "keychain/internet/h/p", .crossDevice),
    ("defaults/s", "keychain/generic/x", .crossDevice),
    (value, "keychain/generic/s/staged/value", .notPermitted),
    ("keychain/generic/s/p", "keychain/generic/s", .notEmpty),
    ("keychain/generic/s/staged", "keychain/generic/s/p", .notEmpty),
    ("defaults/s/.link", "defaults/s/.link2", nil), ("defaults/s/.link2", k, .notPermitted),
    ("defaults", "d", .notPermitted), ("keychain/generic", "keychain/g", .notPermitted),
    (".keyhole/status", k, .notPermitted),
    (k, "defaults/s/" + long, .nameTooLong), (k, "defaults/s/%41", .invalid),
    ("defaults/empty", "defaults/a%2Fb", .invalid), ("defaults/s/.scratch", k, .invalid),
    ("keychain/generic/s/staged", "keychain/generic/s/new", nil),
  ]

  @Test func rename() async throws {
    try await Self.check(
      Self.renames.map { row in
        Row("rename \(row.0) to \(row.1)", row.2) { try System.rename($0 / row.0, $0 / row.1) }
      })
  }

  @Test func renameWithFlags() async throws {
    let pairs = [
      (k, "defaults/s/t"), ("defaults/empty", "defaults/s"),
      ("keychain/generic/s/p", "keychain/generic/s/staged"), ("defaults/s/.scratch", k),
      (value, "keychain/generic/s/p/scratch"),
    ]
    try await Self.check(
      pairs.flatMap { old, new in
        [
          Row("\(old) not over \(new)", .exists) { try System.rename($0 / old, $0 / new, flag: .noReplace) },
          Row("\(old) with \(new)", .invalid) { try System.rename($0 / old, $0 / new, flag: .exchange) },
          Row("\(old) leaving a whiteout", .invalid) {
            try System.rename($0 / old, $0 / new, flag: .whiteout)
          },
        ]
      } + [
        Row("to a new name", nil) { try System.rename($0 / k, $0 / "defaults/s/k2", flag: .noReplace) },
        Row("what is missing", .missing) {
          try System.rename($0 / k, $0 / "defaults/s/k3", flag: .noReplace)
        },
      ])
  }

  // MARK: truncate and ftruncate

  static let truncations: [(String, Int, Errno?)] = [
    (k, 1, nil), (k, 0, .invalid), (k, -1, .invalid), ("defaults/s/t", 4, nil), ("defaults/s/b", 0, nil),
    ("defaults/s/b", 4, nil), ("defaults/s/d", 1, .invalid), ("defaults/s/b", 1 << 24, nil),
    ("defaults/s/b", 1 << 24 + 1, .fileTooBig), ("defaults/s/b", 0, nil), (value, 1 << 20, nil),
    (value, 1 << 20 + 1, .fileTooBig), (value, 1, nil), (value, .max, .fileTooBig),
    ("defaults/s", 0, .isDirectory),
    ("defaults/s/missing", 0, .missing), (k + "/x", 0, .notDirectory),
    ("defaults/s/.loop", 0, .init(code: ELOOP)), ("defaults/s/.scratch", 100, nil),
    ("defaults/s/.scratch", 0, nil), ("keychain/generic/s/p/scratch", 0, nil),
    ("keychain/generic/s/p/scratch", 1 << 23, .noSpace), ("keychain/generic/s/p", 0, .isDirectory),
  ]

  @Test func truncate() async throws {
    try await Self.check(
      Self.truncations.map { row in
        Row("truncate \(row.0) to \(row.1)", row.2) { try System.truncate($0 / row.0, row.1) }
      })
  }

  @Test func ftruncate() async throws {
    let rows: [(String, Int, Errno?, Errno?)] = [
      (k, 1, nil, nil), (k, 0, nil, .invalid), (k, -1, .invalid, nil), ("defaults/s/t", 4, nil, nil),
      ("defaults/s/b", 1 << 24 + 1, .fileTooBig, nil), (value, 1 << 20 + 1, .fileTooBig, nil),
      (value, 0, nil, nil), ("defaults/s/.scratch", 10, nil, nil),
      ("defaults/s/d", 1, nil, .invalid),
    ]
    try await Self.check(
      rows.map { row in
        Row("ftruncate \(row.0) to \(row.1)", row.2 ?? row.3) { keyhole in
          let file = try OpenFile(keyhole / row.0, O_WRONLY)
          try file.truncate(row.1)
          try file.close()
        }
      })
  }

  // MARK: Times, modes, owners

  @Test func utimensat() async throws {
    try await Self.check(
      [k, value, "defaults/s/.scratch", "keychain/generic/s/p/scratch"].flatMap { path in
        [
          Row("a time of \(path)", nil) {
            try System.setModified($0 / path, seconds: 1_000_000_000, nanoseconds: 5)
          },
          Row("that it has then", nil) { keyhole in
            let time = try System.status(keyhole / path).st_mtim
            #expect(time.tv_sec == 1_000_000_000, "\(path)")
          },
          Row("a time that is none of \(path)", .invalid) {
            try System.setModified($0 / path, seconds: 1, nanoseconds: 1_000_000_000)
          },
        ]
      } + [
        Row("a directory", nil) { try System.setModified($0 / "defaults/s", seconds: 1) },
        Row("an item's directory", nil) { try System.setModified($0 / "keychain/generic/s/p", seconds: 1) },
        Row("the top", nil) { try System.setModified($0 / ".", seconds: 1) },
        Row("what is missing", .missing) { try System.setModified($0 / "defaults/s/missing", seconds: 1) },
        Row("before 1970", nil) { try System.setModified($0 / k, seconds: -1) },
      ])
  }

  @Test func chmodAndChown() async throws {
    let (user, group) = (getuid(), getgid())
    let same = [
      "defaults", "defaults/s", k, "keychain/generic/s/p", value, "defaults/s/.scratch",
      "keychain/generic/s/staged", ".",
    ]
    try await Self.check(
      same.flatMap { path in
        [
          Row("chmod \(path)", nil) { try System.chmod($0 / path, 0o7777) },
          Row("its mode", nil) {
            let isFile = ["k", "value", ".scratch"].contains { path.hasSuffix($0) }
            let mode = try System.status($0 / path).st_mode & 0o7777
            #expect(mode == (isFile ? 0o600 : 0o700), "\(path)")
          },
          Row("chown \(path) to its owner", nil) { try System.chown($0 / path, user, group) },
          Row("chown \(path) to nobody", .notPermitted) { try System.chown($0 / path, user + 1, .max) },
          Row("chgrp \(path) to another", .notPermitted) { try System.chown($0 / path, .max, group + 1) },
        ]
      } + [Row("chmod of what is missing", .missing) { try System.chmod($0 / "defaults/s/missing", 0o600) }])
  }

  // MARK: symlink, link, mknod

  static let symlinks: [(String, Errno?)] = [
    ("defaults/s/.new", nil), ("defaults/s/.new", .exists), ("defaults/s/#new#", nil),
    ("defaults/s/new~", nil), ("defaults/s/new", .notPermitted), (k, .exists),
    ("defaults/new", .notPermitted),
    ("keychain/generic/s/p/new", nil), ("keychain/generic/s/p/.#value", nil), (value, .exists),
    ("keychain/generic/s/staged/value", .notPermitted), ("keychain/generic/s/new", .notPermitted),
    ("new", .notPermitted),
    (k + "/x", .notDirectory), ("defaults/missing/.x", .missing),
    ("keychain/generic/s/p/" + long, .nameTooLong),
  ]

  @Test func symlink() async throws {
    let target = String(repeating: "t", count: 4000)
    try await Self.check(
      Self.symlinks.map { row in
        Row("symlink \(row.0)", row.1) { try System.symlink("me@host.1:2", $0 / row.0) }
      } + [
        Row("its target", nil) { #expect(System.target(ofLink: $0 / "defaults/s/.new") == "me@host.1:2") },
        Row("its size", nil) {
          let status = try System.status($0 / "defaults/s/.new"); #expect(status.st_size == 11)
        },
        Row("a long target", nil) { try System.symlink(target, $0 / "defaults/s/.long") },
        Row("that long target", nil) { #expect(System.target(ofLink: $0 / "defaults/s/.long") == target) },
        Row("an empty target", .missing) { try System.symlink("", $0 / "defaults/s/.empty") },
      ])
  }

  @Test func linkAndMknod() async throws {
    try await Self.check([
      Row("link of a key", .notPermitted) { try System.link($0 / k, $0 / "defaults/s/l") },
      Row("link of a secret", .notPermitted) { try System.link($0 / value, $0 / "keychain/generic/s/p/l") },
      Row("link of scratch", .notPermitted) {
        try System.link($0 / "defaults/s/.scratch", $0 / "defaults/s/.l")
      },
      Row("link over what exists", .exists) { try System.link($0 / k, $0 / "defaults/s/t") },
      Row("link of a directory", .notPermitted) { try System.link($0 / "defaults/s", $0 / "defaults/l") },
      Row("link of what is missing", .missing) {
        try System.link($0 / "defaults/s/missing", $0 / "defaults/s/l")
      },
      Row("mknod of a file", nil) { try System.mknod($0 / "defaults/s/node", kind: S_IFREG) },
      Row("mknod of what exists", .exists) { try System.mknod($0 / "defaults/s/node", kind: S_IFREG) },
      Row("mkfifo", .notPermitted) { try System.mknod($0 / "defaults/s/fifo", kind: S_IFIFO) },
      Row("a device as scratch", .notPermitted) {
        try System.mknod($0 / "keychain/generic/s/p/null", kind: S_IFCHR, device: 0x103)
      },
      Row("a socket", .notPermitted) { try System.mknod($0 / "keychain/generic/s/p/socket", kind: S_IFSOCK) },
    ])
  }
}
