import Store

extension Demand {
  /// Prefix notation: `any passcode biometry .`
  var text: String {
    switch self {
    case .consent: "consent"
    case .biometry: "biometry"
    case .biometryOfSet(let set): "biometry-of \(set)"
    case .passcode: "passcode"
    case .any(let demands): "any " + demands.map(\.text).joined(separator: " ") + " ."
    case .all(let demands): "all " + demands.map(\.text).joined(separator: " ") + " ."
    }
  }

  /// Flags are joined once.
  private static let deepest = 4

  init?(text: String) {
    var words = text.split(separator: " ")[...]
    guard let demand = Self.parse(&words, depth: 0), words.isEmpty else { return nil }
    self = demand
  }

  private static func parse(_ words: inout ArraySlice<Substring>, depth: Int) -> Demand? {
    guard depth < deepest else { return nil }
    switch words.popFirst() {
    case "consent": return .consent
    case "biometry": return .biometry
    case "biometry-of": return words.popFirst().map { .biometryOfSet(String($0)) }
    case "passcode": return .passcode
    case "any": return parseList(&words, depth: depth + 1).map(Demand.any)
    case "all": return parseList(&words, depth: depth + 1).map(Demand.all)
    default: return nil
    }
  }

  private static func parseList(_ words: inout ArraySlice<Substring>, depth: Int) -> [Demand]? {
    var demands: [Demand] = []
    while words.first != "." {
      guard let demand = parse(&words, depth: depth) else { return nil }
      demands.append(demand)
    }
    words.removeFirst()
    return demands
  }
}
