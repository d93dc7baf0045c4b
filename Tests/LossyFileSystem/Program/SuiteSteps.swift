import LossyFileSystem
import TestSupport

/// The contents of a suite; every value of the tests is a string.
package typealias SuiteState = [String: String]

/// One call of an engine of suites.
package enum SuiteStep: Sendable {
  case create(String)
  case set(String, [String: String?])
  case remove(String)
  case rename(String, to: String)
  case synchronize(String)
}

/// Calls by chance, the same for the same seed.
package struct SuiteSteps: Sequence, IteratorProtocol, Sendable {
  private var chance: SplitMix64
  private var number = 0
  private var suites: [String: SuiteState] = [:]

  package init(seed: UInt64) {
    chance = SplitMix64(seed: seed)
  }

  package mutating func next() -> SuiteStep? {
    number += 1
    let step = choose()
    suites.apply(step)
    return step
  }

  private mutating func choose() -> SuiteStep {
    let names = suites.keys.sorted()
    guard names.count > 1, let name = names.randomElement(using: &chance) else {
      return .create("suite\(number)")
    }
    switch Int.random(in: 0..<100, using: &chance) {
    case ..<4: return .create("suite\(number)")
    case ..<8: return .rename(name, to: "suite\(number)")
    case ..<12: return suites[name] == [:] ? .remove(name) : .set(name, cleared(name))
    case ..<30: return .synchronize(name)
    default: return .set(name, changes())
    }
  }

  private func cleared(_ name: String) -> [String: String?] {
    (suites[name] ?? [:]).mapValues { _ in nil }
  }

  /// Some keys, long enough that a file has several pages.
  private mutating func changes() -> [String: String?] {
    var changes: [String: String?] = [:]
    for _ in 0..<Int.random(in: 1...3, using: &chance) {
      let key = "key\(Int.random(in: 0..<8, using: &chance))"
      let count = Int.random(in: 1...3000, using: &chance)
      changes[key] = .some(number % 7 == 0 ? nil : String(repeating: "value \(number) ", count: count / 8))
    }
    return changes
  }
}

extension [String: SuiteState] {
  package mutating func apply(_ step: SuiteStep) {
    switch step {
    case .create(let name): self[name] = [:]
    case .set(let name, let changes): for (key, value) in changes { self[name]?[key] = value }
    case .remove(let name): self[name] = nil
    case .rename(let name, let other): self[other] = removeValue(forKey: name)
    case .synchronize: break
    }
  }
}
