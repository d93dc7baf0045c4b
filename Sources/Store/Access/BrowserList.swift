import Platform

/// Programs that open files by themselves: browsers of files, which look for a type or a preview, and indexers.
///
/// They cause no question about a guarded item. Only executables count that root owns and that only root can write.
public struct BrowserList: Sendable {
  /// The absolute paths of the executables.
  public var paths: [String]

  /// - Parameter paths: the absolute paths of executables. A `*` stands for any name of a folder.
  public init(_ paths: [String] = []) { self.paths = paths }

  /// The browsers and indexers of the usual desktops, where Debian, Fedora and Arch install them.
  ///
  /// `gio` and `kioclient` are not among them: a person types them, as `cat`.
  public static let usual = BrowserList([
    "/usr/bin/thunar", "/usr/bin/Thunar", "/usr/bin/nautilus", "/usr/bin/nemo", "/usr/bin/caja",
    "/usr/bin/dolphin", "/usr/bin/konqueror", "/usr/bin/krusader", "/usr/bin/peony", "/usr/bin/pcmanfm",
    "/usr/bin/pcmanfm-qt", "/usr/bin/io.elementary.files", "/usr/libexec/tracker-extract-3",
    "/usr/libexec/tracker-miner-fs-3", "/usr/libexec/localsearch-3", "/usr/libexec/localsearch-extractor-3",
    "/usr/lib/tracker-extract-3", "/usr/lib/localsearch-extractor-3", "/usr/bin/baloo_file",
    "/usr/bin/baloo_file_extractor", "/usr/lib/*/libexec/kf5/baloo_file",
    "/usr/lib/*/libexec/kf5/baloo_file_extractor", "/usr/lib/*/libexec/kf6/baloo_file",
    "/usr/lib/*/libexec/kf6/baloo_file_extractor", "/usr/libexec/kf6/baloo_file",
    "/usr/libexec/kf6/baloo_file_extractor", "/usr/lib/*/libexec/kf5/kioslave5",
    "/usr/lib/*/libexec/kf6/kioworker", "/usr/libexec/kf6/kioworker", "/usr/bin/recollindex",
    "/usr/lib/*/tumbler-1/tumblerd", "/usr/lib/tumbler-1/tumblerd", "/usr/lib64/tumbler-1/tumblerd",
    "/usr/libexec/gvfsd", "/usr/bin/updatedb", "/usr/sbin/updatedb", "/usr/bin/updatedb.plocate",
    "/usr/sbin/updatedb.plocate", "/usr/bin/updatedb.mlocate",
  ])

  /// The paths of a text, one in each line; a line that begins with `#` is a comment.
  public init(reading text: String) {
    paths = text.split(whereSeparator: \.isNewline).map { $0.filter { $0 != "\r" } }
      .filter { $0.hasPrefix("/") }
  }

  /// Whether the program of a process is one of them.
  public func contains(_ caller: Caller.Identity) -> Bool {
    guard let executable = caller.executable, executable.hasPath,
      paths.contains(where: { Self.matches(executable.path, $0) })
    else { return false }
    return executable.isFixed
  }

  private static func matches(_ path: String, _ pattern: String) -> Bool {
    guard pattern.utf8.contains(UInt8(ascii: "*")) else { return path == pattern }
    let (words, wanted) = (path.split(separator: "/"), pattern.split(separator: "/"))
    return words.count == wanted.count && zip(words, wanted).allSatisfy { $1 == "*" || $0 == $1 }
  }
}
