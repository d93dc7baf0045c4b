import Testing

@testable import Prompting

/// The variable TERM of the program that asks goes into a command of the dialog's.
@Suite struct TerminalTypeTests {
  private static func type(_ variables: String...) -> String? {
    let text = variables.joined(separator: "\0") + "\0"
    return TerminalType.type(in: text.utf8.span)
  }

  @Test func typeIsRead() {
    #expect(Self.type("HOME=/", "TERM=xterm-256color", "X=TERM=y") == "xterm-256color")
    #expect(Self.type("HOME=/", "COLORTERM=x") == nil)
  }

  @Test(arguments: ["", "a b", "a\nSETOK x", "größe", String(repeating: "x", count: 64)])
  func nameThatNoTerminalHasIsLeftOut(name: String) {
    #expect(Self.type("TERM=\(name)") == nil)
  }
}
