import Model
import Platform

/// Questions to git about a file: whether it tracks it, whether a commit has it, and whether it would add it.
enum GitIndex {
  private static let git = "/usr/bin/git"

  /// - Throws: `Failure` for a file that git tracks, and where git does not say.
  static func requireUntracked(_ path: String) throws {
    let isTracked =
      isInWorkingTree(path)
      ? isTracked(path, in: []) : false
    // A repository elsewhere that the caller works with, as those of dotfiles are.
    let other = repositoryOfEnvironment
    switch isTracked == false && !other.isEmpty ? self.isTracked(path, in: other) ?? false : isTracked {
    case false?: return
    case true?:
      throw Failure(
        path,
        "git tracks it, so it may be another person's; nothing was taken in. `git rm --cached` takes it out of the index; "
          + "its commits keep the secrets, so replace them by new ones"
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

  /// The variables that name a repository and its working tree, with their values; empty: the caller has none.
  private static var repositoryOfEnvironment: [String] {
    guard Environment.value("GIT_DIR") != nil else { return [] }
    return ["GIT_DIR", "GIT_WORK_TREE"].compactMap { name in Environment.value(name).map { "\(name)=\($0)" } }
  }

  /// nil: git does not say.
  private static func isTracked(_ path: String, in repository: [String]) -> Bool? {
    switch run(
      [
        "--literal-pathspecs", "ls-files", "--error-unmatch", "--",
        repository.isEmpty ? Files.name(of: path) : path,
      ],
      in: repository.isEmpty ? Files.folder(of: path) : nil, repository)?.status
    {
    case 0: true
    case 1: false
    default: nil
    }
  }

  /// Whether a commit that a branch or a tag leads to has a file of the path; false also where git does not say it within ten seconds.
  static func hasCommit(of path: String) -> Bool {
    guard isInWorkingTree(path) else { return false }
    let words = ["--literal-pathspecs", "rev-list", "--all", "--max-count=1", "--", Files.name(of: path)]
    return run(words, in: Files.folder(of: path)).map { $0.status == 0 && !$0.output.isEmpty } ?? false
  }

  /// Whether `git add` of the folder would take a file of the path. check-ignore takes paths, and no pathspecs.
  static func wouldAdd(_ path: String) -> Bool {
    guard isInWorkingTree(path) else { return false }
    return run(["check-ignore", "-q", "--", Files.name(of: path)], in: Files.folder(of: path))?.status == 1
  }

  /// The configuration of the tree is not trusted: it could name programs to run, also for objects that are fetched when they are needed.
  /// nil: git can't be run, or needs more than ten seconds.
  private static func run(
    _ arguments: [String], in folder: String?, _ repository: [String] = []
  ) -> (status: Int32, output: [UInt8])? {
    // Nor are the caller's variables: GIT_DIR or GIT_INDEX_FILE would have git look into another index than that of the folder.
    let kept = ["HOME", "XDG_CONFIG_HOME"].compactMap { name in
      Environment.value(name).map { "\(name)=\($0)" }
    }
    let words =
      ["/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "LC_ALL=C", "GIT_NO_LAZY_FETCH=1"] + kept + repository + [
        git, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
        "-c", "protocol.allow=never",
      ] + (folder.map { ["-C", $0] } ?? []) + arguments
    guard Files.exists(git), let child = try? Child(words, input: .nothing, errors: .discarded) else {
      return nil
    }
    defer { child.end() }
    guard let output = child.readOutput(limit: 4096, until: .now + .seconds(10)),
      child.waitForEnd(seconds: 10)
    else { return nil }
    return (child.wait(), output)
  }
}
