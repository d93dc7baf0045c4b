import Model
import SecretMemory
public import Store
import Synchronization
import ViewFormats

// The faults that keep views from being opened, for `keyhole doctor`. No value is in it, and no person is asked.
extension Views {
  /// The faults of all views; of those that can't be looked at now, none. Waits until all items are read.
  public func problems() -> [Problem] {
    guard areSupported, let views = try? all() else { return [] }
    return views.sorted { $0.name < $1.name }.flatMap { view in
      (try? whileUnchanged(view) { (view) throws(StoreError) in try currentProblems(of: view) }) ?? []
    }
  }

  private func currentProblems(of view: View) throws(StoreError) -> [Problem] {
    let basis = try basis(of: view)
    let isOpen = keychain.engine.locking.lockState == .open
    let last = known.withLock { $0[view.document.id]?.problems }
    if let last, last.basis == basis, last.isOpen == isOpen { return last.problems }
    let problems = problems(of: view)
    known.withLock { $0[view.document.id, default: Known()].problems = (problems, basis, isOpen) }
    return problems
  }

  private func problems(of view: View) -> [Problem] {
    let missing = (try? missingReferences(of: view)) ?? []
    var problems = missing.map { path in
      Problem(
        subject: view.document.name.string, reason: "it refers to \(path), which is not there",
        remedy: Self.remedy(missing: path, in: view))
    }
    // Of a locked vault no value is known.
    guard let template = try? template(of: view) else { return problems }
    let faults = faults(in: template, besides: missing)
    if !faults.isEmpty {
      let remedy = remedy(forFaultsIn: template, view, besides: missing)
      problems += faults.map { fault in
        Problem(subject: view.document.name.string, reason: fault.message, remedy: remedy)
      }
    }
    return problems + exposures(in: template, view)
  }

  private func faults(in template: borrowing ViewTemplate, besides missing: [String]) -> [ViewError] {
    template.faults { (slot, body) throws(ViewError) in
      guard !missing.contains(slot.reference), let value = try? valueToMeasure(at: slot.reference) else {
        return
      }
      try body(value.span)
    }
  }

  private func remedy(
    forFaultsIn template: borrowing ViewTemplate, _ view: View, besides missing: [String]
  ) -> String {
    guard view.format == .env else { return "change the value: the file's format has no way to write it" }
    let others = EnvDialect.allCases.filter { dialect in
      guard dialect != view.dialect, let other = try? template.replacingDialect(dialect) else { return false }
      return faults(in: other, besides: missing).isEmpty
    }
    guard let first = others.first else {
      return "change the value: no dialect of the format has a way to write it"
    }
    let path = "views/\(view.name.string)".quotedForShell
    return "change the value, or the dialect, if the program that reads the file has it: "
      + "`keyhole attr \(path) keyhole.dialect \(first.rawValue)`"
      + (others.count > 1 ? " (or \(others.dropFirst().map(\.rawValue).joined(separator: ", ")))" : "")
  }

  private func exposures(in template: ViewTemplate, _ view: View) -> [Problem] {
    guard view.format.isWritable else { return [] }
    let found = try? template.exposures { (slot, body) throws(ViewError) in
      // A value that can't be had is not looked for.
      guard let value = try? valueToMeasure(at: slot.reference) else { return }
      try body(value.span)
    }
    return (found ?? []).map { exposure in
      Problem(
        subject: view.document.name.string, reason: exposure.error.message,
        remedy: "edit the view, and take the value out there")
    }
  }
}
