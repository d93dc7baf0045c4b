import Glibc
import Model
public import Store

extension PropertyListFolder {
  /// Every file that is named like a suite and is none, or that Foundation can't use, and why. It reads all.
  public func problems() -> [Problem] {
    let entries: [Entry]
    do { entries = try files() } catch { return [problem(folder, reason(error), remedy(error))] }
    return entries.compactMap(problem).sorted { $0.subject < $1.subject }
  }

  private func problem(_ entry: Entry) -> Problem? {
    guard let name = entry.name else {
      return problem(folder, "a file's name in it is not UTF-8", "Rename the file if it is a suite.")
    }
    let path = folder + "/" + name
    guard let file = entry.file else {
      return problem(path, "it has no name before “.plist”", "Rename the file if it is a suite.")
    }
    do {
      guard let content = try file.read() else {
        return problem(path, "it is no regular file", "Move it elsewhere, or remove it.")
      }
      guard content.values.values.contains(where: \.hasReference) else { return nil }
      return problem(
        path,
        "it holds a keyed archiver's reference (CF$UID), and so Foundation's UserDefaults reads none of its keys",
        "Remove the reference, unless no program with Foundation uses the suite.")
    } catch {
      return problem(path, reason(error), remedy(error))
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
    case .system(let number, let operation): "\(operation) failed with error \(number)"
    default: "it can't be read"
    }
  }

  private func remedy(_ error: StoreError) -> String {
    switch error {
    case .damaged: "Repair it or restore it from a backup; Keyhole leaves it as it is."
    case .tooLarge: "Move it elsewhere if it holds no settings."
    case .accessDenied: "Give yourself the right to read it: chmod u+r."
    default: "Look at the file and its disk."
    }
  }

  /// Removes what writers left that were killed: temporary files that no process holds. Call it at the start.
  public func removeLeftovers() {
    let linked = ((try? files()) ?? []).compactMap { try? $0.file?.target() }.map(FileSystem.folder(of:))
    for folder in Set(linked + [folder]) {
      for case let name? in (try? FileSystem.names(in: folder)) ?? [] where Self.isTemporary(name) {
        removeLeftover(folder + "/" + name)
      }
    }
  }

  private static func isTemporary(_ name: String) -> Bool {
    name.hasPrefix(SuiteFile.temporaryPrefix) && name.hasSuffix(SuiteFile.temporaryEnding)
  }

  private func removeLeftover(_ path: String) {
    guard let status = try? FileSystem.status(path, follow: false), status.isRegular,
      let file = try? Descriptor(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK), (try? file.tryLock()) == true
    else { return }
    try? FileSystem.remove(path)
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
