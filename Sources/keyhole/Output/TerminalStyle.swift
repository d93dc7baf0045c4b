import Model
import Platform

/// Colours of standard output, on a terminal that has any. NO_COLOR (no-color.org) turns them off.
enum TerminalStyle: String {
  case folder = "1;34"
  case secret = "33"
  case dim = "2"

  static let isOn =
    StandardStream.output.isTerminal && environment("NO_COLOR") == nil && environment("TERM") != "dumb"

  /// Text in this style; the text itself is escaped before.
  func text(_ text: String) -> String {
    Self.isOn ? "\u{1B}[\(rawValue)m\(text)\u{1B}[0m" : text
  }
}

/// Lines of several fields: on a terminal in columns, else with a tab between the fields.
struct Columns {
  /// A field as it is shown, without colours.
  struct Field {
    let text: String
    var isRight = false
    var style: TerminalStyle?
  }

  private var rows: [[Field]] = []

  mutating func add(_ row: [Field]) { rows.append(row) }

  /// Escaped by the caller; the last column is not padded.
  func write() {
    guard StandardStream.output.isTerminal else {
      return StandardOutput.write(rows.map { $0.map(\.text).joined(separator: "\t") + "\n" }.joined())
    }
    var widths: [Int] = []
    for row in rows {
      for (index, field) in row.enumerated() {
        if widths.count == index { widths.append(0) }
        widths[index] = max(widths[index], field.text.count)
      }
    }
    StandardOutput.write(rows.map { line($0, widths) }.joined())
  }

  private func line(_ row: [Field], _ widths: [Int]) -> String {
    let fields = row.enumerated().map { index, field in
      let isLast = index == row.count - 1
      let padding = String(
        repeating: " ", count: isLast && !field.isRight ? 0 : widths[index] - field.text.count)
      let text = field.style?.text(field.text) ?? field.text
      return field.isRight ? padding + text : text + padding
    }
    return fields.joined(separator: "  ") + "\n"
  }
}
