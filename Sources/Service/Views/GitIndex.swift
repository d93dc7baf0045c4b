import Model
import Platform

/// Whether a file is one that a working tree of git has from a commit.
enum GitIndex {
  private static let git = "/usr/bin/git"

  /// - Throws: `Failure` for a file that git tracks, and where git does not say.
  static func requireUntracked(_ path: String) throws {
    guard isInWorkingTree(path) else { return }
    switch isTracked(path) {
    case false?: return
    case true?:
      throw Failure(
        path,
        "git tracks it, so it may be another person's; nothing was taken in. `git rm --cached` takes it out of the index"
      )
    case nil:
      throw Failure(path, "it lies in a working tree of git, and \(git) does not say whether that tracks it")
    }
  }

  private static func isInWorkingTree(_ path: String) -> Bool {
    var folder = Files.folder(of: path)
    while true {
      if Files.hasName((folder == "/" ? "" : folder) + "/.git") { return true }
      guard folder != "/", folder != "." else { return false }
      folder = Files.folder(of: folder)
    }
  }

  /// The configuration of the tree is not trusted: it could name programs to run. nil: git does not say.
  private static func isTracked(_ path: String) -> Bool? {
    // Nor are the caller's variables: GIT_DIR or GIT_INDEX_FILE would have git look into another index.
    let kept = ["HOME", "XDG_CONFIG_HOME"].compactMap { name in
      Environment.value(name).map { "\(name)=\($0)" }
    }
    let words =
      ["/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "LC_ALL=C"] + kept + [
        git, "--literal-pathspecs", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-C",
        Files.folder(of: path),
        "ls-files", "--error-unmatch", "--", Files.name(of: path),
      ]
    guard Files.exists(git), let child = try? Child(words, input: .nothing, errors: .discarded) else {
      return nil
    }
    defer { child.end() }
    let output = child.readOutput(limit: 4096, until: .now + .seconds(10))
    guard output != nil, child.waitForEnd(seconds: 10) else { return nil }
    switch child.wait() {
    case 0: return true
    case 1: return false
    default: return nil
    }
  }
}
