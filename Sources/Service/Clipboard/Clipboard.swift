import Model
import Platform
import Prompting
package import SecretMemory
import Tree

/// The clipboard of the user's Wayland or X11 session, through the tool that is installed.
///
/// The tool gets a secret by its standard input. It keeps it in its own memory for as long as the clipboard has it.
package struct Clipboard: Sendable {
  package enum Tool: String, CaseIterable, Sendable {
    case wlCopy = "wl-copy"
    case xclip
    case xsel
  }

  package let tool: Tool

  package init(_ tool: Tool) {
    self.tool = tool
  }

  /// - Throws: `Failure` where there is no display, or no tool for it.
  package static func ofSession() throws -> Clipboard {
    let wayland = environment("WAYLAND_DISPLAY") != nil
    let x11 = environment("DISPLAY") != nil
    let tools: [Tool] = (wayland ? [.wlCopy] : []) + (x11 ? [.xclip, .xsel] : [])
    guard !tools.isEmpty else {
      throw Failure(
        nil,
        "there is no clipboard: neither WAYLAND_DISPLAY nor DISPLAY is set; --osc52 asks the terminal for its own"
      )
    }
    guard let tool = tools.first(where: { isInstalled($0.rawValue) }) else {
      let wanted = wayland ? "wl-clipboard" : "xclip"
      throw Failure(
        nil, "\(tools.map(\.rawValue).joined(separator: ", ")): none is installed; install \(wanted)")
    }
    return Clipboard(tool)
  }

  private static func isInstalled(_ program: String) -> Bool {
    (environment("PATH") ?? "/usr/bin:/bin").split(separator: ":").contains {
      Files.allows(.execute, "\($0)/\(program)")
    }
  }
}

extension Clipboard {
  private var writing: [String] {
    switch tool {
    case .wlCopy: ["wl-copy"] + (takesSensitive ? ["--sensitive"] : [])
    case .xclip: ["xclip", "-selection", "clipboard", "-in"]
    case .xsel: ["xsel", "--clipboard", "--input"]
    }
  }

  private var reading: [String] {
    switch tool {
    case .wlCopy: ["wl-paste", "--no-newline"]
    case .xclip: ["xclip", "-selection", "clipboard", "-out"]
    case .xsel: ["xsel", "--clipboard", "--output"]
    }
  }

  /// Whether the tool marks a secret for managers of clipboards, which then keep it out of their history: wl-copy does from
  /// version 2.3 on (x-kde-passwordManagerHint). The tools of X11 offer one type only.
  private var takesSensitive: Bool {
    guard let child = try? Child(["wl-copy", "--help"], input: .nothing, errors: .discarded) else {
      return false
    }
    defer { child.end() }
    let help = child.readOutput(limit: 64 * 1024, until: .now + .seconds(2)) ?? []
    return String(decoding: help, as: UTF8.self).contains("--sensitive")
  }

  /// Puts a secret there. - Throws: `Failure` where the tool fails.
  package func write(_ secret: borrowing SecretBytes) throws {
    let status: Int32
    do throws(SpawnFailure) {
      let child = try Child(writing, input: .piped)
      defer { child.end() }
      try? Files.write(secret.span, to: child.input)
      child.closeInput()
      // It goes on in the background, as the owner of the clipboard.
      status = child.wait()
    } catch {
      throw Failure(error.program, error.reason)
    }
    guard status == 0 else {
      throw Failure(tool.rawValue, "the clipboard can't be written; the secret is not there")
    }
  }

  /// Empties it if it still holds the secret. - Throws: `Failure` where a tool can't be started.
  package func clear(ifHolding secret: borrowing SecretBytes) throws {
    guard try holds(secret) else { return }
    try runWithoutInput(clearing)
    // Some compositors, as Weston, ignore it when a selection is taken away; an empty one takes its place everywhere.
    if tool == .wlCopy, try holds(secret) { try runWithoutInput(["wl-copy", "--type", "text/plain"]) }
  }

  private var clearing: [String] {
    switch tool {
    case .wlCopy: ["wl-copy", "--clear"]
    case .xclip: writing
    case .xsel: ["xsel", "--clipboard", "--clear"]
    }
  }

  private func runWithoutInput(_ words: [String]) throws {
    do throws(SpawnFailure) {
      let child = try Child(words, input: .piped)
      defer { child.end() }
      child.closeInput()
      child.wait()
    } catch {
      throw Failure(error.program, error.reason)
    }
  }

  private func holds(_ secret: borrowing SecretBytes) throws -> Bool {
    let child: Child
    do throws(SpawnFailure) { child = try Child(reading, input: .nothing, errors: .discarded) } catch {
      throw Failure(error.program, error.reason)
    }
    defer { child.end() }
    // More than a secret may have is another program's.
    guard let content = try? SecretInput.read(descriptor: child.output, limit: FileTree.secretLimit) else {
      return false
    }
    return content == secret
  }
}
