import Model
import Platform
import Store

// After a power cut a file may be without its bytes, while the version before it is complete beside it
// (`SuiteCommits`).
extension SuiteFile {
  /// How long after a version was set aside a file may have been written for it to be that version's successor.
  private static let patience = Int64(10)

  /// The content of the file, or its remains after a power cut; nil: there is none.
  func readWhole() throws(StoreError) -> Content? {
    do throws(StoreError) {
      guard let content = try read() else { return nil }
      guard content.hasZeros, try putBack() else { return content }
      return try read()
    } catch .damaged(let what) {
      guard try putBack() else { throw .damaged(what: what) }
      return try read()
    }
  }

  /// Puts the version before it in the place of an incomplete file. False: there is none.
  private func putBack() throws(StoreError) -> Bool {
    let target = try target()
    guard let damaged = try SuiteFiles.status(target) else { return false }
    for path in try predecessors(of: target, damaged) {
      // The process that locks it is alive: the damage is not by a power cut.
      guard let file = try? Descriptor(path, [.reading, .noFollow, .nonBlocking]),
        try SuiteFiles.call("flock", { () throws(Errno) in try file.tryLock() }),
        try SuiteFiles.status(path, follow: false)?.stamp == file.suiteStatus().stamp, isComplete(file)
      else { continue }
      try SuiteFiles.rename(path, to: target)
      return true
    }
    return false
  }

  /// Versions that were set aside shortly before the file was written, the last first.
  private func predecessors(of target: String, _ damaged: FileStatus) throws(StoreError) -> [String] {
    let folder = Files.folder(of: target)
    let name = TemporaryName(of: target, at: damaged.stamp.modified)
    let times = try SuiteFiles.names(in: folder).compactMap { entry in
      entry.flatMap { entry in name.time(in: entry).map { (entry, $0) } }
    }
    return times.filter { (0...Self.patience).contains(age(of: $0.1, before: damaged.stamp.modified)) }
      .sorted { $0.1 > $1.1 }.map { folder + "/" + $0.0 }
  }

  /// In seconds; -1 where a file's time is too far away for a difference.
  private func age(of time: Timestamp, before later: Timestamp) -> Int64 {
    let (seconds, overflows) = later.seconds.subtractingReportingOverflow(time.seconds)
    return overflows ? -1 : seconds
  }

  private func isComplete(_ file: borrowing Descriptor) -> Bool {
    guard let bytes = try? file.readToEnd(limit: Self.largest) else { return false }
    return (try? Self.values(bytes)) != nil && (bytes.starts(with: BinaryReader.magic) || !bytes.hasZeros)
  }
}

extension PropertyListFolder {
  /// Removes what writers left that were killed or lost their power: what no process holds. Call it at the start.
  public func removeLeftovers() {
    let leftovers = foldersOfSuites().flatMap { folder in
      let names = ((try? SuiteFiles.names(in: folder)) ?? []).compactMap { $0 }
      if folder == self.folder { endAbandonedJournals(among: names) }
      return names.filter(TemporaryName.isTemporary).map { folder + "/" + $0 }
    }
    guard !leftovers.isEmpty else { return }
    let suites = ((try? files()) ?? []).compactMap(\.file)
    let needed = suites.compactMap { stemInNeed($0, leftovers) }
    for path in leftovers where !needed.contains(where: path.hasPrefix) { removeLeftover(path) }
  }

  /// The folder, and those that links in it lead to. Only links are looked at: there may be many thousands of suites.
  private func foldersOfSuites() -> Set<String> {
    let links = ((try? Files.entries(in: folder)) ?? []).filter(\.mayBeLink)
    let targets = links.compactMap { link -> String? in
      let name = String(decoding: link.name, as: UTF8.self)
      guard name.hasSuffix(SuiteFile.ending) else { return nil }
      let suite = ExactString(String(name.dropLast(SuiteFile.ending.count)))
      return try? SuiteFile(folder: folder, suite: suite)?.target()
    }
    return Set(targets.map(Files.folder) + [folder])
  }

  /// Sees to it that nothing beside a suite's file is needed any more. - Returns: what begins so still is.
  private func stemInNeed(_ file: SuiteFile, _ leftovers: [String]) -> String? {
    guard let target = try? file.target() else { return nil }
    let stem = Files.folder(of: target) + "/" + TemporaryName(of: target, at: Timestamp.now).stem
    guard leftovers.contains(where: { $0.hasPrefix(stem) }) else { return nil }
    do throws(StoreError) {
      _ = try file.readWhole()
      try SuiteCommits.to(target).synchronize()
      return nil
    } catch {
      return stem
    }
  }

  private func removeLeftover(_ path: String) {
    guard let status = try? SuiteFiles.status(path, follow: false), status.isRegular,
      let file = try? Descriptor(path, [.reading, .noFollow, .nonBlocking]), (try? file.tryLock()) == true
    else { return }
    try? SuiteFiles.remove(path)
  }
}
