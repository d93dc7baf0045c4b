import Model
import Platform
public import Store

extension PropertyListFolder {
  /// Every file that is named like a suite and is none, or that Foundation can't use, and why. It reads all.
  public func problems() -> [Problem] {
    let entries: [Entry]
    do { entries = try files() } catch { return [problem(folder, reason(error), remedy(error, folder))] }
    return entries.compactMap(problem).sorted { $0.subject < $1.subject }
  }

  private func problem(_ entry: Entry) -> Problem? {
    guard let name = entry.name else {
      return problem(folder, "a file's name in it is not UTF-8", "rename the file if it is a suite")
    }
    let path = folder + "/" + name
    guard let file = entry.file else {
      return problem(path, "it has no name before “.plist”", "rename the file if it is a suite")
    }
    do {
      guard let content = try file.read() else {
        return problem(path, "it is no regular file", "move it elsewhere, or remove it")
      }
      guard content.values.values.contains(where: \.hasReference) else { return nil }
      return problem(
        path,
        "it holds a keyed archiver's reference (CF$UID), and so Foundation's UserDefaults reads none of its keys",
        "remove the reference, unless no program with Foundation uses the suite")
    } catch {
      return problem(path, reason(error), remedy(error, path))
    }
  }

  private func problem(_ subject: String, _ reason: String, _ remedy: String) -> Problem {
    Problem(subject: subject, reason: reason, remedy: remedy)
  }

  private func reason(_ error: StoreError) -> String {
    switch error {
    case .damaged(let what): "it is not read as a property list with settings: \(what)"
    case .tooLarge(let limit): "it is larger than \(limit >> 20) MiB"
    case .accessDenied: "it can't be read by this user"
    case .system(let error, let operation): "\(operation) failed: \(error)"
    default: "it can't be read"
    }
  }

  private func remedy(_ error: StoreError, _ path: String) -> String {
    switch error {
    case .damaged: "put back a copy of the file, or repair it; Keyhole leaves it as it is"
    case .tooLarge: "move it elsewhere if it holds no settings"
    case .accessDenied:
      owner(path) == User.real
        ? "`chmod \(path == folder ? "u+rwx" : "u+r") \(path.quotedForShell)`"
        : "`sudo chown $(id -u) \(path.quotedForShell)`"
    case .system: "`sudo dmesg` shows errors of its disk"
    default: "look at the file and its disk"
    }
  }

  /// nil: there is no such file any more.
  private func owner(_ path: String) -> UInt32? {
    (try? SuiteFiles.status(path))?.owner
  }
}

extension SettingValue {
  fileprivate var hasReference: Bool {
    switch self {
    case .uid: true
    case .array(let items): items.contains(where: \.hasReference)
    case .dictionary(let entries): entries.values.contains(where: \.hasReference)
    default: false
    }
  }
}
