import Testing

@testable import Service

/// Options that keep an editor from writing a secret to a disk.
@Suite struct EditorProgramTests {
  private static func options(_ names: String...) -> [String] {
    EditorProgram(command: names[0], names: names).options
  }

  @Test(arguments: ["vim", "/usr/bin/vim", "nvim", "gvim", "vim.basic", "vim-nox"])
  func swapAndUndoOfVimAreOff(name: String) {
    let options = Self.options(name)
    #expect(options.starts(with: ["-n", "-i", "NONE"]))
    #expect(options.last == "set nobackup nowritebackup noswapfile noundofile")
  }

  @Test(arguments: [
    ("nano", "--ignorercfiles"), ("rnano", "--ignorercfiles"), ("joe", "-nobackups"), ("emacs", "--eval"),
  ])
  func otherEditorsHaveTheirOptions(name: String, first: String) {
    #expect(Self.options(name).first == first)
  }

  /// `vi` is a name that many editors go by.
  @Test func linkIsTheEditorThatItLeadsTo() {
    #expect(Self.options("vi", "/usr/bin/vim.tiny").first == "-n")
    #expect(Self.options("editor", "/bin/nano") == ["--ignorercfiles"])
    #expect(Self.options("vi", "/usr/bin/busybox").isEmpty)
  }

  @Test(arguments: ["code", "vimdiffer", "ed", ""])
  func unknownEditorHasNone(name: String) {
    #expect(Self.options(name).isEmpty)
  }
}
