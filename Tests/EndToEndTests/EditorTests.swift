import Glibc
import Testing

/// Section 6: editors as people use them. Each is run in a terminal and typed into, twice for each kind of value.
@Suite(.timeLimit(.minutes(3))) struct EditorTests {
  @Test(arguments: Editor.all)
  func editorSavesAndLeavesNothing(editor: Editor) async throws {
    try await withKeyhole("history=0") { keyhole in
      let desk = try Desk(keyhole)
      try editor.setUp(keyhole.world)
      let files = EditedFile.all.filter { editor.isBinary || !$0.isBinary }
      for file in files {
        try desk.watch(file, saves: 2, leaving: editor.leaves(file.name), editor.name) {
          let session = try editor.open(file, keyhole)
          try session.type(String(repeating: editor.down, count: file.line))
          for time in 1...2 {
            try session.type("\(editor.insert)\(file.text(desk.marker, time))\(editor.leave)")
            try session.type(editor.save)
            try session.wait(for: editor.saved)
            let isSaved = try System.read(keyhole / file.path) == file.after(desk.marker, time)
            #expect(isSaved, "\(editor): \(file.path)")
          }
          try session.type(editor.quit)
          #expect(try session.finish().isSuccess(saying: editor.farewell), "\(editor): \(file.path)")
        }
      }
      try desk.search(editor.name)
      try keyhole.remount()
      for file in files {
        #expect(try System.read(keyhole / file.path) == file.after(desk.marker, 2), "\(editor): \(file.path)")
      }
    }
  }

  /// Another program changes the value while the editor has it open; after a question, the editor's content is stored.
  @Test(arguments: Editor.vims + Editor.nvims)
  func vimAsksBeforeItWritesOverAnotherChange(editor: Editor) async throws {
    try await withKeyhole("history=0") { keyhole in
      _ = try Desk(keyhole)
      try editor.setUp(keyhole.world)
      for file in [EditedFile.string, .secret] {
        let session = try editor.open(file, keyhole)
        try session.type("\(editor.insert)one \(editor.leave)\(editor.save)")
        try session.wait(for: "written")
        // It looks at the file's time after it has said so.
        try session.type(":echo 'looked' . 'at'\r")
        try session.wait(for: "lookedat")
        try Self.change(file, to: "outside", keyhole)
        try session.type("\(editor.insert)two \(editor.leave)\(editor.save)")
        try session.wait(for: "(y/n)")
        try session.type("y")
        try session.wait(for: "written")
        try session.type(editor.quit)
        #expect(try session.finish().isSuccess(), "\(editor): \(file.path)")
        #expect(try keyhole.cat(file.path).hasPrefix("two one "), "\(editor)")
        // Read again instead, the other's change stays and is built upon.
        let second = try editor.open(file, keyhole)
        try Self.change(file, to: "again", keyhole)
        try second.type(":e!\r\(editor.insert)three \(editor.leave)\(editor.save)")
        try second.wait(for: "written")
        try second.type(editor.quit)
        #expect(try second.finish().isSuccess(), "\(editor): \(file.path)")
        #expect(try keyhole.cat(file.path).hasPrefix("three again"), "\(editor)")
      }
    }
  }

  private static func change(_ file: EditedFile, to text: String, _ keyhole: MountedKeyhole) throws {
    try keyhole.check("echo \(text) | keyhole set \(file.path)")
    let isSeen = try holds { try keyhole.cat(file.path).hasPrefix(text) }
    #expect(isSeen, "\(file.path)")
  }
}

extension Editor {
  /// Writes its settings.
  func setUp(_ world: World) throws {
    try #require(System.exists(program), "\(program) is missing; mount-helpers/test installs it")
    for (path, settings) in settings {
      // XDG folders have their own places in a world.
      let place = path.hasPrefix("config/") ? "\(world.root)/\(path)" : "\(world.home)/\(path)"
      try world.check("mkdir -p \"$(dirname '\(place)')\"; cat > '\(place)'", sending: Array(settings.utf8))
    }
  }

  /// Starts it on a file and returns when one may type.
  func open(_ file: EditedFile, _ keyhole: MountedKeyhole) throws -> Terminal {
    let options = options + (file.isBinary ? ["-b"] : [])
    let terminal = try keyhole.world.terminal([program] + options + [keyhole / file.path])
    try terminal.wait(for: ready)
    return terminal
  }
}

extension Output {
  /// Ended well, and said on standard error what was expected, which is mostly nothing.
  func isSuccess(saying text: String = "") -> Bool { status == 0 && error == text }
}

extension World {
  /// Starts a program in a terminal, in the home folder.
  func terminal(_ arguments: [String], environment more: [String] = []) throws -> Terminal {
    try Terminal(
      arguments, environment: environment + more, directory: home, errors: "\(outside)/errors")
  }
}
