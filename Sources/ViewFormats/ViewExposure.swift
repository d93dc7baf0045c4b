import Platform

/// A value that stands in the text of a view beside its place: in a comment, a key or a section's name.
public struct ViewExposure: Hashable, Sendable {
  /// The line of the template's text, counted from 1, with all values in their places taken as one line.
  public let line: Int
  /// The name path of the entry whose value it is.
  public let name: [String]

  /// `EINVAL`, for the close(2) of a write.
  public var error: ViewError {
    ViewError(
      .EINVAL, line: line, entry: name,
      "its value stands in a comment, a key or a section's name, where no rule protects it; remove it there")
  }
}

extension ViewTemplate {
  /// The values of its slots that stand in its text.
  public func exposures(_ lender: Lender) throws(ViewError) -> [ViewExposure] {
    try exposures(of: slots, lender)
  }

  func exposures(of slots: [ViewSlot], _ lender: Lender) throws(ViewError) -> [ViewExposure] {
    []
  }
}
